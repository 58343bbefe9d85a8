"""Documents of sources: bytes to items, data of the feed, and hints for the next request (SRC-049 to SRC-055).

The boundary between polling and formats. It runs in a thread, and raises FeedError for what is no feed.
"""

from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core.sources import DocumentHints, Source, filter_of, is_own
from smartfeeds.core.text import counted
from smartfeeds.core.view import matches
from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.formats.atom import LINK, SOURCE, read_traits
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.documents import read_document
from smartfeeds.formats.ess import looks_like_ess
from smartfeeds.formats.items import FeedDocument
from smartfeeds.formats.json_text import looks_like_json
from smartfeeds.formats.loader import in_utf8
from smartfeeds.formats.poll_hints import poll_hints
from smartfeeds.formats.source_items import SourceItem, source_items
from smartfeeds.formats.web_page import PAGE_FORMAT, read_page
from smartfeeds.formats.xml import parse_stored

ACCEPT_SOURCE: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, application/ess;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, text/html;q=0.5, */*;q=0.1"
)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of a source. `feed` is the feed without items, `items` are those to store, oldest first. `left_out`
    counts items that cannot be stored, with reasons in `notes`."""

    feed: FeedDocument
    items: tuple[SourceItem, ...]
    hints: DocumentHints
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def times_us(self) -> tuple[int, ...]:
        """The times of the items that have one."""
        times = (entry.item.made_us for entry in self.items)
        return tuple(time_us for time_us in times if time_us is not None)

    @property
    def is_page(self) -> bool:
        """Whether the document is a web page."""
        return self.feed.format == PAGE_FORMAT


def read_source(body: bytes, charset: str, url: str, source: Source, own_url: str = "") -> SourceDocument:
    """The document of a source that came from `url`.

    Item ids are made of the first address, so that a new address of the feed makes no new items (SRC-037). Items that
    came from the service at `own_url` are left out: they would go round for ever (SRC-082). Raises FeedError, whose
    text names the feeds that a web page links to (SRC-043).
    """
    if not body.strip():
        raise FeedError(Condition.INVALID_PAYLOAD, "the document is empty")
    data, note = (body, "") if looks_like_ess(body) else in_utf8(body, "" if looks_like_json(body) else charset)
    # A page that comes where a feed was is a failure of the server, not a feed (SRC-043).
    may_be_page = source.progress.full_us is None or source.progress.is_page
    try:
        document = _read(body, data, charset, url, may_be_page=may_be_page)
    except FeedError as error:
        links = links_of(body, url) if body.lstrip()[:1] == b"<" else ()
        if not links:
            raise
        addresses = ", ".join(link.href for link in links[:3])
        raise FeedError(error.condition, f"{error.text or error.condition.value}; it links to {addresses}") from None
    items, skipped = source_items(document, source.first_url, source.settings.ignore)
    foreign = [entry for entry in items if not _is_ours(entry.item.payload, own_url)]
    view = filter_of(source.settings.only)
    matching = tuple(
        entry
        for entry in foreign
        if entry.item.deleted or not view.filtered or matches(view, read_traits(entry.item.payload), publishers=False)
    )
    returned = len(items) - len(foreign)
    reasons = [f"item {one.index + 1}: {one.reason}" for one in (*document.skipped, *skipped)]
    notes = (*document.warnings, *((note,) if note else ()), *reasons)
    if returned:
        notes = (*notes, f"{counted(returned, 'item')} came from this service and were left out")
    left_out = len(reasons) + returned
    return SourceDocument(replace(document, items=(), skipped=()), matching, poll_hints(document), left_out, notes)


def _read(body: bytes, data: bytes, charset: str, url: str, *, may_be_page: bool) -> FeedDocument:
    """The feed; the content decides which format it has (SRC-049)."""
    try:
        return read_document(data, url, doubles=True)
    except FormatError:
        if not may_be_page or body.lstrip()[:1] != b"<":
            raise
        return read_page(body, charset, url)


def _is_ours(payload: bytes, own_url: str) -> bool:
    """Whether the atom:source of an entry links to a feed of the service at `own_url`."""
    if not own_url or own_url.encode() not in payload:
        return False
    source = parse_stored(payload).find(SOURCE)
    return source is not None and any(is_own(link.get("href", ""), own_url) for link in source.iterchildren(LINK))
