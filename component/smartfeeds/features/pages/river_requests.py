"""The requests about all feeds together: the river of their newest entries, the newest entry of each, and a search.

A reader sees the feeds that lists show to it and whose items it may read. Generic nodes are listed, but their items are
not in the river: they need not be entries.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from smartfeeds.core.access import READERS
from smartfeeds.core.attachment_names import is_listed
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ITEM_NO, Edge, IndexState, Item, Node, NodeKind, NodeState, Slice
from smartfeeds.core.node_place import NodePlace
from smartfeeds.core.options import AccessModel
from smartfeeds.core.position import MAX_GROUP
from smartfeeds.core.view import BARE, Order, View
from smartfeeds.features.pages import river_rows
from smartfeeds.features.pages.river import EntryPlace
from smartfeeds.service.context import Context, recipient_access
from smartfeeds.service.discovery import place_of_node
from smartfeeds.service.replies import AnsweredItems, find_answered
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.steps import BeginIndexes
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx

FEEDS_AT_ONCE = 100  # feeds that one statement reads
SCANNED = 256  # items of all feeds that one statement reads for the river
SCANS = 8  # such statements before the feeds of the reader are merged
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
    """The newest entries of all feeds, at most `limit`, after a place. With `base_url`, the address of the site, the
    response has what the entries answer."""

    limit: int
    after: EntryPlace | None = None
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class River(Answer):
    """Entries by last change, the newest first, and the place of the last one if older ones follow. `answered` are the
    items that they answer, of those that the actor may read."""

    entries: tuple[FeedEntry, ...]
    next: EntryPlace | None
    answered: AnsweredItems = field(default_factory=dict)


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
    follow, and how many feeds were searched. `total` is the number of all entries that match, None if counting them
    would take too long."""

    feeds: tuple[FeedHits, ...]
    next: NodePlace | None
    searched: int
    total: int | None = None


def get_river(tx: ReadTx, context: Context, request: GetRiver) -> River:
    """One page of the river. It ends earlier if its entries are larger than a page of a feed may be."""
    river = _river(tx, context, request)
    if not request.base_url:
        return river
    pairs = [(entry.node, entry.item) for entry in river.entries]
    return replace(river, answered=find_answered(tx, context, request.actor, pairs, request.base_url))


def _river(tx: ReadTx, context: Context, request: GetRiver) -> River:
    entries: list[FeedEntry] = []
    size_bytes = 0
    before = None if request.after is None else edge_at(tx, context, request.actor, request.after)
    # An entry more than the page has shows that older ones follow.
    for entry in _entries(tx, context, request.actor, before, request.limit + 1):
        if len(entries) == request.limit or size_bytes > context.policy.page_bytes:
            return River(tuple(entries), place_of(tx, entries[-1]) if entries else None)
        entries.append(entry)
        size_bytes += len(entry.item.payload)
    return River(tuple(entries), None)


def get_headlines(tx: ReadTx, context: Context, request: GetHeadlines) -> Headlines:
    """The newest entries of the nodes of a list, which was read before, so access is checked again."""
    items: dict[str, Item] = {}
    for listed in request.nodes:
        node = tx.node(listed.name)
        if node is None or not node.live or node.kind is not NodeKind.FEED:
            continue
        access = recipient_access(tx, context, node, request.actor)
        if access.sees_items:
            items[node.name] = tx.slice(node.node_no, Slice(BARE, 1, newest=True))[0]
    return Headlines(items)


def search_feeds(tx: ReadTx, context: Context, request: SearchFeeds) -> SearchResult | BeginIndexes:
    """One page of a search. It finds what the filter index has: entries of the last seconds may be missing, because a
    search of all feeds cannot wait for all of them. The first search begins the index of its feeds."""
    hits: list[FeedHits] = []
    unread: list[int] = []
    searched = 0
    place: NodePlace | None = None
    following: NodePlace | None = None
    for node in _feeds(tx, context, request.actor, request.after):
        if len(hits) == FEEDS_WITH_HITS or searched == SEARCHED:
            following = place
            break
        searched += 1
        if tx.index_state(node.node_no) is IndexState.UNREAD:
            unread.append(node.node_no)
        place = place_of_node(node)
        items = tx.slice(node.node_no, Slice(request.view, HITS + 1, newest=True))
        if items:
            hits.append(FeedHits(node, tuple(items[::-1][:HITS]), len(items) > HITS))
    if unread:
        return BeginIndexes(tuple(unread))
    total = None if following or request.after else _total(tx, hits, request.view)
    return SearchResult(tuple(hits), following, searched, total)


def _total(tx: ReadTx, hits: Sequence[FeedHits], view: View) -> int | None:
    """The number of all entries of these feeds that match. At most one feed is counted, as its own page does it."""
    if sum(feed.more for feed in hits) > 1:
        return None
    counts = [tx.bounded_count(feed.node.node_no, view) if feed.more else len(feed.items) for feed in hits]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _feeds(tx: ReadTx, context: Context, actor: Jid, after: NodePlace | None) -> Iterator[Node]:
    """The feeds with entries that an actor may read, by last change, the newest first."""
    while nodes := tx.changed_nodes(actor.bare_text, FEEDS_AT_ONCE, after):
        yield from (node for node in nodes if _is_readable(tx, context, node, actor))
        if len(nodes) < FEEDS_AT_ONCE:
            break
        after = place_of_node(nodes[-1])


