"""The SQLite engine of the SQL store: statements, full text (FTS5), and error messages for the operator.

A statement costs microseconds and no round trip here, so the engine looks ahead only where one statement answers a
whole group. Inserts wait, so that one statement adds many rows.
"""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path

from smartfeeds.core.model import Edge
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import MARKS
from smartfeeds.errors import StoreError
from smartfeeds.store.database_state import DatabaseState
from smartfeeds.store.engine import AheadRows, Direction, OverBudgetError, Row, T
from smartfeeds.store.rows import CORRUPT, STATES, end_of_prefix, placeholders, prefixed
from smartfeeds.store.sql_tables import ITEM_ROW, NODE, NODE_ROW, Table
from smartfeeds.store.sql_tallies import BLOCKS, limiting_counts

# The cost of a call from Python, as a number of instructions: thousands of short statements are not free either.
STATEMENT_STEPS = 50
FEW_DOCUMENTS = 1_000  # to look up and sort the items of so many documents takes 20 ms
TICK_STEPS = 1_000  # small enough to stop soon, large enough to make the callback cheap

CREATE_IT = "create it with `smartfeeds run` or `smartfeeds node create`"
READ_ONLY = "it is read-only; give this user write permission for the file and its directory"

# Primary result code of SQLite -> advice for the operator.
_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds it locked; end that process or wait for it",
    sqlite3.SQLITE_LOCKED: "another process holds it locked; end that process or wait for it",
    sqlite3.SQLITE_FULL: "the disk is full; free disk space (no acknowledged write is lost)",
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: "access is denied; give this user write permission for the file and its directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the directory exists and that this user may write to it",
    sqlite3.SQLITE_CORRUPT: f"it is {CORRUPT}",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database; check the path, or restore a backup",
    sqlite3.SQLITE_IOERR: "the disk reported an error; check the disk and its free space",
    sqlite3.SQLITE_CONSTRAINT: "a write would have made the data inconsistent and was rejected; report this as a bug",
    sqlite3.SQLITE_TOOBIG: "a value is too large",
    sqlite3.SQLITE_NOMEM: "the memory is exhausted; stop other processes or add memory",
}


# One statement for all items that the publishes of a group name. CROSS JOIN: each id is one look-up in an index.
_NAMED_NODES = f"SELECT {NODE_ROW} FROM node WHERE state = 'live' AND name IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants
_ITEMS = f"SELECT ?, {prefixed(ITEM_ROW, 'i')} FROM json_each(?) t CROSS JOIN item i WHERE i.node_no = ?"  # noqa: S608 - constants
_BY_ID = f"{_ITEMS} AND i.id = t.value"
_BY_SYNC = f"{_ITEMS} AND i.sync_id = t.value AND i.sync_id <> ''"

# The bare JIDs with an affiliation or a subscription to a node, of pairs of a number and a JID. `||` ends the ranges of
# resources as in `sql_people`.
_PAIRS = "SELECT json_extract(value, '$[0]') AS node_no, json_extract(value, '$[1]') AS jid FROM json_each(?)"
_ON = "SELECT 1 FROM subscription s WHERE s.node_no = p.node_no AND"
_KNOWN = (
    "SELECT node_no, jid, affiliation, subscribes FROM (SELECT p.node_no, p.jid, a.affiliation,"  # noqa: S608 - constants
    f" EXISTS ({_ON} s.jid = p.jid) OR EXISTS ({_ON} s.jid > p.jid || '/' AND s.jid < p.jid || '0') AS subscribes"
    f" FROM ({_PAIRS}) p LEFT JOIN affiliation a ON a.node_no = p.node_no AND a.jid = p.jid)"
    " WHERE affiliation IS NOT NULL OR subscribes"
)
_SUMS = "SELECT name, sum(value) FROM tally WHERE name IN (SELECT value FROM json_each(?)) GROUP BY name"
# The names that a new node cannot have, because there is a redirect, or that need a look at the nodes named like views.
_BEHIND = [
    "EXISTS (SELECT 1 FROM node n WHERE n.state = 'live'"  # noqa: S608 - constants
    f" AND n.name >= t.value || '{mark}' AND n.name < t.value || '{end_of_prefix(mark)}')"
    for mark in MARKS
]
_USED = (
    "SELECT t.value FROM json_each(?) t WHERE EXISTS (SELECT 1 FROM redirect r WHERE r.name = t.value)"  # noqa: S608 - constants
    f" OR {' OR '.join(_BEHIND)}"
)

