"""What all feeds have together: the river of their newest entries, the list by last change, and a search.

A reader sees the feeds that lists show to it and whose items it may read. Generic nodes are listed, but their items are
not in the river: they need not be entries. The river is a merge of the feeds that changed last. It reads further feeds
only until none of them can have an entry of the page.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from smartfeeds.core.cursor import MAX_GROUP
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Edge, Item, Node, NodeKind, Slice
from smartfeeds.core.options import AccessModel
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.river import EntryPlace, NodePlace
from smartfeeds.core.view import BARE, Order, View
from smartfeeds.service.context import Context, is_admin, recipient_access
from smartfeeds.service.pulls import time_edge
from smartfeeds.service.requests import Answer, Request
from smartfeeds.store.base import ReadTx

FEEDS_AT_ONCE = 100  # feeds that one statement reads
# A search reads the index of each feed, which takes about 0.15 ms. One page searches so many feeds at most, then offers
# to go on.
SEARCHED = 200
FEEDS_WITH_HITS = 10  # feeds on a page of a search
HITS = 3  # entries of each of them


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """An item with its feed."""

    node: Node
    item: Item


@dataclass(frozen=True, slots=True)
class GetRiver(Request):
    """The newest entries of all feeds, at most `limit`, after a place."""

    limit: int
    after: EntryPlace | None = None


@dataclass(frozen=True, slots=True)
class River(Answer):
    """Entries by last change, the newest first, and the place of the last one if older ones follow."""

    entries: tuple[FeedEntry, ...]
    next: EntryPlace | None


@dataclass(frozen=True, slots=True)
class GetChangedNodes(Request):
    """The nodes that lists show to the actor, by last change, after a place; `max` is that of a result set."""

    max: str | None = None
    after: NodePlace | None = None


@dataclass(frozen=True, slots=True)
class ChangedNodes(Answer):
    """Nodes by last change, the newest first, the place of the last one if others follow, and the number of all."""

    nodes: tuple[Node, ...]
    next: NodePlace | None
    total: int


@dataclass(frozen=True, slots=True)
class GetHeadlines(Request):
    """The entry of each of these nodes that changed last."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Headlines(Answer):
    """Items by the names of their nodes, of the feeds that have entries and that the actor may read."""

    items: dict[str, Item]


@dataclass(frozen=True, slots=True)
class SearchFeeds(Request):
    """The entries that match the filters of a view, in all feeds after a place in the list by last change."""

    view: View
    after: NodePlace | None = None


