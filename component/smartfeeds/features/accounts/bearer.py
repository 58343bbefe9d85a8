"""Bearer tokens as text: their id and their secret (RFC 6750)."""

import hashlib
import hmac
import re

from smartfeeds.core.token import Token

ID_CHARACTERS = 12  # of an id, which only finds the row; the secret proves
SECRET_CHARACTERS = 43  # 256 bits in base64url without padding
PREFIX = "sf"
_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{{ID_CHARACTERS}}})_([A-Za-z0-9_-]{{{SECRET_CHARACTERS}}})")


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
