"""The store of other tests, SQLite in memory, keeps the promises that do not come from the SQL (`store/base.py`)."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from smartfeeds.core.model import Affiliation, Slice
from smartfeeds.core.view import SMART
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.formats.atom import read_traits
from smartfeeds.store.base import Again, Store, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, ids, item, node, view
from support.sqlite_memory import SqliteMemoryStore
from support.world import entry


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """The store in memory, and the real one, which shows that the tests expect the right thing."""
    made: Store = SqliteMemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db", read_traits)
    await made.open()
    yield made
    await made.close()


def adding(name: str, then: Callable[[WriteTx], object] | None = None) -> Callable[[WriteTx], object]:
    """A work that adds a node, and goes on in another transaction if `then` is given."""

    def work(tx: WriteTx) -> object:
        made = tx.add_node(node(name))
        return made.name if then is None else Again(then)

    return work


def wait_for(then: Callable[[WriteTx], object]) -> Callable[[WriteTx], object]:
    """A work that has nothing to commit yet."""

    def work(tx: WriteTx) -> object:
        tx.add_node(node("given up"))
        raise Again(then)

    return work


async def names(store: Store) -> list[str]:
    return await store.read(lambda tx: [made.name for made in tx.nodes("", 9)])


async def test_steps_are_committed_one_by_one_and_told_each(store: Store) -> None:
    commits: list[str] = []
    work = adding("a", wait_for(adding("b", adding("c"))))
    result = await store.write(work, turn="me", on_commit=lambda: commits.append("commit"))

    assert (result, commits) == ("c", ["commit"] * 3)
    assert await names(store) == ["a", "b", "c"]


async def test_step_that_raises_leaves_the_steps_before_it(store: Store) -> None:
    commits: list[str] = []

    def fail(tx: WriteTx) -> None:
        made = tx.node("a")
        assert made is not None
        tx.set_affiliation(made.node_no, "bob@x", Affiliation.OWNER)
        tx.add_node(node("b"))
        raise FeedError(Condition.CONFLICT)

    with pytest.raises(FeedError):
        await store.write(adding("a", fail), on_commit=lambda: commits.append("commit"))

    assert commits == ["commit"]
    assert await names(store) == ["a"]
    await store.write(adding("b"))
    assert await store.read(lambda tx: [made.audience for made in tx.nodes("", 9)]) == [0, 0]


async def test_error_of_on_commit_is_raised_and_undoes_nothing(store: Store) -> None:
    def fail() -> None:
        raise ValueError("no listener")

    with pytest.raises(ValueError, match="no listener"):
        await store.write(adding("a"), on_commit=fail)

    assert await names(store) == ["a"]


async def test_rows_of_unknown_nodes_are_refused(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.write(lambda tx: tx.set_affiliation(9, "bob@x", Affiliation.OWNER))


async def test_items_are_indexed(store: Store) -> None:
    made = await store.write(add_feed(item("a", 1, entry("sun")), item("b", 2, entry("rain"))))

    assert [await store.index_some(1) for _ in range(3)] == [1, 1, 0]
    found = await store.read(lambda tx: tx.slice(made.node_no, Slice(view("q=rain"), 9)))
    assert ids(found) == "b"


async def test_closed_store_refuses_and_has_everything_when_it_is_open_again(store: Store) -> None:
    made = await store.write(add_feed(item("a", 1)))
    with pytest.raises(StoreError):
        await store.open()
    await store.close()
    await store.close()
    for refused in (store.read(lambda tx: tx.node_count()), store.write(adding("b")), store.index_some(1)):
        with pytest.raises(StoreError):
            await refused

    await store.open()
    assert ids(await store.read(lambda tx: tx.slice(made.node_no, Slice(SMART, 9)))) == "a"