def _entries(tx: ReadTx, context: Context, actor: Jid, before: Edge | None, count: int) -> Iterator[FeedEntry]:
    """The entries that an actor may read, up to an edge, the newest first, at least `count` if there are as many.

    Normally most items are in feeds that everybody may read, and the cost does not depend on the number of feeds. A
    closed feed can have any number of items, so after SCANS steps the feeds of the actor are merged instead.
    """
    readable: dict[int, Node | None] = {}
    for _ in range(SCANS):
        rows = river_rows.changed_items(tx, SCANNED, before)
        for edge, node_no in rows:
            if node_no not in readable:
                readable[node_no] = _readable_node(tx, context, node_no, actor)
            node = readable[node_no]
            if node is not None:
                yield FeedEntry(node, river_rows.item_by_no(tx, edge.item_no))
        if len(rows) < SCANNED:
            return
        before = _below(rows[-1][0])
    yield from merged_entries(tx, _feeds(tx, context, actor, None), before, count)


def merged_entries(tx: ReadTx, nodes: Iterable[Node], before: Edge | None, count: int) -> Iterator[FeedEntry]:
    """The entries of these feeds up to an edge, the newest first: exactly `count` if there are as many. The feeds come
    by last change, the newest first, and the actor may read them."""
    queue = _newest_branches(tx, nodes, before, count)
    for _ in range(count):
        if not queue:
            return
        newest = queue.pop()
        yield FeedEntry(newest.branch.node, newest.item)
        if (entry := newest.branch.take(tx)) is not None:
            insort(queue, entry, key=_QueueEntry.order)


def _newest_branches(tx: ReadTx, nodes: Iterable[Node], before: Edge | None, count: int) -> "list[_QueueEntry]":
    """The newest entries of the `count` feeds whose entries up to an edge are the newest, the newest last.

    No entry is newer than the last change of its feed. So the search ends at the first feed that changed before the
    newest entries of `count` others. Feeds that changed after the edge are looked at in any case.
    """
    queue: list[_QueueEntry] = []
    for node in nodes:
        if len(queue) == count and node.last_modified_us < queue[0].item.modified_us:
            break
        if (entry := _Branch(node, before).take(tx)) is not None:
            insort(queue, entry, key=_QueueEntry.order)
            del queue[:-count]
    return queue


def _readable_node(tx: ReadTx, context: Context, node_no: int, actor: Jid) -> Node | None:
    """The feed with this number if lists show it to an actor who may read it."""
    node = tx.nodes_by_no([node_no]).get(node_no)  # without a damaged one
    if node is None or node.state is not NodeState.LIVE or node.kind is not NodeKind.FEED:
        return None
    access = recipient_access(tx, context, node, actor)
    listed = access.affiliation in READERS or (is_listed(node) and access.sees_description)
    return node if listed and access.may_read else None


def _is_readable(tx: ReadTx, context: Context, node: Node, actor: Jid) -> bool:
    """Whether a node of a list is a feed with entries that an actor may read. Lists have no open node that excludes
    the actor, so open nodes need no look-up."""
    if node.kind is not NodeKind.FEED or not node.live:
        return False
    if node.options.access_model is AccessModel.OPEN:
        return True
    return recipient_access(tx, context, node, actor).may_read


def edge_at(tx: ReadTx, context: Context, actor: Jid, place: EntryPlace) -> Edge:
    """The edge right before the item of a place. If the item is gone, the entries of its time are shown again."""
    node = tx.node(place.name)
    group: list[tuple[int, str]] = []
    # A feed that the actor may not read must not change the answer.
    if node is not None and _readable_node(tx, context, node.node_no, actor) is not None:
        group = tx.group(node.node_no, Order.MODIFIED, place.modified_us, place.offset + 1)
    return Edge(place.modified_us, group[-1][0] - 1 if len(group) > place.offset else MAX_ITEM_NO)


def place_of(tx: ReadTx, entry: FeedEntry) -> EntryPlace:
    """The place of an entry in the river."""
    item = entry.item
    group = tx.group(entry.node.node_no, Order.MODIFIED, item.modified_us, MAX_GROUP)
    return EntryPlace(item.modified_us, entry.node.name, sum(item_no < item.item_no for item_no, _ in group))


def _below(edge: Edge) -> Edge:
    """The edge right before the item that an edge is right behind."""
    return Edge(edge.key_us, edge.item_no - 1)


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
        self.before = _below(Edge(item.modified_us, item.item_no))
        return _QueueEntry(self, item)


@dataclass(frozen=True, slots=True)
class _QueueEntry:
    """The next item of a branch."""

    branch: _Branch
    item: Item

    def order(self) -> tuple[int, int]:
        """The order of the river, the newest last."""
        return self.item.modified_us, self.item.item_no


USE_CASES = UseCases(
    reads={
        GetRiver: ("get_river", get_river),
        GetHeadlines: ("get_headlines", get_headlines),
        SearchFeeds: ("search_feeds", search_feeds),
    }
)
