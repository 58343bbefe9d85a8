"""The random texts of a subscription at a hub, and the paths that are made of them (WS-101, WS-103; RC-062)."""

from collections.abc import Callable
from typing import Final

from smartfeeds.core.urls import PUSH

# Makes a random text of letters, digits, - and _ from so many random bytes.
NewKey = Callable[[int], str]

TOKEN_BYTES: Final = 16  # 128 bits
SECRET_BYTES: Final = 32  # 43 letters; a hub takes less than 200 bytes (WebSub section 5.1)


def callback_url(own_url: str, token: str) -> str:
    """The address at which a hub or cloud reaches a subscription."""
    return f"{own_url}{PUSH}{token}"