# Rows are inserted in statements of so many, which sqlite3 prepares once. A statement for each row takes 11 us in place
# of 7 us, and lets another thread take the interpreter twice.
_ROWS = (64, 16, 4, 1)
_VALUES = re.compile(r" VALUES (\(\?(?:, \?)*\))(?= ON |$)")

# sqlite3 raises OverflowError for an integer beyond 64 bits, UnicodeEncodeError for text with lone surrogates, and
# UnicodeDecodeError if the text of an error of SQLite has bytes of a damaged schema.
DATABASE_ERRORS = (sqlite3.Error, OverflowError, UnicodeError)
_UNDECODABLE = "Could not decode"  # sqlite3 gives no code for a text that is not UTF-8


def restoring_path(path: Path) -> Path:
    """Returns the new contents of a database or a folder, while `smartfeeds restore` runs or after it was killed."""
    return path.with_name(f"{path.name}.restoring")


def missing(path: Path, advice: str = CREATE_IT) -> StoreError:
    """Returns the error for a missing database file, for commands that do not create one."""
    if restoring_path(path).exists():
        return StoreError(
            f"the database {path.absolute()} does not exist, because smartfeeds restore was interrupted; "
            "run smartfeeds restore --replace again"
        )
    return StoreError(f"the database {path.absolute()} does not exist; {advice}")


def check_writable(path: Path) -> None:
    """Raises StoreError if this user may not write to a file."""
    # SQLite would open the file for reading and leave read-only log files behind, which remain after the cause is gone.
    if path.exists() and not _may_write(path):
        raise StoreError(f"the database {path}: {READ_ONLY}")


def is_read_only(path: Path) -> bool:
    """Returns whether a file exists, but this user may not write to it or to its folder."""
    return path.exists() and not (_may_write(path) and _may_write(path.parent))


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def make_private(path: Path) -> None:
    """Creates a new database file that only its owner can read: it contains closed nodes and subscriptions.

    SQLite gives its log files the same permissions. If the file cannot be created, SQLite reports the reason later.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def store_error(error: Exception, path: str) -> StoreError:
    """Returns the StoreError for an error of SQLite, with advice for the operator."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_UNDECODABLE):
        code = sqlite3.SQLITE_CORRUPT
    if code == sqlite3.SQLITE_CANTOPEN and is_read_only(Path(path)):
        code = sqlite3.SQLITE_READONLY  # SQLite cannot create the log files
    advice = _ADVICE.get(code, "it cannot be used")
    return StoreError(f"the database {path}: {advice} ({error})")


