"""Every statement of the store is a few ranges of indexes, in a database of 100,000 items.

The test reads the source of the store: a statement that no call below runs fails the test.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, LiteralString

import psycopg
import pytest
from psycopg import sql

import smartfeeds
from smartfeeds.core.consumers import PUSH, Consumer, Failure, SentBatch
from smartfeeds.core.feed_files import FeedFile
from smartfeeds.core.model import (
    Affiliation,
    Edge,
    Item,
    KeyRange,
    Mark,
    NodeEvent,
    NodeKind,
    OpenPurge,
    Slice,
    SubscriptionState,
)
from smartfeeds.core.node_place import NodePlace
from smartfeeds.core.stores import parse_store
from smartfeeds.core.touches import Touch
from smartfeeds.core.validators import KnownDocument, Validators
from smartfeeds.core.view import BARE, CREATED, SMART, Order, View
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.postgres_engine import PostgresEngine
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.rows import digest
from smartfeeds.store.scan import Scan
from smartfeeds.store.sql_tables import FILE
from store.values import feed_file, item, link, node, read_payload, subscription, view
from support.postgres import PostgresServer

ITEMS = 100_000
LARGE = ("item", "facet", "subscription", "affiliation", "word", "node")  # tables whose rows are not sorted
MANY = (*LARGE, "source", "source_entry", "source_push", "tally")  # tables that are not read as a whole
PACKAGE = Path(smartfeeds.__file__).parent
# The modules that have statements: those of the store, and the rows of features.
STATEMENTS = {
    str(path): path.relative_to(PACKAGE).as_posix()
    for pattern in ("store/sql_*.py", "features/*/rows.py", "features/*/*_rows.py")
    for path in PACKAGE.glob(pattern)
}
# Methods of an engine that run a statement, and methods of transactions that do so for others.
_RUNNERS = ("rows", "row", "rows_of", "run", "run_many", "add", "add_many")
_HELPERS = ("change", "number", "part", "sum_tally", "values")
# The names of a transaction: in its own methods, and in the functions of features.
_TRANSACTIONS = ("self", "tx")
# A search sorts the items that it finds, in both engines (PG-052). The look for consumers sorts the consumers.
_SORTED = ("documents_with", "Scan (gap) on mark")
# Partial indexes with a few rows, which may be read as a whole.
_SHORT = ("node_deleted", "node_stale", "subscription_pending", "tally_scattered")


def _load_plans() -> dict[str, ModuleType]:
    """The modules `plans.py` of the tests of features, by feature: `read` and `write` run its statements, and the
    constants are as those here, without the name of the feature."""
    modules = {}
    for path in sorted((Path(__file__).parents[1] / "features").glob("*/plans.py")):
        spec = spec_from_file_location(f"plans_of_{path.parent.name}", path)
        assert spec is not None and spec.loader is not None
        modules[path.parent.name] = module_from_spec(spec)
        spec.loader.exec_module(modules[path.parent.name])
    return modules


PLANS = _load_plans()


def _of_features(constant: str) -> dict[str, str]:
    return {
        f"{feature}.{name}": reason
        for feature, plans in PLANS.items()
        for name, reason in getattr(plans, constant, {}).items()
    }


# What sorts a few rows, and how many. Functions of a feature have its name before theirs.
_FEW = _of_features("FEW") | {
    "pending_nodes": "nodes with requests",
}
# What reads or sorts a whole table, and why it may.
_WHOLE = _of_features("WHOLE") | {
    "totals": "for statistics; the cost is that of the nodes",
    "changed_nodes": "sorts the hidden nodes that a user may read",
}

_FILL = """
INSERT INTO node (name, kind, state, creator, created_us, options, total, live, last_modified_us, last_created_us,
    audience, subscribed, indexed_us, indexed_no, stale)
SELECT 'feed' || n, 'feed', CASE WHEN n = 5 THEN 'deleted' ELSE 'live' END, 'alice' || n || '@example.org', 1, '{}',
    CASE WHEN n < 3 THEN 50000 ELSE 1 END, CASE WHEN n < 3 THEN 50000 ELSE 1 END, 50000, 50000, 1, 1000, 50000, 100000,
    0
