"""Signatures of what hubs deliver (WebSub section 7.1)."""

import hashlib
import hmac
from typing import Final

METHODS: Final = ("sha1", "sha256", "sha384", "sha512")


def sign(method: str, secret: str, body: bytes) -> str:
    """Returns the value of X-Hub-Signature for the exact bytes of a body."""
    return f"{method}={hmac.digest(secret.encode(), body, getattr(hashlib, method)).hex()}"