class SqliteEngine:
    """An `engine.Engine` on one connection of the sqlite3 module, used by one thread.

    `is_reader`: no statement changes rows.
    """

    for_update = skip_locked = ""
    tally_slot = 0  # one connection writes
    is_far = has_failed = False  # a statement that fails leaves the transaction as it was
    # SQLite never changes the order of the tables of a CROSS JOIN. In other joins it does, and sorts the result.
    ordered_join = "CROSS JOIN"

    def __init__(self, connection: sqlite3.Connection, path: str, *, is_reader: bool = False) -> None:
        self._is_reader = is_reader
        self._connection = connection
        self._cursor = connection.cursor()
        self._path = path
        self._left: int | None = None  # of the steps that `allow` permits; None without a bound
        # Rows to insert, by INSERT statement. `_send` inserts them before the next statement and the commit, nodes
        # first because other rows refer to nodes. After an error they stay, so that the commit fails too.
        self._new: dict[str, list[Sequence[object]]] = {}
        # The last key that this transaction assigned, by table. The next key is one greater, because SQLite has one
        # writer.
        self._keys: dict[str, int] = {}

    def allow(self, steps: int | None) -> None:
        """Limits the reads that follow (`Engine.allow`).

        A step is an instruction of SQLite's virtual machine; a row of a page takes about 25. A statement costs
        `STATEMENT_STEPS` in addition. The bound counts steps in place of time, so that the same work always has the
        same outcome.
        """
        if (steps is None) is not (self._left is None):
            tick = self._tick if steps is not None else None
            self._connection.set_progress_handler(tick, TICK_STEPS if steps is not None else 0)
        self._left = steps

    def within(self, steps: int, work: Callable[[], T]) -> T | None:
        if self._left is not None:
            # The bound of the whole work holds instead. If it is exceeded, the work runs again on a connection without
            # that bound, and gets this one.
            return work()
        self.allow(steps)
        try:
            return work()
        except OverBudgetError:
            return None
        finally:
            self.allow(None)

    def _tick(self) -> bool:
        """SQLite calls this after each `TICK_STEPS` instructions; True ends the statement."""
        assert self._left is not None
        self._left -= TICK_STEPS
        return self._left < 0

    def database_state(self) -> DatabaseState | None:
        return None

    def _send(self) -> None:
        """Stores the rows that wait, those of nodes first."""
        for sql in sorted(self._new, key=NODE.insert.__ne__):
            self._insert(sql, self._new[sql])
        self._new.clear()

    def _insert(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs an INSERT for these rows."""
        start = 0
        try:
            for size in _ROWS:
                while len(rows) - start >= size:
                    part = rows[start : start + size]
                    start += size
                    self._cursor.execute(_of_rows(sql, size), list(chain.from_iterable(part)))
        except DATABASE_ERRORS as error:
            raise store_error(error, self._path) from error

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        if self._new:
            self._send()
        if self._left is not None:
            self._left -= STATEMENT_STEPS
            if self._left < 0:
                raise OverBudgetError
        try:
            # All rows: a cursor that is not read to its end would keep its snapshot, and the write-ahead log could not
            # shrink.
            return self._cursor.execute(sql, params).fetchall()
        except DATABASE_ERRORS as error:
            if self._left is not None and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                raise OverBudgetError from error
            if str(error).startswith(_UNDECODABLE):
                return self._rows_with_damaged_text(sql, params)
            raise store_error(error, self._path) from error

    def _rows_with_damaged_text(self, sql: str, params: Sequence[object]) -> list[Row]:
        """Returns the rows with U+FFFD in place of what is no UTF-8. The checksum of an item shows that it is damaged.

        A writer must not store the replacement. It gets lone surrogates, which no statement accepts.
        """
        errors = "replace" if self._is_reader else "surrogateescape"
        try:
            self._connection.text_factory = lambda data: data.decode("utf-8", errors)
            return self._connection.execute(sql, params).fetchall()
        except DATABASE_ERRORS as error:
            raise store_error(error, self._path) from error
        finally:
            self._connection.text_factory = str

    def rows_of(self, queries: Sequence[tuple[str, Sequence[object]]]) -> list[list[Row]]:
        return [self.rows(sql, params) for sql, params in queries]

    def row(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        rows = self.rows(sql, params)
        return rows[0] if rows else None

    def run(self, sql: str, params: Sequence[object] = ()) -> None:
        if self._new:
            self._send()
        try:
            self._cursor.execute(sql, params)
        except DATABASE_ERRORS as error:
            raise store_error(error, self._path) from error

    def run_many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        if self._new:
            self._send()
        if sql.startswith("INSERT"):
            self._insert(sql, list(params))
            return
        try:
            self._cursor.executemany(sql, params)
        except DATABASE_ERRORS as error:
            raise store_error(error, self._path) from error

    def lock_text(self, text: str, *, shared: bool = False) -> None:
        pass

    def look_ahead(self, touches: Sequence[Touch], *, writing: bool) -> AheadRows | None:
        """Reads the items that publishes name, and what new subscriptions and nodes depend on. Other look-ups cost no
        round trip, and most of them are made once in a transaction."""
        if not writing:
            return None
        ids = _published_ids(touches)
        quotas = [touch for touch in touches if touch.quota_of and f"{touch.node}{touch.jid}".isprintable()]
        if not ids and not quotas:
            return None
        names = {*ids, *[touch.node for touch in quotas], *[touch.feed for touch in quotas]} - {""}
        rows = AheadRows(self.rows(_NAMED_NODES, (json.dumps([*names]),)), [], [], [])
        if ids:
            self._add_items(rows, ids)
        return self._with_quotas(rows, quotas, names) if quotas else rows

    def _add_items(self, rows: AheadRows, ids: Mapping[str, set[str]]) -> None:
        """Adds the items that the publishes of a group name, which is two statements for each node."""
        for node_no, name, *_ in rows.nodes:
            of_node = ids.get(name)
            if of_node is not None:
                rows.ids.extend([(node_no, item_id) for item_id in of_node])
                keys = json.dumps(list(of_node))
                rows.by_id.extend(self.rows(_BY_ID, (node_no, keys, node_no)))
                rows.by_sync.extend(self.rows(_BY_SYNC, (node_no, keys, node_no)))

    def _with_quotas(self, rows: AheadRows, touches: Sequence[Touch], names: set[str]) -> AheadRows:
        """Adds what the subscriptions and the new nodes of a group depend on, which is three or four statements for the
        whole group."""
        node_nos: dict[str, int] = {row[1]: row[0] for row in rows.nodes}
        subscribers = [touch for touch in touches if touch.subscribes]
        absent = names - node_nos.keys()
        new = {touch.node for touch in touches if not touch.subscribes and touch.node in absent}
        new = {name for name in new if "?" not in name and "%" not in name}
        pairs = {(node_nos[touch.node], touch.jid) for touch in subscribers if touch.node in node_nos}
        pairs |= {(node_nos[touch.feed], touch.jid) for touch in subscribers if touch.feed in node_nos}
        known = self.rows(_KNOWN, (json.dumps([*pairs]),)) if pairs else []
        used = self.rows(_USED, (json.dumps([*new]),)) if new else []
        counts = limiting_counts(touches)
        sums = dict.fromkeys([BLOCKS, *counts], 0) | dict(self.rows(_SUMS, (json.dumps([BLOCKS, *counts]),)))
        return rows._replace(
            absent_names=[*absent],
            blocks_version=sums.pop(BLOCKS),
            jids=[*pairs],
            affiliations=[row[:3] for row in known if row[2] is not None],
            unsubscribed=pairs - {(row[0], row[1]) for row in known if row[3]},
            unused_names=[*new - {row[0] for row in used}],
            sums=[*sums.items()],
        )

    def add(self, table: Table, values: Sequence[object]) -> int:
        key = self._keys.get(table.name)
        if key is None:
            self.run(table.add, values)
            key = self._cursor.lastrowid
            assert key is not None  # only before the first INSERT of a cursor
        else:
            key += 1
            rows = self._new.setdefault(table.insert, [])
            rows.append((key, *values))
            if len(rows) == _ROWS[0]:
                self._send()
        self._keys[table.name] = key
        return key

    def add_many(self, table: Table, rows: Sequence[Sequence[object]]) -> None:
        self._keys.pop(table.name, None)  # SQLite assigns these keys, so `add` asks it again for the next one
        self.run_many(table.add, rows)

    def insert(self, table: Table, values: Sequence[object]) -> None:
        self._new.setdefault(table.insert, []).append(values)

    def merged(self, selects: Sequence[str], key: str, direction: Direction) -> str:  # noqa: ARG002 - SQLite reads a merge from either end
        # With this clause SQLite merges the rows. Without it SQLite sorts them, which takes three times as long.
        return f"{' UNION '.join(selects)} ORDER BY {key}, item_no"

    def ranges(self, key: str, after: Edge | None, before: Edge | None) -> list[tuple[str, list[int]]]:
        # SQLite uses only the first column of a row value whose second column is the rowid. So the items with the key
        # of an edge are a range of their own, and a page costs the same however many items have one key.
        if after and before and after >= before:
            return []
        if after and before and after.key_us == before.key_us:
            return [(f"{key} = ? AND item_no > ? AND item_no <= ?", [after.key_us, after.item_no, before.item_no])]
        if after and before is None and after.item_no < 0:
            return [(f"{key} >= ?", [after.key_us])]  # all items with the key
        first = [(f"{key} = ? AND item_no > ?", [after.key_us, after.item_no])] if after else []
        last = [(f"{key} = ? AND item_no <= ?", [before.key_us, before.item_no])] if before else []
        bounds = [(f"{key} {sign} ?", edge.key_us) for sign, edge in ((">", after), ("<", before)) if edge]
        return [*first, (" AND ".join(text for text, _ in bounds), [key_us for _, key_us in bounds]), *last]

    def begin(self) -> None:
        # Waits for the lock of writers now. A deferred transaction that has read fails with SQLITE_BUSY at its first
        # change, without a wait, if another process has written meanwhile (sqlite.org/lang_transaction.html, 2.1).
        self.run("BEGIN IMMEDIATE")

    def begin_read(self) -> None:
        self.run("BEGIN")

    def commit(self) -> None:
        self.run("COMMIT")
        self._keys.clear()

    def rollback(self) -> None:
        self._new.clear()
        self._keys.clear()
        # After some errors SQLite has ended the transaction itself.
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    end_read = rollback

    def facets(self, node_no: int, item_nos: Sequence[int]) -> list[Row]:
        marks = placeholders(item_nos)
        query = f"SELECT item_no, facet, states FROM facet WHERE node_no = ? AND item_no IN ({marks})"  # noqa: S608 - marks
        return self.rows(query, (node_no, *item_nos))

    def documents(self, item_nos: Sequence[int]) -> dict[int, dict[int, str]]:
        # A virtual table has no look-up of several ranges of numbers: FTS5 would read all documents.
        documents: dict[int, dict[int, str]] = {}
        for item_no in item_nos:
            rows = self.rows("SELECT rowid, tokens FROM word WHERE rowid BETWEEN ? AND ?", _documents_of(item_no))
            documents[item_no] = {number % STATES: f" {tokens} " for number, tokens in rows}
        return documents

    def put_documents(self, documents: Mapping[tuple[int, int], frozenset[str]]) -> None:
        # In ascending order, because FTS5 flushes its buffer whenever a number is below the previous one.
        changes = sorted(
            [(item_no * STATES + number, " ".join(tokens)) for (item_no, number), tokens in documents.items()]
        )
        self.run_many("DELETE FROM word WHERE rowid = ?", [(document,) for document, text in changes if not text])
        self.run_many(
            "INSERT OR REPLACE INTO word (rowid, tokens) VALUES (?, ?)", [change for change in changes if change[1]]
        )

    def drop_documents(self, item_nos: Sequence[int]) -> None:
        self.run_many("DELETE FROM word WHERE rowid BETWEEN ? AND ?", map(_documents_of, item_nos))

    def items_with(self, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        # Tokens consist of letters and digits, so no token can end the quotes.
        match = " AND ".join('("' + '" OR "'.join(sorted(term)) + '")' for term in terms)
        matches = f"SELECT rowid / {STATES} AS item_no FROM word WHERE word MATCH ?"  # noqa: S608 - a number
        if self.row(f"{matches} LIMIT 1 OFFSET {FEW_DOCUMENTS}", [match]) is None:
            # CROSS JOIN: each match is looked up in the items, whatever the statistics say.
            few = f"(SELECT DISTINCT item_no FROM ({matches})) matches"  # noqa: S608 - `matches`
            return f"{few} CROSS JOIN item i USING (item_no)", [match]
        # The items are walked in the order of the view, and a page ends early.
        return f"(SELECT * FROM item WHERE item_no IN ({matches})) i", [match]  # noqa: S608 - `matches`

    def present_has(self, item_no: str, terms: Sequence[frozenset[str]]) -> tuple[str, list[object]]:
        # Read the text of one document. A search of the index for one document takes 20 times as long.
        holds = " AND ".join(f"({' OR '.join(['instr(text, ?)'] * len(term))})" for term in terms)
        numbers = f"{item_no} * {STATES} AND {item_no} * {STATES} + {STATES - 1}"
        last = f"SELECT tokens FROM word WHERE rowid BETWEEN {numbers} ORDER BY rowid DESC LIMIT 1"  # noqa: S608 - numbers
        text = f"SELECT {holds} FROM (SELECT ' ' || tokens || ' ' AS text FROM ({last}))"  # noqa: S608 - `?` and `last`
        return f"({text})", [f" {word} " for term in terms for word in sorted(term)]


def _published_ids(touches: Sequence[Touch]) -> dict[str, set[str]]:
    """Returns the ids that publishes name, by the nodes with more than one: a single id costs fewer statements when it
    is looked up. No node if a text is not printable, because the database may be unable to store it.
    """
    ids: dict[str, set[str]] = {}
    for touch in touches:
        if touch.new_items and touch.item_ids:
            ids.setdefault(touch.node, set()).update(touch.item_ids)
    ids = {name: of_node for name, of_node in ids.items() if len(of_node) > 1}
    is_printable = "".join([text for name, of_node in ids.items() for text in (name, *of_node)]).isprintable()
    return ids if is_printable else {}


@lru_cache
def _of_rows(sql: str, number: int) -> str:
    """Returns an INSERT of one row for this number of rows."""
    return _VALUES.sub(lambda match: f" VALUES {', '.join([match[1]] * number)}", sql, count=1)


def _documents_of(item_no: int) -> tuple[int, int]:
    """Returns the first and the last possible number of a document of an item."""
    return item_no * STATES, item_no * STATES + STATES - 1
