"""How PostgreSQL stores rows that change often, and what it syncs to the disk."""

from collections.abc import AsyncIterator, Callable

import psycopg
import pytest

from smartfeeds.core.consumers import PUSH
from smartfeeds.core.model import Mark
from smartfeeds.core.stores import parse_store
from smartfeeds.core.view import Order
from smartfeeds.store.base import WriteTx
from smartfeeds.store.postgres import PostgresStore
from store.values import add_feed, item, read_payload
from support.postgres_store import EmptyDatabase
from support.stores import opened

MOVES = 20  # fewer than the versions of a row that fit into the free half of a page


@pytest.fixture
async def url(empty_database: EmptyDatabase) -> AsyncIterator[str]:
    with empty_database.emptied() as address:
        yield address


def updates(tx: WriteTx, table: str, work: Callable[[], None]) -> tuple[int, int]:
    """The rows of a table that work updates, and how many of them without a change of an index."""

    def read() -> tuple[int, int]:
        # With those of former transactions of this session that the server has not added to its statistics yet.
        row = tx.db.row("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = ?", (table,))
        assert row is not None
        return int(row[0]), int(row[1])

    before = read()
    work()
    after = read()
    return after[0] - before[0], after[1] - before[1]


async def test_marks_of_a_busy_feed_move_without_changes_of_indexes(url: str) -> None:
    """[PG-045] The feed has items above the mark all the time. The page has room for the new versions of the row."""
    async with opened(PostgresStore(parse_store(url), read_payload)) as store:
        feed = await store.write(add_feed(item("a", 1_000)))
        await store.write(lambda tx: tx.set_mark(feed.node_no, Order.MODIFIED, PUSH, Mark(1, "")))

        def move(tx: WriteTx) -> None:
            for number in range(MOVES):
                tx.set_mark(feed.node_no, Order.MODIFIED, PUSH, Mark(2 + number, "c"))

        assert await store.write(lambda tx: updates(tx, "mark", lambda: move(tx))) == (MOVES, MOVES)


async def test_counts_change_without_changes_of_indexes(url: str) -> None:
    """[PG-042] [PG-045]"""
    async with opened(PostgresStore(parse_store(url), read_payload)) as store:
        feed = await store.write(add_feed())

        def change(tx: WriteTx) -> None:
            for number in range(MOVES):
                tx.set_options(feed.node_no, {"access_model": ("whitelist" if number % 2 else "open",)})
                tx.settle()

        changed, hot = await store.write(lambda tx: updates(tx, "tally", lambda: change(tx)))
        assert changed == hot > 0


def test_rows_that_change_often_have_room_in_their_pages(url: str) -> None:
    """[PG-045] And are vacuumed early."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, reloptions FROM pg_class WHERE relname IN ('node', 'mark')"
        ).fetchall()

    options = ["fillfactor=50", "autovacuum_vacuum_scale_factor=0.02"]
    assert sorted(rows) == [("mark", options), ("node", options)]


async def test_payloads_of_some_kilobytes_stay_in_their_rows(url: str) -> None:
    """[PG-046] Larger payloads are stored beside the table, which has no rows beyond a page."""
    words = " ".join(f"{number:x}" for number in range(1_500))

    def pieces() -> int:
        """The rows of the table beside the items."""
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'item'").fetchone()
            assert row is not None
            row = connection.execute(f"SELECT count(*) FROM {row[0]}".encode()).fetchone()
        assert row is not None
        return int(row[0])

    async with opened(PostgresStore(parse_store(url), read_payload)) as store:
        feed = await store.write(add_feed(*(item(f"i{number}", number, words) for number in range(20))))
        assert pieces() == 0
        large = "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(20_000))
        await store.write(lambda tx: tx.put_item(feed.node_no, item("large", 99, large)))
        assert pieces() > 0
