"""Held pulls: who hears what and when, on a loop whose time stands still."""

import asyncio

import pytest

from smartfeeds.http import waiting
from smartfeeds.http.waiting import HeldPulls
from support.faketime import settle

LONG_S = 3_600.0


class Board:
    """Answers by key; `asked` is what was asked for, in order. `gate` holds answers back while it is not set."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key: str) -> str | None:
        self.asked.append(key)
        await self.gate.wait()
        return self.answers.get(key)


def held(board: Board) -> HeldPulls[str, str]:
    return HeldPulls(board, lambda answer: answer.encode())


def wait(
    on: HeldPulls[str, str], key: str, node_no: int = 1, written: list[bytes] | None = None, timeout_s: float = LONG_S
) -> "asyncio.Task[str | None]":
    """Somebody who has seen everything up to now and waits for more."""
    write = None if written is None else written.append
    return asyncio.create_task(on.wait(node_no, key, on.changes, timeout_s, write))


async def test_nothing_is_asked_before_a_change() -> None:
    """[SF-056] Who waits costs nothing."""
    board = Board()
    on = held(board)
    one = wait(on, "a")
    await settle()
    assert (on.held, board.asked, one.done()) == (1, [], False)
    one.cancel()
    await settle()


async def test_pulls_that_are_alike_get_one_answer() -> None:
    """[SF-004] The answer is made once and written for each of them; those who cannot be written to get it too."""
    board, written = Board(), list[bytes]()
    on = held(board)
    waiting_ = [wait(on, "a", written=written) for _ in range(5)] + [wait(on, "a")]
    await settle()
    board.answers["a"] = "news"
    on.wake([1])
    assert await asyncio.gather(*waiting_) == ["news"] * 6
    assert (board.asked, written) == (["a"], [b"news"] * 5)
    assert (on.held, list(on.node_nos)) == (0, [])


async def test_a_change_of_another_feed_wakes_nobody() -> None:
    board = Board()
    on = held(board)
    one = wait(on, "a")
    await settle()
    on.wake([2, 3])
    await settle()
    assert not board.asked and not one.done()
    one.cancel()
    await settle()


async def test_a_change_that_is_none_for_this_view_lets_wait_on() -> None:
    """[A-11] Only an item that enters this view ends the wait."""
    board = Board()
    on = held(board)
    one, other = wait(on, "a"), wait(on, "b")
    await settle()
    board.answers["b"] = "news"
    on.wake([1])
    assert await other == "news"
    assert not one.done() and on.held == 1
    board.answers["a"] = "later"
    on.wake([1])
    assert await one == "later"


async def test_a_change_between_the_look_and_the_wait_is_not_missed() -> None:
    """[SF-004] Who has seen less than there is now is answered without a further change."""
    board = Board()
    on = held(board)
    seen = on.changes
    board.answers["a"] = "news"
    on.wake([1])
    assert await on.wait(1, "a", seen, LONG_S) == "news"


async def test_a_change_while_an_answer_is_made_is_looked_at_too() -> None:
    """[SF-004] The first look found nothing; the change came behind it."""
    board = Board()
    on = held(board)
    one = wait(on, "a")
    await settle()
    board.gate.clear()
    on.wake([1])
    await settle()
    assert board.asked == ["a"]
    on.wake([1])
    board.gate.set()
    await settle()
    assert board.asked == ["a", "a"] and not one.done()
    one.cancel()
    await settle()
    assert list(on.node_nos) == []


async def test_who_comes_while_an_answer_is_delivered_is_not_forgotten() -> None:
    """[SF-004] A new waiter of the same kind, that has not seen the change, gets an answer of its own."""
    board = Board()
    on = held(board)
    seen = on.changes
    one = wait(on, "a")
    await settle()
    board.gate.clear()
    on.wake([1])
    await settle()
    late = asyncio.create_task(on.wait(1, "a", seen, LONG_S))
    await settle()
    board.answers["a"] = "news"
    board.gate.set()
    assert await asyncio.gather(one, late) == ["news", "news"]
    assert on.held == 0


async def test_a_wait_ends_without_news() -> None:
    """[SF-056] None after the timeout, and nothing is left."""
    on = held(Board())
    assert await wait(on, "a", timeout_s=0) is None
    assert (on.held, list(on.node_nos)) == (0, [])


async def test_who_goes_is_forgotten_and_not_written_to() -> None:
    """Cut off while the answer is made: only the others get it."""
    board, gone, stays = Board(), list[bytes](), list[bytes]()
    on = held(board)
    one, other = wait(on, "a", written=gone), wait(on, "a", written=stays)
    await settle()
    board.answers["a"] = "news"
    board.gate.clear()
    on.wake([1])
    await settle()
    one.cancel()
    await settle()
    board.gate.set()
    assert await other == "news"
    assert (gone, stays, on.held) == ([], [b"news"], 0)


async def test_all_that_go_leave_nothing() -> None:
    board = Board()
    on = held(board)
    many = [wait(on, f"key{number % 7}", number % 5) for number in range(500)]
    await settle()
    assert on.held == 500 and sorted(on.node_nos) == [0, 1, 2, 3, 4]
    for one in many:
        one.cancel()
    await asyncio.gather(*many, return_exceptions=True)
    on.wake(range(5))
    await settle()
    assert (on.held, list(on.node_nos), board.asked) == (0, [], [])


async def test_many_are_written_to_before_any_of_them_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-004] Others have their turn in between, and still nobody has to wait for somebody's end of a request."""
    monkeypatch.setattr(waiting, "WRITTEN_AT_ONCE", 10)
    monkeypatch.setattr(waiting, "ANSWERED_AT_ONCE", 10)
    board, written = Board(), list[bytes]()
    on = held(board)
    ended_after: list[int] = []

    async def follow() -> None:
        await on.wait(1, "a", on.changes, LONG_S, written.append)
        ended_after.append(len(written))

    many = [asyncio.create_task(follow()) for _ in range(100)]
    await settle()
    board.answers["a"] = "news"
    on.wake([1])
    await asyncio.gather(*many)
    assert ended_after == [100] * 100


