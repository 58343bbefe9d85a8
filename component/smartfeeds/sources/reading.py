"""Documents of sources: bytes to items, data of the feed, and hints for the next request.

The boundary between polling and formats. It runs in a thread, and raises FeedError for what is no feed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core.push_targets import PushOffer, offer_of, same_address
from smartfeeds.core.sources import DocumentHints, Source, filter_of, is_own
from smartfeeds.core.text import counted
from smartfeeds.core.view import View, matches
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import LINK, SOURCE, digest_id, read_traits
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.documents import document_bytes, read_document
from smartfeeds.formats.items import FeedDocument, ImportedItem
from smartfeeds.formats.nno import with_source
from smartfeeds.formats.poll_hints import poll_hints
from smartfeeds.formats.push_links import NO_LINKS, PushLinks, document_links, push_links
from smartfeeds.formats.xml import parse_stored

ACCEPT_SOURCE: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, application/ess;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, text/html;q=0.5, */*;q=0.1"
)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of a source. `feed` is the feed without items, `items` are those to store, oldest first, with the ids
    and payloads that they have in the node. `links` say who announces its changes. `left_out` counts items that cannot
    be stored, with reasons in `notes`."""

    feed: FeedDocument
    items: tuple[ImportedItem, ...]
    hints: DocumentHints
    links: PushLinks = NO_LINKS
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def times_us(self) -> tuple[int, ...]:
        """The times of the items that have one."""
        return tuple(item.made_us for item in self.items if item.made_us is not None)


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
    try:
        document = read_document(document_bytes(body, charset), url)
    except FeedError as error:
        feeds = links_of(body, url) if body.lstrip()[:1] == b"<" else ()
        if not feeds:
            raise
        addresses = ", ".join(link.href for link in feeds[:3])
        raise FeedError(error.condition, f"{error.text or error.condition.value}; it links to {addresses}") from None
    view = filter_of(source.settings.only)
    foreign = [item for item in document.oldest_first() if not _is_ours(item.payload, own_url)]
    items = tuple(_as_stored(item, document.id, document.title, source) for item in foreign if _is_admitted(item, view))
    returned = len(document.items) - len(foreign)
    feed = replace(document, items=(), skipped=())
    notes = (*document.warnings, *(f"item {skipped.index + 1}: {skipped.reason}" for skipped in document.skipped))
    if returned:
        notes = (*notes, f"{counted(returned, 'item')} came from this service and were left out")
    links = push_links(link_headers, body, url)
    return SourceDocument(feed, items, poll_hints(document), links, len(document.skipped) + returned, notes)


def read_push(
    body: bytes, charset: str, topic: str, source: Source, own_url: str
) -> tuple[tuple[ImportedItem, ...], PushLinks]:
    """The items that a hub has pushed for a topic, oldest first, as they are stored, and the links of the document.

    Their feed has the title that polls know, so that an item is the same whichever way it came (WS-129). Raises
    FeedError for what is no feed.
    """
    document = read_document(document_bytes(body, charset), topic)
    view, title = filter_of(source.settings.only), source.progress.title or document.title
    foreign = [item for item in document.oldest_first() if not _is_ours(item.payload, own_url)]
    items = (item for item in _of_topic(foreign, topic) if _is_admitted(item, view))
    return tuple(_as_stored(item, document.id, title, source) for item in items), document_links(body, topic)


def offer_in(document: SourceDocument, url: str, source_url: str, own_url: str) -> PushOffer:
    """The hubs and clouds of a document that came from `url`. Without a link to itself that address is the topic
    (WS-096); a cloud knows the feed by the address of the source (RC-064)."""
    links = document.links
    clouds = [replace(cloud, topic=source_url) for cloud in links.clouds]
    return offer_of(list(links.hubs), links.topic or url, clouds, own_url)


def _is_admitted(item: ImportedItem, view: View) -> bool:
    """Whether the filter of a source admits an item."""
    return item.deleted or not view.filtered or matches(view, read_traits(item.payload), publishers=False)


def _as_stored(item: ImportedItem, feed_id: str, title: str, source: Source) -> ImportedItem:
    payload = with_source(item.payload, feed_id, title, source.first_url)
    return replace(item, id=digest_id(source.first_url, item.id), payload=payload)


def _of_topic(items: list[ImportedItem], topic: str) -> list[ImportedItem]:
    """The items of a topic. A hub may put several topics into one document, and names the topic of each entry in its
    atom:source (PubSubHubbub 0.3 section 7.5; WS-131). If no entry names this topic, the entries are quotations of
    other feeds, and the feed itself has them."""
    topics = [_source_of(item.payload) for item in items]
    if not any(same_address(own, topic) for own in topics if own):
        return items
    return [item for item, own in zip(items, topics, strict=True) if not own or same_address(own, topic)]


def _source_of(payload: bytes) -> str:
    """The address of the feed that an entry names as its source, "" if it names none."""
    source = parse_stored(payload).find(SOURCE) if b"source" in payload else None
    links = () if source is None else source.iterchildren(LINK)
    return next((link.get("href", "") for link in links if link.get("rel") == "self"), "")


def _is_ours(payload: bytes, own_url: str) -> bool:
    """Whether the atom:source of an entry links to a feed of the service at `own_url`."""
    if not own_url or own_url.encode() not in payload:
        return False
    source = parse_stored(payload).find(SOURCE)
    return source is not None and any(is_own(link.get("href", ""), own_url) for link in source.iterchildren(LINK))
