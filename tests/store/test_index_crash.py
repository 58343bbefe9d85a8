"""The process is killed while it indexes, before each statement in turn. The next process completes the index."""

import shutil
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path

import pytest

from smartfeeds.core.model import IndexState, Slice
from smartfeeds.errors import StoreError
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, ids, item, read_payload, view

STATEMENTS = ("rows", "row", "run", "run_many", "rows_of", "documents", "put_documents")
UNLIMITED = 10**6  # statements
STEP = 3  # of eight items, two of which change after the first step
QUERIES = (
    "category=x",
    "category=y",
    "q=fox",
    "q=hen",
    "q=fox&category=x",
    "kind=edited",
    "kind=deleted",
    "author=ann",
)


class KilledError(Exception):
    """The process has ended here."""


class DyingEngine:
    """An engine whose process dies before it has run so many statements."""

    def __init__(self, engine: object, left: int, die: Callable[[object], None]) -> None:
        self._engine = engine
        self.left = left
        self._die = die

    def __getattr__(self, name: str) -> object:
        if name in STATEMENTS:
            self.tick()
        return getattr(self._engine, name)

    def tick(self) -> None:
        """Counts a statement."""
        self.left -= 1
        if self.left < 0:
            self._die(self._engine)
            raise KilledError


class Process:
    """A process with a store that dies while it indexes, and the process after it."""

    def __init__(self, store: Store, folder: Path, left: int) -> None:
        self.store = store
        self.died = False
        self._copy = folder / f"{left}.db"
        self._left = left

    async def step(self) -> int:
        """Indexes some items, and returns how many."""
        if self.died:
            return await self.store.index_some(STEP)
        try:
            return await self.store.write(self._indexed)
        except (KilledError, StoreError):
            self.died = True
        await self.reopen()
        return STEP

    def _indexed(self, tx: WriteTx) -> int:
        engine = tx.db
        dying = DyingEngine(engine, self._left, self._die)
        tx.db = dying  # type: ignore[assignment]
        try:
            done = tx.index_some(STEP)
            tx.settle()  # writes how far the index is
            dying.tick()  # the commit
        finally:
            tx.db = engine
        self._left = dying.left
        return done

    def _die(self, engine: object) -> None:
        """Leaves what a process leaves that is killed now: the files as they are, or a session that has ended."""
        if isinstance(self.store, SqliteStore):
            for end in ("", "-wal"):
                shutil.copy(f"{self.store.path}{end}", f"{self._copy}{end}")
        else:
            engine.row("SELECT pg_terminate_backend(pg_backend_pid())")  # type: ignore[attr-defined]

    async def reopen(self) -> None:
        """Starts the next process."""
        await self.store.close()
        if isinstance(self.store, SqliteStore):
            self.store = SqliteStore(self._copy if self.died else self.store.path, read_payload)
        else:
            assert isinstance(self.store, PostgresStore)
            self.store = PostgresStore(self.store.address, read_payload)
        await self.store.open()


def edit(node_no: int) -> Callable[[WriteTx], None]:
    """New versions of the first item, which is indexed now, and of the last one, which is not."""

    def work(tx: WriteTx) -> None:
        for key, (item_id, deleted) in enumerate((("0", False), ("7", True)), 100):
            old = tx.item(node_no, item_id)
            assert old is not None
            tx.put_item(node_no, old._replace(modified_us=key, payload=b"in=y | hen", revision=2, deleted=deleted))

    return work


def index_of(tx: ReadTx, node_no: int) -> tuple[object, ...]:
    """All rows of the index of a feed, without the numbers of its node and items, and what its views find."""
    db = tx.db
    rows = db.rows(
        "SELECT f.facet, f.modified_us, i.id, f.created_us, f.states FROM facet f LEFT JOIN item i"
        " ON i.item_no = f.item_no WHERE f.node_no = ?",
        (node_no,),
    )
    items = dict(db.rows("SELECT item_no, id FROM item WHERE node_no = ?", (node_no,)))
    versions = sorted((items[number], sorted(texts)) for number, texts in db.documents(list(items)).items())
    found = [ids(tx.slice(node_no, Slice(view(query), 99))) for query in QUERIES]
    counts = [tx.count(node_no, view(query)) for query in QUERIES]
    return sorted(map(tuple, rows)), versions, found, counts, tx.index_state(node_no)


async def test_index_is_complete_after_a_crash_before_each_of_its_statements(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-007] Also between the rows of the index and the mark how far it is. No row is lost or there twice."""
    monkeypatch.setattr("smartfeeds.store.batches.ATTEMPTS", 1)
    whole: tuple[object, ...] = ()
    for left in chain((UNLIMITED,), count()):
        entries = [item(str(key), key + 1, "by=ann in=x | fox") for key in range(8)]
        process = Process(store, tmp_path, left)
        node_no = (await process.store.write(add_feed(*entries, name=f"left {left}"))).node_no
        await process.step()
        await process.store.write(edit(node_no))
        while await process.step():
            pass
        await process.reopen()
        store = process.store
        found = await store.read(lambda tx, node_no=node_no: index_of(tx, node_no))  # type: ignore[misc]
        whole = whole or found
        assert found == whole, left
        if left < UNLIMITED and not process.died:
            break
    assert whole[-1] is IndexState.CURRENT and whole[2][0] == "1 2 3 4 5 6 0 7"  # type: ignore[index]
    assert left > 20  # statements of the steps together
    await store.close()
