"""ESS files from the web, and the full entries behind the outline that is made of them (ESS-013, ESS-018 to ESS-024).

A feed is downloaded only where an entry of the outline is not among earlier results; entries that were looked for in
vain are looked for again only when the feed has changed.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.autodiscovery import LinkType, links_of
from smartfeeds.formats.documents import document_bytes, read_document
from smartfeeds.formats.ess import ESS_TYPE, MAX_BYTES, NNO_TYPE, TIME_RANGE_S, Ess, NnoEntry, read_either
from smartfeeds.formats.items import Document, ImportedItem
from smartfeeds.formats.nno import Candidate, Wanted, candidate_of, match, raw_titles, to_download, wanted_of
from smartfeeds.net.fetch import FetchError, HttpClient, Response

ACCEPT_ESS: Final = f"{ESS_TYPE}, {NNO_TYPE}, text/html;q=0.5, */*;q=0.1"
ACCEPT_FEED: Final = "application/atom+xml, application/rss+xml, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})


class EssSource:
    """An address that gives an ESS or NNO file, or a web page that links to one (ESS-024); `files` are the last."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: tuple[Ess, ...] = ()
        self._target = url
        self._validators = NO_VALIDATORS

    async def refresh(self, fetch: HttpClient, keep: int, latest_s: int = TIME_RANGE_S[1]) -> None:
        """Fetches the file if it has changed; of each feed the `keep` newest entries up to a time are kept.

        Raises FetchError or FeedError, and `files` stay as they are.
        """
        try:
            response = await self._get(fetch)
            if not response.not_modified and _is_page(response):
                self._target, self._validators = _linked(response), NO_VALIDATORS
                response = await self._get(fetch)
            if response.not_modified:
                return
            self.files = tuple(_cut(file, keep, latest_s) for file in read_either(response.body))
            self._validators = response.validators
        except (FetchError, FeedError):
            self._target, self._validators = self.url, NO_VALIDATORS  # the page may link to another address by now
            raise

    async def _get(self, fetch: HttpClient) -> Response:
        return await fetch.get(self._target, known=self._validators, accept=ACCEPT_ESS, max_bytes=MAX_BYTES)


def _cut(file: Ess, keep: int, latest_s: int) -> Ess:
    return replace(file, entries=tuple(stamp for stamp in file.entries if stamp.time_s <= latest_s)[:keep])


def _is_page(response: Response) -> bool:
    return response.content_type in _PAGES or response.body.lstrip()[:1] == b"<"


def _linked(page: Response) -> str:
    """The ESS file that a page links to, else the NNO file. Raises FeedError."""
    links = links_of(page.body, page.url)
    for kind in (LinkType.ESS, LinkType.NNO):
        for link in links:
            if link.type is kind:
                return link.href
    raise FeedError(Condition.INVALID_PAYLOAD, "this is a web page, and it links to no ESS file")


@dataclass(frozen=True, slots=True)
class Found:
    """A full entry: the feed it is from, and the item. `updated` marks one that has another time now (ESS-021)."""

    feed_url: str
    item: ImportedItem
    feed_id: str = ""
    feed_title: str = ""
    updated: bool = False


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull gave.

    `results` are the entries of the outline in its order, each with what it means, None where that was not found;
    `fresh` are those that are new or have changed, `downloads` how many feeds were asked, `failed` the feeds that gave
    nothing, with the reason.
    """

    results: tuple[tuple[NnoEntry, Found | None], ...]
    fresh: tuple[Found, ...] = ()
    downloads: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A feed as it was last: what a conditional request needs, and what was not in it."""

    validators: Validators
    missing: frozenset[Wanted]


class Puller:
    """Finds the full entries of one outline after the other; `known` are the results of the last (ESS-019)."""

    def __init__(self, fetch: HttpClient, known: Mapping[Wanted, Found] | None = None) -> None:
        self.known: dict[Wanted, Found] = dict(known or {})
        self._fetch = fetch
        self._asked: dict[str, _Asked] = {}

    async def pull(self, entries: Iterable[NnoEntry], skip: Collection[str] = ()) -> Pulled:
        """The full entries of an outline. Feeds in `skip` are not asked this time."""
        wanted = wanted_of(entries)
        of_feed: dict[str, list[Wanted]] = {}
        for one in wanted:
            of_feed.setdefault(one.entry.feed_url, []).append(one)
        lacking = {url: these for url, these in to_download(wanted, self.known).items() if url not in skip}
        failed: dict[str, str] = {}
        fresh: list[Found] = []
        asked = (self._feed(url, of_feed[url], these, failed) for url, these in lacking.items())
        for found in await asyncio.gather(*asked):
            fresh += self._note(found)
        self.known = {one: self.known[one] for one in wanted if one in self.known}
        self._asked = {url: asked for url, asked in self._asked.items() if url in of_feed}
        return Pulled(tuple((one.entry, self.known.get(one)) for one in wanted), tuple(fresh), len(lacking), failed)

    def _note(self, found: Mapping[Wanted, Found]) -> list[Found]:
        """Remembers what a feed gave; that of it which is new or has changed. What was shown before under another
        time is marked as updated."""
        times_s = {one.item.id: wanted.entry.time_s for wanted, one in self._known_of(found)}
        fresh = []
        for wanted, one in found.items():
            former = self.known.get(wanted)
            moved = times_s.get(one.item.id, wanted.entry.time_s) != wanted.entry.time_s
            self.known[wanted] = replace(one, updated=one.updated or moved or (former is not None and former.updated))
            if former is None or former.item != one.item:
                fresh.append(self.known[wanted])
        return fresh

    def _known_of(self, found: Mapping[Wanted, Found]) -> list[tuple[Wanted, Found]]:
        urls = {one.feed_url for one in found.values()}
        return [(wanted, one) for wanted, one in self.known.items() if one.feed_url in urls]

    async def _feed(
        self, url: str, wanted: Sequence[Wanted], lacking: Sequence[Wanted], failed: dict[str, str]
    ) -> dict[Wanted, Found]:
        """What a feed has of these entries; the ones already known are looked for too, so that nothing takes theirs."""
        last = self._asked.get(url)
        seen = last if last is not None and last.missing.issuperset(lacking) else _Asked(NO_VALIDATORS, frozenset())
        try:
            response = await self._fetch.get(url, known=seen.validators, accept=ACCEPT_FEED)
            if response.not_modified:
                return {}
            # Reading a large feed takes long enough to hold up everything else.
            found = await asyncio.to_thread(_found, url, response, wanted)
        except FetchError as error:
            failed[url] = error.reason
            return {}
        except FeedError as error:
            failed[url] = error.text or error.condition.value
            return {}
        missing = frozenset(one for one in lacking if one not in found)
        self._asked[url] = _Asked(response.validators, missing)
        return found


def _found(url: str, response: Response, wanted: Sequence[Wanted]) -> dict[Wanted, Found]:
    """The items of a feed that the entries mean. Raises FeedError."""
    body = document_bytes(response.body, response.charset)
    document = read_document(body, response.url)
    items = [item for item in document.items if not item.deleted]
    matches = match(wanted, _candidates(body, items))
    return {
        one: _result(url, document, items[found.place], updated=found.updated)
        for one, found in zip(wanted, matches, strict=True)
        if found is not None
    }


def _candidates(body: bytes, items: Sequence[ImportedItem]) -> list[Candidate]:
    titles = raw_titles(body)
    return [candidate_of(item, titles) for item in items]


def _result(url: str, document: Document, item: ImportedItem, *, updated: bool) -> Found:
    return Found(url, replace(item, warnings=()), document.id, document.title, updated)
