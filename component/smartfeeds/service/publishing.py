"""Publishing, retracting and purging items (XEP-0060 7.1, 7.2, 8.5; xep-map 130 to 163).

A retracted item stays as a tombstone (SF-013). Publishing its id again restores the item with its created date.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from smartfeeds.core.access import Access
from smartfeeds.core.model import (
    MAX_ITEM_NO,
    MAX_WRITTEN_BYTES,
    TRANSIENT_ITEM,
    Edge,
    Item,
    Node,
    NodeEvent,
    NodeKind,
    NodeState,
    OpenPurge,
    Slice,
)
from smartfeeds.core.options import GALLERY, REJECT, RETRACT_OLDEST, OptionLimits, how_to_generic, is_false
from smartfeeds.core.text import wire_bytes
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.core.view import BARE, View
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.formats.atom import FEED, REPLY_MARK, id_and_updated, remains
from smartfeeds.formats.payload import Payload, repaired_entry, with_author
from smartfeeds.service.context import (
    NO_ACCESS,
    Context,
    LocatedNode,
    NewReply,
    access_of,
    check_persistent,
    find_for,
    lock_located,
    no_such_node,
)
from smartfeeds.service.drafts import NO_PAYLOAD, PayloadDraft
from smartfeeds.service.item_writes import check_expected, item_tag, next_key, remove_item, write_state
from smartfeeds.service.merging import IncomingItem, merge_item
from smartfeeds.service.nodes import add_node, configure_empty_feed
from smartfeeds.service.requests import EmptyResult, Publish, Published, Purge, PurgeBegun, Retract
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.service.syncing import buried, created, edited
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.copies import CopyOrigin
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import SyncItem

# Items about the feed itself, each with the element of its payload. Item 0 describes the feed (XEP-0277 5). Movim shows
# the other one as the picture of a community; both ids are no UUIDs, so they collide with no post.
PICTURE = "urn:xmpp:avatar:metadata"
FEED_ITEMS = {"0": FEED, PICTURE: f"{{{PICTURE}}}metadata"}
# How many items one transaction of a purge retracts, and how much sync data they may have. They are read in steps.
PURGE_CHUNK = 250  # each takes a third of a millisecond if the filter index has not read it yet
PURGE_BYTES = 262_144
PURGE_STEP = 50
_LIVE = View(sync=True)  # live items, with the sync data that a retraction changes
REMOVAL_MARKS = "leave out sx:sync deleted, urn:smartfeeds:0 left and at:deleted-entry, or retract the item"


def publish(tx: WriteTx, context: Context, request: Publish) -> Published:
    """Stores an item. An entry with the mark of a deletion is a retraction."""
    node, access = _publishable(tx, context, request)
    limits = context.policy.options
    draft = _checked(node, request, limits)
    if not node.options.persist_items:
        return _announce(tx, context, node, request, draft)
    if draft.sync is not None and node.kind is NodeKind.FEED:
        return _publish_version(tx, context, node, access, request, draft.sync)
    item_id = request.item_id or context.new_id()
    existing = tx.item(node.node_no, item_id)
    shape = draft.payload.shape
    is_feed = node.kind is NodeKind.FEED
    deletion = shape.deletion and is_feed
    live = existing is not None and not existing.deleted
    # An appointed publisher may store every new item, which is nearly every publish.
    if existing is not None or access.rights.publish is not True:
        # On a generic node a removed item leaves its id to everybody (XEP-0060 7.2). Its tombstone is not an item.
        _check_right_to_item(access, request, existing if live or is_feed else None, deletion=deletion)
    if request.expected is not None:
        check_expected(existing, request.expected)
    if not live and not is_feed:
        node = _make_room(tx, context, node)
    if deletion:
        _retract_item(tx, context, node, existing, request.actor.bare_text, notify=True)
        return Published(request.node or "", item_id)
    payload = draft.content if is_feed else draft.payload
    if draft.author and node.options.shows_publisher:
        payload = _signed(context, node, existing if live else None, item_id, payload, draft.author)
    if is_feed and shape.entry and (shape.missing or not shape.valid_dates):
        payload = repaired(context, node, existing, item_id, payload)
    stored = store_item(tx, context, node, existing, item_id, payload, request.actor.bare_text)
    # Only a hint: every publish passes here, and few are read again to see what they answer.
    if is_feed and not live and REPLY_MARK in stored.payload:
        context.replies += (NewReply(node.name, item_id, request.actor),)
    return Published(request.node or "", item_id, item_tag(stored), created=not live)


def _signed(
    context: Context, node: Node, existing: Item | None, item_id: str, payload: Payload, author: str
) -> Payload:
    """An entry that names nobody, with its author. What a live item is already stays without: somebody puts back what
    was read, or repeats a publish of another wire or an older version."""
    if existing is not None:
        same = payload if payload.shape.complete else repaired(context, node, existing, item_id, payload)
        if same == existing.payload:
            return payload
    return with_author(payload, author)


def _announce(tx: WriteTx, context: Context, node: Node, request: Publish, draft: PayloadDraft) -> Published:
    """Notifies the subscribers of an item that the node does not store (XEP-0060 4.3).

    The event has a key of the modified order, so it comes at its place among the changes of the node.
    """
    check_expected(None, request.expected)
    item_id = (request.item_id or context.new_id()) if request.item_present else ""
    at_us = next_key(node.last_modified_us, context.now_us)
    tx.set_keys(node.node_no, at_us, node.last_created_us)
    is_signed = draft.author and node.options.shows_publisher
    payload = with_author(draft.payload, draft.author) if is_signed else draft.payload
    # Neither a bare JID nor a quoted id contains a space.
    text = payload.decode() if node.options.deliver_payloads else ""
    data = f"{request.actor.bare} {quote(item_id)} {text}"
    tx.add_event(NodeEvent(0, node.node_no, at_us, TRANSIENT_ITEM, data))
    context.changed.add(node.node_no)
    return Published(request.node or "", item_id)


def _publish_version(
    tx: WriteTx, context: Context, node: Node, access: Access, request: Publish, sync_item: SyncItem
) -> Published:
    """Merges an entry with sync data into the feed (A-59, A-61). It needs the rights of any other publish. A deletion
    merges like every version, so it may lose."""
    existing = tx.item_of_sync(node.node_no, sync_item.version.sync_id)
    if existing is None and request.item_id and tx.item(node.node_no, request.item_id) is not None:
        raise FeedError(Condition.CONFLICT, "the item of this id is shared under another one: leave the id out")
    if not access.may_read:
        raise FeedError(Condition.FORBIDDEN, "you may not read this node: publish without sync data")
    _check_right_to_item(access, request, existing, deletion=False)
    if sync_item.dialect is not FEEDSYNC and not access.may_overwrite(own=False):
        raise FeedError(Condition.FORBIDDEN, f"{sync_item.dialect.name} is taken from publishers of the node alone")
    check_expected(existing, request.expected)
    incoming = IncomingItem(request.item_id or "", sync_item)
    merged = merge_item(tx, context, node, incoming, request.actor.bare_text)
    created = (existing is None or existing.deleted) and not merged.item.deleted
    return Published(request.node or "", merged.item.id, item_tag(merged.item), created=created)


def store_item(
    tx: WriteTx,
    context: Context,
    node: Node,
    existing: Item | None,
    item_id: str,
    payload: bytes,
    publisher: str,
    *,
    created_us: int | None = None,
    origin: CopyOrigin | None = None,
) -> Item:
    """Publishes an item; `created_us` as in `write_state`, `origin` as in `created`.

    The same payload by the same publisher changes nothing: a client may repeat a publish whose response it missed.
    """
    if existing is None:
        state = created(tx, context, node, item_id, payload, publisher, origin)
    elif not existing.deleted and existing.payload == payload and existing.publisher == publisher:
        return existing
    else:
        state = edited(context, node, existing, payload, publisher, origin)
    return write_state(tx, context, node, existing, item_id, state, publisher, created_us=created_us)


def repaired(context: Context, node: Node, existing: Item | None, item_id: str, payload: Payload) -> Payload:
    """Adds the required elements that an entry lacks, and replaces invalid dates: the item's atom:id, its created time
    as atom:published, the time of this change as atom:updated. A repeated publish gets the stored atom:updated, so it
    changes nothing."""
    own_id = xmpp_uri(context.policy.domain, node.name, item_id)
    now_us = next_key(node.last_modified_us, context.now_us)
    if existing is None:
        return repaired_entry(payload, own_id, next_key(node.last_created_us, now_us), now_us)
    # RFC 4287 4.2.6: the id of an entry never changes.
    atom_id, stored_us = id_and_updated(existing.payload)
    if stored_us is not None:
        repeated = repaired_entry(payload, atom_id or own_id, existing.created_us, stored_us)
        if repeated == existing.payload:
            return repeated
    return repaired_entry(payload, atom_id or own_id, existing.created_us, now_us)


def retract(tx: WriteTx, context: Context, request: Retract) -> EmptyResult:
    """Retracts a live item."""
    located = find_for(tx, context, request.node, request.actor)
    if not request.item_id:
        raise FeedError(Condition.ITEM_REQUIRED)
    node, access = _locked(tx, located, request.node, "delete-items")
    item = tx.item(node.node_no, request.item_id)
    # Only appointed publishers learn that an item is missing. Others may retract their own items and nothing else.
    own = access.may_overwrite(own=False) if item is None else item.publisher == request.actor.bare_text
    if not access.may_retract(own=own):
        raise FeedError(Condition.FORBIDDEN)
    if item is not None and not item.deleted:
        check_expected(item, request.expected)
    # A former publisher may still retract its own item, but it may not settle conflicts with versions of others.
    by = request.actor.bare_text
    _retract_item(tx, context, node, item, by, notify=request.notify, settles=access.may_publish)
    return EmptyResult()


def purge(tx: WriteTx, context: Context, request: Purge) -> EmptyResult | PurgeBegun | MoreSteps[EmptyResult]:
    """Retracts every item that is live now; one event notifies the subscribers (xep-map 81, 82).

    Each step retracts a chunk, so that the writes of others do not wait for a large feed. The event gets a key before
    the first retraction, so items that are published between two steps come behind it. Subscribers of Smart views
    receive the tombstones of later chunks.
    """
    node, access = _locked(tx, find_for(tx, context, request.node, request.actor), request.node, "purge-nodes")
    access.check_manage()
    check_persistent(node)
    first_us = next_key(node.last_modified_us, context.now_us)
    purge = OpenPurge(node.node_no, node.last_modified_us, request.actor.bare_text)
    rest = _bury_chunk(tx, context, node, purge)
    last_us = max(rest.last_modified_us, first_us)
    tx.set_keys(node.node_no, last_us, node.last_created_us)
    tx.add_event(NodeEvent(0, node.node_no, first_us - 1, "purge", str(last_us)))
    context.changed.add(node.node_no)
    if rest.live == 0:
        return EmptyResult()
    # The event is sent even if the process ends now, so the rest must be retracted then too (`delivery.sweeps`).
    tx.put_purge(purge)
    if request.begins:
        return PurgeBegun(node.node_no)
    return MoreSteps(partial(continue_purge, node_no=node.node_no))


def continue_purge(tx: WriteTx, context: Context, node_no: int) -> EmptyResult | MoreSteps[EmptyResult]:
    """Retracts the next chunk of the open purge of a node. Two callers may run the steps of one purge together."""
    node = tx.lock_no(node_no)
    purge = tx.open_purge(node_no)
    if node is None or purge is None:
        return EmptyResult()
    if node.state is not NodeState.DELETED and _bury_chunk(tx, context, node, purge).live < node.live:
        return MoreSteps(partial(continue_purge, node_no=node_no))
    tx.remove_purge(node_no)
    return EmptyResult()


def due_purges(tx: ReadTx, _context: Context, _after: int) -> tuple[Sequence[WriteStep[EmptyResult]], None]:
    """Returns the steps for purges that another process began and did not end, because it was stopped or killed."""
    return [partial(continue_purge, node_no=purge.node_no) for purge in tx.open_purges()], None


def _bury_chunk(tx: WriteTx, context: Context, node: Node, purge: OpenPurge) -> Node:
    """Buries the oldest live items of a purge, a chunk of them. Returns the node with its new key and count."""
    before = Edge(purge.up_to_us, MAX_ITEM_NO)
    done = size_bytes = 0
    while done < PURGE_CHUNK and size_bytes < PURGE_BYTES:
        step = min(PURGE_STEP, PURGE_CHUNK - done)
        items = tx.slice(node.node_no, Slice(_LIVE, step, before=before))
        for item in items:
            node = bury(tx, context, node, item, purge.actor, notify=False)
        done += len(items)
        size_bytes += sum(len(item.sync or b"") for item in items)
        if len(items) < step:
            break
    return node


def _publishable(tx: WriteTx, context: Context, request: Publish) -> tuple[Node, Access]:
    """Returns the node of a publish, locked, and the actor's access.

    Publish-options configure a node that the publish creates, and are preconditions for every other node, except for
    its picture. Raises FeedError(PRECONDITION_NOT_MET) if one of them is not met (XEP-0060 7.1.5).
    """
    form = request.options or {}
    is_entry = request.draft is not None and request.draft.payload.shape.entry
    foreign = request.item_present and not is_entry and not _is_feed_item(request)
    # Locked before the access is known, because most publishers may publish, and the row is read once then.
    node = tx.lock(request.node) if request.node else None
    access = NO_ACCESS if node is None else access_of(tx, context, node, request.actor)
    if node is None or not (access.options.listed or access.knows_node):
        located = find_for(tx, context, request.node, request.actor)
        creates = context.policy.auto_create and request.may_create and tx.redirect(request.node or "") is None
        if located is None and creates:
            node = add_node(tx, context, request.actor, request.node or "", form, foreign=foreign)
            return node, access_of(tx, context, node, request.actor)
        node, access = _locked(tx, located, request.node, "publish")
    if not access.may_publish:
        raise FeedError(Condition.FORBIDDEN)
    # The first item of somebody else must not change the node of its owner.
    may_convert = request.may_create and request.item_id not in FEED_ITEMS
    if (form or foreign) and may_convert and node.kind is NodeKind.FEED and access.rights.manage:
        converted = configure_empty_feed(tx, context, node, form, foreign=foreign)
        if converted.kind is not node.kind:
            return converted, replace(access, options=converted.options)
    # Movim sends the options of a user's avatar node (XEP-0084) with the picture of a community. No community meets
    # them, and Movim does not want to change its community.
    unmet = node.options.unmet(form, context.policy.options) if form and not _is_picture(request) else None
    if unmet is not None:
        raise FeedError(Condition.PRECONDITION_NOT_MET, f"{unmet} has another value on this node; publish without it")
    return node, access


def _is_feed_item(request: Publish) -> bool:
    """Whether a feed can store the item: an Atom entry, or one of the items about the feed itself. An item without a
    payload is an error for every node that delivers payloads."""
    draft = request.draft
    if draft is None:
        return not is_false((request.options or {}).get("pubsub#deliver_payloads", ()))
    if draft.payload.shape.entry or request.item_id not in FEED_ITEMS:
        return draft.payload.shape.entry
    return bool(draft.payload.root.tag == FEED_ITEMS[request.item_id])


def _is_picture(request: Publish) -> bool:
    """Whether the item is the picture of a community."""
    draft = request.draft
    return request.item_id == PICTURE and draft is not None and draft.payload.root.tag == FEED_ITEMS[PICTURE]


def _locked(tx: WriteTx, located: LocatedNode | None, name: str | None, feature: str) -> tuple[Node, Access]:
    """Returns the node, locked until the transaction ends, and the actor's access. Views are read-only (xep-map 52)."""
    if located is not None and located.view.smart:
        raise unsupported(feature, "a view is read only")
    if located is None:
        raise no_such_node(tx, name)
    return lock_located(tx, located), located.access


