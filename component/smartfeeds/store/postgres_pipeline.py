"""Statements that share a round trip, below the cursors of psycopg.

A cursor of psycopg costs 50 us a statement, and sends each statement by a call of its own. Here all statements of a
round trip leave in one piece. Parameters and results are converted by psycopg's adapters. Statements are prepared when
they are first used.
"""

import re
import select
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import count
from struct import pack
from typing import Any

from psycopg import Connection, OperationalError, errors
from psycopg.abc import AdaptContext, DumperKey
from psycopg.adapt import Dumper, PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8BinaryDumper

from smartfeeds.store.engine import Row

Statement = tuple[str, Sequence[Any]]  # with the placeholder `?`, and its parameters
_Key = tuple[str, tuple[int, ...] | None]  # a statement and the types of its parameters
# Sends one message that has one result; the key of the statement if the message prepares it.
_Call = tuple[Callable[[], None], _Key | None]

# Statements that a connection keeps prepared. Works use about 300. Beyond the bound all are dropped at once: that is
# rare, and a list of the last uses would cost every statement. Each takes memory of the server.
_PREPARED = 500
# The array of a type, its number and that of its elements (pg_type.dat of PostgreSQL).
_ARRAYS: dict[type, tuple[str, int, int]] = {
    int: ("bigint", 1016, 20),
    str: ("text", 1009, 25),
    bytes: ("bytea", 1001, 17),
}
_NULL, _EIGHT = b"\xff\xff\xff\xff", b"\0\0\0\x08"  # lengths of elements
_INSERT = re.compile(
    r"(INSERT INTO \w+ \(([^()]*)\)) VALUES \(\?(?:, \?)*\)( ON CONFLICT \(([^()]*)\) DO UPDATE SET [^?]*)?"
)
_numbers = count()  # no name is used twice, so no error can leave a name that means another statement


