"""Functions in threads of their own."""

import asyncio
import threading

import pytest

from smartfeeds.threads import OwnThreads
from support.waiting import HANG_S, in_vain


async def test_result_and_error_come_back() -> None:
    threads = OwnThreads(2)
    assert await threads(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads(divmod, 7, 0)


async def test_each_call_has_a_new_thread_that_does_not_delay_the_exit() -> None:
    """libxml2 keeps names for the life of a thread."""
    threads = OwnThreads(2)
    made = [await threads(threading.current_thread) for _ in range(3)]
    assert len({id(thread) for thread in made}) == 3
    assert all(thread.daemon for thread in made)
    assert threading.current_thread() not in made


async def test_place_of_a_cancelled_call_stays_taken_until_its_function_ends() -> None:
    threads, gate, begun = OwnThreads(1), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert gate.wait(HANG_S), in_vain("the gate")

    first = asyncio.create_task(threads(wait))
    await asyncio.to_thread(begun.wait)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(threads(int, "1"))
    await asyncio.sleep(0)
    assert not second.done()
    gate.set()
    assert await second == 1
