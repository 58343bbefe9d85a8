"""Tokens: the rights of a request over HTTP. A token acts as one bare JID, limited by its scope and its feed.

There is no second set of rules: a request with a token has the rights of its JID in the service. The kernel checks what
a token covers. A feature recognises the sender of a request, and returns its token (`http.authentication`).
"""

from dataclasses import dataclass
from enum import IntEnum

from smartfeeds.core.jid import Jid, parse_jid

ALL_FEEDS = "*"
MAX_LABEL_BYTES = 200  # of the name that its owner gives a token


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


def ended(token: Token, now_us: int) -> bool:
    """Returns whether the token has expired."""
    return token.expires_us is not None and token.expires_us <= now_us


def covers(token: Token, scope: TokenScope, feed: str) -> bool:
    """Returns whether the token has this scope on the node of this name, not of a view, unless it has `ended`."""
    return token.scope >= scope and token.feed in (ALL_FEEDS, feed)