FROM generate_series(1, 5000) n;
INSERT INTO item (node_no, id, created_us, modified_us, change, revision, notify, total, live, publisher, payload)
SELECT CASE WHEN n % 10 < 9 THEN 1 + n % 2 ELSE 6 + n / 10 % 4990 END, 'i' || n, n / 2, n / 2, 0, 0, 1, n / 2, n / 2,
    'a@x', ''
FROM generate_series(1, 100000) n;
INSERT INTO facet (node_no, facet, modified_us, item_no, created_us, states)
SELECT node_no, '\\xFACET', modified_us, item_no, created_us, 1 FROM item WHERE item_no % 3 = 0;
INSERT INTO word (document, tokens)
SELECT n * 32, array_to_tsvector(ARRAY['t' || n % 7]) FROM generate_series(1, 9000) n;
INSERT INTO subscription (node_no, jid, bare, view, node_text, service, state, since_us, since_created_us, created_us,
    options)
SELECT 1 + n % 2, 'u' || n || '@x', 'u' || n || '@x', '', 'feed', 's', 'subscribed', 0, 0, 0, '{}'
FROM generate_series(1, 2000) n;
INSERT INTO affiliation (node_no, jid, affiliation)
SELECT 1 + n % 4, 'u' || n || '@x', 'member' FROM generate_series(1, 2000) n;
INSERT INTO affiliation (node_no, jid, affiliation)
SELECT n, 'a' || n % 500 || '@x', CASE WHEN n % 2 = 0 THEN 'owner' ELSE 'outcast' END FROM generate_series(6, 5000) n;
-- A deleted node, whose rows are still to be removed.
INSERT INTO item (node_no, id, created_us, modified_us, change, revision, notify, total, live, publisher, payload)
VALUES (5, 'i', 1, 1, 0, 0, 1, 1, 1, 'a@x', '');
INSERT INTO facet (node_no, facet, modified_us, item_no, created_us, states)
SELECT node_no, '\\xFACET', modified_us, item_no, created_us, 1 FROM item WHERE node_no = 5;
INSERT INTO subscription (node_no, jid, bare, view, node_text, service, state, since_us, since_created_us, created_us,
    options)
