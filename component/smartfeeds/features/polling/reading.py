"""Documents of sources: bytes to items, data of the feed, and hints for the next request (SRC-049 to SRC-055).

The boundary between polling and formats. It runs in a process of `workers`, and raises FeedError for what is no feed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.app.formats import read_document
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.text import counted
from smartfeeds.core.view import View, matches
from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.poll_hints import poll_hints
from smartfeeds.features.polling.polls import REPAIRED
from smartfeeds.features.polling.push_links import (
    NO_LINKS,
    PushLinks,
    PushOffer,
    document_links,
    offer_of,
    push_links,
    same_address,
)
from smartfeeds.features.polling.source import NO_HINTS, DocumentHints, Source, filter_of
from smartfeeds.features.polling.source_items import SourceItem, source_items
from smartfeeds.features.polling.source_lists import feeds_of
from smartfeeds.formats.atom import LINK, SOURCE, address_of_source, read_traits
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.encodings import in_utf8
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.opml import read_outline
from smartfeeds.formats.web_page import PAGE_FORMAT, read_page
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sync.copies import origin_of

ACCEPT_SOURCE: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, application/ess;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, text/html;q=0.5, */*;q=0.1"
)
# A source keeps far fewer items. To read one takes some 80 us, and a document has room for 300,000.
MAX_READ_ITEMS: Final = 10_000
MAX_ITEM_NOTES: Final = 10
# Each element takes up to 400 bytes of memory and 1 us. A feed with ten items of 100 kB has some 10,000 tags.
MAX_TAGS: Final = 400_000


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of a source. `feed` is the feed without items, `items` are those to store, oldest first. `links` say
    who announces its changes. `left_out` counts items that cannot be stored, with reasons in `notes`. `listed` are the
    addresses in a subscription list. `synced` counts the items with sync data, which a source leaves out."""

    feed: FeedDocument
    items: tuple[SourceItem, ...]
    hints: DocumentHints
    links: PushLinks = NO_LINKS
    left_out: int = 0
    notes: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    synced: int = 0

    @property
    def times_us(self) -> tuple[int, ...]:
        """The times of the items that have one."""
        times = (entry.item.made_us for entry in self.items)
        return tuple(time_us for time_us in times if time_us is not None)

    @property
    def repaired(self) -> str:
        """The repairs of the document, as the reason of its source; "" for a document without faults."""
        return f"{REPAIRED}{'; '.join(self.feed.repairs)}" if self.feed.repairs else ""

    @property
    def is_page(self) -> bool:
        """Whether the document is a web page."""
        return self.feed.format == PAGE_FORMAT


def read_source(
    body: bytes, charset: str, url: str, source: Source, own_url: str = "", link_headers: Sequence[str] = ()
) -> SourceDocument:
    """The document of a source that came from `url`.

    Item ids are made of the first address, so that a new address of the feed makes no new items (SRC-037). Items that
    came from the service at `own_url` are left out: they would go round for ever (SRC-082). `link_headers` are the
    values of Link. Raises FeedError, whose text names the feeds that a web page links to (SRC-043).
    """
    if not body.strip():
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is empty")
    _check_tags(body)
    if source.settings.is_list:
        return _read_list(in_utf8(body, charset).data, own_url)
    # A page that comes where a feed was is a failure of the server, not a feed (SRC-043).
    may_be_page = source.progress.full_us is None or source.progress.is_page
    try:
        # The address becomes the xml:base of items, which everybody reads.
        document = _read(body, charset, without_secrets(url), may_be_page=may_be_page)
    except FeedError as error:
        addresses = _feeds_of(error, body, url)
        if not addresses:
            raise
        text = f"{error.text or error.condition.value}; it links to {', '.join(addresses[:3])}"
        raise FeedError(error.condition, text) from None
    items, skipped = source_items(document, source.first_url, source.settings.ignore)
    foreign = [entry for entry in items if not _is_ours(entry.item.payload, own_url)]
    returned = len(items) - len(foreign)
    reasons = [f"item {item.index + 1}: {item.reason}" for item in (*document.skipped, *skipped)]
    notes = (*document.warnings, *_item_notes(document), *reasons)
    if returned:
        notes = (*notes, f"{counted(returned, 'item')} came from this service and were left out")
    feed = replace(document, items=(), skipped=())
    links = push_links(link_headers, body, url)
    left_out = len(reasons) + returned
    synced = sum(bool(origin_of(item.payload).sync_id) for item in document.items)
    admitted = _admitted(foreign, source)
    return SourceDocument(feed, admitted, poll_hints(document), links, left_out, notes, synced=synced)


