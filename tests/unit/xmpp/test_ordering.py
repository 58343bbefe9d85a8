"""The order of the requests of one sender: which of them run at the same time."""

import pytest

from smartfeeds.core.jid import Jid
from smartfeeds.xmpp.ordering import RequestOrder, StoreAccess

ANNE, PHONE, BOB = Jid("anne", "x", "home"), Jid("anne", "x", "phone"), Jid("bob", "x", "home")
ACCESS = {"r": StoreAccess.READ, "w": StoreAccess.WRITE, "m": StoreAccess.MIXED}


@pytest.mark.parametrize(
    ("requests", "groups"),
    [
        ("rrr", "rrr"),
        ("www", "www"),
        ("mmm", "m m m"),
        ("wwrrw", "ww rr w"),
        ("rwrwr", "r w r w r"),
        ("wwmmrrmw", "ww m m rr m w"),
    ],
)
async def test_requests_of_one_kind_run_together_and_others_after_them(requests: str, groups: str) -> None:
    order = RequestOrder()
    turns = [order.enter(ANNE, ACCESS[request]) for request in requests]
    ended: set[int] = set()
    run = []
    while len(ended) < len(requests):
        running = [n for n, turn in enumerate(turns) if n not in ended and (turn is None or turn.done())]
        run.append("".join(requests[n] for n in running))
        for n in running:
            ended.add(n)
            order.leave(ANNE)

    assert " ".join(run) == groups
    assert order.is_idle(ANNE)


async def test_request_does_not_pass_those_that_wait() -> None:
    """Otherwise a sender of many reads could hold back its own write for ever."""
    order = RequestOrder()
    assert order.enter(ANNE, StoreAccess.READ) is None
    write = order.enter(ANNE, StoreAccess.WRITE)
    read = order.enter(ANNE, StoreAccess.READ)
    assert write is not None and read is not None
    order.leave(ANNE)

    assert (write.done(), read.done()) == (True, False)


async def test_senders_and_their_devices_do_not_wait_for_each_other() -> None:
    order = RequestOrder()

    assert [order.enter(jid, StoreAccess.MIXED) for jid in (ANNE, PHONE, BOB)] == [None, None, None]


async def test_cancelled_request_is_passed_over() -> None:
    order = RequestOrder()
    order.enter(ANNE, StoreAccess.WRITE)
    cancelled, next_ = order.enter(ANNE, StoreAccess.READ), order.enter(ANNE, StoreAccess.WRITE)
    last = order.enter(ANNE, StoreAccess.MIXED)
    assert cancelled is not None and next_ is not None and last is not None
    cancelled.cancel()
    order.leave(ANNE)
    assert (next_.done(), last.done()) == (True, False)
    last.cancel()
    order.leave(ANNE)

    assert order.is_idle(ANNE)
