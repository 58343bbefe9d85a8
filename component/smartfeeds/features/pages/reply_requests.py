"""The requests about answers: those to an entry, oldest first, and how many the entries of a page have.

Answers name an id or address of the entry. They are in its feed, and in the node that the entry names for its comments
(XEP-0277 4). Both need the filter index. An entry without answers must not make its feed one with an index, so a feed
gets one here only if its newest items have answers.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from smartfeeds.core.filters import REPLIES_BY_REFERENCE, fold
from smartfeeds.core.model import MAX_ITEM_NO, Edge, IndexState, Item, Node, NodeKind, Slice
from smartfeeds.core.times import format_t, parse_t
from smartfeeds.core.urls import entry_path, xmpp_uri
from smartfeeds.core.view import BARE, Filters, Order, View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.pages.reply_rows import count_replies
from smartfeeds.features.pages.river_requests import FeedEntry
from smartfeeds.formats.atom import REPLY_MARK
from smartfeeds.formats.entry import Entry, read_entry
from smartfeeds.service.context import Context, locate_for, recipient_access
from smartfeeds.service.replies import AnsweredItems, CommentsNode, find_answered, find_comments
from smartfeeds.service.requests import Answer, NodeRequest
from smartfeeds.service.steps import BeginIndexes, IndexFirst, index_first
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx

REPLIES = 20  # answers on a page
# Items of a feed without an index that are looked at for answers. Their payloads are read with each page of an entry,
# so they are few; a feed in which people discuss has an answer among them.
NEWEST = 50
_PLACE = re.compile(r"([0-9A-Za-z:.\-]{1,40})_([01])_([0-9]{1,18})", re.ASCII)


class ReplyPlace(NamedTuple):
    """The place behind an answer: its created key, whether it is in the feed of the entry (1) or among the comments
    (0), and its number. Answers are in this order."""

    created_us: int
    in_feed: int
    item_no: int

    def __str__(self) -> str:
        return f"{format_t(self.created_us)}_{self.in_feed}_{self.item_no}"

    def edge(self, in_feed: int) -> Edge:
        """The same place among the answers of the feed or of the comments."""
        if in_feed == self.in_feed:
            return Edge(self.created_us, self.item_no)
        return Edge(self.created_us, MAX_ITEM_NO if in_feed < self.in_feed else -1)


def parse_reply_place(text: str) -> ReplyPlace:
    """Reads the text of a ReplyPlace. Raises FeedError(BAD_REQUEST)."""
    match = _PLACE.fullmatch(text)
    created_us = None if match is None else parse_t(match[1])
    if match is None or created_us is None:
        raise FeedError(Condition.BAD_REQUEST, f"replies: {text[:40]!r} is no place among answers")
    return ReplyPlace(created_us, int(match[2]), int(match[3]))


@dataclass(frozen=True, slots=True)
class GetReplies(NodeRequest):
    """The answers to an item of the node, which was read before, behind a place. `base_url` is that of the site.
    `only_here`: the token of the reader opens no other feed. `asks_origin`: the answer says whether the feed is filled
    from elsewhere."""

    item: Item
    base_url: str
    after: ReplyPlace | None = None
    only_here: bool = False
    asks_origin: bool = False


@dataclass(frozen=True, slots=True)
class Replies(Answer):
    """The answers to an item, oldest first, with their nodes; the place of the last one if others follow; and their
    number, None if it is not counted. `answered` are the items that the item answers itself. `from_elsewhere`: other
    feeds fill the node (`GetReplies.asks_origin`)."""

    entries: tuple[FeedEntry, ...] = ()
    next: ReplyPlace | None = None
    total: int | None = 0
    answered: AnsweredItems = field(default_factory=dict)
    from_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class GetReplyContext(NodeRequest):
    """Asks for the answers around items of the node, which were read before: what they answer, and how many answers
    they have. Only items of this node count, because the page is stored with the version of the node. `ids` are the
    numbers of the items by their ids (`threads.ids_of`)."""

    items: tuple[Item, ...]
    ids: Mapping[str, int]
    base_url: str


@dataclass(frozen=True, slots=True)
class ReplyContext(Answer):
    """Items that others of a page answer, and the numbers of answers by the number of the item."""

    answered: AnsweredItems = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)


NO_REPLY_CONTEXT = ReplyContext()


def get_replies(tx: ReadTx, context: Context, request: GetReplies) -> Replies | IndexFirst | BeginIndexes:
    """One page of the answers to an item. Raises FeedError as the item itself does."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    node, item = located.node, request.item
    if node.kind is not NodeKind.FEED or item.deleted:
        return Replies()
    answered = find_answered(tx, context, request.actor, [(node, item)], request.base_url, only_here=request.only_here)
    entry = read_entry(item)
    filters: Filters = ((REPLIES_BY_REFERENCE, _values(context.policy.domain, request.base_url, node, entry)),)
    views: list[tuple[Node, View]] = []
    comments = None if request.only_here else _comments(tx, context, request, node, entry)
    if comments is not None:
        # Some clients name the entry only by the node.
        view = View(order=Order.CREATED) if comments.only_of_it else View(order=Order.CREATED, filters=filters)
        views.append((comments.node, view))
    if comments is None or comments.node.node_no != node.node_no:
        views.append((node, View(order=Order.CREATED, filters=filters)))
    unread = tuple(each.node_no for each, view in views if _needs_index(tx, each, view))
    if unread:
        return BeginIndexes(unread)
    views = [(each, view) for each, view in views if not _is_unread(tx, each, view)]
    # The page has what its reader has just written among the comments. Only one index can be waited for.
    for each, view in views[:1]:
        if (behind := index_first(tx, each, view)) is not None:
            return behind
    replies, following = _page(tx, views, request, context.policy.page_bytes)
    total = len(replies) if request.after is None and following is None else _count(tx, views)
    from_elsewhere = request.asks_origin and bool(context.hooks.origins_of(tx, node.name))
    return Replies(replies, following, total, answered, from_elsewhere)


