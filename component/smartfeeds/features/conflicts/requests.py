"""Conflicts: listing and resolving them (FeedSync 3.4, SSE 5; A-62).

The service never resolves a conflict by itself. The requests about conflicts are here too, beside their use cases.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple

from smartfeeds.core.model import Item, KeyRange, Node, NodeKind
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.entry import TextKind, read_entry
from smartfeeds.formats.entry_form import edit, fields_of
from smartfeeds.formats.payload import Payload, accept_payload
from smartfeeds.formats.xml import parse_stored
from smartfeeds.service.context import Context, LocatedNode, locate_for, lock_located
from smartfeeds.service.item_writes import write_state
from smartfeeds.service.paged_lists import PagedList, listed_bytes, number_in, page_of
from smartfeeds.service.publishing import check_payload_size, repaired
from smartfeeds.service.requests import Answer, NodeRequest, ResultSet
from smartfeeds.service.syncing import editor, read_shared, state_of, without_publishers
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import Version
from smartfeeds.sync.writing import write_item

TAG_DIGITS = 16  # 64 bits: two versions of one item do not share a tag by chance


@dataclass(frozen=True, slots=True)
class ListConflicts(NodeRequest):
    """The items of a feed that have conflicts, or `item_id` alone, if it has any."""

    page: ResultSetRequest | None = None
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class ConflictedItem:
    """An item with conflicts. `tags` name its versions: first the winner, then `version.conflicts` in their order."""

    item: Item
    version: Version
    tags: tuple[str, ...]
    dialect: Dialect = FEEDSYNC

    @property
    def versions(self) -> tuple[tuple[str, Version], ...]:
        """Every version with its tag, the winner first; none of them has conflicts."""
        versions = (self.version._replace(conflicts=()), *self.version.conflicts)
        return tuple(zip(self.tags, versions, strict=True))


@dataclass(frozen=True, slots=True)
class ConflictList(Answer):
    """Items with conflicts, in the order in which the service first stored them. `title` is that of the feed."""

    node: str
    entries: tuple[ConflictedItem, ...]
    result_set: ResultSet | None
    title: str = ""


class CombinedText(NamedTuple):
    """A title and a text, which is plain or HTML. Without a title the first line of the text is the title."""

    text: str
    title: str = ""
    kind: TextKind = TextKind.TEXT


@dataclass(frozen=True, slots=True)
class ResolveConflicts(NodeRequest):
    """A decision on the conflicts of an item (FeedSync 3.4).

    `keep` is the tag of the version whose content stays; empty for the winner. `decided` are the tags of the conflicts
    that are settled, None for all. `seen` are the tags of all versions that the actor saw: if the item has others now,
    the request fails. None skips this check. `combined` is what the actor wrote out of several versions: it replaces
    title and text of the version that stays, and nothing else of it.
    """

    item_id: str | None
    keep: str = ""
    decided: tuple[str, ...] | None = None
    seen: tuple[str, ...] | None = None
    combined: CombinedText | None = None


@dataclass(frozen=True, slots=True)
class ResolvedItem(Answer):
    """The item after a decision, and the number of its remaining conflicts."""

    item: Item
    left: int


def list_conflicts(tx: ReadTx, context: Context, request: ListConflicts) -> ConflictList:
    """The items of a feed that have conflicts. The actor needs the right to read."""
    located = _feed(tx, context, request)
    located.access.check_read()
    node = located.node
    if request.item_id:
        item = tx.item(node.node_no, request.item_id)
        conflicted = (_conflicted(context, node, item),) if item is not None and item.conflicts else ()
        return ConflictList(request.node or "", conflicted, None, node.options.title)

    def read(part: KeyRange[int]) -> list[tuple[int, ConflictedItem]]:
        return [(item.item_no, _conflicted(context, node, item)) for item in tx.conflicted(node.node_no, part)]

    # All versions of an entry are read, so all of them count for the page limit.
    def size_bytes(entry: ConflictedItem) -> int:
        return listed_bytes(entry.item.id, *entry.tags) + len(entry.item.sync or b"")

    listing = PagedList(number_in, read, size_bytes, lambda: tx.conflict_count(node.node_no))
    entries, result_set = page_of(listing, request.page, context.policy)
    return ConflictList(request.node or "", entries, result_set, node.options.title)


def resolve_conflicts(tx: WriteTx, context: Context, request: ResolveConflicts) -> ResolvedItem:
    """Settles conflicts of an item. The actor needs the right to replace it."""
    located = _feed(tx, context, request)
    node = lock_located(tx, located)
    located.access.check_read()
    located.access.check_publish()
    if not request.item_id:
        raise FeedError(Condition.ITEM_REQUIRED, "the id of the item is missing")
    item = tx.item(node.node_no, request.item_id)
    if item is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such item")
    own = item.publisher == request.actor.bare_text
    if not located.access.may_overwrite(own=own):
        raise FeedError(Condition.FORBIDDEN, "this item is somebody else's")
    return _resolve(tx, context, node, item, request)


def _feed(tx: ReadTx, context: Context, request: ListConflicts | ResolveConflicts) -> LocatedNode:
    """The feed of this name. A view is refused, because a decision concerns the whole item."""
    located = locate_for(tx, context, request.node, request.actor)
    if located.view.smart:
        raise FeedError(Condition.NOT_ALLOWED, "conflicts are those of a feed, not of a view: leave the parameters out")
    if located.node.kind is not NodeKind.FEED:
        raise FeedError(Condition.NOT_ALLOWED, "only items of feeds have conflicts, and this node is a generic one")
    return located


def _resolve(tx: WriteTx, context: Context, node: Node, item: Item, request: ResolveConflicts) -> ResolvedItem:
    shared = read_shared(context, node, item)
    version = shared.version
    tags = _tags_of(version)
    if request.seen is not None and set(request.seen) != set(tags):
        raise FeedError(Condition.CONFLICT, "the item has changed meanwhile: look at its conflicts again")
    conflicts = dict(zip(tags[1:], version.conflicts, strict=True))
    decided = list(conflicts) if request.decided is None else list(request.decided)
    choice = version if request.keep in ("", tags[0]) else conflicts.get(request.keep)
    unknown = [tag for tag in decided if tag not in conflicts]
    if choice is None or unknown or not decided:
        raise FeedError(Condition.ITEM_NOT_FOUND, "the item has no such conflict: look at its conflicts again")
    publisher = request.actor.bare_text
    payload = None if choice is version else choice.payload
    deleted = choice.deleted.on
    if request.combined is not None:
        payload, deleted = _combined(context, node, item, choice.payload, request.combined), False
    # FeedSync: None leaves the attribute `deleted` as it was written, absent or false. In SSE None is a restoration.
    changed = shared.dialect.resolve(
        version,
        editor(context, node, publisher),
        [conflicts[tag] for tag in decided],
        payload,
        deleted=deleted if shared.dialect is not FEEDSYNC or deleted is not version.deleted.on else None,
    )
    state = state_of(shared, changed, notify=node.options.notify_retract)
    stored = write_state(tx, context, node, item, item.id, state, item.publisher if payload is None else publisher)
    return ResolvedItem(stored, len(changed.conflicts))


def _combined(context: Context, node: Node, item: Item, payload: bytes, combined: CombinedText) -> Payload:
    """Returns the payload of a version with another title and text (FeedSync 3.4: the user combines versions).

    Raises FeedError(BAD_REQUEST) for an empty text, FeedError(PAYLOAD_TOO_BIG) for one that the feed does not allow.
    """
    root = parse_stored(payload)
    former = fields_of(read_entry(item._replace(payload=payload, deleted=False)))
    edit(root, former, replace(former, title=combined.title, text=combined.text, kind=combined.kind))
    written = repaired(context, node, item, item.id, accept_payload(root))
    check_payload_size(written, node, context.policy.options)
    return written


def version_tag(version: Version) -> str:
    """A short name for a version of an item: a digest of its content and sync data."""
    return hashlib.sha256(write_item(version, FEEDSYNC)).hexdigest()[:TAG_DIGITS]


def _conflicted(context: Context, node: Node, item: Item) -> ConflictedItem:
    shared = read_shared(context, node, item)
    version = without_publishers(context, node, shared.version)
    return ConflictedItem(item, version, _tags_of(shared.version), shared.dialect)


def _tags_of(version: Version) -> tuple[str, ...]:
    """The tags of an item's versions, the winner's first."""
    return tuple(version_tag(part) for part in version.versions)


USE_CASES = UseCases(
    reads={ListConflicts: ("list_conflicts", list_conflicts)},
    writes={ResolveConflicts: ("resolve_conflicts", resolve_conflicts)},
    limited=frozenset({ResolveConflicts}),
)
