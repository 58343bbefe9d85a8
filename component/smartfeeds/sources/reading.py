"""Documents of sources: bytes to items, data of the feed, and hints for the next request.

The boundary between polling and formats. It runs in a thread, and raises FeedError for what is no feed.
"""

from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core.sources import DocumentHints, Source, filter_of, is_own
from smartfeeds.core.text import counted
from smartfeeds.core.view import matches
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import LINK, SOURCE, digest_id, read_traits
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.documents import document_bytes, read_document
from smartfeeds.formats.items import FeedDocument, ImportedItem
from smartfeeds.formats.nno import with_source
from smartfeeds.formats.poll_hints import poll_hints
from smartfeeds.formats.xml import parse_stored

ACCEPT_SOURCE: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, application/ess;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, text/html;q=0.5, */*;q=0.1"
)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of a source. `feed` is the feed without items, `items` are those to store, oldest first, with the ids
    and payloads that they have in the node. `left_out` counts items that cannot be stored, with reasons in `notes`."""

    feed: FeedDocument
    items: tuple[ImportedItem, ...]
    hints: DocumentHints
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def times_us(self) -> tuple[int, ...]:
        """The times of the items that have one."""
        return tuple(item.made_us for item in self.items if item.made_us is not None)


def read_source(body: bytes, charset: str, url: str, source: Source, own_url: str = "") -> SourceDocument:
    """The document of a source that came from `url`.

    Item ids are made of the first address, so that a new address of the feed makes no new items (SRC-037). Items that
    came from the service at `own_url` are left out: they would go round for ever (SRC-082). Raises FeedError, whose
    text names the feeds that a web page links to (SRC-043).
    """
    if not body.strip():
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is empty")
    try:
        document = read_document(document_bytes(body, charset), url)
    except FeedError as error:
        links = links_of(body, url) if body.lstrip()[:1] == b"<" else ()
        if not links:
            raise
        addresses = ", ".join(link.href for link in links[:3])
        raise FeedError(error.condition, f"{error.text or error.condition.value}; it links to {addresses}") from None
    first_url, view = source.first_url, filter_of(source.settings.only)
    foreign = [item for item in document.oldest_first() if not _is_ours(item.payload, own_url)]
    items = tuple(
        replace(
            item,
            id=digest_id(first_url, item.id),
            payload=with_source(item.payload, document.id, document.title, first_url),
        )
        for item in foreign
        if item.deleted or not view.filtered or matches(view, read_traits(item.payload), publishers=False)
    )
    returned = len(document.items) - len(foreign)
    feed = replace(document, items=(), skipped=())
    notes = (*document.warnings, *(f"item {skipped.index + 1}: {skipped.reason}" for skipped in document.skipped))
    if returned:
        notes = (*notes, f"{counted(returned, 'item')} came from this service and were left out")
    return SourceDocument(feed, items, poll_hints(document), len(document.skipped) + returned, notes)


def _is_ours(payload: bytes, own_url: str) -> bool:
    """Whether the atom:source of an entry links to a feed of the service at `own_url`."""
    if not own_url or own_url.encode() not in payload:
        return False
    source = parse_stored(payload).find(SOURCE)
    return source is not None and any(is_own(link.get("href", ""), own_url) for link in source.iterchildren(LINK))
