"""Conflicts: listing and resolving them (FeedSync 3.4, SSE 5; A-62).

The service never resolves a conflict by itself. The requests about conflicts are here too, beside their use cases.
"""

import hashlib
from dataclasses import dataclass

from smartfeeds.core.model import Item, KeyRange, Node, NodeKind
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, LocatedNode, locate_for, lock_located
from smartfeeds.service.items import write_state
from smartfeeds.service.lists import PagedList, listed_bytes, number, page_of
from smartfeeds.service.requests import Answer, NodeRequest, ResultSet
from smartfeeds.service.syncing import editor, read_shared, state_of, without_publishers
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import Dialect
from smartfeeds.sync.record import Version
from smartfeeds.sync.writing import write_item

TAG_DIGITS = 16


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


@dataclass(frozen=True, slots=True)
class ResolveConflicts(NodeRequest):
    """A decision on the conflicts of an item (FeedSync 3.4).

    `keep` is the tag of the version whose content stays; empty for the winner. `decided` are the tags of the conflicts
    that are settled, None for all. `seen` are the tags of all versions that the actor saw: if the item has others now,
    the request fails. None skips this check.
    """

    item_id: str | None
    keep: str = ""
    decided: tuple[str, ...] | None = None
    seen: tuple[str, ...] | None = None


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

    listing = PagedList(number, read, size_bytes, lambda: tx.conflict_count(node.node_no))
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
    own = item.publisher == str(request.actor.bare)
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
    publisher = str(request.actor.bare)
    changed = shared.dialect.resolve(
        version,
        editor(context, node, publisher),
        [conflicts[tag] for tag in decided],
        None if choice is version else choice.payload,
        deleted=choice.deleted.on
        if shared.dialect is not FEEDSYNC or choice.deleted.on is not version.deleted.on
        else None,
    )
    state = state_of(shared, changed, notify=node.options.notify_retract)
    stored = write_state(tx, context, node, item, item.id, state, item.publisher if choice is version else publisher)
    return ResolvedItem(stored, len(changed.conflicts))


def version_tag(version: Version) -> str:
    """A short name for a version of an item: a digest of its content and sync data."""
    return hashlib.sha256(write_item(version, FEEDSYNC)).hexdigest()[:TAG_DIGITS]


def _conflicted(context: Context, node: Node, item: Item) -> ConflictedItem:
    shared = read_shared(context, node, item)
    version = without_publishers(context, node, shared.version)
    return ConflictedItem(item, version, _tags_of(shared.version), shared.dialect)


def _tags_of(version: Version) -> tuple[str, ...]:
    """The tags of an item's versions, the winner's first."""
    return tuple(version_tag(one) for one in version.versions)
