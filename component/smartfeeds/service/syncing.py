"""Writes the sync data of items with every local change, and reads and shows it (FeedSync 2.4, 3.1, 3.2).

The store has it beside the payload, as the sx:sync that views with `sync` show. For an item that has not changed since
its first publish here, the store has only the endpoint, because everything else follows from the item. The endpoint of
a local change is the publisher at this service, percent-encoded (A-51). The same person at two services has two
endpoints, because each service counts on its own. If a node hides its publishers, the endpoint is the service, or a
branch of it if another publisher's conflict has that name (`sync.feedsync`).
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import MAX_ID_BYTES, MAX_SYNC_BYTES, Item, Node, NodeKind
from smartfeeds.core.options import SSE as SSE_DIALECT
from smartfeeds.core.text import IS_NSS, is_nss, to_nss, wire_bytes
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import DIGEST_PREFIX, departed, digest_id, with_child, with_mark, without_mark
from smartfeeds.formats.payload import Payload, carried
from smartfeeds.service.context import Context
from smartfeeds.service.damage import without_content
from smartfeeds.service.item_writes import ItemState
from smartfeeds.store.base import ReadTx
from smartfeeds.sync.copies import CopyOrigin, as_copy
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import SyncItem, read_stored, without_blanks, without_sync
from smartfeeds.sync.record import Edit, HistoryRecord, Version
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_first, write_sync

# Edits stop below the limit of merges, so that other services can still merge the item and users can still resolve its
# conflicts or delete it, up to MAX_SYNC_BYTES.
EDITED_SYNC_BYTES = 114_688

# Services on the way may have percent-encoded an endpoint again. Each attempt removes one layer.
_MOST_ENCODINGS = 4
# Fraction slash, division slash, big solidus, mathematical rising diagonal, the backslash; letters that are blank.
_SEEN_AS = dict.fromkeys(map(ord, "\u2044\u2215\u29f8\u27cb\\"), "/") | dict.fromkeys((0x115F, 0x1160, 0x2800))
_SCHEME = re.compile(r"(?:xmpp:|/)+", re.IGNORECASE)

_MARKUP = b"<"  # which no endpoint begins with


@lru_cache(1_024)  # every change writes an endpoint, and most changes are by few publishers
def endpoint(domain: str, publisher: str) -> str:
    """Returns the endpoint of a local change; for an empty `publisher` the endpoint of the service.

    A digest replaces a publisher whose name is too long: two people must never share an endpoint.
    """
    name = to_nss(f"{domain}/{publisher}" if publisher else domain)
    return name if len(name) <= MAX_ID_BYTES else to_nss(f"{domain}/{hashlib.sha256(publisher.encode()).hexdigest()}")


@lru_cache(1_024)  # a merge asks for every record of every history
def is_own_endpoint(domain: str, by: str) -> bool:
    """Whether an endpoint belongs to this service, or looks as if it did.

    An endpoint that is still percent-encoded after all attempts counts as one of this service, to be safe.
    """
    text = by
    for _ in range(_MOST_ENCODINGS):
        text = unquote(text)
    visible_text = unicodedata.normalize("NFKC", text.translate(_SEEN_AS)).translate(_SEEN_AS)
    # Without blanks and control characters.
    visible_text = "".join(char for char in visible_text if unicodedata.category(char)[0] not in "CZ")
    scheme = _SCHEME.match(visible_text)
    host = re.split(r"[/?#]", visible_text[scheme.end() if scheme is not None else 0 :], maxsplit=1)[0]
    return unquote(host) != host or parse_jid(host) == parse_jid(domain)


def editor(context: Context, node: Node, publisher: str) -> Edit:
    """Returns the edit of a local change. All publishers whose names are hidden share the endpoint of the service."""
    name = _shown_name(node, publisher)
    return Edit(context.now_us, endpoint(context.policy.domain, name), shared=not name)


def _endpoint_of(context: Context, node: Node, publisher: str) -> str:
    return endpoint(context.policy.domain, _shown_name(node, publisher))


def _shown_name(node: Node, publisher: str) -> str:
    return publisher if node.options.shows_publisher else ""


def state_of(
    stored: SyncItem, version: Version, limit_bytes: int = MAX_SYNC_BYTES, *, notify: bool = False
) -> ItemState:
    """Returns the state to store for a version. `stored` has the dialect and the namespace in which it is written.

    Raises FeedError(POLICY_VIOLATION) if the sync data is longer than `limit_bytes`.
    """
    sync = write_sync(version, stored.dialect, stored.namespace)
    if wire_bytes(sync) > limit_bytes:
        raise FeedError(
            Condition.POLICY_VIOLATION,
            f"history and conflicts of the item are longer than {limit_bytes} bytes: settle its conflicts first",
        )
    deleted = version.deleted.on
    payload = with_mark(version.payload, version.sync_id) if deleted else version.payload
    return ItemState(payload, deleted, notify and deleted, version.sync_id, len(version.conflicts), sync)


def read_shared(context: Context, node: Node, item: Item) -> SyncItem:
    """Returns the item in the form that a merge compares: the payload of its version has no tombstone mark."""
    payload = shared_payload(item)
    stored = _stored(item)
    if stored.startswith(_MARKUP):
        return read_stored(stored, payload)
    # Items of versions without sync data count as changed by their publisher alone.
    by = stored.decode() or _endpoint_of(context, node, item.publisher)
    edit = Edit(item.modified_us, by)
    first = FEEDSYNC.create(item.sync_id or _sync_id(item.id), payload, edit, deleted=item.deleted)
    stamp = HistoryRecord(item.revision, edit.when_us, by)
    return SyncItem(first._replace(counter=item.revision, history=(stamp,)), FEEDSYNC, "")


def without_publishers(context: Context, node: Node, version: Version) -> Version:
    """Returns a version to show, without the publishers of this service if the node hides them. It must not be merged
    or stored: other services have the names."""
    if node.options.shows_publisher:
        return version
    domain = context.policy.domain

    def rename(record: HistoryRecord) -> HistoryRecord:
        return record._replace(by=endpoint(domain, "")) if is_own_endpoint(domain, record.by) else record

    return version.each(lambda part: part._replace(history=tuple(map(rename, part.history))))


def shared_payload(item: Item) -> Payload:
    """Returns the payload of an item in the form that all services store, so that they end with the same bytes."""
    payload = without_mark(item.payload) if item.deleted else item.payload
    return without_blanks(carried(without_sync(payload)))


def created(
    tx: ReadTx,
    context: Context,
    node: Node,
    item_id: str,
    payload: bytes,
    publisher: str,
    origin: CopyOrigin | None = None,
) -> ItemState:
    """Returns the state of an item that is published here for the first time (FeedSync 3.1, SSE 4.1).

    A copy of an item of a document has its `origin`.
    """
    if node.kind is not NodeKind.FEED:
        return ItemState(payload)
    sync_id = (origin.sync_id if origin is not None else "") or _sync_id(item_id)
    while tx.item_of_sync(node.node_no, sync_id) is not None:
        sync_id = _sync_id(context.new_id())
    return first_state(context, node, sync_id, payload, publisher, origin)


def first_state(
    context: Context, node: Node, sync_id: str, payload: bytes, publisher: str, origin: CopyOrigin | None = None
) -> ItemState:
    """Returns the state of a new item. No item of the node may have its sync id."""
    if node.kind is not NodeKind.FEED:
        return ItemState(payload)
    is_sse = node.options.sync_dialect == SSE_DIALECT
    if is_sse or origin is not None:
        dialect = SSE if is_sse else FEEDSYNC
        first = dialect.create(sync_id, payload, editor(context, node, publisher))
        if origin is not None:
            first = as_copy(first, origin)
        return ItemState(payload, sync_id=sync_id, sync=write_sync(first, dialect))
    by = endpoint(context.policy.domain, publisher if node.options.shows_publisher else "")
    return ItemState(payload, sync_id=sync_id, sync=by.encode())


def is_unique_sync_id(item_id: str) -> bool:
    """Returns whether an id is its own sync id, and is not what `_sync_id` makes of another id."""
    return "%" not in item_id and not item_id.startswith(DIGEST_PREFIX) and is_nss(item_id)


def edited(
    context: Context, node: Node, item: Item, payload: bytes, publisher: str, origin: CopyOrigin | None = None
) -> ItemState:
    """Returns the state of an item that is published again. A deleted item is restored (FeedSync 3.2, A-49).

    `origin` as in `created`. Raises FeedError(NOT_ALLOWED) if the item was changed too often.
    """
    if node.kind is not NodeKind.FEED:
        return ItemState(payload)
    shared = read_shared(context, node, item)
    deleted = False if item.deleted else None
    edit = editor(context, node, publisher)
    version = shared.dialect.update(shared.version, edit, payload, deleted=deleted)
    if origin is not None:
        version = as_copy(version, origin)
    return state_of(shared, version, EDITED_SYNC_BYTES)


def buried(
    context: Context,
    node: Node,
    item: Item,
    payload: bytes,
    publisher: str,
    *,
    notify: bool,
    settles: bool,
    origin: CopyOrigin | None = None,
) -> ItemState:
    """Returns the state of a retracted item. `payload` is the payload of the tombstone.

    With `settles` the retraction resolves the item's conflicts too. Otherwise their content would stay readable.
    `origin` as in `created`.
    """
    shared = read_shared(context, node, item)
    edit = editor(context, node, publisher)
    decided = shared.version.conflicts if settles else ()
    version = shared.dialect.resolve(shared.version, edit, decided, payload, deleted=True)
    if origin is not None:
        version = as_copy(version, origin)
    return state_of(shared, version, notify=notify)


def item_in_view(context: Context, node: Node, view: View, item: Item) -> Item:
    """Returns the item as a view shows it, with its sync data if the view asks for it.

    An item that has left the view has no content, because its present version is not for the readers of this view.
    """
    if item.left:
        payload = departed(item.id, item.modified_us, item.payload, sync=view.sync)
        return item._replace(payload=payload, publisher="", deleted=True, conflicts=0)
    if item.damaged:
        return without_content(context, node, item)
    if not view.sync:
        return item
    return item._replace(payload=with_child(shared_payload(item), sync_of(context, node, item)))


def sync_of(context: Context, node: Node, item: Item) -> bytes:
    """Returns the sx:sync of an item."""
    stored = _stored(item)
    if stored.startswith(_MARKUP):
        return stored
    if stored and item.revision == 1:
        when_us = item.modified_us // US_PER_S * US_PER_S
        return write_first(item.sync_id or item.id, when_us, stored.decode())
    shared = read_shared(context, node, item)
    return write_sync(shared.version, shared.dialect, shared.namespace)


def _stored(item: Item) -> bytes:
    if item.sync is None:
        raise FeedError(Condition.INTERNAL, "the item was read without its sync data")
    return item.sync


def _sync_id(item_id: str) -> str:
    """Returns the sync id for an item id: the item id itself, or encoded if it is no valid sync id (A-154)."""
    name = item_id if IS_NSS(item_id) else to_nss(item_id)
    return name if len(name) <= MAX_ID_BYTES else digest_id(item_id)
