"""Every statement of representative works is a few ranges of indexes, in a database of 100,000 items."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql

from smartfeeds.core.consumers import PUSH
from smartfeeds.core.model import Affiliation, Edge, KeyRange, Mark, Slice
from smartfeeds.core.stores import parse_store
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import BARE, CREATED, SMART, Order
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.rows import digest
from store.values import item, read_payload, subscription, view
from support.postgres import PostgresServer

ITEMS = 100_000
LARGE = ("item", "facet", "subscription")
# A search sorts the items that it finds, in both engines (PG-052). The look for consumers sorts the consumers.
_SORTED = ("documents_with", "Scan on mark")

_FILL = """
INSERT INTO node (name, kind, state, creator, created_us, options, total, live, last_modified_us, last_created_us,
    audience, subscribed, indexed_us, indexed_no, stale)
SELECT 'feed' || n, 'feed', 'live', 'alice@example.org', 1, '{}', 50000, 50000, 50000, 50000, 1, 1000, 50000, 100000, 0
FROM generate_series(1, 2) n;
INSERT INTO item (node_no, id, created_us, modified_us, change, revision, notify, total, live, publisher, payload)
SELECT 1 + n % 2, 'i' || n, n / 2, n / 2, 0, 0, 1, n / 2, n / 2, 'a@x', '' FROM generate_series(1, 100000) n;
INSERT INTO facet (node_no, facet, modified_us, item_no, created_us, states)
SELECT node_no, '\\xFACET', modified_us, item_no, created_us, 1 FROM item WHERE item_no % 3 = 0;
INSERT INTO subscription (node_no, jid, bare, view, node_text, service, state, since_us, since_created_us, created_us,
    options)
SELECT 1 + n % 2, 'u' || n || '@x', 'u' || n || '@x', '', 'feed', 's', 'subscribed', 0, 0, 0, '{}'
FROM generate_series(1, 2000) n;
INSERT INTO mark (node_no, ord, consumer, key_us, cursor) VALUES (1, 'modified', 'push', 10, '');
"""


class RecordingSession(PostgresSession):
    """A session that remembers one execution of each statement."""

    statements: dict[str, Sequence[object]] = {}  # noqa: RUF012 - one test uses it

    def queue(self, statement: str, rows: Any) -> None:
        """Remembers the statement, too."""
        kept = list(rows)
        if kept:
            self.statements.setdefault(statement, tuple(kept[0]))
        super().queue(statement, kept)

    def _again_if_new(self, statements: Sequence[tuple[str, Any]]) -> list[list[tuple[Any, ...]]]:
        for statement, params in statements:
            self.statements.setdefault(statement, tuple(params))
        return super()._again_if_new(statements)


def read_all(tx: ReadTx) -> None:
    """Reads as pages, pulls, pushes and lists do."""
    for shown in (BARE, SMART, CREATED, view("kind=new"), view("kind=new&order=created")):
        for page in (
            Slice(shown, 50, newest=True),
            Slice(shown, 50, after=Edge(20_000, 40_000)),
            Slice(shown, 50, after=Edge(100, 200), before=Edge(40_000, 80_000), newest=True),
        ):
            tx.slice(1, page)
    tx.slice(1, Slice(view("q=fox"), 50, newest=True))
    tx.items(1, ["i2", "i4"])
    tx.item_of_sync(1, "i2")
    tx.group(1, Order.MODIFIED, 500, 3)
    tx.conflicted(1)
    tx.changed_items(50, Edge(30_000, 60_000))
    tx.changed_nodes("a@x", 10)
    tx.subscription(1, "u4@x", "", now_us=5)
    tx.subscriptions(1, 500, 100)
    tx.subscriptions_on(1, "u4@x", now_us=5)
    tx.subscriptions_of("u4@x", KeyRange(10), now_us=5)
    tx.subscribers(1, KeyRange(10), now_us=5)
    tx.subscribed_views(1)
    tx.push_start(1, 10)
    tx.subscriber_use(1, "u4@x", now_us=5)
    tx.ended_leases(5, 10)
    tx.behind()
    tx.mark(1, Order.MODIFIED, PUSH)
    tx.affiliations_of("a@x")
    tx.listed_nodes("a@x", "", 10)


def write_all(tx: WriteTx) -> None:
    """Writes as publishing, subscribing and pushing do."""
    stored = tx.put_item(1, item("new", 60_000, "by=a | fox"))
    tx.put_item(1, stored._replace(modified_us=60_001, revision=1))
    old = tx.item(1, "i2")
    assert old is not None
    tx.put_item(1, old._replace(modified_us=60_002, revision=1))
    tx.set_keys(1, 60_002, 60_000)
    tx.set_affiliation(1, "b@x", Affiliation.MEMBER)
    made = tx.put_subscription(subscription(1, "b@x"))
    tx.put_subscription(made)
    tx.remove_subscription(made.sub_no)
    tx.set_mark(1, Order.MODIFIED, PUSH, Mark(20, ""))
    tx.index_some(10)


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    address = postgres.create_database()
    yield address
    postgres.drop_database(address)


async def test_no_statement_reads_or_sorts_a_large_table(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-036] [PG-037] Whatever the statistics are: the tables were filled after the sessions had planned."""
    monkeypatch.setattr("smartfeeds.store.postgres.PostgresSession", RecordingSession)
    monkeypatch.setattr(RecordingSession, "statements", {})
    store = PostgresStore(parse_store(url), read_payload)
    await store.open()
    with psycopg.connect(url, autocommit=True) as connection:
        facet = next(iter(next(iter(view("kind=new").facets(publishers=True)))))
        connection.execute(_FILL.replace("FACET", digest(facet).hex()).encode())
    await store.write(write_all, touch=Touch("feed1", "b@x", ("i6",), 2))
    await store.read(read_all)
    plans = explain(url)
    await store.close()

    assert len(plans) > 60
    assert {statement: nodes for statement, nodes in plans.items() if bad(nodes)} == {}
    assert any("Index Scan on item" in nodes for nodes in plans.values())


