"""The query plans of SQLite."""

from smartfeeds.store.base import ReadTx
from smartfeeds.store.sqlite import SqliteStore


async def plan(store: SqliteStore, work: object) -> str:
    """Returns the plan of SQLite for every query of a read."""

    def run(tx: ReadTx) -> str:
        engine = tx.db  # type: ignore[attr-defined]
        statements: list[str] = []
        engine._connection.set_trace_callback(statements.append)
        work(tx)  # type: ignore[operator]
        engine._connection.set_trace_callback(None)
        own = [sql for sql in statements if not sql.startswith("--")]  # FTS5 runs statements too
        steps = [row[3] for sql in own for row in engine.rows(f"EXPLAIN QUERY PLAN {sql}")]
        return "\n".join(steps)

    return await store.read(run)
