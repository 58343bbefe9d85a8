"""The sync data of items: made with every change here, read again, shown in views (FeedSync 2.4, 3.1, 3.2).

It is stored beside the payload, as the sx:sync that views with `sync` show; of an item that was never changed since it
was published here, only the endpoint, as the rest is known. The endpoint of a change made here is its
publisher at this service, percent-encoded (A-51): the same person at two services is two endpoints, as each of them
counts on its own. Where a node hides its publishers the service is the endpoint, or a branch of it where another
publisher's conflict has that name (`sync.feedsync`).
"""

import hashlib
import re
import unicodedata
from dataclasses import replace
from functools import lru_cache
from urllib.parse import unquote

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import MAX_ID_BYTES, MAX_SYNC_BYTES, Item, Node, NodeKind
from smartfeeds.core.text import is_nss, to_nss, wire_bytes
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import departed, digest_id, with_child, with_mark, without_mark
from smartfeeds.formats.payload import Payload, carried
from smartfeeds.service.context import Context
from smartfeeds.service.items import ItemState
from smartfeeds.store.base import ReadTx
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import SyncItem, read_stored, without_blanks, without_sync
from smartfeeds.sync.record import Edit, HistoryRecord, Version
from smartfeeds.sync.writing import write_first, write_sync

# What one service stores another one takes, so edits, which only add to sync data, stop before merges do; settling and
# deleting go on up to MAX_SYNC_BYTES.
EDITED_SYNC_BYTES = 114_688

_MOST_ENCODINGS = 4
# Fraction slash, division slash, big solidus, mathematical rising diagonal, the backslash; letters that are blank.
_SEEN_AS = dict.fromkeys(map(ord, "\u2044\u2215\u29f8\u27cb\\"), "/") | dict.fromkeys((0x115F, 0x1160, 0x2800))
_SCHEME = re.compile(r"(?:xmpp:|/)+", re.IGNORECASE)

_MARKUP = b"<"  # which no endpoint begins with


@lru_cache(1_024)
def endpoint(domain: str, publisher: str) -> str:
    """The endpoint of what is changed here; an empty `publisher` gives that of the service.

    A digest replaces a publisher whose name would be too long: two people must never be one endpoint.
    """
    name = to_nss(f"{domain}/{publisher}" if publisher else domain)
    return name if len(name) <= MAX_ID_BYTES else to_nss(f"{domain}/{hashlib.sha256(publisher.encode()).hexdigest()}")


