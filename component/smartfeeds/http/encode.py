"""Pages of a feed as JSON ActivityStreams and Atom, and JSON-P around both (SF-058 to SF-072; A-09, A-12, A-35).

Items are stored as Atom. An item is written once in each form and cached, and a page joins these bytes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from smartfeeds.core.model import AUDIENCE_CHANGE, Item, Node, NodeKind
from smartfeeds.core.options import SSE
from smartfeeds.core.position import SPAN, canonical_cursor
from smartfeeds.core.urls import entry_path, feed_path
from smartfeeds.core.view import Order
from smartfeeds.formats.atom_feed import END_OF_FEED, AtomHead, FeedHead, entry_of_feed, link_text
from smartfeeds.formats.feed_details import head_of_node
from smartfeeds.formats.json_text import dump_json
from smartfeeds.formats.plain_activity import write_item
from smartfeeds.formats.representation import Representation
from smartfeeds.formats.rss_channel import OwnCloud
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.conditions import representation_mark
from smartfeeds.http.queries import ALL, FeedQuery
from smartfeeds.http.sync_json import write_shared
from smartfeeds.service.requests import FeedPage, ItemShown
from smartfeeds.sync.sharing import NO_SHARING, FeedWindow, RelatedFeed, RelatedKind, Sharing
from smartfeeds.sync.sharing_markup import write_sharing

# The items of a feed of 10,000 entries of 1 KB fit. To write 50 plain items takes 0.5 ms as JSON and 0.2 ms as Atom,
# other items take 4 ms as JSON, and to get them from the cache takes 0.03 ms.
CACHE_BYTES = 16 * 1024 * 1024
# The heads of about 200 feeds, or of fewer with long descriptions. A head takes 0.06 ms to make.
FEEDS_BYTES = 1024 * 1024
FEED_BYTES = 2_048  # memory of an `_AtomFeed` without its texts
_PLAIN_POSITION = re.compile(r"[A-Za-z0-9_.:-]*")  # without a character that `quote` escapes, except the colon
_COMMENTS = "urn:xmpp:microblog:0:comments/"


class PageAddress(NamedTuple):
    """The address of a request: `site_url` is that of the site, `name` the feed. `hub_url` is the address of its hub,
    "" if the site has no public address. `cloud` is the cloud of this service, None without one. `window`: it is the
    address of the newest items, whichever they are at the time."""

    site_url: str
    name: str
    query: FeedQuery
    hub_url: str = ""
    cloud: OwnCloud | None = None
    window: bool = False

    @property
    def base_url(self) -> str:
        """The feed with its own parameters, without those of the pull (SF-057, SF-062)."""
        return self.document_url("")

    def document_url(self, suffix: str) -> str:
        """A document of the view; "" is the feed itself."""
        view = f"?{self.query.view}" if self.query.view else ""
        return f"{self.site_url}{feed_path(self.name, suffix)}{view}"

    def start_of_pages(self, suffix: str = "") -> str:
        """The common start of the addresses of all pages of the view; the position of a page follows."""
        view = f"{self.query.view}&" if self.query.view else ""
        return f"{self.site_url}{feed_path(self.name, suffix)}?{view}"

    def page_url(self, suffix: str = "", *, since: str = "", until: str = "") -> str:
        """A page of the same view and of the same size, as a document if it has a suffix (A-10)."""
        position = self.position(since, until)
        start = self.start_of_pages(suffix)
        return f"{start}{position}" if position else start.removesuffix("&")

    def position(self, since: str = "", until: str = "") -> str:
        """The position of a page of the same size, as parameters of a query without a character that URIs escape."""
        fields = (("since", since), ("until", until), ("max", self.query.max))
        return "&".join([f"{name}={_quoted(value)}" for name, value in fields if value])

    def complete_url(self, suffix: str) -> str:
        """The whole view as one document with sync data, for FeedSync readers, which do not know pages (FS-077)."""
        return f"{self.document_url(suffix)}&max={ALL}"

    def next_position(self, answer: FeedPage, last: str) -> str:
        """The position of the next page behind the cursor `last` of this one, "" if it has no items now (SF-064,
        A-10)."""
        # A page with an end and without a beginning has the last items before that end, so nothing follows it.
        if not answer.newer or not last or (self.query.until is not None and not self.query.since):
            return ""
        return self.position(f"cursor:{last}", self.query.until or "")

    def next_url(self, answer: FeedPage, last: str) -> str:
        """The address of the page at `next_position`."""
        position = self.next_position(answer, last)
        return f"{self.start_of_pages()}{position}" if position else ""

    def newer_url(self, answer: FeedPage) -> str:
        """The page behind this one in the whole view, "" if there is none."""
        last = last_cursor(answer, self.query)
        return self.page_url(since=f"cursor:{last}") if answer.newer and last else ""

    def previous_url(self, answer: FeedPage) -> str:
        """The page before this one, "" if there is none."""
        first = first_cursor(answer)
        return self.page_url(until=f"cursor:{first}") if answer.older and first else ""


# Writes a page as a document.
Write = Callable[[FeedPage, PageAddress], bytes]


class LocalFiles(NamedTuple):
    """The files of other hosts that this service has loaded. `covers` tells whether documents in a form name them in
    place of the original ones; `in_page` and `in_item` put their addresses below that of the site into items."""

    covers: Callable[[Representation], bool]
    in_page: Callable[[FeedPage, str, Representation], FeedPage]
    in_item: Callable[[ItemShown, str], ItemShown]


class FeedLinks(NamedTuple):
    """The links in the documents of every feed: whether it has a hub, the cloud of this service, and loaded files; None
    without them."""

    has_hub: bool = False
    cloud: OwnCloud | None = None
    local: LocalFiles | None = None


def _quoted(value: str) -> str:
    # `quote` takes ten times as long, and every page has a cursor in an address.
    return value.replace(":", "%3A") if _PLAIN_POSITION.fullmatch(value) else quote(value, safe="")


def items_of(answer: FeedPage) -> tuple[Item, ...]:
    """The items of a page, oldest first."""
    return answer.page.items if answer.page is not None else ()


def total_of(answer: FeedPage) -> int | None:
    """The number of items of the view (SF-061, SF-066), None if the service does not count them."""
    result_set = answer.page.result_set if answer.page is not None else None
    return result_set.count if result_set is not None else len(items_of(answer))


def first_cursor(answer: FeedPage) -> str:
    """The bare cursor of the first item, "" on an empty page."""
    result_set = answer.page.result_set if answer.page is not None else None
    first = (result_set.first or "") if result_set is not None else ""
    return first.removeprefix("cursor:").partition(SPAN)[0]


def last_cursor(answer: FeedPage, query: FeedQuery) -> str:
    """The bare cursor to continue from: that of the last item, for an empty page that of the request (A-09)."""
    result_set = answer.page.result_set if answer.page is not None else None
    last = (result_set.last or "") if result_set is not None else ""
    if last:
        return last.removeprefix("cursor:").partition(SPAN)[0]
    kind, _, since = (query.since or "").partition(":")
    return canonical_cursor(since) if kind == "cursor" else ""


def head_of(answer: FeedPage, place: PageAddress) -> FeedHead:
    """The metadata of the feed and of this page."""
    last = last_cursor(answer, place.query)
    return replace(
        _lasting_head(answer.node, place),
        updated_us=_updated_us(answer.node, items_of(answer)),
        next_link=place.next_url(answer, last),
        total=total_of(answer),
        last_cursor=last,
    )


def _lasting_head(node: Node, place: PageAddress) -> FeedHead:
    """The metadata of the feed."""
    entry_prefix = f"{place.site_url}{entry_path(place.name)}"
    hub_url, cloud = (place.hub_url, place.cloud) if is_feed(node) else ("", None)
    return head_of_node(node, place.base_url, entry_prefix, hub_url, cloud)


def _updated_us(node: Node, items: Sequence[Item]) -> int:
    """The time of the last change on a page, or that of the feed if the page is empty."""
    return max([item.modified_us for item in items], default=max(node.last_modified_us, node.created_us))


class _AtomFeed(NamedTuple):
    """The common part of all pages of a feed at an address. `shape` is that of their entries (`Encoder._written`)."""

    head: FeedHead
    pieces: AtomHead
    next_start: str
    shape: str

    @classmethod
    def of(cls, node: Node, place: PageAddress, *, whole: bool) -> "_AtomFeed":
        """Returns what pages in a view with (`whole` is false) or without sync data have in common."""
        head = _lasting_head(node, place)
        shape = representation_mark("atom", node.node_no, head.byline, head.entry_prefix, whole)
        without_authors = head if whole else replace(head, channel=replace(head.channel, authors=()))
        return cls(head, AtomHead.of(without_authors), link_text(place.start_of_pages()), shape)

    @property
    def size_bytes(self) -> int:
        """About the memory: texts of the head are in its pieces, too."""
        return FEED_BYTES + 2 * sum(map(len, self.pieces)) + len(self.next_start)


def is_comments(node: Node) -> bool:
    """Whether the name of a feed says that its items are comments (XEP-0277 4)."""
    return node.name.startswith(_COMMENTS) or node.name.rpartition("/")[2] == "comments"


class Encoder:
    """Writes pages as documents, and caches the items that are read most as JSON and as Atom."""

    def __init__(self) -> None:
        self._entries: ByteCache[tuple[str, int, int, str, bool], bytes] = ByteCache(CACHE_BYTES)
        self._feeds: ByteCache[tuple[object, ...], _AtomFeed] = ByteCache(FEEDS_BYTES)

    def json(self, answer: FeedPage, place: PageAddress) -> bytes:
        """A collection (SF-060 to SF-065)."""
        items = items_of(answer)
        total = total_of(answer)
        last = last_cursor(answer, place.query)
        links = {"last_cursor": last, "next": place.next_url(answer, last)}
        head = {
            "count": len(items),
            **({} if total is None else {"totalItems": total}),
            "url": place.base_url,
            **{name: text for name, text in links.items() if text},
        }
        joined = b",".join(self._activities(answer.node, items, sync=answer.view.sync))
        return b'%b,"items":[%b]}' % (dump_json(head)[:-1], joined)

    def atom(self, answer: FeedPage, place: PageAddress) -> bytes:
        """A feed document (SF-066 to SF-071)."""
        whole = not answer.view.sync
        feed = self._feed(answer.node, place, whole=whole)
        items = items_of(answer)
        entries = self._written(feed.shape, items, partial(entry_of_feed, feed.head, whole=whole))
        sharing = sharing_of(answer, place, "atom")
        written_sharing = write_sharing(sharing) + b"\n" if sharing != NO_SHARING else b""
        last = last_cursor(answer, place.query)
        position = place.next_position(answer, last)
        following = f"{feed.next_start}{position.replace('&', '&amp;')}" if position else ""
        head = feed.pieces.write(_updated_us(answer.node, items), following, total_of(answer), last)
        return b"".join((head, written_sharing, *entries, END_OF_FEED))

    def _feed(self, node: Node, place: PageAddress, *, whole: bool) -> _AtomFeed:
        # All that a head depends on. The number of the audience changes with the options of a node.
        key = (
            node.node_no,
            node.created_us,
            node.audience // AUDIENCE_CHANGE,
            node.kind,
            place.site_url,
            place.query.view,
            whole,
        )
        feed = self._feeds.get(key)
        if feed is None:
            feed = _AtomFeed.of(node, place, whole=whole)
            self._feeds.put(key, feed, feed.size_bytes + len(place.query.view))
        return feed

    def activity(self, node: Node, item: Item, *, sync: bool = False) -> bytes:
        """One item as JSON, with `sync` including the sync data in its payload."""
        return self._activities(node, (item,), sync=sync)[0]

    def _activities(self, node: Node, items: Sequence[Item], *, sync: bool) -> list[bytes]:
        comments = is_comments(node)
        shape = representation_mark("json", node.node_no, sync, comments)
        if sync:
            return self._written(shape, items, partial(write_shared, comments=comments))
        return self._written(shape, items, partial(write_item, comments=comments))

    def _written(self, shape: str, items: Sequence[Item], write: Callable[[Item], bytes]) -> list[bytes]:
        """The items in a form, those of the cache and new ones. Two forms of an item have different shapes."""
        keys = [(shape, item.item_no, item.modified_us, item.id, item.left) for item in items]
        known = self._entries.get_all(keys)
        entries = [write(item) if entry is None else entry for item, entry in zip(items, known, strict=True)]
        if None in known:
            rows = zip(keys, known, entries, strict=True)
            self._entries.put_all((key, entry, len(entry)) for key, before, entry in rows if before is None)
        return entries


def sharing_of(answer: FeedPage, place: PageAddress, suffix: str) -> Sharing:
    """The sx:sharing of a window of the newest items (FeedSync 4.2: FS-045, FS-083, FS-085; SSE 2.1).

    `until` is the bound of the newest change of the feed, `since` that of the newest item of the view before the window
    (A-45, A-47, A-48, A-156). A page of a pull has none: its cursors say more. `suffix` is that of the document, whose
    complete form has the same one.
    """
    if not answer.view.sync or not place.window:
        return NO_SHARING
    node = answer.node
    is_sse = node.options.sync_dialect == SSE
    window = FeedWindow.of_all(node.created_us, node.last_modified_us, sse=is_sse)
    if answer.view.order is Order.MODIFIED and answer.before_us is not None:
        window = replace(window, since_us=answer.before_us)
    elif answer.older or (not items_of(answer) and total_of(answer) != 0):
        # The item that was changed last may be outside the window: the order is another one, or max is 0.
        window = replace(window, since_us=window.until_us)
    return _with_origins(window.sharing(place.complete_url(suffix), sse=is_sse), answer)


def complete_sharing(answer: FeedPage) -> Sharing:
    """The sx:sharing of a complete feed (SSE-008, SSE-009, A-47)."""
    node = answer.node
    is_sse = node.options.sync_dialect == SSE
    window = FeedWindow.of_all(node.created_us, node.last_modified_us, sse=is_sse)
    return _with_origins(window.complete_sharing(sse=is_sse), answer)


def _with_origins(sharing: Sharing, answer: FeedPage) -> Sharing:
    """FeedSync 2.3.1, SSE 2.2.2: the feeds whose items are in this one."""
    origins = (RelatedFeed(origin.address, RelatedKind.AGGREGATED, origin.title) for origin in answer.origins)
    return replace(sharing, related=(*sharing.related, *origins))


def in_callback(callback: str, document: bytes, *, text: bool) -> bytes:
    """JSON-P: a call with the document, as an expression or as one string (SF-055, SF-059)."""
    argument = dump_json(document.decode()) if text else document
    return b"/**/%b(%b);" % (callback.encode(), argument)


def is_feed(node: Node) -> bool:
    """Whether the node obeys the Smart Feeds rules."""
    return node.kind is NodeKind.FEED