class PostgresPipeline:
    """Sends statements over a connection of psycopg. One thread uses it."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        # All integers have one type: otherwise the server would plan each statement again for small and large numbers.
        for kind in (int, bool):
            connection.adapters.register_dumper(kind, Int8BinaryDumper)
        connection.adapters.register_dumper(list, _Array)
        self._adapters = Transformer(connection)
        self._names: dict[_Key, bytes] = {}  # of prepared statements, by their text and the types of parameters

    def run(self, statements: Sequence[Statement]) -> list[PGresult]:
        """Returns the results of statements. If one fails, the server skips those behind it.

        Raises psycopg.Error, OverflowError, UnicodeEncodeError.
        """
        if len(self._names) >= _PREPARED:
            self._names.clear()
            self._exchange([partial(self.connection.pgconn.send_query_params, b"DEALLOCATE ALL", None)])
        new: dict[_Key, bytes] = {}  # the names of statements that the server does not know yet
        calls = [call for sql, params in statements for call in self._calls(sql, params, new)]
        results = []
        for (_, prepares), result in zip(calls, self._exchange([send for send, _ in calls]), strict=True):
            if result.status == ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result)
            if prepares is None:
                results.append(result)
            else:
                # A statement stays prepared, whatever becomes of the others and of the transaction.
                self._names[prepares] = new[prepares]
        return results

    def rows(self, result: PGresult) -> list[Row]:
        """Returns the rows of a result."""
        self._adapters.set_pgresult(result, format=Format.BINARY)
        return self._adapters.load_rows(0, result.ntuples, tuple)

    def _calls(self, sql: str, params: Sequence[Any], new: dict[_Key, bytes]) -> Iterator[_Call]:
        server, adapters = self.connection.pgconn, self._adapters
        values = adapters.dump_sequence(params, [PyFormat.AUTO] * len(params))
        types, formats = adapters.types, adapters.formats
        key = sql, types
        name = self._names.get(key) or new.get(key)
        if name is None:
            name = new[key] = b"sf%d" % next(_numbers)
            yield partial(server.send_prepare, name, _numbered(sql), types), key
        yield partial(server.send_query_prepared, name, values, formats, Format.BINARY), None

    def _exchange(self, calls: Sequence[Callable[[], None]]) -> list[PGresult]:
        """Calls functions that send one message each, and returns the result of each call."""
        server = self.connection.pgconn
        results: list[PGresult] = []
        try:
            server.enter_pipeline_mode()
            for call in calls:
                call()
            server.pipeline_sync()
            while len(results) <= len(calls):  # the last one is the end of the pipeline
                # Reads while it writes: two sides that only write wait for each other once the buffers are full.
                poll = select.poll()
                poll.register(server.socket, select.POLLIN | (select.POLLOUT if server.flush() else 0))
                poll.poll()
                server.consume_input()
                while len(results) <= len(calls) and not server.is_busy():
                    result = server.get_result()
                    if result is not None:
                        results.append(result)
                    if server.status != ConnStatus.OK:
                        raise OperationalError(server.get_error_message())
            server.exit_pipeline_mode()
        except BaseException:
            self.connection.close()  # the state of the protocol is unknown
            raise
        return results[:-1]


def combined(sql: str, rows: Sequence[Sequence[Any]]) -> Statement | None:
    """Returns a statement that does for all rows of parameters what `sql` does for each; None if there is none.

    It costs the server half as much for each row, and this process a fifth.
    """
    insert = _INSERT.fullmatch(sql)
    columns = list(map(list, zip(*rows, strict=True)))
    elements = list(map(_element_of, columns))
    if insert is None or not all(element is None or element in _ARRAYS for element in elements):
        return None
    head, names, on_conflict, key = insert.groups("")
    if key:
        # A statement changes no row twice.
        places = [names.split(", ").index(name) for name in key.split(", ")]
        if len({tuple(row[place] for place in places) for row in rows}) < len(rows):
            return None
    # A column without values has no type here. NULL has that of the column.
    values = ", ".join(["NULL" if element is None else f"c{place}" for place, element in enumerate(elements)])
    typed = [(place, _ARRAYS[element][0]) for place, element in enumerate(elements) if element is not None]
    arrays, aliases = (
        ", ".join([f"CAST(? AS {name}[])" for _, name in typed]),
        ", ".join([f"c{each}" for each, _ in typed]),
    )
    statement = f"{head} SELECT {values} FROM unnest({arrays}) AS t ({aliases}){on_conflict}"  # noqa: S608 - no values
    return statement, [columns[place] for place, _ in typed]


@lru_cache(4_096)
def _numbered(sql: str) -> bytes:
    """Returns a statement with the placeholders of PostgreSQL. Statements have no `?` in literals."""
    first, *rest = sql.split("?")
    return "".join((first, *[f"${number}{part}" for number, part in enumerate(rest, 1)])).encode()


class _Array(Dumper):
    """A list of values of one type as an array. An empty list is an array of texts.

    The dumper of psycopg is slower. It also chooses the type of integers by the first list of a statement, and refuses
    greater integers in the other lists.
    """

    format = Format.BINARY

    def __init__(self, cls: type, context: AdaptContext | None = None, element: type = str) -> None:
        super().__init__(cls, context)
        self._element = element
        _, self.oid, self._element_oid = _ARRAYS[element]

    def get_key(self, values: list[Any], _format: PyFormat) -> DumperKey:
        return list, _element_of(values) or str

    def upgrade(self, values: list[Any], _format: PyFormat) -> Dumper:
        return _Array(list, None, _element_of(values) or str)

    def dump(self, values: list[Any]) -> bytes:
        parts = [pack(">iiIii", 1, 0, self._element_oid, len(values), 1)]  # array_recv in PostgreSQL's arrayfuncs.c
        for value in values:
            if value is None:
                parts.append(_NULL)
            elif self._element is int:
                parts.append(_EIGHT + value.to_bytes(8, "big", signed=True))
            else:
                data = value if self._element is bytes else value.encode()
                parts.append(len(data).to_bytes(4, "big") + data)
        return b"".join(parts)


def _element_of(values: Sequence[Any]) -> type | None:
    """Returns the type of the first value, a key of `_ARRAYS` if it is one; None if there is no value."""
    for value in values:
        if value is not None:
            return next((element for element in _ARRAYS if isinstance(value, element)), type(value))
    return None
