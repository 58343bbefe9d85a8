"""The random texts of a subscription at a hub, and the paths that are made of them (WS-101, WS-103; RC-062)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.urls import PUSH

# Makes a random text of letters, digits, - and _ from so many random bytes.
NewKey = Callable[[int], str]

TOKEN_BYTES: Final = 16  # 128 bits
SECRET_BYTES: Final = 32  # 43 letters; a hub takes less than 200 bytes (WebSub section 5.1)


@dataclass(frozen=True, slots=True)
class OwnCallbacks:
    """Where hubs and clouds reach this service: `own_url` is its public address. `new_key` is None if they cannot, or
    if push is off. With `secret_over_http` hubs without TLS get a secret, too."""

    own_url: str = ""
    new_key: NewKey | None = None
    secret_over_http: bool = False


def callback_url(own_url: str, token: str) -> str:
    """The address at which a hub or cloud reaches a subscription."""
    return f"{own_url}{PUSH}{token}"
