"""Finds damaged items and damaged rows, for `smartfeeds doctor`. A service finds them when it reads them."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from xml.parsers import expat

from smartfeeds.core.text import without_forbidden
from smartfeeds.store.engine import Row
from smartfeeds.store.row_readers import RowReader
from smartfeeds.store.rows import DAMAGES, checksum, item_texts

# The columns of `damaged_items`. The join finds no item without a node, which other checks report.
CONTENT = (
    "SELECT node.name, item.id, publisher, sync_id, payload, sync, checksum"
    " FROM item JOIN node ON node.node_no = item.node_no"
)


class DamagedItem(NamedTuple):
    """The names of a node and of an item in it."""

    node: str
    item: str


class DamagedRow(NamedTuple):
    """The name of a table, and a text by which people know the row."""

    table: str
    text: str


def damaged_rows(read: Callable[[str], Iterable[Row]], readers: Iterable[RowReader]) -> Iterator[DamagedRow]:
    """Yields the rows that the service leaves out of lists. `read` returns the rows of a statement."""
    for table, name, columns, convert in readers:
        for text, *row in read(f"SELECT {name}, {columns} FROM {table.name}"):  # noqa: S608 - names of columns
            try:
                convert(tuple(row))  # only the error is of interest: it is the one that leaves the row out of lists
            except DAMAGES:
                yield DamagedRow(table.name, without_forbidden(str(text)))


def damaged_items(rows: Iterable[Row]) -> list[DamagedItem]:
    """Returns the items among rows with the columns of `CONTENT` whose content is not what was stored, or is no XML.

    Items that an upgrade of the schema found damaged have a checksum of the damaged content, so the XML is read too.
    """
    return [
        DamagedItem(node, item)
        for node, item, publisher, sync_id, payload, sync, check in rows
        if checksum(payload, sync, item_texts(item, publisher, sync_id)) != check or not _is_xml(payload)
    ]


def _is_xml(payload: bytes) -> bool:
    """Returns whether a payload is well-formed. An item of a generic node may have none."""
    try:
        # expat builds no tree, and this reads every item of a database.
        expat.ParserCreate(namespace_separator=" ").Parse(payload or b"<x/>", True)
    except expat.ExpatError:
        return False
    return True