VALUES (5, 'u@x', 'u@x', '', 'feed', 's', 'subscribed', 0, 0, 0, '{}');
INSERT INTO affiliation (node_no, jid, affiliation) VALUES (5, 'u@x', 'member');
INSERT INTO mark (node_no, ord, consumer, key_us, cursor)
SELECT n, 'modified', 'push', 10, '' FROM generate_series(1, 1000) n;
INSERT INTO tally (name, slot, value)
SELECT 'subscriptions of u' || n || '@x', CASE WHEN n < 3 THEN 7 ELSE 0 END, 1 FROM generate_series(1, 20000) n;
"""

_COLUMNS = """
SELECT i.indexrelid::regclass::text, array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indexrelid GROUP BY i.indexrelid
"""

# The sites of statements that have run, each with its file and line.
_sites: set[tuple[str, int]] = set()


def feature_of(name: str) -> str:
    """The name of the feature that has a module, with a dot behind it; "" for the store."""
    return f"{name.split('/')[1]}." if name.startswith("features/") else ""


class RecordingEngine(PostgresEngine):
    """An engine that notes the lines of the store and of features that run statements."""

    method: ClassVar[str] = ""  # of the transaction, or the function of a feature, that runs the statement

    def _note(self) -> None:
        frame = sys._getframe(2)
        while frame is not None:
            if name := STATEMENTS.get(frame.f_code.co_filename):
                _sites.add((name, frame.f_lineno))
                RecordingEngine.method = f"{feature_of(name)}{frame.f_code.co_name}"
            frame = frame.f_back  # type: ignore[assignment]

    def rows_of(self, queries: Sequence[tuple[str, Sequence[object]]]) -> list[list[Any]]:
        self._note()
        return super().rows_of(queries)

    def run_many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        rows = list(params)
        if rows:
            self._note()
        super().run_many(sql, rows)

    def add(self, table: Any, values: Sequence[object]) -> int:
        self._note()
        return super().add(table, values)

    def add_many(self, table: Any, rows: Sequence[Sequence[object]]) -> None:
        self._note()
        super().add_many(table, rows)


class RecordingSession(PostgresSession):
    """A session that remembers one execution of each statement, and the method of the transaction that ran it."""

    statements: ClassVar[dict[str, tuple[Sequence[object], str]]] = {}

    def queue(self, statement: str, rows: Any) -> None:
        """Remembers the statement, too."""
        kept = list(rows)
        if kept:
            self.statements.setdefault(statement, (tuple(kept[0]), RecordingEngine.method))
        super().queue(statement, kept)

    def _again_if_new(self, statements: Sequence[tuple[str, Any]]) -> list[list[tuple[Any, ...]]]:
        for statement, params in statements:
            self.statements.setdefault(statement, (tuple(params), RecordingEngine.method))
        return super()._again_if_new(statements)


# A value for each type of a parameter of `ReadTx`.
ITEM = Item(2, "i2", 1, 1, b"", "a@x")
SAMPLES: dict[object, object] = {
    int: 1,
    str: "feed1",
    bool: True,
    int | None: 5,
    str | None: "a@x",
    tuple[str, str]: ("", ""),
    tuple[int, str, str]: (0, "", ""),
    Collection[str]: ("a", "b"),
    Collection[int]: (901, 902),  # not read before
    Sequence[str]: ("i2", "i4"),
    Sequence[View]: [view("kind=new"), view("q=fox")],
    Sequence[Touch]: [Touch("feed2", "a@x", ("i1",), feed="feed1")],
    View: view("kind=new"),
    Slice: Slice(SMART, 10),
    Order: Order.MODIFIED,
    Item: ITEM,
    Scan: Scan(1, view("q=fox"), read_payload),
    FeedFile: feed_file(1),
    Consumer: Consumer(1, PUSH),
}
for _plans in PLANS.values():
    SAMPLES.update(getattr(_plans, "SAMPLES", {}))


def read_each(tx: ReadTx) -> None:
    """Calls every method of a reading transaction, and every function of features over one."""
    for name, method in inspect.getmembers(tx, inspect.ismethod):
        if not name.startswith("_") and hasattr(ReadTx, name) and name not in _HELPERS:
            _call(method)
    for function in _reads_of_features():
        _call(partial(function, tx))


def _call(read: Callable[..., object]) -> None:
    """Calls a read with a sample for each parameter that it needs."""
    parameters = inspect.signature(read).parameters.values()
    read(**{each.name: SAMPLES[each.annotation] for each in parameters if each.default is each.empty})


def _reads_of_features() -> Iterator[Callable[..., object]]:
    """The public functions, in modules of features with statements, whose first parameter is a reading transaction."""
    for name in (name for name, calls in _CALLS.items() if calls and feature_of(name)):
        module = import_module(f"smartfeeds.{name.removesuffix('.py').replace('/', '.')}")
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and function.__name__[0] != "_":
                parameters = list(inspect.signature(function).parameters.values())
                if parameters and parameters[0].annotation is ReadTx:
                    yield function


def read_more(tx: ReadTx) -> None:
    """The statements that other values of parameters cause."""
    for shown in (
        BARE,
        SMART,
        CREATED,
        *map(view, ("kind=new", "kind=new&order=created", "kind=new&author=a", "q=fox", "kind=new&kind=edited")),
        view("author=a&category=b&category=c"),
    ):
        for page in (
            Slice(shown, 50, newest=True),
            Slice(shown, 50, after=Edge(20_000, 40_000)),
            Slice(shown, 50, after=Edge(100, 200), before=Edge(40_000, 80_000), newest=True),
        ):
            tx.slice(1, page)
        tx.count(1, shown, before=Edge(10, 20))
    ranges: list[KeyRange[Any]] = [KeyRange(10), KeyRange(10, after=5), KeyRange(10, before=5, newest=True)]
    for part in ranges:
        tx.conflicted(1, part)
        tx.affiliations_of("u4@x", part)
        tx.affiliations_of("u4@x", part, kind=Affiliation.OWNER)
        tx.subscriptions_of("u4@x", part, now_us=5)
    texts: list[KeyRange[str]] = [KeyRange(10), KeyRange(10, after="u4@x"), KeyRange(10, before="u4@x", newest=True)]
    for text in texts:
        tx.affiliations(1, text)
        tx.affiliations(1, text, kind=Affiliation.MEMBER)
        tx.subscribers(1, text, now_us=5)
    for newest in (False, True):
        tx.nodes("", 10, before="x", newest=newest)
        tx.listed_nodes("u4@x", "", 10, before="x", newest=newest)
    tx.addresses(owners=False, after="", limit=10)
    tx.changed_nodes(None, 10)
    for jid in (None, "u4@x"):
        tx.changed_nodes(jid, 10, NodePlace(5, "x"))
    tx.pending_nodes(None, 10, now_us=5)
    tx.look_ahead([Touch("feed1", "u4@x", ("i2",), feed="feed2", cursors=())])
    for plans in PLANS.values():
        if hasattr(plans, "read"):
            plans.read(tx)


def publish_one(tx: WriteTx) -> None:
    """The next count of a view begins with the count before it."""
    tx.set_keys(1, 70_000, 70_000)
    tx.put_item(1, item("last", 70_000))
    tx.index_node(1)


def write_each(tx: WriteTx) -> None:
    """Calls every method of a writing transaction, and every function of features over one, that runs a statement."""
    _write_items(tx)
    _write_people(tx)
    _write_nodes(tx)
    _write_deliveries(tx)
    _write_records(tx)
    for plans in PLANS.values():
        if hasattr(plans, "write"):
            plans.write(tx)


def _scan(tx: WriteTx) -> None:
    scan = Scan(1, view("kind=edited"), read_payload)
    assert tx.scan_on(scan, 10) is False
    tx._scans[1, scan.view.filters] = scan  # as if it had reached the end
    assert tx.slice(1, Slice(scan.view, 5))
    tx.scan_is_shorter(1)


def _write_items(tx: WriteTx) -> None:
    tx.db.run(FILE.replace, feed_file(1))
    stored = tx.put_item(1, item("new", 60_000, f"by=a {link()}"))
    tx.put_item(1, stored._replace(modified_us=60_001, revision=2, payload=b"| fox"))
    old = tx.item(1, "i2")
    assert old is not None
    tx.put_item(1, old._replace(modified_us=60_002, revision=2))
    tx.put_item(1, ITEM._replace(item_no=4, id="i4", modified_us=60_003))
    tx.add_items(1, [item(f"many {number}", 60_010 + number) for number in range(3)])
    tx.set_keys(1, 60_100, 60_100)
    _scan(tx)
    tx.index_some(10)
    tx.index_node(1)
    tx.put_item(1, stored._replace(modified_us=60_101, revision=3, payload=b"by=b | hound"))
    tx.index_some(10)

    tx.rename_item(1, 2, "renamed", "")
    tx.replace_content(2, b"", b"")
    tx.forget_versions(1, ITEM)


def _write_people(tx: WriteTx) -> None:
    tx.set_affiliation(1, "b@x", Affiliation.MEMBER)
    tx.set_affiliation(1, "b@x", Affiliation.NONE)
    made = tx.put_subscription(subscription(1, "b@x"))
    tx.put_subscription(made._replace(state=SubscriptionState.PENDING))
    tx.remove_subscription(made.sub_no)
    tx.count_request_form(1, ["a@x"], 5, 4)
    tx.remove_counts("b@x")


def _write_nodes(tx: WriteTx) -> None:
    made = tx.add_node(node("made"), owner="o@x")
    tx.set_kind(made.node_no, NodeKind.GENERIC)
    tx.set_options(made.node_no, {"access_model": ("whitelist",)})
    tx.rename_node(made.node_no, "renamed", "b@x")
    tx.set_creator(made.node_no, "c@x")
    tx.mark_pages_changed(made.node_no)
    tx.retire_node(made.node_no)
    tx.reap(5, 10)
    tx.reap(made.node_no, 1_000)
    tx.lock("feed2")
    tx.lock_no(2)
    tx.settle()
    tx.gather_tallies(10)


def _write_deliveries(tx: WriteTx) -> None:
    consumer = Consumer(1, "hub:x")
    tx.set_mark(1, Order.MODIFIED, consumer.name, Mark(20, ""))
    tx.move_mark(consumer, Order.MODIFIED, Mark(21, ""))
    tx.set_wait(consumer, Failure(1, 1, 1, "late"))
    tx.put_batch(consumer, SentBatch(5, joined=False))
    tx.remove_consumer(consumer)
    event = tx.add_event(NodeEvent(0, 1, 5, "purge"))
    tx.remove_events([event.event_no])
    tx.put_purge(OpenPurge(1, 5, "a@x"))
    tx.remove_purge(1)


def _write_records(tx: WriteTx) -> None:
    tx.put_redirect("gone", "xmpp:b.example?;node=n", "a@x")
    tx.remove_redirect("gone")
    tx.put_document("r", "u", KnownDocument(Validators("u")))
    tx.remove_document("r", "u")


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    address = postgres.create_database()
    yield address
    postgres.drop_database(address)


@pytest.mark.needs("privacy")
async def test_no_statement_reads_or_sorts_a_large_table(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-036] [PG-037] Whatever the statistics are: the tables were filled after the sessions had planned. Two feeds
    have most of the items, and thousands have a few, so that a feed has few items on average.
    """
    monkeypatch.setattr("smartfeeds.store.postgres.PostgresSession", RecordingSession)
    monkeypatch.setattr("smartfeeds.store.postgres.PostgresEngine", RecordingEngine)
    monkeypatch.setattr("smartfeeds.store.postgres.LIGHT_STEPS", None)
    monkeypatch.setattr("smartfeeds.store.postgres.LIGHT_MS", 0)
    store = PostgresStore(parse_store(url), read_payload)
    await store.open()
    with psycopg.connect(url, autocommit=True) as connection:
        facet = next(iter(next(iter(view("kind=new").facets(publishers=True)))))
        fill = _FILL.replace("FACET", digest(facet).hex())
        connection.execute(fill.encode())
        for plans in PLANS.values():
            connection.execute(getattr(plans, "FILL", "").encode())
    await store.write(write_each, touch=Touch("feed1", "b@x", ("i6",), 2, quota_of="b@x", subscribes=True))
    await store.read(read_each, touch=Touch("feed1", "b@x", ("i6",)))
    await store.read(read_more)
    await store.write(publish_one)
    await store.read(lambda tx: tx.bounded_count(1, view("kind=new")))
    # As after a start, and as after the first vacuum, when the planner knows that rows are visible to all.
    states = [explain(url, gathering) for gathering in ("ANALYZE", "VACUUM ANALYZE")]
    await store.close()

    assert statements_of_source() - {site_of(*site) for site in _sites} == set(), "no call above runs these"
    for plans in states:
        found = {text: nodes for text, (nodes, method) in plans.items() if bad(method, nodes) and method not in _WHOLE}
        assert found == {}
        used = {method for nodes, method in plans.values() if bad(method, nodes)}
        assert used == set(_WHOLE), "exceptions that no statement needs"
        assert any("Index Scan on item by item_id" in nodes for nodes, _ in plans.values())
        searches = [" ".join(nodes) for nodes, _ in plans.values() if "Function Scan on documents_with" in nodes]
        assert searches and all("by item_pkey" in nodes and nodes.count("on item ") == 1 for nodes in searches)


