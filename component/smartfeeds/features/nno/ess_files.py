"""ESS files from the web, and the full entries of the outline that is made of them (ESS-013, ESS-018 to ESS-024).

A feed is downloaded only if an entry of the outline is not among earlier results. Entries that are not in their feed
are looked for again only after the feed has changed.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from smartfeeds.app.formats import read_document
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.validators import NO_VALIDATORS, KnownDocument, Validators
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.documents.ess import (
    ESS_TYPE,
    MAX_BYTES,
    NNO_TYPE,
    TIME_RANGE_S,
    EssContent,
    NnoEntry,
    read_either,
)
from smartfeeds.features.nno.entries import EntryRequest, candidate_of, match, raw_titles, requests_of, to_download
from smartfeeds.features.nno.results import FullEntry, dump_results, load_results
from smartfeeds.features.polling.tools import ACCEPT_FEED, DocumentRunner, read_here
from smartfeeds.formats.autodiscovery import LinkType, links_of
from smartfeeds.net.fetch import FetchError, FetchResponse, HttpClient

ACCEPT_ESS: Final = f"{ESS_TYPE}, {NNO_TYPE}, text/html;q=0.5, */*;q=0.1"
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})

# By the address that is requested.
Documents = MutableMapping[str, KnownDocument]


class EssSource:
    """An address of an ESS or NNO file, or of a web page that links to one (ESS-024).

    `files` are those of the last refresh. `target` is the address of the file itself. `documents` has the files that
    were read before, and gets this one.
    """

    def __init__(self, url: str, documents: Documents | None = None, aside: DocumentRunner = read_here) -> None:
        self.url = url
        self.target = url
        self.files: tuple[EssContent, ...] = ()
        self._documents: Documents = {} if documents is None else documents
        self._aside = aside
        self._body: bytes | None = None  # of `files`

    async def refresh(self, fetch: HttpClient, keep: int, latest_s: int = TIME_RANGE_S[1]) -> None:
        """Fetches the file if it has changed. Of each feed, `files` has the `keep` newest entries up to `latest_s`.

        Raises FetchError or FeedError; `files` does not change then.
        """
        try:
            response = await self._get(fetch)
            is_page = response.content_type in _PAGES or response.body.lstrip()[:1] == b"<"
            if not response.not_modified and is_page:
                self.target = await self._aside(_linked, response, party=self.url)
                response = await self._get(fetch)
            body = self._documents[self.target].content if response.not_modified else response.body
            if body is not self._body:
                self.files = await self._aside(_read_files, body, keep, latest_s, party=self.url)
                self._body = body
            self._documents[self.target] = KnownDocument(response.validators, body)
        except (FetchError, FeedError):
            self.target = self.url  # the page may link to another address by now
            raise

    async def _get(self, fetch: HttpClient) -> FetchResponse:
        known = self._documents.get(self.target)
        validators = NO_VALIDATORS if known is None else known.validators
        return await fetch.get(self.target, known=validators, accept=ACCEPT_ESS, max_bytes=MAX_BYTES)


def _read_files(body: bytes, keep: int, latest_s: int) -> tuple[EssContent, ...]:
    """The files in a document, each with its `keep` newest entries up to `latest_s`. Raises FeedError."""
    return tuple(_cut(file, keep, latest_s) for file in read_either(body))


def _cut(file: EssContent, keep: int, latest_s: int) -> EssContent:
    return replace(file, entries=tuple(stamp for stamp in file.entries if stamp.time_s <= latest_s)[:keep])


def _linked(page: FetchResponse) -> str:
    """The ESS file that a page links to, else the NNO file. Raises FeedError."""
    links = links_of(page.body, page.url)
    for kind in (LinkType.ESS, LinkType.NNO):
        for link in links:
            if link.type is kind:
                return link.href
    raise FeedError(Condition.INVALID_PAYLOAD, "this is a web page, and it links to no ESS file")


class SourceFailure(NamedTuple):
    """The reason why an address has no content, and the pause in seconds that its server asked for, None without
    one."""

    reason: str
    pause_s: float | None = None


def source_failure(error: FetchError | FeedError) -> SourceFailure:
    """The failure of an address that could not be fetched, or whose content could not be read."""
    if isinstance(error, FetchError):
        return SourceFailure(error.reason, error.retry_after_s)
    return SourceFailure(error.text or error.condition.value)


@dataclass(frozen=True, slots=True)
class PullResult:
    """The result of a pull.

    `results` are the entries of the outline in its order, each with its full entry, or None if its feed does not have
    it. `fresh` are those that are new or have changed. `downloads` counts the feeds that were requested, `failed` has
    the feeds that could not be read.
    """

    results: tuple[tuple[NnoEntry, FullEntry | None], ...]
    fresh: tuple[FullEntry, ...] = ()
    downloads: int = 0
    failed: Mapping[str, SourceFailure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Download:
    """The entries of the outline that a feed has, and those that it does not have."""

    url: str
    validators: Validators
    requests: Sequence[EntryRequest]
    entries: Mapping[EntryRequest, FullEntry]
    missing: frozenset[EntryRequest]


class Puller:
    """Finds the full entries of one outline after the other; `known` are the results of the last (ESS-019).

    `documents` has the feeds that were read before, with their results, and gets those that are read now.
    """

    def __init__(
        self,
        fetch: HttpClient,
        known: Mapping[EntryRequest, FullEntry] | None = None,
        documents: Documents | None = None,
        aside: DocumentRunner = read_here,
    ) -> None:
        self.known: dict[EntryRequest, FullEntry] = dict(known or {})
        self._fetch = fetch
        self._aside = aside
        self._documents: Documents = {} if documents is None else documents
        self._missing: dict[
            str, frozenset[EntryRequest]
        ] = {}  # address of a feed -> entries that its version does not have
        for url, document in self._documents.items():
            entries, self._missing[url] = load_results(document.content)
            self.known |= entries

    async def pull(self, entries: Iterable[NnoEntry], skip: Collection[str] = ()) -> PullResult:
        """The full entries of an outline. Feeds in `skip` are not requested this time."""
        requests = requests_of(entries)
        of_feed: dict[str, list[EntryRequest]] = {}
        for entry in requests:
            of_feed.setdefault(entry.entry.feed_url, []).append(entry)
        lacking = {url: these for url, these in to_download(requests, self.known).items() if url not in skip}
        failed: dict[str, SourceFailure] = {}
        fresh: list[FullEntry] = []
        downloads = (self._feed(url, of_feed[url], these, failed) for url, these in lacking.items())
        for download in await asyncio.gather(*downloads):
            if download is not None:
                fresh += self._note(download)
        # Otherwise every feed that was ever in the outline would stay in the store.
        for url in self._documents.keys() - of_feed.keys():
            del self._documents[url]
        self._missing = {url: self._missing[url] for url in self._documents}
        self.known = {entry: self.known[entry] for entry in requests if entry in self.known}
        results = tuple((entry.entry, self.known.get(entry)) for entry in requests)
        return PullResult(results, tuple(fresh), len(lacking), failed)

    def _note(self, download: _Download) -> list[FullEntry]:
        """Adds a download to the results; its entries that are new or have changed. An item that had another time
        before is marked as updated."""
        known = {request: full for request, full in self.known.items() if full.feed_url == download.url}
        times_s = {full.item.id: request.entry.time_s for request, full in known.items()}
        fresh = []
        for request, full in download.entries.items():
            former = known.get(request)
            moved = times_s.get(full.item.id, request.entry.time_s) != request.entry.time_s
            updated = full.updated or moved or (former is not None and former.updated)
            known[request] = replace(full, updated=updated)
            if former is None or former.item != full.item:
                fresh.append(known[request])
        self.known |= known
        self._missing[download.url] = download.missing
        content = dump_results({entry: known[entry] for entry in download.requests if entry in known}, download.missing)
        self._documents[download.url] = KnownDocument(download.validators, content)
        return fresh

    async def _feed(
        self,
        url: str,
        requests: Sequence[EntryRequest],
        lacking: Sequence[EntryRequest],
        failed: dict[str, SourceFailure],
    ) -> _Download | None:
        """Downloads a feed and matches all its entries of the outline, so that no entry gets the item of another one.

        The request is conditional only if the version that was read does not have the `lacking` entries either.
        """
        document = self._documents.get(url)
        conditional = document is not None and self._missing[url].issuperset(lacking)
        known = document.validators if document is not None and conditional else NO_VALIDATORS
        try:
            response = await self._fetch.get(url, known=known, accept=ACCEPT_FEED)
            if response.not_modified:
                if document is not None:
                    self._documents[url] = replace(document, validators=response.validators)
                return None
            entries = await self._aside(_full_entries, url, response, requests, party=url)
        except (FetchError, FeedError) as error:
            failed[url] = source_failure(error)
            return None
        return _Download(url, response.validators, requests, entries, frozenset(lacking).difference(entries))


def _full_entries(url: str, response: FetchResponse, requests: Sequence[EntryRequest]) -> dict[EntryRequest, FullEntry]:
    """The items of a feed that match the entries of the outline. Raises FeedError."""
    document = read_document(response.body, without_secrets(response.url), response.charset)
    items = [item for item in document.items if not item.deleted]
    titles = raw_titles(response.body, response.charset)
    matches = match(requests, [candidate_of(item, titles) for item in items])
    return {
        entry: FullEntry(url, replace(items[place.place], warnings=()), document.id, document.title, place.updated)
        for entry, place in zip(requests, matches, strict=True)
        if place is not None
    }