class Steps:
    """Answers what was asked for when the test says so. `sizes` says how much was asked for at a time."""

    def __init__(self) -> None:
        self.open: list[asyncio.Future[str | None]] = []
        self.sizes: list[int] = []

    async def __call__(self, _key: str) -> str | None:
        self.open.append(asyncio.get_running_loop().create_future())
        return await self.open[-1]

    async def answer(self, *, found: bool) -> None:
        await settle()
        self.sizes.append(len(self.open))
        for number, answer in enumerate(self.open):
            answer.set_result(f"news {number}" if found else None)
        self.open = []
        await settle()


@pytest.mark.parametrize("found", [True, False])
async def test_many_views_are_asked_for_together(*, found: bool) -> None:
    """Their reads share a snapshot. The first ones are asked for alone: they may have to wait for the filter index."""
    board = Steps()
    on = HeldPulls(board, lambda answer: answer.encode())
    many = [wait(on, f"key{number}") for number in range(40)]
    await settle()
    on.wake([1])
    for _ in range(7):
        await board.answer(found=found)
    assert board.sizes == [1, 1, 2, 4, 8, 16, 8]
    assert [one.done() for one in many] == [found] * 40
    assert sum(feed.task is not None for feed in on._feeds.values()) == 0
    await on.stop()
    await asyncio.gather(*many, return_exceptions=True)


async def test_no_view_is_asked_for_after_the_stop() -> None:
    board = Steps()
    on = HeldPulls(board, lambda answer: answer.encode())
    many = [wait(on, f"key{number}") for number in range(8)]
    await settle()
    on.wake([1])
    for _ in range(3):
        await board.answer(found=False)
    assert len(board.open) == 4
    await on.stop()
    ended = await asyncio.gather(*many, return_exceptions=True)
    assert [type(one) for one in ended] == [ConnectionResetError] * 8
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_after_the_stop_nobody_waits() -> None:
    """[design 5] Those who wait end with their connections, those who come are turned away, and no task is left."""
    board = Board()
    on = held(board)
    waiting_ = [wait(on, key) for key in "aabc"]
    await settle()
    board.gate.clear()
    on.wake([1])
    await settle()
    await on.stop()
    ended = await asyncio.gather(*waiting_, return_exceptions=True)
    assert [type(one) for one in ended] == [ConnectionResetError] * 4
    with pytest.raises(ConnectionError):
        await on.wait(1, "a", 0, LONG_S)
    assert on.held == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_answer_whose_bytes_cannot_be_made_ends_its_pulls_with_the_error() -> None:
    """The requests of the group get the error at once, and pulls of other views of the feed get their answer."""

    def raw(answer: str) -> bytes:
        if answer == "bad":
            raise ValueError("the reason")
        return answer.encode()

    board, written = Board(), list[bytes]()
    on = HeldPulls(board, raw)
    pulls = [wait(on, "a", written=written), wait(on, "a"), wait(on, "b", written=written)]
    await settle()
    board.answers = {"a": "bad", "b": "news"}
    on.wake([1])
    await settle()
    assert all(pull.done() for pull in pulls)
    first, second, third = await asyncio.gather(*pulls, return_exceptions=True)
    assert (str(first), str(second), third) == ("the reason", "the reason", "news")
    assert (written, on.held, list(on.node_nos)) == ([b"news"], 0, [])