def calls_in(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """The calls in a module that run statements, each with the function around it."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    receiver, _, database = ast.unparse(call.func.value).partition(".")
                    runners = {"": _HELPERS, "db": _RUNNERS}.get(database, ())
                    if receiver in _TRANSACTIONS and call.func.attr in runners:
                        yield function.name, call


_CALLS = {name: list(calls_in(Path(path))) for path, name in STATEMENTS.items()}


def statements_of_source() -> set[str]:
    """The sites of all statements in the source."""
    return {describe(name, function, call) for name, calls in _CALLS.items() for function, call in calls}


def site_of(name: str, line: int) -> str:
    """The site of a statement to which a line belongs, "" if there is none."""
    within = [
        (call.end_lineno - call.lineno, describe(name, function, call))  # type: ignore[operator]
        for function, call in _CALLS[name]
        if call.lineno <= line <= call.end_lineno  # type: ignore[operator]
    ]
    return min(within)[1] if within else ""


def describe(name: str, function: str, call: ast.Call) -> str:
    """The name of a site."""
    return f"{name}:{call.lineno} {function}"


def bad(method: str, nodes: list[str]) -> bool:
    """Whether a plan reads a whole large table, sorts rows of one, or compares all rows of two."""
    text = " ".join(nodes)
    large = any(f"Scan on {table} " in f"{text} " for table in LARGE)
    reads_all = any(f"{scan} on {table} " in f"{text} " for table in MANY for scan in ("Seq Scan", "(whole)", "(gap)"))
    # An incremental sort sorts a few rows at a time.
    sorts = "Sort" in nodes and method not in _FEW and not any(part in text for part in _SORTED)
    # Rows that are kept for a join are all rows of a node, and each row of another table is compared with them.
    joins = "Materialize" in nodes
    return reads_all or (large and (sorts or joins))


def explain(url: str, gathering: LiteralString) -> dict[str, tuple[list[str], str]]:
    """The nodes of the plan that a session of the store makes for each statement that was recorded, and its method.
    `gathering` is the command that gathers statistics before.
    """
    session = PostgresSession(parse_store(url))
    session.open_at_once()
    connection = session.connection
    # The sample has all rows, so plans do not change between runs.
    connection.execute("SET default_statistics_target = 10000")
    connection.execute(gathering)
    columns = dict(connection.execute(_COLUMNS).fetchall())
    plans: dict[str, tuple[list[str], str]] = {}
    for statement, (params, method) in RecordingSession.statements.items():
        if not re.match(r"SELECT|UPDATE|DELETE|INSERT|WITH", statement):
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
        plan = row[0][0]["Plan"] if not isinstance(row[0], str) else json.loads(row[0])
        plans[statement] = list(nodes_of(plan, columns)), method
        connection.execute("DEALLOCATE plan")
    session.close()
    return plans


def nodes_of(plan: dict[str, Any], columns: dict[str, list[str]], *, is_limited: bool = False) -> Iterator[str]:
    """The nodes of a plan, each with its table and index. `columns` are those of each index. `is_limited`: the reader
    above ends after some rows.
    """
    kind, name = plan["Node Type"], plan.get("Relation Name") or plan.get("Function Name")
    index, condition = plan.get("Index Name", ""), plan.get("Index Cond", "")
    # An index scan without a condition reads the whole table, too, unless it begins at the end of its order. Even then
    # it passes all rows that a filter removes.
    reads_all = index and not condition and (not is_limited or "Filter" in plan) and index not in _SHORT
    # An index whose conditions leave out a column before another one is read for all values of this column.
    used = [column in re.findall(r"\w+", condition) for column in columns.get(index, ())]
    has_gap = used != sorted(used, reverse=True)
    marks = f"{' (whole)' if reads_all else ''}{' (gap)' if has_gap else ''}"
    yield f"{kind}{marks} on {name}{f' by {index}' if index else ''}" if name else kind
    is_limited = kind == "Limit" or (is_limited and kind in ("LockRows", "Result", "Subquery Scan"))
    for child in plan.get("Plans", ()):
        yield from nodes_of(child, columns, is_limited=is_limited)


def type_of(value: object) -> str:
    """The type that the store's sessions give a parameter."""
    if isinstance(value, list | tuple):
        return "bigint[]" if value and isinstance(value[0], int) else "text[]"
    return {int: "bigint", bool: "bigint", bytes: "bytea", float: "double precision"}.get(type(value), "unknown")


def test_the_search_for_statements_finds_them() -> None:
    """The test above cannot pass because it searches badly."""
    assert sum(name.startswith("store/") for name in statements_of_source()) > 100
    with_statements = {name for name, calls in _CALLS.items() if calls}
    assert {"store/sql_push.py", "store/sql_items.py", "store/sql_tallies.py"} <= with_statements
    assert {name for name in STATEMENTS.values() if name.endswith("/rows.py")} <= with_statements
