"""The PostgreSQL engine of the SQL store: statements, transactions, row locks, full text.

Reads see one snapshot (REPEATABLE READ). Writes are READ COMMITTED and lock the rows of their nodes first: with
REPEATABLE READ one of two processes that publish to a feed would always fail (PG-007). The lock is FOR NO KEY UPDATE,
because the foreign keys of items and marks take FOR KEY SHARE and would wait for a stronger one (PG-008).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import psycopg

from smartfeeds.core.model import Edge
from smartfeeds.core.touches import Touch
from smartfeeds.errors import StoreError, UnknownOutcomeError
from smartfeeds.store.database_state import DatabaseState
from smartfeeds.store.engine import AheadRows, Direction, OverBudgetError, Row, T, TransientError
from smartfeeds.store.postgres_ahead import look_ahead
from smartfeeds.store.postgres_commits import LastCommit
from smartfeeds.store.postgres_errors import has_rolled_back, postgres_error, sqlstate_of
from smartfeeds.store.postgres_session import PostgresSession
from smartfeeds.store.postgres_state import STATEMENTS, to_state
from smartfeeds.store.rows import STATES
from smartfeeds.store.sql_tables import Table
from smartfeeds.store.sql_tallies import BLOCKS, QUOTAS

STATEMENT_STEPS = 50  # a statement costs as much as two rows
ROW_STEPS = 25
# PostgreSQL does not report the work of a statement, so a bounded count is bounded by time. With this number a count
# that SQLite permits is permitted here too, except on a slow machine.
STEPS_A_MS = 20_000
# The first number of the advisory locks on texts: "smfn" as a number. Other programs may use the same database.
TEXT_LOCKS = int.from_bytes(b"smfn")
# A count of the service has at most this many rows. Most databases have fewer than ten writing connections.
TALLY_SLOTS = 64
# Fewer rows are sent with other statements. COPY needs a round trip of its own.
COPIED_ROWS = 200
_CANCELLED = "57014"
# psycopg raises OverflowError for an integer beyond 64 bits and UnicodeEncodeError for text with lone surrogates.
_ERRORS = (psycopg.Error, OverflowError, UnicodeEncodeError)


class PostgresEngine:
    """An `engine.Engine` on one connection of psycopg, used by one thread."""

    is_far = True
    for_update = " FOR NO KEY UPDATE"
    skip_locked = " FOR NO KEY UPDATE SKIP LOCKED"
    ordered_join = "JOIN"

    def __init__(self, session: PostgresSession, last_commit: LastCommit | None = None) -> None:
        """`last_commit` resolves the outcome of a commit that has lost its connection."""
        self._session = session
        self._last_commit = last_commit
        self._has_changed = False
        self._left: int | None = None
        self._is_bounded = False
        # Drawn under the locks of this transaction, by the name of the table. So a new row costs no round trip.
        self._new_keys: dict[str, deque[int]] = {}
        # The texts that this transaction has locked for itself, and those that it shares.
        self._locked: set[str] = set()
        self._shared: set[str] = set()

    @property
    def has_failed(self) -> bool:
        return self._session.has_failed

    @property
    def tally_slot(self) -> int:
        # The process number differs between the connections of one server, without a register of slots. Connections
        # whose slots are equal by chance wait for each other, and the sums stay right.
        return 1 + self._session.backend_pid % TALLY_SLOTS

    def allow(self, steps: int | None) -> None:
        """Limits the reads that follow (`Engine.allow`): statements and rows count here, and the session ends a long
        statement.
        """
        self._left = steps

    def within(self, steps: int, work: Callable[[], T]) -> T | None:
        if self._left is not None or self._is_bounded:
            # As in `SqliteEngine.within`.
            return work()
        # With a savepoint: the statement that is cancelled must not end the transaction of the work.
        self._queue("SAVEPOINT bounded")
        self._queue(f"SET LOCAL statement_timeout = {max(1, steps // STEPS_A_MS)}")
        self._is_bounded = True
        try:
            result = work()
        except OverBudgetError:
            self._script("ROLLBACK TO SAVEPOINT bounded")  # it also restores the time limit
            self._forget_locks()  # it releases those of the work
            return None
        finally:
            self._is_bounded = False
        self._queue(f"SET LOCAL statement_timeout = {self._session.statement_timeout_ms}")
        self._queue("RELEASE SAVEPOINT bounded")
        return result

    def database_state(self) -> DatabaseState | None:
        return to_state(*self.rows_of([(statement, ()) for statement in STATEMENTS]))

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return self.rows_of([(sql, params)])[0]

    def rows_of(self, queries: Sequence[tuple[str, Sequence[object]]]) -> list[list[Row]]:
        if self._left is not None:
            self._left -= STATEMENT_STEPS * len(queries)
            if self._left < 0:
                raise OverBudgetError
        try:
            results = self._session.execute_all(queries)
        except _ERRORS as error:
            if self._is_over_budget(error):
                raise OverBudgetError from error
            if isinstance(error, psycopg.DataError) and any(_has_nul(params) for _, params in queries):
                return [[] for _ in queries]  # no text of the database has this character
            raise self._error(error) from error
        if self._left is not None:
            self._left -= ROW_STEPS * sum(map(len, results))
        return results

    def row(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        rows = self.rows(sql, params)
        return rows[0] if rows else None

    # Writes wait for the next statement that returns rows, or the commit, and share its round trip: round trips are the
    # cost of a work.

    def run(self, sql: str, params: Sequence[object] = ()) -> None:
        self.run_many(sql, (params,))

    def run_many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        self._has_changed = True
        self._session.queue(sql, params)

    def _queue(self, sql: str, params: Sequence[object] = ()) -> None:
        """Sends a statement later that changes no rows."""
        self._session.queue(sql, (params,))

    def lock_text(self, text: str, *, shared: bool = False) -> None:
        self._lock_texts([text], shared=shared)

    def _lock_texts(self, texts: Sequence[str], *, shared: bool = False) -> None:
        """Locks texts in their order, except those that this transaction has locked."""
        new = [text for text in texts if text not in self._locked and not (shared and text in self._shared)]
        (self._shared if shared else self._locked).update(new)
        if new:
            lock = f"pg_advisory_xact_lock{'_shared' if shared else ''}({TEXT_LOCKS}, hashtext(text))"
            self._queue(f"SELECT {lock} FROM unnest(CAST(? AS text[])) AS t (text)", (new,))  # noqa: S608 - a number

    def _forget_locks(self) -> None:
        self._locked.clear()
        self._shared.clear()

    def look_ahead(self, touches: Sequence[Touch], *, writing: bool) -> AheadRows | None:
        # The works themselves find nothing for other texts, or say why they cannot be stored.
        touches = [touch for touch in touches if touch.is_storable]
        if not touches:
            return None
        if writing:
            # As `sql_blocks.BlockWrites`, in the same round trip. Before the nodes are locked: who changes a list has
            # this lock, and may wait for a node.
            self.lock_text(BLOCKS, shared=True)
            # In their order, as the nodes: otherwise groups of several processes could wait for each other in a circle.
            self._lock_texts([QUOTAS + jid for jid in sorted({touch.quota_of for touch in touches if touch.quota_of})])
        try:
            rows = look_ahead(self._session, touches, lock=writing)
        except _ERRORS as error:
            if self._is_over_budget(error):
                raise OverBudgetError from error
            raise self._error(error) from error
        self._new_keys = {table: deque(keys) for table, keys in rows.new_keys.items()}
        return rows

    def add(self, table: Table, values: Sequence[object]) -> int:
        if keys := self._new_keys.get(table.name):
            key = keys.popleft()
            self.run(table.insert, (key, *values))
            return key
        self._has_changed = True
        row = self.row(_returning(table.add, table.key), values)
        if row is None:  # a text with NUL
            raise StoreError(f"the database {self._session.name}: a text contains NUL, which PostgreSQL cannot store")
        return int(row[0])

    def add_many(self, table: Table, rows: Sequence[Sequence[object]]) -> None:
        if len(rows) < COPIED_ROWS:
            self.run_many(table.add, rows)
            return
        self._has_changed = True
        try:
            self._session.copy(table.name, table.value_columns, rows)
        except _ERRORS as error:
            raise self._error(error) from error

    def insert(self, table: Table, values: Sequence[object]) -> None:
        self.run(table.insert, values)

    def merged(self, selects: Sequence[str], key: str, direction: Direction) -> str:
        if not direction:
            return " UNION ".join(selects)
        # Only queries that are ordered themselves are merged. A UNION would read and sort all rows before the first one
        # of a page: 560 ms for 40,000 rows, against 0.3 ms.
        order = f"ORDER BY {key} {direction}, item_no {direction}"
        ordered = " UNION ALL ".join(f"({select} {order})" for select in selects)
        return f"SELECT DISTINCT ON ({key}, item_no) * FROM ({ordered}) AS parts {order}"  # noqa: S608 - names of columns

    def ranges(self, key: str, after: Edge | None, before: Edge | None) -> list[tuple[str, list[int]]]:
        # A comparison of rows is one range of an index. Several ranges would be read whole and sorted (PG-037).
        if after and before and after >= before:
            return []
        bounds = [(sign, edge) for sign, edge in ((">", after), ("<=", before)) if edge]
        condition = " AND ".join(f"({key}, item_no) {sign} (?, ?)" for sign, _ in bounds)
        return [(condition, [number for _, edge in bounds for number in (edge.key_us, edge.item_no)])]

    def begin(self) -> None:
        self._begin("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")

    def begin_read(self) -> None:
        self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _begin(self, statement: str) -> None:
        self._new_keys = {}
        self._forget_locks()
        self._has_changed = False
        self._session.finish_ending()
        self._session.renew()
        self._session.begin(statement)

    def commit(self) -> None:
        if self._has_changed and self._last_commit is not None:
            statement, params = self._last_commit.next()
            self._queue(statement, params)
        try:
            status = self._session.commit()
        except _ERRORS as error:
            failure = self._error(error)
            if has_rolled_back(error):
                raise failure from error
            if self._has_happened():
                return
            # Nothing has changed, so the works may run again.
            raise TransientError(str(failure)) from error
        if status != "COMMIT":
            text = f"the database {self._session.name}: the transaction had failed before its commit"
            raise TransientError(text, "rollback")

    def _has_happened(self) -> bool:
        """Returns whether a commit that has lost its connection has changed anything. Raises UnknownOutcomeError if
        the database cannot say it.
        """
        if not self._has_changed:
            return False
        has_happened = None if self._last_commit is None else self._last_commit.has_happened(self._session)
        if has_happened is None:
            raise UnknownOutcomeError(
                f"the database {self._session.name}: the connection was lost during the commit, so the write "
                "may have happened or not; look whether it has before you repeat it"
            )
        return has_happened

    def rollback(self) -> None:
        if self._session.drop():
            try:
                self._session.execute_script("ROLLBACK")
            except _ERRORS:
                self._session.close()  # the server rolls back by itself

    def end_read(self) -> None:
        if self._session.drop():
            try:
                self._session.end_snapshot()
            except psycopg.OperationalError:
                self._session.close()

    def facets(self, node_no: int, item_nos: Sequence[int]) -> list[Row]:
        # With `item_no IN (...)` the planner reads all facets of the node, unless statistics say that they are many.
        # Only one index has the order of the subquery, and sorts are off.
        facets = "SELECT item_no, facet, states FROM facet WHERE node_no = ? AND item_no = t.item_no ORDER BY states"
        return self.rows(
            f"SELECT f.* FROM unnest(CAST(? AS bigint[])) AS t (item_no) CROSS JOIN LATERAL ({facets}) AS f",  # noqa: S608 - `facets`
            (list(item_nos), node_no),
        )

    def documents(self, item_nos: Sequence[int]) -> dict[int, dict[int, str]]:
        # In one round trip, each range by a look-up of its own.
        query = (
            "SELECT document, array_to_string(tsvector_to_array(tokens), ' ') FROM word WHERE document BETWEEN ? AND ?"
        )
        answers = self.rows_of([(query, _documents_of(item_no)) for item_no in item_nos])
        return {
            item_no: {number % STATES: f" {tokens} " for number, tokens in rows}
            for item_no, rows in zip(item_nos, answers, strict=True)
        }

    def put_documents(self, documents: Mapping[tuple[int, int], frozenset[str]]) -> None:
        changes = [
            (item_no * STATES + number, " ".join(sorted(tokens))) for (item_no, number), tokens in documents.items()
        ]
        # In ascending order, so that processes that index the same items do not deadlock.
        changes.sort()
        self.run_many("DELETE FROM word WHERE document = ?", [(document,) for document, text in changes if not text])
        if changes:  # an edit may leave all tokens as they are
            self.run(
                "INSERT INTO word (document, tokens) SELECT document, array_to_tsvector(string_to_array(text, ' '))"
                " FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS t (document, text) WHERE text <> ''"
                " ON CONFLICT (document) DO UPDATE SET tokens = excluded.tokens",
                list(map(list, zip(*changes, strict=True))),
            )

    def drop_documents(self, item_nos: Sequence[int]) -> None:
        self.run_many("DELETE FROM word WHERE document BETWEEN ? AND ?", map(_documents_of, item_nos))

    def items_with(self, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        # LATERAL with LIMIT looks up each matching item by its number. With a plain join the planner reads all items of
        # the node, because it expects few.
        matches = f"SELECT DISTINCT document / {STATES} AS item_no FROM documents_with(CAST(? AS tsquery)) AS document"  # noqa: S608 - a number
        item = "SELECT * FROM item WHERE item_no = matches.item_no LIMIT 1"
        return f"({matches}) AS matches CROSS JOIN LATERAL ({item}) AS i", [_query(terms)]

    def present_has(self, item_no: str, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        numbers = f"{item_no} * {STATES} AND {item_no} * {STATES} + {STATES - 1}"
        return (
            f"(SELECT tokens @@ CAST(? AS tsquery) FROM word WHERE document BETWEEN {numbers}"  # noqa: S608 - numbers
            " ORDER BY document DESC LIMIT 1)",
            [_query(terms)],
        )

    def _is_over_budget(self, error: Exception) -> bool:
        """Whether the server has ended a statement of a work that is bounded."""
        return sqlstate_of(error) == _CANCELLED and (self._left is not None or self._is_bounded)

    def _script(self, script: str) -> None:
        """Runs statements without parameters."""
        try:
            self._session.execute_script(script)
        except _ERRORS as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> StoreError:
        lost = isinstance(error, psycopg.OperationalError) and not self._session.is_open
        return postgres_error(error, self._session.name, lost=lost)


@lru_cache(64)
def _returning(statement: str, key: str) -> str:
    return f"{statement} RETURNING {key}"


def _query(terms: Sequence[frozenset[str]]) -> str:
    """Returns the tsquery for documents with a token of each term. Tokens consist of letters and digits, so no token
    can end the quotes.
    """
    return " & ".join("(" + " | ".join(f"'{token}'" for token in sorted(term)) + ")" for term in terms)


def _documents_of(item_no: int) -> tuple[int, int]:
    """Returns the first and the last possible number of a document of an item."""
    return item_no * STATES, item_no * STATES + STATES - 1


def _has_nul(params: Sequence[object]) -> bool:
    return any(isinstance(value, str) and "\0" in value for value in params)