@lru_cache(1_024)
def is_own_endpoint(domain: str, by: str) -> bool:
    """Whether an endpoint is one of this service, or reads as one, however it is spelt.

    What could be read as ours is ours, so a service that is percent-encoded too often to be read is too.
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
    """Who changes an item now. Everybody whose name is not shown shares the endpoint of the service."""
    name = _shown_name(node, publisher)
    return Edit(context.now_us, endpoint(context.policy.domain, name), shared=not name)


def _endpoint_of(context: Context, node: Node, publisher: str) -> str:
    return endpoint(context.policy.domain, _shown_name(node, publisher))


def _shown_name(node: Node, publisher: str) -> str:
    return publisher if node.options.shows_publisher else ""


def state_of(found: SyncItem, version: Version, limit_bytes: int = MAX_SYNC_BYTES, *, told: bool = False) -> ItemState:
    """What is stored for a version of an item whose sync data is written as that which was `found`.

    Raises FeedError(POLICY_VIOLATION) where its sync data is longer than `limit_bytes`.
    """
    sync = write_sync(version, found.dialect, found.namespace)
    if wire_bytes(sync) > limit_bytes:
        raise FeedError(
            Condition.POLICY_VIOLATION,
            f"history and conflicts of the item are longer than {limit_bytes} bytes: settle its conflicts first",
        )
    deleted = version.deleted.on
    payload = with_mark(version.payload, version.sync_id) if deleted else version.payload
    return ItemState(payload, deleted, told and deleted, version.sync_id, len(version.conflicts), sync)


def read_shared(context: Context, node: Node, item: Item) -> SyncItem:
    """The item as the merge sees it: the payload of its version has no mark."""
    payload = shared_payload(item)
    stored = _stored(item)
    if stored.startswith(_MARKUP):
        return read_stored(stored, payload)
    # What was stored before there was sync data counts as changed by its publisher alone.
    by = stored.decode() or _endpoint_of(context, node, item.publisher)
    edit = Edit(item.modified_us, by)
    first = FEEDSYNC.create(item.sync_id or _sync_id(item.id), payload, edit, deleted=item.deleted)
    stamp = HistoryRecord(item.revision, edit.when_us, by)
    return SyncItem(replace(first, counter=item.revision, history=(stamp,)), FEEDSYNC, "")


def shared_payload(item: Item) -> Payload:
    """The payload of an item as other services keep it, so that all end with the same bytes."""
    payload = without_mark(item.payload) if item.deleted else item.payload
    return without_blanks(carried(without_sync(payload)))


def created(tx: ReadTx, context: Context, node: Node, item_id: str, payload: bytes, publisher: str) -> ItemState:
    """The state of an item that is published here first (FeedSync 3.1)."""
    if node.kind is not NodeKind.FEED:
        return ItemState(payload)
    sync_id = _sync_id(item_id)
    while tx.item_of_sync(node.node_no, sync_id) is not None:
        sync_id = _sync_id(context.new_id())
    return ItemState(payload, sync_id=sync_id, sync=_endpoint_of(context, node, publisher).encode())


def edited(context: Context, node: Node, item: Item, payload: bytes, publisher: str) -> ItemState:
    """The state of an item that is published again, which brings back a deleted one (FeedSync 3.2, A-49).

    Raises FeedError(NOT_ALLOWED) where it was changed too often.
    """
    if node.kind is not NodeKind.FEED:
        return ItemState(payload)
    found = read_shared(context, node, item)
    deleted = False if item.deleted else None
    edit = editor(context, node, publisher)
    version = found.dialect.update(found.version, edit, payload, deleted=deleted)
    return state_of(found, version, EDITED_SYNC_BYTES)


def buried(
    context: Context, node: Node, item: Item, payload: bytes, publisher: str, *, told: bool, settles: bool
) -> ItemState:
    """The state of an item that is retracted; `payload` is what is left of its content.

    With `settles` the retraction settles the item's conflicts too, whose content would stay readable.
    """
    found = read_shared(context, node, item)
    edit = editor(context, node, publisher)
    decided = found.version.conflicts if settles else ()
    version = found.dialect.resolve(found.version, edit, decided, payload, deleted=True)
    return state_of(found, version, told=told)


def shown(context: Context, node: Node, view: View, item: Item) -> Item:
    """The item as a view shows it: with its sync data where that is asked for; of an item that has left the view
    nothing but that, because its present version is not for the readers of this view."""
    if item.left:
        payload = departed(item.id, item.modified_us, item.payload, sync=view.sync)
        return item._replace(payload=payload, publisher="", deleted=True, conflicts=0)
    if not view.sync:
        return item
    return item._replace(payload=with_child(shared_payload(item), sync_of(context, node, item)))


def sync_of(context: Context, node: Node, item: Item) -> bytes:
    """The sx:sync of an item."""
    stored = _stored(item)
    if stored.startswith(_MARKUP):
        return stored
    if stored and item.revision == 1:
        when_us = item.modified_us // US_PER_S * US_PER_S
        return write_first(item.sync_id or item.id, when_us, stored.decode())
    found = read_shared(context, node, item)
    return write_sync(found.version, found.dialect, found.namespace)


def _stored(item: Item) -> bytes:
    if item.sync is None:
        raise FeedError(Condition.INTERNAL, "the item was read without its sync data")
    return item.sync


def _sync_id(item_id: str) -> str:
    """A-154: the item id, encoded where it cannot be one."""
    name = item_id if is_nss(item_id) else to_nss(item_id)
    return name if len(name) <= MAX_ID_BYTES else digest_id(item_id)