def _check_right_to_item(access: Access, request: Publish, existing: Item | None, *, deletion: bool) -> None:
    """Raises FeedError unless the actor may write the item that the request names (xep-map 155).

    Appointed publishers may replace every item, others only their own. Actors who may publish but not read cannot
    choose new item ids either: otherwise the answer would reveal which ids exist.
    """
    own = existing is not None and existing.publisher == request.actor.bare_text
    if own or (existing is None and not request.item_id):
        return
    if not access.may_overwrite(own=False) and not access.may_read:
        raise FeedError(Condition.FORBIDDEN, "you may not read this node: publish without an id, it is given one")
    allowed = access.may_retract if deletion else access.may_overwrite
    if existing is not None and not allowed(own=False):
        raise FeedError(Condition.FORBIDDEN, "this item is somebody else's")


def _required_draft(node: Node, request: Publish) -> PayloadDraft:
    """Returns what was sent in place of a payload. Raises FeedError unless the request has the parts that the event
    type of the node requires (XEP-0060 4.3, 7.1.3.6; xep-map 135, 136).

    A feed delivers payloads to readers also if its notifications have none, so it always requires a payload.
    """
    notifications_only = node.kind is NodeKind.GENERIC and not node.options.deliver_payloads
    if node.options.persist_items and not request.item_present:
        raise FeedError(Condition.ITEM_REQUIRED)
    if not node.options.persist_items and notifications_only and request.item_present:
        raise FeedError(Condition.ITEM_FORBIDDEN, "this node only announces changes; publish without an item")
    if request.draft is None and not notifications_only:
        raise FeedError(Condition.PAYLOAD_REQUIRED)
    return request.draft or NO_PAYLOAD


