"""Imports documents into nodes, with the ids and dates of their items (design section 1, `T`; SF-030).

The oldest item comes first, so that an empty feed gets the dates of the document as its created keys. Behind newer
items an old item gets the next key, and atom:published has its true date. Importing a document again changes nothing:
the same id with the same content is no modification. Sync data is not imported here (`features.sync_documents`). It
only identifies the item of the node if that came with its sync data before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ID_BYTES, IndexState, Node, NodeKind
from smartfeeds.core.options import DETAILS, KIND, MAX_TEXT, PUBSUB, FormFields, Values
from smartfeeds.core.text import is_language_tag
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.formats.atom import id_and_updated
from smartfeeds.formats.feed_details import dump_details, load_details
from smartfeeds.formats.feed_document import FeedDocument, ImportedItem, dates_of
from smartfeeds.formats.payload import repaired_entry, with_uris
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.item_writes import next_key
from smartfeeds.service.nodes import add_node, change_options
from smartfeeds.service.publishing import bury, store_item
from smartfeeds.service.steps import IndexFirst
from smartfeeds.service.syncing import read_shared
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.copies import knows, origin_of
from smartfeeds.sync.markup import without_sync

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

CHUNK = 64  # items that one transaction stores, so that the writes of other callers run in between
_NAMES = {DETAILS: "page, pictures and other feed data"}


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """The effects of an import; `skipped` holds (item id, reason) pairs, `notes` are for people."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """Returns the number of items per effect, for reports."""
        return {name: getattr(self, name) for name in ("added", "changed", "deleted", "unchanged")}

    def __add__(self, other: "ImportCounts") -> "ImportCounts":
        return ImportCounts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


async def import_document(
    service: "FeedService",
    node: str,
    document: FeedDocument,
    actor: Jid,
    *,
    on_progress: Callable[[int], None] = lambda _count: None,
) -> ImportCounts:
    """Brings every item of a document into a node. A missing node is created with the title of the document.

    `actor` becomes the publisher of the items and the owner of a new node. This function checks neither rights nor
    quotas: it is for operators. `on_progress` is called after each transaction with the number of its items. Raises
    FeedError if the node cannot be created or is no feed.
    """
    total = ImportCounts(notes=await ensure_feed(service, node, actor, document))
    items = _dated(document.oldest_first())
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        total += await service.write(partial(import_items, name=node, actor=actor, items=chunk))
        on_progress(len(chunk))
    return total


async def index_import(service: "FeedService", node: str) -> None:
    """Brings the filter index of a node up to date, for commands: no service does so in the background. Otherwise the
    first filtered pull of a large import would wait for it.
    """
    await service.read(partial(_index_read, name=node))


def _index_read(tx: ReadTx, _context: Context, name: str) -> IndexFirst | None:
    """Reads nothing, when the filter index of the node is up to date, or nobody has read a filtered view of it."""
    node = tx.node(name)
    if node is None or tx.index_state(node.node_no) is not IndexState.BEHIND:
        return None
    return IndexFirst(node.node_no)


async def ensure_feed(service: "FeedService", node: str, actor: Jid, document: FeedDocument) -> tuple[str, ...]:
    """Creates the feed if it is missing, and stores the title and the other data of the document's feed with the node.

    Data that the node has already stays, because its owner may have chosen it. Returns notes for people on what was not
    stored. Raises FeedError if the feed cannot be created.
    """
    texts, notes = texts_of(document)
    different, _ = await service.write(lambda tx, context: describe_node(tx, context, node, actor, texts))
    if different:
        notes.append(f"the node has its own {', '.join(different)}: that of the document was left out")
    return tuple(notes)


def texts_of(document: FeedDocument) -> tuple[FormFields, list[str]]:
    """Returns the description of the feed in a document, by option of the node, and notes for people on losses."""
    details = dump_details(document)
    language = document.channel.language if document.channel is not None else ""
    texts = {"title": document.title, "description": document.description}
    values = {name: text[:MAX_TEXT] for name, text in texts.items()}
    values |= {"language": language if is_language_tag(language) else "", DETAILS: details.text}
    notes = [
        f"the {name} of the feed has {len(text)} characters, and the first {MAX_TEXT} were kept"
        for name, text in texts.items()
        if len(text) > MAX_TEXT
    ]
    if details.left_out:
        notes.append(f"of the feed itself these were left out: {', '.join(details.left_out)}")
    return {name: (text,) for name, text in values.items() if text}, notes


def describe_node(
    tx: WriteTx,
    context: Context,
    name: str,
    actor: Jid,
    texts_of_document: FormFields,
    former: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], dict[str, str]]:
    """Creates a missing node, and gives it the texts of a document that it lacks, or that it has from the `former`
    document. `former` and the second result have a digest of each text that came from a document, by option.

    The first result names what the node has of its own and the document says differently.
    """
    if tx.node(name) is None:
        add_node(tx, context, actor, name, {KIND: (NodeKind.FEED.value,)}, trusted=True)
    node = feed_locked(tx, name)
    own = node.options.stored
    ours = {var for var in texts_of_document if not any(own.get(var, ())) or _digest(own[var]) == former.get(var)}
    form = {f"{PUBSUB}{var}": texts_of_document[var] for var in ours if var != DETAILS}
    options = node.options.apply(form, context.policy.options)
    if DETAILS in ours:
        options = options.with_details("".join(texts_of_document[DETAILS]))
    if options != node.options:
        change_options(tx, context, node, options)
    different = [
        _NAMES.get(var, var)
        for var, values in texts_of_document.items()
        if var not in ours and _differs(var, own[var], values)
    ]
    return different, {var: _digest(options.stored.get(var, ())) for var in ours}


def _digest(values: Values) -> str:
    return sha256("\0".join(values).encode()).hexdigest()[:16]


def _differs(var: str, own: Values, imported: Values) -> bool:
    if var != DETAILS:
        return own != imported
    # Many feeds are dated anew with each change of an item.
    ours, theirs = (load_details("".join(values)) for values in (own, imported))
    return ours != theirs._replace(channel=replace(theirs.channel, published_us=ours.channel.published_us))


def _dated(items: list[ImportedItem]) -> list[ImportedItem]:
    """The items, oldest first, with a date for each that a dated item follows. Otherwise its created key would be now,
    and the items behind it would lose their dates."""
    last = max((place for place, item in enumerate(items) if item.made_us is not None), default=0)
    dates = dates_of(items)
    return [replace(item, published_us=dates[place]) for place, item in enumerate(items[:last])] + items[last:]


def import_items(tx: WriteTx, context: Context, name: str, actor: Jid, items: Sequence[ImportedItem]) -> ImportCounts:
    """Brings some items into a node, in the order given."""
    total = ImportCounts()
    for item in items:
        total += _import_item(tx, context, feed_locked(tx, name), actor, item)
    return total


def _import_item(tx: WriteTx, context: Context, node: Node, actor: Jid, item: ImportedItem) -> ImportCounts:
    origin = origin_of(item.payload)
    # The item may have come here with its sync data, and then has another id.
    shared = tx.item_of_sync(node.node_no, origin.sync_id) if origin.sync_id else None
    existing = shared or tx.item(node.node_no, item.id)
    item_id = item.id if existing is None else existing.id
    if shared is not None and knows(read_shared(context, node, shared).version, origin):
        return ImportCounts(unchanged=1)
    if item.deleted:
        if existing is None or existing.deleted:
            return ImportCounts(unchanged=1)
        bury(tx, context, node, existing, actor.bare_text, notify=True, origin=origin)
        return ImportCounts(deleted=1)
    if existing is not None:
        created_us = existing.created_us
    else:
        # The date of the item, if the feed still has room for it.
        now_us = next_key(node.last_modified_us, context.now_us)
        created_us = next_key(node.last_created_us, now_us if item.made_us is None else min(item.made_us, now_us))
    # An entry of another format may have no atom:id. RFC 4287 4.2.6: once it has one, that never changes.
    atom_id = id_and_updated(existing.payload)[0] if existing else ""
    own_id = atom_id or xmpp_uri(context.policy.domain, node.name, item_id)
    payload = repaired_entry(with_uris(without_sync(item.payload)), own_id, created_us, created_us)
    if existing is not None and not existing.deleted and existing.payload == payload:
        return ImportCounts(unchanged=1)
    if not 0 < len(item_id.encode()) <= MAX_ID_BYTES:
        return ImportCounts(skipped=((item.id[:80], "the id is longer than 1023 bytes"),))
    if len(payload) > node.options.max_payload_size:
        return ImportCounts(skipped=((item.id, f"{len(payload)} bytes are over the limit of this node"),))
    publisher = actor.bare_text
    store_item(tx, context, node, existing, item_id, payload, publisher, created_us=created_us, origin=origin)
    return ImportCounts(changed=1) if existing else ImportCounts(added=1)