@dataclass(frozen=True, slots=True)
class FeedHits:
    """The entries of a feed that match, the newest first; `more`: there are others."""

    node: Node
    items: tuple[Item, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class SearchResult(Answer):
    """The feeds with hits by last change, the newest first, the place of the last feed that was searched if others
    follow, and how many feeds were searched."""

    feeds: tuple[FeedHits, ...]
    next: NodePlace | None
    searched: int


def get_river(tx: ReadTx, context: Context, request: GetRiver) -> River:
    """One page of the river."""
    after = request.after
    # One feed more than the page has entries says whether others follow. The feed of `after` may be among them without
    # an entry, because its newest one can be that of the place itself.
    feeds = _newest_feeds(tx, context, request.actor, after, request.limit + 2)
    branches = [_Branch(node, _edge_of(tx, node, after)) for node in feeds]
    queue = sorted((entry for branch in branches if (entry := branch.take(tx)) is not None), key=_QueueEntry.order)
    entries: list[FeedEntry] = []
    size_bytes = 0
    while queue and len(entries) < request.limit and size_bytes <= context.policy.page_bytes:
        newest = queue.pop()
        entries.append(FeedEntry(newest.branch.node, newest.item))
        size_bytes += len(newest.item.payload)
        if (entry := newest.branch.take(tx)) is not None:
            insort(queue, entry, key=_QueueEntry.order)
    return River(tuple(entries), _place_of(tx, entries[-1]) if queue and entries else None)


def get_changed_nodes(tx: ReadTx, context: Context, request: GetChangedNodes) -> ChangedNodes:
    """One page of the list by last change. Admins see all nodes, as in the list by name."""
    jid = None if is_admin(context.policy, request.actor) else str(request.actor.bare)
    limit = context.policy.plan(ResultSetRequest(request.max)).limit
    nodes = tx.changed_nodes(jid, limit + 1, request.after)
    total = tx.node_count() if jid is None else tx.listed_count(jid)
    page = nodes[:limit]
    return ChangedNodes(tuple(page), _node_place(page[-1]) if page and len(nodes) > limit else None, total)


def get_headlines(tx: ReadTx, context: Context, request: GetHeadlines) -> Headlines:
    """The newest entries of the nodes of a list, which was read before, so access is checked again."""
    items: dict[str, Item] = {}
    for listed in request.nodes:
        node = tx.node(listed.name)
        if node is None or not node.live or node.kind is not NodeKind.FEED:
            continue
        access = recipient_access(tx, context, node, request.actor)
        if access.sees_description and access.reading_error is None:
            items[node.name] = tx.slice(node.node_no, Slice(BARE, 1, newest=True))[0]
    return Headlines(items)


def search_feeds(tx: ReadTx, context: Context, request: SearchFeeds) -> SearchResult:
    """One page of a search. It finds what the filter index has: entries of the last seconds may be missing, because a
    search of all feeds cannot wait for all of them."""
    hits: list[FeedHits] = []
    searched = 0
    place: NodePlace | None = None
    for node in _feeds(tx, context, request.actor, request.after):
        if len(hits) == FEEDS_WITH_HITS or searched == SEARCHED:
            return SearchResult(tuple(hits), place, searched)
        searched += 1
        place = _node_place(node)
        items = tx.slice(node.node_no, Slice(request.view, HITS + 1, newest=True))
        if items:
            hits.append(FeedHits(node, tuple(items[::-1][:HITS]), len(items) > HITS))
    return SearchResult(tuple(hits), None, searched)


def _feeds(tx: ReadTx, context: Context, actor: Jid, after: NodePlace | None) -> Iterator[Node]:
    """The feeds with entries that an actor may read, by last change, the newest first."""
    while nodes := tx.changed_nodes(str(actor.bare), FEEDS_AT_ONCE, after):
        yield from (node for node in nodes if _is_readable(tx, context, node, actor))
        if len(nodes) < FEEDS_AT_ONCE:
            break
        after = _node_place(nodes[-1])


def _newest_feeds(tx: ReadTx, context: Context, actor: Jid, after: EntryPlace | None, count: int) -> list[Node]:
    """The feeds with the newest entries after a place, at most `count`.

    No entry is newer than the last change of its feed. So the search ends at the first feed that changed before the
    newest entries of `count` others. Feeds that changed after the place are looked at in any case.
    """
    newest: list[tuple[int, str, Node]] = []
    before: NodePlace | None = None
    while nodes := tx.changed_nodes(str(actor.bare), FEEDS_AT_ONCE, before):
        feeds = {node.node_no: node for node in nodes if _is_readable(tx, context, node, actor)}
        keys = tx.newest_live([(node_no, _until_us(node, after)) for node_no, node in feeds.items()])
        newest += [(key_us, feeds[node_no].name, feeds[node_no]) for node_no, key_us in keys.items()]
        newest.sort(key=lambda entry: entry[:2], reverse=True)
        del newest[count:]
        ended = len(newest) == count and nodes[-1].last_modified_us < newest[-1][0]
        if ended or len(nodes) < FEEDS_AT_ONCE:
            break
        before = _node_place(nodes[-1])
    return [node for _, _, node in newest]


def _is_readable(tx: ReadTx, context: Context, node: Node, actor: Jid) -> bool:
    """Whether the node of a list is a feed with entries that an actor may read. Lists have no open node that excludes
    the actor, so open nodes need no look-up."""
    if node.kind is not NodeKind.FEED or not node.live:
        return False
    if node.options.access_model is AccessModel.OPEN:
        return True
    return recipient_access(tx, context, node, actor).reading_error is None


def _until_us(node: Node, after: EntryPlace | None) -> int:
    """The greatest key that an entry of a feed can have after a place."""
    if after is None:
        return node.last_modified_us
    return after.modified_us if node.name <= after.name else after.modified_us - 1


def _edge_of(tx: ReadTx, node: Node, after: EntryPlace | None) -> Edge | None:
    """The edge in a feed at a place. Entries of one time are ordered by the names of their feeds, then as there."""
    if after is None or node.name < after.name:
        return None if after is None else time_edge(after.modified_us, newer_side=False)
    group = tx.group(node.node_no, Order.MODIFIED, after.modified_us, after.offset) if node.name == after.name else []
    return Edge(after.modified_us, group[-1][0] if group else -1)


def _place_of(tx: ReadTx, entry: FeedEntry) -> EntryPlace:
    item = entry.item
    group = tx.group(entry.node.node_no, Order.MODIFIED, item.modified_us, MAX_GROUP)
    return EntryPlace(item.modified_us, entry.node.name, sum(item_no < item.item_no for item_no, _ in group))


def _node_place(node: Node) -> NodePlace:
    return NodePlace(node.last_modified_us, node.name)


@dataclass(slots=True)
class _Branch:
    """A feed while it is merged: `items` were read and not taken yet, the newest last. Each read fetches twice as many
    as the one before, because most feeds have one entry on a page and some have all of them."""

    node: Node
    before: Edge | None
    items: list[Item] = field(default_factory=list)
    step: int = 1

    def take(self, tx: ReadTx) -> "_QueueEntry | None":
        """Returns the next older item, None at the end of the feed."""
        if not self.items:
            self.items = tx.slice(self.node.node_no, Slice(BARE, self.step, before=self.before, newest=True))
            self.step *= 2
        if not self.items:
            return None
        item = self.items.pop()
        self.before = Edge(item.modified_us, item.item_no - 1)
        return _QueueEntry(self, item)


@dataclass(frozen=True, slots=True)
class _QueueEntry:
    """The next item of a branch."""

    branch: _Branch
    item: Item

    def order(self) -> tuple[int, str, int]:
        """The order of the river, the newest last."""
        return self.item.modified_us, self.branch.node.name, self.item.item_no
