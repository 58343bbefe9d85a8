"""Bearer tokens: what one looks like, what it lets its bearer do, when it has ended (RFC 6750).

A token acts as one bare JID. What it may do is what that JID may do in the service, and no more than its scope: there
is no second set of rules.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import IntEnum

ALL_FEEDS = "*"
ID_CHARACTERS = 12
SECRET_CHARACTERS = 43  # 256 bits in base64url without padding
PREFIX = "sf"
_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{{ID_CHARACTERS}}})_([A-Za-z0-9_-]{{{SECRET_CHARACTERS}}})")


class TokenScope(IntEnum):
    """How much of its JID's rights a token has; each includes those before it."""

    READ = 0
    PUBLISH = 1
    ADMIN = 2

    @property
    def text(self) -> str:
        """As it is written on the command line and in the store."""
        return self.name.lower()


SCOPES = {scope.text: scope for scope in TokenScope}


@dataclass(frozen=True, slots=True)
class Token:
    """A token as stored: `digest` stands for its secret, which nobody keeps.

    `jid` is the bare JID it acts as, `feed` a node name or ALL_FEEDS, `expires_us` None where it never ends by itself.
    """

    token_id: str
    digest: bytes
    jid: str
    scope: TokenScope
    feed: str
    label: str
    created_us: int
    expires_us: int | None = None


def write_token(token_id: str, secret: str) -> str:
    """The text that its bearer sends: `sf_`, the id, `_`, the secret."""
    return f"{PREFIX}_{token_id}_{secret}"


def parse_token(text: str) -> tuple[str, str] | None:
    """The id and the secret in a text, or None where it is no token."""
    found = _TEXT.fullmatch(text)
    return (found[1], found[2]) if found else None


def digest_of(secret: str) -> bytes:
    """What is stored of a secret. A slow hash is for secrets that can be guessed: this one is 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def matches(token: Token, secret: str) -> bool:
    """Whether this is the token's secret, in a time that does not tell how much of it is right."""
    return hmac.compare_digest(token.digest, digest_of(secret))


def ended(token: Token, now_us: int) -> bool:
    """Whether the token's time is over."""
    return token.expires_us is not None and token.expires_us <= now_us


def covers(token: Token, scope: TokenScope, feed: str) -> bool:
    """Whether the token has this scope on the node of this name (not a view's), as long as it lasts (`ended`)."""
    return token.scope >= scope and token.feed in (ALL_FEEDS, feed)