def _checked(node: Node, request: Publish, limits: OptionLimits) -> PayloadDraft:
    """Returns the payload. Raises FeedError if the node does not accept it (xep-map 135 to 138, 237)."""
    draft = request.draft
    if draft is None or not request.item_present or not node.options.persist_items:
        draft = _required_draft(node, request)
    if node.kind is NodeKind.FEED and draft.fault:
        raise FeedError(Condition.INVALID_PAYLOAD, draft.fault)
    shape = draft.payload.shape
    # A deleted entry retracts an item of a feed. Other items with such a mark would be live here and removed from the
    # copies of followers.
    if shape.removed and not (shape.entry and node.kind is NodeKind.FEED):
        raise FeedError(Condition.INVALID_PAYLOAD, f"followers would read the payload as a deletion: {REMOVAL_MARKS}")
    # The sync data of an entry has its own bounds (`service.merging`).
    if node.kind is NodeKind.GENERIC or draft.sync is None:
        check_payload_size(draft.payload, node, limits)
    if node.kind is NodeKind.FEED and not shape.entry and not _is_feed_item(request):
        raise FeedError(Condition.INVALID_PAYLOAD, f"the items of a feed are Atom entries; {how_to_generic(limits)}")
    gallery = node.options.type == GALLERY
    if gallery and shape.entry and not shape.enclosure and not shape.deletion:
        raise FeedError(Condition.INVALID_PAYLOAD, "an entry of a gallery has an enclosure link")
    return draft


