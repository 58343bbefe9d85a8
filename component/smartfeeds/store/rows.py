"""Functions from rows of the SQL store to values of `core.model` and back.

A row may be damaged: the disk or another program has changed it. A damaged item is read without its content, other
damaged rows raise StoreError or are left out of lists (docs/decisions.md, section 4, "Damaged items").
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from zlib import crc32

from smartfeeds.core.filters import LastChange
from smartfeeds.core.model import (
    NO_OPTIONS,
    Affiliation,
    IndexState,
    Item,
    Node,
    NodeKind,
    NodeState,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.options import FormFields, NodeOptions
from smartfeeds.core.suboptions import is_temporary, lease_end_us
from smartfeeds.core.text import is_xml_text, without_forbidden
from smartfeeds.core.view import BARE, Order, canonical, from_canonical
from smartfeeds.errors import StoreError
from smartfeeds.json_form import JsonForm
from smartfeeds.store.engine import Row
from smartfeeds.store.sql_tables import ITEM_COLUMNS, Table

T = TypeVar("T")

KEYS = {Order.MODIFIED: "modified_us", Order.CREATED: "created_us"}
CHANGES = {LastChange.NEW: 0, LastChange.EDITED: 1, LastChange.DELETED: 2}
_NEW, _EDITED, DELETED = CHANGES.values()

# How many versions of an item the filter index tells apart. They are numbered from 0, the oldest, to the present one.
# Version n is the document `item_no * STATES + n`; documents of past versions are never written again. In
# `facet.states`, whose rows every edit moves anyway, bit 0 is the present version, bit 1 the one before, and so on.
# Bits must fit a signed 64-bit integer. More versions would leave fewer needless tombstones (`store.versions`), but an
# edit reads the documents of all versions of its item.
STATES = 32

# The position of an empty filter index: before every item.
NOWHERE = (-(2**63), 0)
# The index position of a node whose filtered views nobody has read. Such a node is not indexed.
UNREAD = (-(2**63), -1)

# In place of the end of a lease, for a subscription that ends when the subscriber goes offline.
WITH_PRESENCE_US = 0

CORRUPT = "corrupt; stop the service, keep a copy of the file and restore a backup"

_CHANGE, _NOTIFY = ITEM_COLUMNS.index("change"), ITEM_COLUMNS.index("notify")
_LEFT = Item._fields.index("left")
_LOW = 0xFFFF_FFFF
_new = tuple.__new__  # makes a named tuple by a call of C
_STATE = Subscription._fields.index("state") - 1
_AFFILIATIONS = {affiliation.value: affiliation for affiliation in Affiliation}
_KINDS = {kind.value: kind for kind in NodeKind}
_STATES = {state.value: state for state in NodeState}
_SUBSCRIPTION_STATES = {state.value: state for state in SubscriptionState}
_STATE_TEXTS = {state: state.value for state in SubscriptionState}
_EMPTY = "{}"  # no options
_OPTIONS = JsonForm(dict[str, tuple[str, ...]])
_KNOWN_OPTIONS = 512  # most nodes share a few combinations of options
_BARE = canonical(BARE)
_ADVICE = "subscribe this address again, or restore a backup"
_ROW_ADVICE = "restore a backup; smartfeeds doctor lists all damaged rows"
# What a damaged text of a row makes of a function from rows to values: texts that are no JSON or have other fields,
# words that are no member of an enumeration, addresses that cannot be split.
DAMAGES = (StoreError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class NodeRow:
    """A node in a transaction: its value, and the other columns of its row that change with its items."""

    node: Node
    subscribed: int
    indexed_us: int
    indexed_no: int
    stale: bool

    @property
    def index(self) -> IndexState:
        """The state of the filter index of the node."""
        if self.indexed_no < 0:
            return IndexState.UNREAD
        return IndexState.BEHIND if self.stale else IndexState.CURRENT


def placeholders(values: Sized) -> str:
    """The placeholders of a statement for so many values."""
    return ", ".join("?" * len(values))


def end_of_prefix(prefix: str) -> str:
    """The text behind all texts that begin with a prefix: with it, these texts are one range of an index."""
    return f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}"


def prefixed(columns: str, alias: str) -> str:
    """The columns of a list, each with the alias of its table."""
    return ", ".join(name if name == "NULL" else f"{alias}.{name}" for name in columns.split(", "))


def write_options(options: FormFields) -> str:
    """Options as the text that is stored."""
    return json.dumps(dict(options), ensure_ascii=False, sort_keys=True, separators=(",", ":")) if options else _EMPTY


@lru_cache(_KNOWN_OPTIONS)
def read_options(text: str) -> FormFields:
    """Options from the text that is stored; equal texts may share one value. Raises StoreError for a damaged text."""
    try:
        return _OPTIONS.read(text) or NO_OPTIONS
    except ValueError:
        raise StoreError(f"the options {text[:80]!r} in the database are {CORRUPT}") from None


@lru_cache(_KNOWN_OPTIONS)
def read_node_options(kind: str, text: str) -> NodeOptions:
    """The options of a node from the texts that are stored; equal texts may share one value. Raises StoreError for a
    damaged text.
    """
    if kind not in _KINDS:
        raise StoreError(f"the kind {kind[:80]!r} of a node in the database is {CORRUPT}")
    return NodeOptions(_KINDS[kind], dict(read_options(text)))


def read_affiliation(text: str) -> Affiliation:
    """The affiliation of a text that is stored. Raises StoreError for a damaged text."""
    affiliation = _AFFILIATIONS.get(text)
    if affiliation is None:
        raise StoreError(f"the affiliation {text[:80]!r} in the database is {CORRUPT}")
    return affiliation


def undamaged(table: Table, convert: Callable[[Row], T], rows: Iterable[Row]) -> list[T]:
    """Values of rows whose first column is their key. Damaged rows are left out, and each is logged once."""
    values = []
    for row in rows:
        try:
            values.append(convert(row))
        except DAMAGES:
            _log_damaged_row(table.name, row[0])
    return values


def to_node(row: Row) -> Node:
    """A node from the columns NODE; further columns are ignored. Raises StoreError for a damaged row."""
    name, creator = row[1], row[3]
    # A writer reads what is no UTF-8 as lone surrogates. Most texts are printable, and have none.
    is_text = (name.isprintable() and creator.isprintable()) or _SURROGATES.search(name + creator) is None
    if not is_text or row[6] not in _STATES:
        raise StoreError(f"the name, creator or state of node {row[0]} in the database is {CORRUPT}")
    options = read_node_options(row[2], row[5])
    # `Node(...)` would be a Python function for each node of a list.
    return _new(Node, (row[0], name, options.kind, creator, row[4], options, _STATES[row[6]], *row[7:12]))


def to_listed_node(row: Row) -> Node:
    """As `to_node`, also for a name or creator that no stanza can contain: a list with it would be an error."""
    node = to_node(row)
    text = node.name + node.creator
    # All characters that can be printed can be in XML.
    if not text.isprintable() and not is_xml_text(text):
        raise StoreError(f"the name or creator of node {node.node_no} in the database is {CORRUPT}")
    return node


def to_node_row(row: Row) -> NodeRow:
    """A node from the columns NODE_STATE."""
    return NodeRow(to_node(row), row[12], row[13], row[14], bool(row[15]))


def to_items(rows: Iterable[Row]) -> list[Item]:
    """Items from the columns ITEM."""
    # Names for all columns, because pages make fifty items at a time: a call with slices of the row takes 18 to 30 us
    # for them, this one 10 us. The checksums of 50 KB take 30 us. `Item(...)` would be a Python function for each. The
    # condition is `checksum` without its calls; `sync` (c) was not read if it is None, and then only the low half
    # counts.
    return [
        _new(
            Item,
            (
                *(n, name, created, modified, payload, by, change == DELETED, revision, notify == 1),
                *(total, live, a, b, c, False, False),
            ),
        )
        if crc32(payload) ^ crc32(f"{name}\0{by}\0{a}".encode("utf-8", "surrogatepass")) == check & _LOW
        and (c is None or crc32(c) >> 1 == check >> 32)
        else Item(
            *(
                n,
                without_forbidden(name),
                created,
                modified,
                b"",
                without_forbidden(by),
                change == DELETED,
                revision,
                notify == 1,
            ),
            *(total, live, "", b),
            damaged=True,
        )
        for n, name, created, modified, payload, by, change, revision, notify, total, live, a, b, c, check in rows
    ]


def to_brief_items(rows: Iterable[Row]) -> list[Item]:
    """Items from the columns ITEM_BRIEF."""
    # `_new` sets the fields that were not read to their defaults. `to_items` makes the damaged ones.
    return [
        _new(
            Item, (n, name, created, modified, payload, by, change == DELETED, 1, False, 0, 0, a, 0, None, False, False)
        )
        if crc32(payload) ^ crc32(f"{name}\0{by}\0{a}".encode("utf-8", "surrogatepass")) == check & _LOW
        else to_items([(n, name, created, modified, payload, by, change, 1, 0, 0, 0, a, 0, None, check)])[0]
        for n, name, created, modified, payload, by, change, a, check in rows
    ]


def checksum(payload: bytes, sync: bytes, texts: bytes) -> int:
    """Returns the checksum of an item: in the low half CRC-32 of the payload and of the texts, in the high half that of
    the sync data, so that a page without sync data can be checked. A signed number of 64 bits has room for 31 bits
    there.

    `texts` are id, publisher and sync id, separated by NUL. A changed byte that leaves the XML well-formed is found
    too. Bytes that are not well-formed would make the server end the link for everybody.
    """
    return crc32(payload) ^ crc32(texts) | (crc32(sync) >> 1 << 32)


def item_texts(item_id: str, publisher: str, sync_id: str) -> bytes:
    """Returns the texts of an item for `checksum`. The database refuses lone surrogates."""
    return f"{item_id}\0{publisher}\0{sync_id}".encode("utf-8", "surrogatepass")


def item_values(item: Item) -> Row:
    """The values of an item for ITEM_ROW, without its number."""
    texts = item_texts(item.id, item.publisher, item.sync_id)
    return (
        *item[1:_CHANGE],
        change_no(item),
        *item[_CHANGE + 1 : _NOTIFY],
        int(item.notify),
        *item[_NOTIFY + 1 : _LEFT],
        checksum(item.payload, item.sync or b"", texts),
    )


def to_subscription(row: Row) -> Subscription:
    """A subscription from the columns SUBSCRIPTION. A damaged one gets no events, and those of others go on."""
    try:
        return read_subscription(row)
    except StoreError:
        no, node_no, jid, _view, text, service, _state, since_us, since_created_us, created_us, _options = row
    jid, text, service = map(without_forbidden, (jid, text, service))
    _log_damaged(no, jid)
    keys = since_us, since_created_us, created_us
    return Subscription(no, node_no, jid, _BARE, text, service, SubscriptionState.NONE, *keys, NO_OPTIONS)


def read_subscription(row: Row) -> Subscription:
    """A subscription from the columns SUBSCRIPTION. Raises StoreError for a damaged one."""
    no, node_no, jid, view, text, service, state, since_us, since_created_us, created_us, stored = row
    if state not in _SUBSCRIPTION_STATES or not is_xml_text(f"{jid}{text}{service}") or not _is_view(view):
        raise StoreError(f"a text of subscription {no} in the database is {CORRUPT}")
    keys = since_us, since_created_us, created_us
    known_state = _SUBSCRIPTION_STATES[state]
    return Subscription(no, node_no, jid, view, text, service, known_state, *keys, read_options(stored))


def to_views(rows: Iterable[Row]) -> list[str]:
    """Canonical views of subscriptions, sorted, without the damaged ones."""
    return sorted(view for (view,) in rows if _is_view(view))


def _is_view(text: str) -> bool:
    try:
        from_canonical(text)
    except ValueError:
        return False
    return True


# The cache of the next two functions is what logs a row once, and again after many other rows.
@lru_cache(_KNOWN_OPTIONS)
def _log_damaged(sub_no: int, jid: str) -> None:
    """Logs a damaged subscription once."""
    import structlog  # here and below, because commands import this module for their help, which logs nothing

    log = structlog.get_logger()
    log.error("subscription_damaged", subscription=sub_no, jid=jid, advice=_ADVICE)


@lru_cache(_KNOWN_OPTIONS)
def _log_damaged_row(table: str, key: Any) -> None:
    """Logs a damaged row once."""
    import structlog

    log = structlog.get_logger()
    log.error("row_damaged", table=table, key=without_forbidden(str(key)), advice=_ROW_ADVICE)


def subscription_values(subscription: Subscription, bare: str) -> Row:
    """Returns the values of a subscription by this bare JID for the columns of SUBSCRIPTION, without its number."""
    # The fields of `Subscription` have the order of the columns. Two of them are stored as text.
    *fields, options = subscription[1:]
    fields[_STATE] = _STATE_TEXTS[subscription.state]
    if not options:
        return (*fields, _EMPTY, bare, None)
    end_us = WITH_PRESENCE_US if is_temporary(options) else lease_end_us(options)
    return (*fields, write_options(options), bare, end_us)


def change_no(item: Item) -> int:
    """The number by which the column `change` says what last happened to an item."""
    if item.deleted:
        return DELETED
    return _NEW if item.revision == 1 else _EDITED


def digest(text: str) -> bytes:
    """A facet or word in a bounded number of bytes; equal texts, and only they, have equal digests: 128 bits make a
    collision improbable below 2**64 texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
