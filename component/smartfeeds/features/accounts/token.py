"""Bearer tokens: their text, their scope and their end (RFC 6750).

A token acts as one bare JID. It has the rights of that JID in the service, limited by its scope. There is no second set
of rules.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import IntEnum

from smartfeeds.core.jid import Jid, parse_jid

ALL_FEEDS = "*"
ID_CHARACTERS = 12
MAX_LABEL_BYTES = 200
SECRET_CHARACTERS = 43  # 256 bits in base64url without padding
PREFIX = "sf"
_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{{ID_CHARACTERS}}})_([A-Za-z0-9_-]{{{SECRET_CHARACTERS}}})")


class TokenScope(IntEnum):
    """The part of its JID's rights that a token has. Each scope includes those before it."""

    READ = 0
    PUBLISH = 1
    ADMIN = 2

    @property
    def text(self) -> str:
        """The name of the scope on the command line and in the store."""
        return self.name.lower()


SCOPES = {scope.text: scope for scope in TokenScope}


@dataclass(frozen=True, slots=True)
class Token:
    """A token as stored, with the digest of its secret in place of the secret.

    `jid` is the bare JID that it acts as, `feed` a node name or ALL_FEEDS, `expires_us` None if it does not expire.
    """

    token_id: str
    digest: bytes
    jid: str
    scope: TokenScope
    feed: str
    label: str
    created_us: int
    expires_us: int | None = None

    @property
    def actor(self) -> Jid:
        """The JID that it acts as."""
        actor = parse_jid(self.jid)
        assert actor is not None, "the JID was checked when the token was created"
        return actor


def write_token(token_id: str, secret: str) -> str:
    """Returns the text that the bearer sends: `sf_`, the id, `_`, the secret."""
    return f"{PREFIX}_{token_id}_{secret}"


def parse_token(text: str) -> tuple[str, str] | None:
    """Returns the id and the secret of a token, or None for any other text."""
    match = _TEXT.fullmatch(text)
    return (match[1], match[2]) if match else None


def digest_of(secret: str) -> bytes:
    """Returns the stored digest of a secret. A slow hash is not necessary, because a secret has 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def matches(token: Token, secret: str) -> bool:
    """Returns whether this is the token's secret. The time does not depend on the number of equal characters."""
    return hmac.compare_digest(token.digest, digest_of(secret))


def ended(token: Token, now_us: int) -> bool:
    """Returns whether the token has expired."""
    return token.expires_us is not None and token.expires_us <= now_us


def covers(token: Token, scope: TokenScope, feed: str) -> bool:
    """Returns whether the token has this scope on the node of this name, not of a view, unless it has `ended`."""
    return token.scope >= scope and token.feed in (ALL_FEEDS, feed)
