"""Older pages of a feed: at a gap, and at the first poll by request (SRC-059 to SRC-064; RFC 5005).

A gap is a document without an item of the one before: items may be missing between them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from smartfeeds.errors import FeedError
from smartfeeds.features.polling.reading import SourceDocument
from smartfeeds.features.polling.source import Source, host_of
from smartfeeds.features.polling.source_entries import EntryKey
from smartfeeds.features.polling.source_import import known_keys
from smartfeeds.features.polling.source_items import SourceItem
from smartfeeds.formats.paging import Paging
from smartfeeds.net.fetch import FetchError, display_url
from smartfeeds.service.feeds import FeedService

MAX_PAGES: Final = 10  # at a gap (SRC-059)

PageReader = Callable[[str], Awaitable[SourceDocument]]


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document with the items of older pages. `is_gap`: the document itself has no known item. `archives` are the
    archive documents that were read. `reason` says why items may be missing, "" if none are."""

    document: SourceDocument
    is_gap: bool = False
    archives: tuple[str, ...] = ()
    reason: str = ""


async def with_history(
    service: FeedService, source: Source, document: SourceDocument, url: str, read_page: PageReader
) -> WholeDocument:
    """Follows the links to older pages of a document that came from `url`, as far as that is needed.

    `read_page` requests and reads a page. It raises FetchError or FeedError, which end the way back.
    """
    keys = _keys(document)
    known = await service.read(partial(known_keys, source_no=source.source_no, keys=keys))
    # A filter leaves out items that would show that there is no gap.
    may_be_gap = bool(keys) and not known.is_first and not source.settings.only
    is_gap = may_be_gap and not any(map(known.has, keys))
    most = MAX_PAGES if is_gap else source.settings.history if source.good_us is None else 0
    if not most or not keys:
        return WholeDocument(document, is_gap)
    walk = _Walk(service, source, url, read_page)
    await walk.run(document.feed.paging, most, _numbers(keys))
    reason = walk.reason
    if is_gap and not walk.is_joined and not reason:
        reason = f"the feed has changed by more than {len(keys)} items since the last poll"
    whole = replace(document, items=_joined([document, *walk.pages]))
    return WholeDocument(whole, is_gap, tuple(walk.archives), f"items may be missing: {reason}" if reason else "")


class _Walk:
    """The way back over older pages. `is_joined`: it has reached a known item."""

    def __init__(self, service: FeedService, source: Source, url: str, read_page: PageReader) -> None:
        self.pages: list[SourceDocument] = []
        self.archives: list[str] = []
        self.is_joined = False
        self.reason = ""
        self._service = service
        self._source = source
        self._host = host_of(url)
        self._visited = {url, source.url}
        self._read_page = read_page

    async def run(self, paging: Paging, most: int, seen: set[str]) -> None:
        """Reads up to `most` pages. `seen` are the identities of the first document."""
        for _ in range(most):
            url = paging.older
            if not url or self._is_end(url):
                return
            if url in self._source.progress.archives:
                # An archive does not change, so its items are known (SRC-061).
                self.is_joined = True
                return
            self._visited.add(url)
            try:
                page = await self._read_page(url)
            except (FetchError, FeedError) as error:
                self.reason = f"the older page {display_url(url)}: {_text(error)}"
                return
            if paging.older_is_archive:
                self.archives.append(url)
            keys = [key for key in _keys(page) if key.identity not in seen]
            self.pages.append(page)
            if not keys:
                return  # the pages have shifted, or it is the end (SRC-062)
            seen |= _numbers(keys)
            known = await self._service.read(partial(known_keys, source_no=self._source.source_no, keys=keys))
            if any(map(known.has, keys)):
                self.is_joined = True
                return
            paging = page.feed.paging

    def _is_end(self, url: str) -> bool:
        """Whether the link leads in a circle or to another host, which ends the history (SRC-063)."""
        if url in self._visited:
            self.reason = f"the links to older pages lead in a circle, to {display_url(url)}"
        elif host_of(url) != self._host:
            self.reason = f"the link to older pages leads to another host, {display_url(url)}"
        return bool(self.reason)


def _text(error: FetchError | FeedError) -> str:
    return error.reason if isinstance(error, FetchError) else error.text or error.condition.value


def _keys(document: SourceDocument) -> list[EntryKey]:
    return [entry.key for entry in document.items]


def _numbers(keys: list[EntryKey]) -> set[str]:
    return {key.identity for key in keys}


def _joined(documents: list[SourceDocument]) -> tuple[SourceItem, ...]:
    """The items of all pages, oldest first. An item that is on several pages is the one of the newest (SRC-062)."""
    newest: dict[EntryKey, SourceItem] = {}
    for document in documents:
        for entry in document.items:
            newest.setdefault(entry.key, entry)
    older_first = [newest[entry.key] for document in reversed(documents) for entry in document.items]
    return tuple(dict.fromkeys(older_first))
