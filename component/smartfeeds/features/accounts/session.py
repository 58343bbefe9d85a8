"""Sessions of browsers: the text of their cookie, their end, and the token that the forms of a session carry.

A session acts through a `Token`, so every check of rights is the same as for a bearer token. The store has only the
digest of the secret in the cookie (RFC 6265 section 8).
"""

import base64
import hmac
import re
from dataclasses import dataclass, replace

from smartfeeds.core.times import US_PER_S
from smartfeeds.core.token import Token, TokenScope
from smartfeeds.features.accounts.bearer import ID_CHARACTERS, SECRET_CHARACTERS, digest_of

IDLE_S = 30 * 86_400  # a session without a request for so long ends
MOST_S = 365 * 86_400  # a session ends after this time in any case
RENEWED_S = 3_600  # a request moves the end of a session once an hour, because that is a write
# Counted for each token: whoever has a token with few rights must not end the other sessions of its user.
SESSIONS_PER_TOKEN = 20
MAX_LABEL_CHARACTERS = 100
PREFIX = "sfs"
_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{{ID_CHARACTERS}}})_([A-Za-z0-9_-]{{{SECRET_CHARACTERS}}})")


@dataclass(frozen=True, slots=True)
class Session:
    """A session as stored, with the digest of its secret in place of the secret.

    `jid`, `scope` and `feed` are those of a token. `token_id` is the token that the user signed in with, "" after a
    sign-in over XMPP. `label` names the browser. The session ends at `expires_us`, which requests move on up to
    `limit_us`.
    """

    session_id: str
    digest: bytes
    jid: str
    scope: TokenScope
    feed: str
    token_id: str
    label: str
    created_us: int = 0
    seen_us: int = 0
    expires_us: int = 0
    limit_us: int = 0

    @property
    def token(self) -> Token:
        """The token that stands for the session."""
        return Token(self.token_id, b"", self.jid, self.scope, self.feed, self.label, self.created_us, self.expires_us)


def write_session(session_id: str, secret: str) -> str:
    """Returns the text of the cookie: `sfs_`, the id, `_`, the secret."""
    return f"{PREFIX}_{session_id}_{secret}"


def parse_session(text: str) -> tuple[str, str] | None:
    """Returns the id and the secret of a session, or None for any other text."""
    match = _TEXT.fullmatch(text)
    return (match[1], match[2]) if match else None


def matches(session: Session, secret: str) -> bool:
    """Returns whether this is the session's secret. The time does not depend on the number of equal characters."""
    return hmac.compare_digest(session.digest, digest_of(secret))


def begun(session: Session, now_us: int, token_expires_us: int | None) -> Session:
    """Returns a new session that begins now. It ends with the token that the user signed in with."""
    limit_us = now_us + MOST_S * US_PER_S
    if token_expires_us is not None:
        limit_us = min(limit_us, token_expires_us)
    return renewed(replace(session, created_us=now_us, limit_us=limit_us), now_us)


def renewed(session: Session, now_us: int) -> Session:
    """Returns the session after a request at this time."""
    return replace(session, seen_us=now_us, expires_us=min(now_us + IDLE_S * US_PER_S, session.limit_us))


def is_due(session: Session, now_us: int) -> bool:
    """Returns whether a request must renew the session."""
    return now_us - session.seen_us >= RENEWED_S * US_PER_S


def form_token(secret_text: str) -> str:
    """Returns the token that a form must carry beside a cookie with this text.

    A page shows this token. It does not reveal the text of the cookie, which no script can read.
    """
    digest = hmac.digest(secret_text.encode(), b"form", "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_form_token(secret_text: str, text: str) -> bool:
    """Returns whether a text is the form token of this cookie, in constant time."""
    return hmac.compare_digest(form_token(secret_text).encode(), text.encode("utf-8", "replace"))