def bad(nodes: list[str]) -> bool:
    """Whether a plan reads a whole large table, or sorts rows of one."""
    text = " ".join(nodes)
    large = any(f"Scan on {table}" in text for table in LARGE)
    reads_all = any(f"{scan} on {table}" in text for table in LARGE for scan in ("Seq Scan", "(whole)"))
    return reads_all or ("Sort" in nodes and large and not any(part in text for part in _SORTED))


def explain(url: str) -> dict[str, list[str]]:
    """The nodes of the plan that a session of the store makes for each statement that was recorded."""
    session = PostgresSession(parse_store(url))
    session.open_at_once()
    connection = session.connection
    connection.execute("ANALYZE")
    plans: dict[str, list[str]] = {}
    for statement, params in RecordingSession.statements.items():
        if not re.match(r"SELECT|UPDATE|DELETE|INSERT", statement):
            continue
        numbers = iter(range(1, 1_000))
        text = re.sub(r"\?", lambda _: f"${next(numbers)}", statement)  # noqa: B023
        types = ", ".join(map(type_of, params))
        connection.execute(f"PREPARE plan{f' ({types})' if types else ''} AS {text}".encode())
        values = sql.SQL(", ").join(map(sql.Literal, params))
        call = sql.SQL("EXPLAIN (FORMAT JSON) EXECUTE plan {}").format(
            sql.SQL("({})").format(values) if params else sql.SQL("")
        )
        row = connection.execute(call).fetchone()
        assert row is not None
        plans[statement] = list(nodes_of(row[0][0]["Plan"] if not isinstance(row[0], str) else json.loads(row[0])))
        connection.execute("DEALLOCATE plan")
    session.close()
    return plans


def nodes_of(plan: dict[str, Any]) -> Iterator[str]:
    """The nodes of a plan, each with its table."""
    name = plan.get("Relation Name") or plan.get("Function Name")
    # An index scan without a condition reads the whole table, too.
    whole = " (whole)" if "Index" in plan["Node Type"] and "Index Cond" not in plan else ""
    yield f"{plan['Node Type']}{whole} on {name}" if name else plan["Node Type"]
    for child in plan.get("Plans", ()):
        yield from nodes_of(child)


def type_of(value: object) -> str:
    """The type that the store's sessions give a parameter."""
    if isinstance(value, list | tuple):
        return "bigint[]" if value and isinstance(value[0], int) else "text[]"
    return {int: "bigint", bool: "bigint", bytes: "bytea"}.get(type(value), "unknown")
