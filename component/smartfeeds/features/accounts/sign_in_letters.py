"""The text form of sign-ins for other processes. It has ages in place of times: the clocks of two machines differ."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from smartfeeds.delivery.letters import LetterTopic
from smartfeeds.features.accounts.sign_ins import SignIn
from smartfeeds.json_form import JsonForm

SIGN_INS: Final = LetterTopic("sign-ins")
CONFIRMATION: Final = LetterTopic("confirmation")  # of a sign-in that the sender does not know


_SIGN_INS: Final = JsonForm(list[SignIn], lenient=True)


def write_sign_ins(sign_ins: Iterable[SignIn], now_us: int) -> bytes:
    """Returns sign-ins as JSON."""
    return _SIGN_INS.write([_moved(sign_in, -now_us) for sign_in in sign_ins]).encode()


def read_sign_ins(data: bytes, now_us: int) -> list[SignIn]:
    """Returns the sign-ins that another process has written."""
    return [_moved(sign_in, now_us) for sign_in in _SIGN_INS.read(data)]


def _moved(sign_in: SignIn, by_us: int) -> SignIn:
    return replace(sign_in, began_us=sign_in.began_us + by_us)
