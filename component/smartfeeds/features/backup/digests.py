"""Digests of stored rows, which are equal for equal data in every engine. They prove that a copy is complete.

A row is written as bytes in one way only. The digest of a table covers its rows in the order of its primary key. The
digest of a feed covers what followers of the feed can see of its items: ids, both keys, changes, payloads, sync data.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from smartfeeds.errors import StoreError
from smartfeeds.store.engine import Row

_ENCODERS: Mapping[type, Callable[[object], bytes]] = {
    # The key is the type of the value, which mypy cannot know. `float.hex` is exact.
    int: lambda value: b"i%d;" % value,  # type: ignore[str-format]
    str: lambda value: _sized(b"s", str(value).encode()),
    bytes: lambda value: _sized(b"b", value),  # type: ignore[arg-type]
    float: lambda value: b"f" + float.hex(value).encode() + b";",  # type: ignore[arg-type]
    type(None): lambda _value: b"n;",
}
# The columns of `item` that followers can see. Numbers of rows may differ between copies.
_FEED_COLUMNS = ("id", "created_us", "modified_us", "change", "revision", "publisher", "payload", "sync_id", "sync")


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The rows of a table: their number, and the SHA-256 over them as hexadecimal digits."""

    table: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FeedDigest:
    """The items of a feed: their number including tombstones, and the SHA-256 over them as hexadecimal digits."""

    node_no: int
    items: int
    sha256: str


def row_bytes(row: Iterable[object]) -> bytes:
    """Returns the bytes of a row that its digest covers. Raises StoreError for a value that no column can have."""
    try:
        return b"".join([_ENCODERS[type(value)](value) for value in row]) + b"\n"
    except KeyError as error:
        raise StoreError(f"a column has a value of the type {error}; report this as a bug") from None


class RowsHash:
    """The digest of the rows that were added so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def add(self, row: Iterable[object]) -> None:
        """Adds a row."""
        self.rows += 1
        self._hash.update(row_bytes(row))

    @property
    def sha256(self) -> str:
        """The SHA-256 as hexadecimal digits."""
        return self._hash.hexdigest()

    def of_table(self, table: str) -> TableDigest:
        """Returns the digest of a table whose rows were all added."""
        return TableDigest(table, self.rows, self.sha256)


def feed_digests(columns: tuple[str, ...], rows: Iterable[Row]) -> list[FeedDigest]:
    """Returns the digests of all feeds. `rows` are the rows of the table `item` in any order that is ascending in the
    items of each feed."""
    node = columns.index("node_no")
    places = [columns.index(name) for name in _FEED_COLUMNS if name in columns]  # older backups lack some
    hashes: dict[int, RowsHash] = {}
    for row in rows:
        hashes.setdefault(row[node], RowsHash()).add([row[place] for place in places])
    return [FeedDigest(number, feed.rows, feed.sha256) for number, feed in sorted(hashes.items())]


def digest_of(tables: Iterable[TableDigest]) -> str:
    """Returns one SHA-256 over the digests of tables."""
    total = RowsHash()
    for table in sorted(tables, key=lambda digest: digest.table):
        total.add((table.table, table.rows, table.sha256))
    return total.sha256


def _sized(kind: bytes, value: bytes) -> bytes:
    return b"%b%d:%b" % (kind, len(value), value)
