"""Works of one sender take effect in their order, also if they need several transactions (`Again`)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from smartfeeds.core.model import Slice
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.store.base import Again, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.store.sqlite_engine import SqliteEngine
from store.values import add_feed, ids, item

ANNE, BOB = "anne@x", "bob@x"
Work = Callable[[WriteTx], Any]


class Journal:
    """Works that store an item each, and the names of those that ran, in their order."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def work(self, name: str, rest: Work | None = None) -> Work:
        """A work. If there is a rest, it follows in a transaction of its own."""

        def run(tx: WriteTx) -> Any:
            self.runs.append(name)
            tx.put_item(1, item(name, 10 * len(self.runs)))
            return name if rest is None else Again(rest)

        return run

    def rejected(self, name: str, rest: Work, *, changes: bool = False) -> Work:
        """A work that raises Again."""

        def run(tx: WriteTx) -> Any:
            self.runs.append(name)
            if changes:
                tx.put_item(1, item(name, 10 * len(self.runs)))
            raise Again(rest)

        return run


@pytest.fixture
async def journal(sqlite: SqliteStore) -> Journal:
    await sqlite.write(add_feed())
    return Journal()


async def stored(store: SqliteStore) -> str:
    return ids(await store.read(lambda tx: tx.slice(1, Slice(BARE, 99))))


async def test_works_of_a_sender_wait_for_the_rest_of_the_work_before_them(
    sqlite: SqliteStore, journal: Journal
) -> None:
    """Those of another sender run in between, and nothing runs twice."""
    work = journal.work
    results = await asyncio.gather(
        sqlite.write(work("a1", work("a2", work("a3"))), turn=ANNE),
        sqlite.write(work("b"), turn=ANNE),
        sqlite.write(work("x"), turn=BOB),
        sqlite.write(work("c"), turn=ANNE),
    )

    assert results == ["a3", "b", "x", "c"]
    assert [run for run in journal.runs if run != "x"] == ["a1", "a2", "a3", "b", "c"]
    assert journal.runs.index("x") < journal.runs.index("a3")
    assert await stored(sqlite) == " ".join(journal.runs)


@pytest.mark.parametrize("changes", [False, True])
async def test_work_that_raises_again_is_rolled_back_and_keeps_its_place(
    sqlite: SqliteStore, journal: Journal, changes: bool
) -> None:
    """Changes of such a work make its batch run again, one work after the other."""
    first = journal.rejected("refused", journal.work("rest"), changes=changes)
    results = await asyncio.gather(
        sqlite.write(journal.work("before"), turn=ANNE),
        sqlite.write(first, turn=ANNE),
        sqlite.write(journal.work("after"), turn=ANNE),
    )

    assert results == ["before", "rest", "after"]
    assert await stored(sqlite) == "before rest after"


async def test_error_in_the_rest_of_a_work_reaches_its_caller_only(sqlite: SqliteStore, journal: Journal) -> None:
    def fail(_tx: WriteTx) -> None:
        raise FeedError(Condition.FORBIDDEN)

    results = await asyncio.gather(
        sqlite.write(journal.work("a", fail), turn=ANNE),
        sqlite.write(journal.work("b"), turn=ANNE),
        return_exceptions=True,
    )

    assert isinstance(results[0], FeedError) and results[1] == "b"
    assert await stored(sqlite) == "a b"


async def test_rest_of_a_work_whose_caller_was_cancelled_does_not_run(sqlite: SqliteStore, journal: Journal) -> None:
    """The works behind it run."""
    first: asyncio.Task[Any]

    def cancel() -> None:
        first.cancel()

    first = asyncio.ensure_future(sqlite.write(journal.work("a1", journal.work("a2")), turn=ANNE, on_commit=cancel))
    second = asyncio.ensure_future(sqlite.write(journal.work("b"), turn=ANNE))
    await asyncio.gather(first, second, return_exceptions=True)

    assert first.cancelled()
    assert (journal.runs, second.result()) == (["a1", "b"], "b")
    assert await sqlite.write(journal.work("c"), turn=ANNE) == "c"


async def test_works_without_a_turn_do_not_wait_for_each_other(sqlite: SqliteStore, journal: Journal) -> None:
    """They come from many parts of the service: a long purge must not hold back the marks of the deliveries."""
    await asyncio.gather(
        sqlite.write(journal.work("a1", journal.work("a2"))),
        sqlite.write(journal.work("b")),
        sqlite.write(lambda _tx: None),
    )

    assert journal.runs == ["a1", "b", "a2"]


async def test_each_commit_is_reported_and_no_rollback(sqlite: SqliteStore, journal: Journal) -> None:
    commits: list[list[str]] = []

    def fail(_tx: WriteTx) -> None:
        raise FeedError(Condition.FORBIDDEN)

    await sqlite.write(
        journal.work("a", journal.rejected("r", journal.work("b"))),
        turn=ANNE,
        on_commit=lambda: commits.append(journal.runs.copy()),
    )
    with pytest.raises(FeedError):
        await sqlite.write(fail, turn=ANNE, on_commit=lambda: commits.append([]))

    assert commits == [["a"], ["a", "r", "b"]]


async def test_report_that_fails_is_an_error_of_its_caller_only(sqlite: SqliteStore, journal: Journal) -> None:
    def report() -> None:
        raise ValueError("report")

    results = await asyncio.gather(
        sqlite.write(journal.work("a"), turn=ANNE, on_commit=report),
        sqlite.write(journal.work("b"), turn=ANNE),
        return_exceptions=True,
    )

    assert isinstance(results[0], ValueError) and results[1] == "b"
    assert await stored(sqlite) == "a b"


@pytest.mark.parametrize("statement", ["begin", "commit"])
async def test_work_ends_with_the_transaction_that_fails(
    sqlite: SqliteStore, journal: Journal, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """The part that would follow must not run, nor the part before it a second time."""
    execute = getattr(SqliteEngine, statement)
    commits: list[list[str]] = []

    def fail_after_the_first(engine: SqliteEngine) -> None:
        if commits:
            raise StoreError("the disk is full")
        execute(engine)

    monkeypatch.setattr(SqliteEngine, statement, fail_after_the_first)
    with pytest.raises(StoreError, match="full"):
        await sqlite.write(
            journal.work("a1", journal.work("a2", journal.work("a3"))),
            turn=ANNE,
            on_commit=lambda: commits.append(journal.runs.copy()),
        )
    monkeypatch.undo()

    assert commits == [["a1"]] and "a3" not in journal.runs
    assert await stored(sqlite) == "a1"
