"""Finds damaged items and damaged rows, for `smartfeeds doctor`. A service finds them when it reads them."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from xml.parsers import expat

from smartfeeds.core.text import without_forbidden
from smartfeeds.features.callbacks.rows import to_sound_callback
from smartfeeds.features.polling.push_rows import to_push
from smartfeeds.features.polling.rows import to_source
from smartfeeds.features.presence.rows import to_contact
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import DAMAGES, checksum, item_texts, read_subscription, to_listed_node
from smartfeeds.store.sql_people import to_affiliation
from smartfeeds.store.sql_records import to_chat, to_mirror, to_session, to_token
from smartfeeds.store.sql_tables import (
    AFFILIATION,
    CALLBACK,
    CHAT,
    CONTACT,
    MIRROR,
    NODE,
    NODE_COLUMNS,
    SESSION,
    SOURCE,
    SOURCE_PUSH,
    SUBSCRIPTION,
    SUBSCRIPTION_ROW,
    TOKEN,
    Table,
)

# The columns of `damaged_items`. The join finds no item without a node, which other checks report.
CONTENT = (
    "SELECT node.name, item.id, publisher, sync_id, payload, sync, checksum"
    " FROM item JOIN node ON node.node_no = item.node_no"
)


# For each table the column by which people know a row, the columns of what reads it, and what reads it.
_READERS: tuple[tuple[Table, str, str, Callable[[Row], object]], ...] = (
    (NODE, "name", NODE_COLUMNS, to_listed_node),
    (SUBSCRIPTION, "jid", SUBSCRIPTION_ROW, read_subscription),
    (AFFILIATION, "jid", "jid, affiliation", to_affiliation),
    (SOURCE, "url", SOURCE.columns, to_source),
    (SOURCE_PUSH, "push_no", SOURCE_PUSH.columns, to_push),
    (MIRROR, "name", MIRROR.columns, to_mirror),
    (CALLBACK, "callback_no", CALLBACK.columns, to_sound_callback),
    (CHAT, "jid", CHAT.columns, to_chat),
    (CONTACT, "jid", CONTACT.columns, to_contact),
    (TOKEN, "token_id", TOKEN.columns, to_token),
    (SESSION, "session_id", SESSION.columns, to_session),
)


class DamagedItem(NamedTuple):
    """The names of a node and of an item in it."""

    node: str
    item: str


class DamagedRow(NamedTuple):
    """The name of a table, and a text by which people know the row."""

    table: str
    text: str


def damaged_rows(read: Callable[[str], Iterable[Row]]) -> Iterator[DamagedRow]:
    """Yields the rows that the service leaves out of lists. `read` returns the rows of a statement."""
    for table, name, columns, convert in _READERS:
        for text, *row in read(f"SELECT {name}, {columns} FROM {table.name}"):  # noqa: S608 - names of columns
            try:
                convert(tuple(row))
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
        expat.ParserCreate(namespace_separator=" ").Parse(payload or b"<x/>", True)
    except expat.ExpatError:
        return False
    return True
