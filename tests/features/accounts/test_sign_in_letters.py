"""Sign-ins of other processes: their text form, and changes that arrive in any order."""

from dataclasses import replace
from itertools import permutations

import pytest

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.accounts.sign_in_letters import read_sign_ins, write_sign_ins
from smartfeeds.features.accounts.sign_ins import LIFETIME_S, SignIn, SignIns, SignInState

NOW_US = 1_700_000_000_000_000
ALICE = parse_jid("alice@example.org")
assert ALICE is not None


def begin(sign_ins: SignIns) -> SignIn:
    return sign_ins.begin("cookie", "192.0.2.1", "feeds (https://feeds.example.org)", ALICE, "/feeds/")


def passed_on(sign_in: SignIn, now_us: int = NOW_US) -> SignIn:
    """A sign-in as another process reads it at a time of its own clock."""
    (copy,) = read_sign_ins(write_sign_ins([sign_in], NOW_US), now_us)
    return copy


def test_sign_in_survives_its_text_form() -> None:
    """[TOP-013] Its age counts, because the clocks of two machines differ."""
    sign_in = begin(SignIns(lambda: NOW_US - 7))
    assert passed_on(sign_in) == sign_in
    done = replace(sign_in, informed=ALICE, state=SignInState.CONFIRMED, jid=ALICE, target=None)
    assert passed_on(done) == done
    assert passed_on(sign_in, 50).began_us == 50 - 7
    assert b"cookie" not in write_sign_ins([sign_in], NOW_US)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_changes_may_arrive_in_any_order(order: tuple[int, ...]) -> None:
    """[TOP-013] A sign-in that was confirmed and used cannot wait or be used again."""
    states: list[SignIn] = []
    here = SignIns(lambda: NOW_US, on_change=lambda sign_in: states.append(passed_on(sign_in)))
    sign_in = begin(here)
    here.inform(sign_in, ALICE)
    here.answer(sign_in.code, ALICE, accepted=True)
    assert here.take("cookie") is sign_in
    there = SignIns(lambda: NOW_US)
    for place in order:
        there.receive(replace(states[place]))
    assert list(there) == [sign_in]
    assert there.take("cookie") is None


def test_old_sign_ins_are_not_taken_over() -> None:
    old = passed_on(begin(SignIns(lambda: NOW_US - LIFETIME_S * US_PER_S)))
    there = SignIns(lambda: NOW_US)
    there.receive(old)
    assert list(there) == []
