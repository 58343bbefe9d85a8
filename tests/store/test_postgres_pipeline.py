"""Statements that share a round trip: what they return, what an error leaves, and the arrays of parameters."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from smartfeeds.core.stores import parse_store
from smartfeeds.formats.payload import Payload
from smartfeeds.store import postgres_ahead, postgres_pipeline
from smartfeeds.store.engine import Row
from smartfeeds.store.migrate_postgres import prepare_postgres
from smartfeeds.store.postgres_engine import PostgresEngine
from smartfeeds.store.postgres_pipeline import PostgresPipeline, combined
from smartfeeds.store.postgres_session import PLANNED_AGAIN, PostgresSession, connect
from support.postgres import PostgresServer

TABLE = "CREATE TEMPORARY TABLE kept (no bigint PRIMARY KEY, name text, data bytea)"
INSERT = "INSERT INTO kept (no, name, data) VALUES (?, ?, ?)"
UPSERT = f"{INSERT} ON CONFLICT (no) DO UPDATE SET name = kept.name || excluded.name"
ALL = ("SELECT no, name, data FROM kept ORDER BY no", ())


@pytest.fixture
def pipeline(postgres: PostgresServer) -> Iterator[PostgresPipeline]:
    """A connection with a table of its own."""
    with closing(connect(parse_store(postgres.url()), "test", autocommit=True)) as connection:
        connection.execute(TABLE)
        yield PostgresPipeline(connection)


def rows(pipeline: PostgresPipeline, *statements: tuple[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of the last of these statements."""
    return pipeline.rows(pipeline.run(statements)[-1])


def test_statement_for_all_rows_adds_what_a_statement_for_each_adds(pipeline: PostgresPipeline) -> None:
    added = [
        (1, "a", Payload(b"\0\xff")),
        (-(2**63), "", b""),
        (2**63 - 1, 'quote " comma , brace { backslash \\ é 漢 NULL', None),
        (3, None, Payload(b"x" * 100_000)),
    ]
    statement = combined(INSERT, added)
    assert statement is not None

    assert rows(pipeline, statement, ALL) == sorted(added)

    pipeline.run([("DELETE FROM kept", ()), *((INSERT, row) for row in added)])
    assert rows(pipeline, ALL) == sorted(added)


def test_statement_for_all_rows_leaves_a_column_empty(pipeline: PostgresPipeline) -> None:
    statement = combined(INSERT, [(1, "a", None), (2, "b", None)])
    assert statement is not None

    assert rows(pipeline, statement, ALL) == [(1, "a", None), (2, "b", None)]


def test_statement_for_all_rows_changes_those_that_exist(pipeline: PostgresPipeline) -> None:
    pipeline.run([(INSERT, (1, "a", b""))])
    statement = combined(UPSERT, [(2, "b", b""), (1, "c", b"")])
    assert statement is not None

    assert rows(pipeline, statement, ALL) == [(1, "ac", b""), (2, "b", b"")]


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        pytest.param("UPDATE kept SET name = ? WHERE no = ?", ("a", 1), id="a second row may change the same one"),
        pytest.param(UPSERT, (1, "a", b""), id="as above"),
        pytest.param(INSERT, (1.5, "a", b""), id="a type without an array"),
    ],
)
def test_other_statements_run_for_each_row(sql: str, row: tuple[object, ...]) -> None:
    assert combined(sql, [row, row]) is None


def test_integers_of_any_size_follow_each_other(pipeline: PostgresPipeline) -> None:
    """psycopg chooses int2[] by the first list, and refuses the second one."""
    query = "SELECT unnest(CAST(? AS bigint[])), unnest(CAST(? AS bigint[]))"
    for lists in (([1], [2**40]), ([2**40], [1]), ([], [])):
        assert rows(pipeline, (query, lists)) == list(zip(*lists, strict=True))


def test_error_skips_what_follows_and_leaves_the_connection_usable(pipeline: PostgresPipeline) -> None:
    """A statement that was skipped is prepared again: the server does not know it."""
    skipped = ("SELECT 7", ())
    with pytest.raises(psycopg.errors.DivisionByZero):
        pipeline.run([(INSERT, (1, "a", b"")), ("SELECT 1 / ?", (0,)), skipped, (INSERT, (2, "b", b""))])

    assert rows(pipeline, skipped) == [(7,)]
    assert rows(pipeline, ALL) == []  # the statements of a pipeline are one transaction


