"""Items of many nodes in a temporary file, which groups them by node and sorts them by their dates of creation."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from smartfeeds.errors import DocumentError
from smartfeeds.features.moving_in.moved import MovedItem

_CACHE_KIB = 65_536  # of memory; the rest of the file is on disk, however many items there are
NumberedItem = tuple[int, MovedItem]  # the number of the node, the item


class ItemFile:
    """The file. SQLite removes it when it is closed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def fill(self, items: Iterable[NumberedItem]) -> None:
        """Adds items. Raises DocumentError if the disk is full."""
        try:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?)",
                (
                    # An id is stored as bytes, because SQLite accepts no text with surrogates.
                    (
                        number,
                        item.created_us,
                        item.modified_us,
                        item.id.encode("utf-8", "surrogateescape"),
                        item.publisher.encode("utf-8", "surrogateescape"),
                        item.payload,
                    )
                    for number, item in items
                ),
            )
            self._connection.execute("CREATE INDEX item_order ON item (node_no, created_us, modified_us)")
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise DocumentError(
                f"cannot write the temporary file of the items: {error}; set SQLITE_TMPDIR to a folder with more space"
            ) from None

    def items(self, number: int) -> Iterator[MovedItem]:
        """Yields the items of a node, in the order of their creation."""
        for created_us, modified_us, item_id, publisher, payload in self._connection.execute(
            "SELECT created_us, modified_us, id, publisher, payload FROM item WHERE node_no = ?"
            " ORDER BY created_us, modified_us",
            (number,),
        ):
            yield MovedItem(
                item_id.decode("utf-8", "surrogateescape"),
                publisher.decode("utf-8", "surrogateescape"),
                created_us,
                modified_us,
                payload,
            )


@contextmanager
def temporary_items() -> Iterator[ItemFile]:
    """A new file in the folder for temporary files."""
    # An empty name is a file that SQLite removes. A thread that imports may not be the thread that opened it.
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    with contextlib.closing(connection):
        # After a crash the file is gone, so nothing in it needs a journal or a sync.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(
            "CREATE TABLE item (node_no INTEGER, created_us INTEGER, modified_us INTEGER, id, publisher, payload)"
        )
        yield ItemFile(connection)
