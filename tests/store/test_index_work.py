"""The work of the filter index: statements, round trips and calls of Python for each item, counted instead of timed."""

import sys
from pathlib import Path
from types import FrameType

import pytest

from smartfeeds.core.model import IndexState, Item
from smartfeeds.formats.atom import read_traits
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, item, view

STATEMENTS = ("rows", "row", "run", "run_many", "rows_of", "documents", "put_documents")
# Of Python, for an entry with an author, two categories and a text. It was 115 when each item had its own statements.
CALLS_EACH = 21


class CountingEngine:
    """An engine that counts the statements that it is asked for. Those of one `run_many` or `rows_of` are one."""

    def __init__(self, engine: object) -> None:
        self._engine = engine
        self.count = 0

    def __getattr__(self, name: str) -> object:
        self.count += name in STATEMENTS
        return getattr(self._engine, name)


def statements(tx: WriteTx, limit: int) -> tuple[int, int]:
    """Indexes some items. Returns their number and that of the statements."""
    counting = CountingEngine(tx.db)  # type: ignore[attr-defined]
    tx.db = counting  # type: ignore[attr-defined]
    try:
        return tx.index_some(limit), counting.count
    finally:
        tx.db = counting._engine  # type: ignore[attr-defined]


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("edited", [False, True], ids=["new", "edited"])
async def test_statements_of_a_step_do_not_grow_with_its_items(store: Store, *, edited: bool) -> None:
    """On PostgreSQL each would be a round trip, and the nodes are locked meanwhile."""
    counts: dict[int, int] = {}
    for number in (10, 80):
        entries = [item(f"{number}.{key}", key + 1, "in=x | some words") for key in range(number)]
        made = await store.write(add_feed(*entries, name=str(number)))
        if edited:

            def edit(tx: WriteTx, node_no: int = made.node_no, number: int = number) -> None:
                tx.index_node(node_no)
                for key in range(number):
                    old = tx.item(node_no, f"{number}.{key}")
                    assert old is not None
                    tx.put_item(node_no, old._replace(modified_us=1_000 + key, payload=b"in=y | other", revision=2))

            await store.write(edit)
        done, counts[number] = await store.write(lambda tx, number=number: statements(tx, number))  # type: ignore[misc]
        assert done == number
        assert await store.read(lambda tx, node_no=made.node_no: tx.count(node_no, view("category=x"))) == number  # type: ignore[misc]
    assert counts[10] == counts[80] <= 12


def atom(number: int) -> Item:
    """An entry as a person writes it."""
    payload = (
        f'<entry xmlns="http://www.w3.org/2005/Atom"><author><name>Ann</name></author><category term="c{number % 5}">'
        f'</category><category term="reports"></category><content type="html">&lt;p&gt;Rain in the west, sun east'
        f" {number}.&lt;/p&gt;</content><id>tag:example.org,2026:{number}</id><title>Report {number}</title>"
        "<updated>2026-01-02T08:00:00Z</updated></entry>"
    )
    return item(str(number), number + 1, payload)


async def test_calls_of_python_for_an_indexed_item_stay_within_their_budget(tmp_path: Path) -> None:
    """The index must keep up with publishes, which take about 250 calls each."""
    store = SqliteStore(tmp_path / "s.db", read_traits)
    await store.open()

    def calls(tx: WriteTx, expected: int) -> int:
        count = 0

        def note(_frame: FrameType, event: str, _value: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(note)
        try:
            assert tx.index_some(10_000) == expected
        finally:
            sys.setprofile(None)
        return count

    try:
        await store.write(add_feed(*map(atom, range(100)), name="few"))
        few = await store.write(lambda tx: calls(tx, 100))
        await store.write(add_feed(*map(atom, range(1_000, 1_200)), name="many"))
        many = await store.write(lambda tx: calls(tx, 200))
    finally:
        await store.close()
    assert (many - few) / 100 <= CALLS_EACH


async def test_filtered_read_indexes_its_own_node_alone(sqlite: SqliteStore) -> None:
    """The backlog of another node delays nobody else."""
    other = await sqlite.write(add_feed(*(item(f"o{key}", key + 1, "in=x") for key in range(300)), name="other"))
    own = await sqlite.write(add_feed(*(item(f"i{key}", key + 1, "in=x") for key in range(30)), name="own"))
    assert await sqlite.write(lambda tx: tx.index_node(own.node_no, 100)) == 30
    states = await sqlite.read(lambda tx: [tx.index_state(node.node_no) for node in (own, other)])
    assert states == [IndexState.CURRENT, IndexState.BEHIND]
    assert await sqlite.read(lambda tx: tx.count(own.node_no, view("category=x"))) == 30


async def test_node_that_others_always_lock_is_indexed_too(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index waits for the node when all nodes with new items are locked, as on PostgreSQL under load."""
    made = await sqlite.write(add_feed(item("a", 1, "in=x")))
    index_some = WriteTx.index_some
    waits: list[bool] = []

    def locked(tx: WriteTx, limit: int, *, skip_locked: bool = True) -> int:
        waits.append(not skip_locked)
        return 0 if skip_locked else index_some(tx, limit, skip_locked=False)

    monkeypatch.setattr(WriteTx, "index_some", locked)
    assert await sqlite.index_some(10) == 1
    assert await sqlite.read(lambda tx: tx.index_state(made.node_no) is IndexState.CURRENT)
    assert await sqlite.index_some(10) == 0
    assert waits == [False, True, False]