def check_payload_size(payload: Payload, node: Node, limits: OptionLimits) -> None:
    """Raises FeedError(PAYLOAD_TOO_BIG) for a payload that the node does not accept, or that fits no stanza."""
    size_bytes = len(payload)
    # A quotation mark is written with six bytes at most.
    if 6 * size_bytes > MAX_WRITTEN_BYTES and wire_bytes(payload) > MAX_WRITTEN_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, "with its quotation marks written out it is too long for a stanza")
    # The ceiling may have been lowered since the node was configured.
    check_size(size_bytes, node, limits)


def check_size(size_bytes: int, node: Node, limits: OptionLimits) -> None:
    """Raises FeedError(PAYLOAD_TOO_BIG) for a payload above the limit of its node."""
    limit_bytes = min(node.options.max_payload_size, limits.max_payload_size_bytes)
    if size_bytes > limit_bytes:
        raise FeedError(
            Condition.PAYLOAD_TOO_BIG,
            f"the item has {size_bytes:,} bytes, and the limit of this node is {limit_bytes:,}; shorten it, or put "
            "large parts into files and link to them",
        )


def _retract_item(
    tx: WriteTx, context: Context, node: Node, item: Item | None, by: str, *, notify: bool, settles: bool = True
) -> None:
    if item is None or item.deleted:
        check_persistent(node)
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such item")
    notify = notify or node.options.notify_retract
    bury(tx, context, node, item, by, notify=notify, settles=settles)