@pytest.mark.parametrize(
    ("value", "error"), [("\ud800", UnicodeEncodeError), (["\ud800"], UnicodeEncodeError), ([2**63], OverflowError)]
)
def test_parameter_that_cannot_be_sent_stops_all_statements(
    pipeline: PostgresPipeline, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        pipeline.run([(INSERT, (1, "a", b"")), ("SELECT ?", (value,))])

    assert rows(pipeline, ALL) == []
    assert rows(pipeline, (INSERT, (1, "a", b"")), ALL) == [(1, "a", b"")]


def test_both_sides_send_more_than_the_buffers_hold(pipeline: PostgresPipeline) -> None:
    """Each result is sent while the next parameters arrive. Both sides would wait for each other."""
    data = b"x" * 2_000_000
    results = pipeline.run([("SELECT CAST(? AS bytea)", (data,))] * 10)

    assert [pipeline.rows(result) for result in results] == [[(data,)]] * 10


def test_connection_keeps_a_bounded_number_of_statements(
    pipeline: PostgresPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pipeline, "_PREPARED", 10)
    for number in range(35):
        assert rows(pipeline, (f"SELECT {number}", ())) == [(number,)]
    ((known,),) = rows(pipeline, ("SELECT count(*) FROM pg_prepared_statements", ()))

    assert known <= 10


def test_lost_connection_is_closed(pipeline: PostgresPipeline) -> None:
    with pytest.raises(psycopg.OperationalError):
        pipeline.run([("SELECT pg_terminate_backend(pg_backend_pid())", ())])

    assert pipeline.connection.closed


def test_session_makes_its_plans_again_while_a_database_is_new(postgres: PostgresServer) -> None:
    """[PG-036] The first plan for the name of a node reads all nodes. The server gathers statistics a minute later."""
    url = postgres.create_database()
    with closing(PostgresSession(parse_store(url))) as session:
        session.open_at_once()
        prepare_postgres(session)
        session.execute_script("ALTER TABLE node SET (autovacuum_enabled = off)")
        query = "SELECT node_no FROM node WHERE state = 'live' AND name = ?"

        def add_nodes(first: int, last: int) -> None:
            session.execute(
                "INSERT INTO node (name, kind, state, creator, created_us, options, total, live, last_modified_us,"
                " last_created_us, audience, subscribed, indexed_us, indexed_no, stale)"
                " SELECT 'n' || n, 'feed', 'live', 'a@x', 1, '{}', 0, 0, n, n, 0, 0, 0, 0, 0"
                " FROM generate_series(CAST(? AS bigint), CAST(? AS bigint)) n",
                (first, last),
            )

        def plan() -> str:
            assert session.execute(query, ("n1",)) == [(1,)]
            assert session._pipeline is not None
            (name,) = (value for key, value in session._pipeline._names.items() if query in key)
            return str(session.connection.execute(b"EXPLAIN EXECUTE " + name + b"('n1')").fetchall())

        add_nodes(1, 1)
        assert "using node_name " not in plan()
        add_nodes(2, 5_000)
        assert "using node_name " not in plan()
        for _ in range(min(PLANNED_AGAIN)):
            session.execute("SELECT 1")
        assert "using node_name " in plan()
    postgres.drop_database(url)


class ExplainingEngine(PostgresEngine):
    """An engine that returns the plans of queries."""

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return super().rows(f"EXPLAIN {sql}", params)


def test_keys_are_looked_up_by_them_in_empty_tables(postgres: PostgresServer) -> None:
    """[PG-036] Several indexes seem equally good there, and most of them would read a whole feed."""
    url = postgres.create_database()
    with closing(PostgresSession(parse_store(url))) as session:
        session.open_at_once()
        prepare_postgres(session)
        engine = ExplainingEngine(session)
        assert "using item_id " in str(engine.rows("SELECT payload FROM item WHERE node_no = ? AND id = ?", (1, "a")))
        assert "using facet_item " in str(engine.facets(1, range(200)))
        ahead = str(engine.rows(postgres_ahead._SUBSCRIBED, (["n"], ["a@x"])))
        assert ahead.count(" using subscription_jid ") == 2, ahead
        subscribed = "SELECT 1 FROM subscription WHERE node_no = ? AND jid = ? AND view = ?"
        assert "using subscription_jid " in str(engine.rows(subscribed, (1, "a@x", "")))
    postgres.drop_database(url)


def test_edit_without_other_tokens_stores_no_document(postgres: PostgresServer) -> None:
    with closing(PostgresSession(parse_store(postgres.url()))) as session:
        session.open_at_once()
        PostgresEngine(session).put_documents({})
        assert session.execute("SELECT 1") == [(1,)]
