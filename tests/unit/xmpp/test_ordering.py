"""The order of the requests of one sender: which of them run at the same time."""

import asyncio
from functools import partial

import pytest

from smartfeeds.xmpp.ordering import RequestOrder, StoreAccess

ANNE, PHONE, BOB = "anne@x/home", "anne@x/phone", "bob@x/home"
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
    started: list[str] = []
    for request in requests:
        order.enter(ANNE, ACCESS[request], partial(started.append, request))
    run = []
    while started:
        run.append("".join(started))
        running, count = started[:], len(started)
        started.clear()
        for _ in range(count):
            order.leave(ANNE)
        await asyncio.sleep(0)  # what waited is started in the next iteration
        assert running

    assert " ".join(run) == groups
    assert order.is_idle(ANNE)


async def test_request_does_not_pass_those_that_wait() -> None:
    """Otherwise a sender of many reads could hold back its own write for ever."""
    order = RequestOrder()
    started: list[str] = []
    for request in ("r", "w", "r"):
        order.enter(ANNE, ACCESS[request], partial(started.append, request))
    order.leave(ANNE)
    await asyncio.sleep(0)

    assert started == ["r", "w"]


async def test_request_does_not_pass_those_that_are_about_to_start() -> None:
    """A stanza may arrive in the iteration of the event loop in which a request ends and others may start."""
    order = RequestOrder()
    started: list[int] = []
    for number, request in enumerate("rww"):
        order.enter(ANNE, ACCESS[request], partial(started.append, number))
    order.leave(ANNE)
    for number, request in enumerate("wwr", 3):
        order.enter(ANNE, ACCESS[request], partial(started.append, number))
    await asyncio.sleep(0)

    assert started == [0, 1, 2, 3, 4]


async def test_senders_and_their_devices_do_not_wait_for_each_other() -> None:
    order = RequestOrder()
    started: list[str] = []
    for sender in (ANNE, PHONE, BOB):
        order.enter(sender, StoreAccess.MIXED, partial(started.append, sender))

    assert started == [ANNE, PHONE, BOB]


async def test_requests_that_end_as_they_start_do_not_call_each_other() -> None:
    """More of them wait than Python allows calls inside each other."""
    order = RequestOrder()
    order.enter(ANNE, StoreAccess.READ, lambda: None)
    ended: list[int] = []

    def start(number: int) -> None:
        ended.append(number)
        order.leave(ANNE)

    for number in range(2_000):
        order.enter(ANNE, StoreAccess.MIXED, partial(start, number))
    order.leave(ANNE)
    for _ in range(2_000):
        await asyncio.sleep(0)

    assert ended == list(range(2_000))