def _values(domain: str, base_url: str, node: Node, entry: Entry) -> frozenset[str]:
    """The ids and addresses by which answers may name an entry, as the filter compares them."""
    texts = [entry.atom_id, entry.item_id, xmpp_uri(domain, node.name, entry.item_id)]
    if base_url:
        texts.append(f"{base_url}{entry_path(node.name, entry.item_id)}")
    if entry.alternate:
        texts.append(entry.alternate)
    # Not by `ViewFilter.read`, which refuses long texts: publishers choose ids, and only digests are compared.
    return frozenset(filter(None, map(fold, texts)))


def _comments(tx: ReadTx, context: Context, request: GetReplies, node: Node, entry: Entry) -> CommentsNode | None:
    """The node of the comments of an entry, if this service has it and the reader may read it."""
    comments = find_comments(tx, context.policy.domain, node, request.item, entry.links)
    if comments is None:
        return None
    access = recipient_access(tx, context, comments.node, request.actor)
    return comments if access.sees_items else None


def _is_unread(tx: ReadTx, node: Node, view: View) -> bool:
    return view.filtered and tx.index_state(node.node_no) is IndexState.UNREAD


def _needs_index(tx: ReadTx, node: Node, view: View) -> bool:
    """Whether a node without an index has answers among its newest items."""
    if not _is_unread(tx, node, view):
        return False
    newest = tx.slice(node.node_no, Slice(BARE, NEWEST, newest=True, brief=True))
    return any(REPLY_MARK in item.payload for item in newest)


def _page(
    tx: ReadTx, views: list[tuple[Node, View]], request: GetReplies, page_bytes: int
) -> tuple[tuple[FeedEntry, ...], ReplyPlace | None]:
    """The answers of a page, and the place behind them if others follow. It ends earlier if the answers are larger
    than a page of a feed may be."""
    after, item = request.after, request.item
    streams: list[list[tuple[ReplyPlace, FeedEntry]]] = []
    for node, view in views:
        in_feed = int(node.name == request.node)
        # One more than the page has shows that others follow. An entry can name its own id, so it may be among them.
        part = Slice(view, REPLIES + 2, after=None if after is None else after.edge(in_feed))
        streams.append(
            [
                (ReplyPlace(reply.created_us, in_feed, reply.item_no), FeedEntry(node, reply))
                for reply in tx.slice(node.node_no, part)
                if reply.item_no != item.item_no
            ]
        )
    entries: list[FeedEntry] = []
    size_bytes, last = 0, None
    for place, entry in merge(*streams, key=itemgetter(0)):
        if len(entries) == REPLIES or size_bytes > page_bytes:
            return tuple(entries), last
        entries.append(entry)
        size_bytes += len(entry.item.payload)
        last = place
    return tuple(entries), None


def _count(tx: ReadTx, views: list[tuple[Node, View]]) -> int | None:
    counts = [tx.bounded_count(node.node_no, view) if view.filtered else node.live for node, view in views]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def get_reply_context(tx: ReadTx, context: Context, request: GetReplyContext) -> ReplyContext:
    """The answers around items of a node. Raises FeedError as the items themselves do."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    node = located.node
    pairs = [(node, item) for item in request.items]
    answered = find_answered(tx, context, request.actor, pairs, request.base_url, only_here=True)
    if tx.index_state(node.node_no) is IndexState.UNREAD:
        return ReplyContext(answered)
    counts: Counter[int] = Counter()
    # No answer names two ids of an item.
    for text, count in count_replies(tx, node.node_no, list(request.ids)).items():
        counts[request.ids[text]] += count
    return ReplyContext(answered, counts)


USE_CASES = UseCases(
    reads={
        GetReplies: ("get_replies", get_replies),
        GetReplyContext: ("get_reply_context", get_reply_context),
    }
)