def bury(
    tx: WriteTx,
    context: Context,
    node: Node,
    item: Item,
    by: str,
    *,
    notify: bool,
    settles: bool = True,
    origin: CopyOrigin | None = None,
) -> Node:
    """Replaces an item by a tombstone. Returns the node after the change.

    `by` is the address of the actor. With `notify` the subscribers of the bare node are notified. With `settles` the
    deletion also settles the conflicts of the item. `origin` as in `created`.
    """
    if node.kind is not NodeKind.FEED:
        return remove_item(tx, context, node, item, notify=notify)
    modified_us = next_key(node.last_modified_us, context.now_us)
    payload = remains(item.id, modified_us, item.payload)
    state = buried(context, node, item, payload, by, notify=notify, settles=settles, origin=origin)
    write_state(tx, context, node, item, item.id, state, item.publisher)
    return node._replace(last_modified_us=modified_us, live=node.live - 1)


def _make_room(tx: WriteTx, context: Context, node: Node) -> Node:
    """Removes the oldest items of a full generic node, so that the next item fits, and returns the node after that.

    The items go before the next one comes: no reader sees more than max_items, and each push has the right count. The
    subscribers are notified as the policy of the node says (XEP-0060 7.1.2.5). Raises FeedError(NODE_FULL).
    """
    limit = node.options.max_items
    if limit is None or node.kind is NodeKind.FEED or node.live < limit:
        return node
    if node.options.publish_node_full == REJECT:
        raise FeedError(Condition.NODE_FULL, f"the node has {node.live} items already; retract an item before the next")
    notify = node.options.publish_node_full == RETRACT_OLDEST and node.options.notify_retract
    for item in tx.slice(node.node_no, Slice(BARE, min(node.live + 1 - limit, PURGE_CHUNK))):
        node = remove_item(tx, context, node, item, notify=notify)
    return node
