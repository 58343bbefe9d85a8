"""The text form of sign-ins for other processes. It has ages in place of times: the clocks of two machines differ."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.delivery.letters import LetterTopic
from smartfeeds.features.accounts.sign_ins import SignIn, SignInState

SIGN_INS: Final = LetterTopic("sign-ins")
CONFIRMATION: Final = LetterTopic("confirmation")  # of a sign-in that the sender does not know


def write_sign_ins(sign_ins: Iterable[SignIn], now_us: int) -> bytes:
    """Returns sign-ins as JSON."""
    return json.dumps([_row_of(sign_in, now_us) for sign_in in sign_ins]).encode()


def read_sign_ins(data: bytes, now_us: int) -> list[SignIn]:
    """Returns the sign-ins that another process has written."""
    return [_sign_in_of(row, now_us) for row in json.loads(data)]


def _row_of(sign_in: SignIn, now_us: int) -> dict[str, Any]:
    row = asdict(sign_in)
    people = {name: "" if (jid := getattr(sign_in, name)) is None else str(jid) for name in _PEOPLE}
    return {**row, **people, "state": sign_in.state.value, "began_us": sign_in.began_us - now_us}


def _sign_in_of(row: dict[str, Any], now_us: int) -> SignIn:
    people: dict[str, Jid | None] = {name: parse_jid(row[name]) if row[name] else None for name in _PEOPLE}
    return SignIn(**{**row, **people, "state": SignInState(row["state"]), "began_us": row["began_us"] + now_us})


_PEOPLE = ("target", "informed", "jid")