def _item_notes(document: FeedDocument) -> list[str]:
    """Returns the repairs and losses in items: one example of each kind, with the number of further items."""
    kinds: dict[str, list[str]] = {}
    for item in document.items:
        for warning in item.warnings:
            kinds.setdefault(warning.partition("'")[0], []).append(warning)
    return [
        f"{same[0]} (and {len(same) - 1} more of this kind)" if len(same) > 1 else same[0]
        for same in list(kinds.values())[:MAX_ITEM_NOTES]
    ]


def _read_list(data: bytes, own_url: str) -> SourceDocument:
    """A subscription list without the feeds of the service at `own_url`. Raises FeedError."""
    outline = read_outline(data)
    # The author of a list does not choose nodes of this service, so their names are not read.
    feeds = feeds_of(outline, "")
    if not feeds:
        # A list that is empty by mistake must not end all its sources.
        raise FeedError(Condition.INVALID_PAYLOAD, "the list has no feeds; its outlines need the attribute xmlUrl")
    listed = tuple(feed.url for feed in feeds if not is_own(feed.url, own_url))
    return SourceDocument(FeedDocument("OPML", title=outline.head.get("title", "")), (), NO_HINTS, listed=listed)


def _feeds_of(error: FeedError, body: bytes, url: str) -> list[str]:
    """The addresses of feeds in a document that is none: a page, or a file about feeds, such as an ESS or NNO file."""
    if isinstance(error, FormatError) and error.feeds:
        return list(error.feeds)
    return [link.href for link in links_of(body, url)] if body.lstrip()[:1] == b"<" else []


def _read(body: bytes, charset: str, url: str, *, may_be_page: bool) -> FeedDocument:
    """The feed; the content decides which format it has (SRC-049)."""
    try:
        return read_document(body, url, charset, doubles=True, most=MAX_READ_ITEMS)
    except FormatError as error:
        if not may_be_page or body.lstrip()[:1] != b"<":
            raise
        try:
            return read_page(body, charset, url)
        except FormatError:
            raise error from None  # which says what was found


def read_push(
    body: bytes, charset: str, topic: str, source: Source, own_url: str
) -> tuple[tuple[SourceItem, ...], PushLinks]:
    """The items that a hub has pushed for a topic, oldest first, and the links of the document.

    Their feed has the title that polls know, so that an item is the same whichever way it came (WS-129). Raises
    FeedError for what is no feed.
    """
    _check_tags(body)
    read = read_document(body, without_secrets(topic), charset, doubles=True, most=MAX_READ_ITEMS)
    document = _of_topic(read, topic)
    document = replace(document, title=source.progress.title or document.title)
    items, _skipped = source_items(document, source.first_url, source.settings.ignore)
    foreign = [entry for entry in items if not _is_ours(entry.item.payload, own_url)]
    return _admitted(foreign, source), document_links(body, topic)


def offer_in(document: SourceDocument, url: str, source_url: str, own_url: str) -> PushOffer:
    """The hubs and clouds of a document that came from `url`. Without a link to itself that address is the topic
    (WS-096); a cloud knows the feed by the address of the source (RC-064)."""
    links = document.links
    clouds = [replace(cloud, topic=source_url) for cloud in links.clouds]
    return offer_of(list(links.hubs), links.topic or url, clouds, own_url)


def _check_tags(body: bytes) -> None:
    """Raises FeedError(PAYLOAD_TOO_BIG) for very many tags."""
    if body.count(b"<") > MAX_TAGS:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the document has more than {MAX_TAGS} tags, which is the limit")


def _admitted(items: Sequence[SourceItem], source: Source) -> tuple[SourceItem, ...]:
    """The items that the filter of a source admits."""
    view = filter_of(source.settings.only)
    return tuple(entry for entry in items if entry.item.deleted or _is_match(view, entry.item.payload))


def _is_match(view: View, payload: bytes) -> bool:
    return not view.filtered or matches(view, read_traits(payload), publishers=False)


def _of_topic(document: FeedDocument, topic: str) -> FeedDocument:
    """The items of a topic. A hub may put several topics into one document, and names the topic of each entry in its
    atom:source (PubSubHubbub 0.3 section 7.5; WS-131). If no entry names this topic, the entries are quotations of
    other feeds, and the feed itself has them."""
    topics = [address_of_source(item.payload) for item in document.items]
    if not any(same_address(own, topic) for own in topics if own):
        return document
    pairs = zip(document.items, topics, strict=True)
    return replace(document, items=tuple(item for item, own in pairs if not own or same_address(own, topic)))


def _is_ours(payload: bytes, own_url: str) -> bool:
    """Whether the atom:source of an entry links to a feed of the service at `own_url`."""
    if not own_url or own_url.encode() not in payload:
        return False
    source = parse_stored(payload).find(SOURCE)
    return source is not None and any(is_own(link.get("href", ""), own_url) for link in source.iterchildren(LINK))
