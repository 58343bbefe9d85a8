"""NNO over HTTP: the newest entries of a feed, and of all feeds (ESS-002, ESS-017, ESS-023, ESS-025).

A node of an `[[nno]]` section has the stored result of the section. The list over all feeds is made for each caller,
because callers may read different feeds, and is cached for some seconds.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, Node
from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.urls import feed_path
from smartfeeds.errors import FeedError
from smartfeeds.features.documents.ess import NNO_TYPE, NnoEntry, nno_entry, read_nno, write_nno
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.links import is_absolute
from smartfeeds.formats.representation import RSS, Representation
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.encode import PageAddress, is_feed, items_of
from smartfeeds.http.feed_list import NAMES, all_nodes, document_reply, list_document, reader_of
from smartfeeds.http.forms import FeedForm
from smartfeeds.http.negotiation import takes_gzip
from smartfeeds.http.openapi_schemas import Schema
from smartfeeds.http.operations import WHOLE_NUMBER, Parameter
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.service.answers import ask
from smartfeeds.service.requests import FeedPage, PullFeed

NNO = Representation("nno", NNO_TYPE, (NNO_TYPE,))
# Entries of an NNO document by default, and at most. Only these two sizes are made; `max` takes a part of one of them.
NEWEST = 100
NEWEST_MOST = 1_000
READ_AT_ONCE = 16  # feeds to read concurrently; after each such batch the oldest result decides whether to go on
FIRST_READ = 8  # newest items of a feed that are read at first; each further read fetches twice as many
READS_OF_FEED = 8  # such reads of one feed: its newest items may all be deleted
CACHE_BYTES = 4_194_304
ENTRY_BYTES = 256  # memory of an entry in addition to its address
CACHE_US = 10 * US_PER_S  # the age up to which a result is used again: making one may read every feed
LIST = list_document(NNO, (Parameter("max", WHOLE_NUMBER, "largest number of feeds; for NNO, of entries"),))


def write_nno_page(answer: FeedPage, place: PageAddress, now_us: int) -> bytes:
    """The entries with the feeds that they come from (ESS-017, ESS-023). For a node that an `[[nno]]` section fills it
    is the result of the section; `max` cuts it.
    """
    if answer.outline:
        result = read_nno(answer.outline)
        count = None if place.query.max is None else parse_number(place.query.max, "max")
        return write_nno(result.entries[:count], result.build_s * US_PER_S).data
    own_url = place.document_url(RSS.suffix)
    return write_nno((_entry_of(item, own_url) for item in items_of(answer) if not item.deleted), now_us).data


def _entry_of(item: Item, own_url: str) -> NnoEntry:
    entry = read_entry(item)
    source = entry.source.href if entry.source is not None and is_absolute(entry.source.href) else own_url
    return nno_entry(source, entry)


@dataclass(frozen=True, slots=True)
class _NewestEntries:
    """The newest entries of all feeds, up to `count`, with paths that have no site_url."""

    made_us: int
    left_out: int
    entries: Sequence[NnoEntry]
    count: int


class NnoLists:
    """Handles GET and HEAD of the list of feeds as NNO."""

    def __init__(self, tools: SiteTools) -> None:
        self._handle = tools.handle
        self._service = tools.domain
        self._now_us = tools.now_us
        self._paths = tools.forms.list_paths
        self._making = asyncio.Lock()
        self._cache: ByteCache[Jid, _NewestEntries] = ByteCache(CACHE_BYTES)

    async def get(self, call: HttpCall) -> Reply:
        """The newest entries. They are cached for all origins, because their paths have none. Raises FeedError."""
        query = read_parameters(call.query, ["max"], NAMES)
        actor = reader_of(call)
        zipped = takes_gzip(call.header("Accept-Encoding"))
        count = min(parse_number(query.get("max", str(NEWEST)), "max"), NEWEST_MOST)
        # One at a time: it may read every feed, and who waits often finds the result in the cache.
        async with self._making:
            newest = self._recent(actor)
            if newest is None or newest.count < count:
                nodes, total = await all_nodes(self._handle, actor, self._service)
                most = NEWEST if count <= NEWEST else NEWEST_MOST
                entries = await self._newest(actor, [node for node in nodes if is_feed(node)], most)
                newest = _NewestEntries(self._now_us(), total - len(nodes), entries, most)
                self._cache.put(actor, newest, sum(len(entry.feed_url) + ENTRY_BYTES for entry in entries))
        make = partial(_document, call.site_url, newest.entries[:count], newest.made_us)
        reply = await asyncio.to_thread(document_reply, call, NNO, make, newest.left_out, self._paths, zipped=zipped)
        return unless_known(call.header("If-None-Match"), reply)

    def _recent(self, actor: Jid) -> _NewestEntries | None:
        """Cached entries that are not too old. Older ones of all callers are removed."""
        now_us = self._now_us()
        self._cache.drop_where(lambda newest: not 0 <= now_us - newest.made_us < CACHE_US)
        return self._cache.get(actor)

    async def _newest(self, actor: Jid, feeds: list[Node], count: int) -> list[NnoEntry]:
        """The newest `count` entries of all feeds, the newest first. Of entries of one time, those of the feed that was
        read first stay (ESS-014).

        No entry is newer than its creation, so a feed is read as far as it has entries that were created after the last
        of the result, or not at all.
        """
        feeds = sorted((node for node in feeds if node.live), key=lambda node: -node.last_created_us)
        newest: list[NnoEntry] = []
        for start in range(0, len(feeds) if count else 0, READ_AT_ONCE):
            batch = feeds[start : start + READ_AT_ONCE]
            floor_us = newest[-1].time_s * US_PER_S if len(newest) == count else None
            if floor_us is not None and batch[0].last_created_us <= floor_us:
                break
            entries = await asyncio.gather(*(self._newest_of(actor, node, count, floor_us) for node in batch))
            newest += chain.from_iterable(entries)
            newest.sort(key=lambda entry: -entry.time_s)
            del newest[count:]
        return newest

    async def _newest_of(self, actor: Jid, node: Node, count: int, floor_us: int | None) -> list[NnoEntry]:
        """The `count` entries of a feed that were created last, without those that were created at `floor_us` or
        before. An empty list if the caller may not read the feed.
        """
        entries: list[NnoEntry] = []
        before, step = "", FIRST_READ
        for _ in range(READS_OF_FEED):
            page = ResultSetRequest(str(min(step, count)), None, before)
            request = PullFeed(actor, self._service, node.name, "order=created", page=page, both_sides=True)
            try:
                answer = await ask(self._handle, request, FeedPage)
            except FeedError:
                return []
            items = [item for item in items_of(answer)[::-1] if floor_us is None or item.created_us > floor_us]
            entries += [_entry(node, item) for item in items if not item.deleted]
            if len(entries) >= count or not answer.older or len(items) < len(items_of(answer)):
                break
            assert answer.page is not None
            assert answer.page.result_set is not None  # the request has one
            before, step = answer.page.result_set.first or "", 2 * step
        return entries[:count]


def _document(site_url: str, entries: Sequence[NnoEntry], now_us: int) -> bytes:
    return write_nno((entry._replace(feed_url=f"{site_url}{entry.feed_url}") for entry in entries), now_us).data


def _entry(node: Node, item: Item) -> NnoEntry:
    """An entry of an NNO document, with the path that the ESS file of the feed has too."""
    return nno_entry(feed_path(node.name, RSS.suffix), read_entry(item))


_SCHEMAS: Mapping[str, Schema] = {
    "JsonFeed": {
        "type": "object",
        "required": ["version", "title", "items"],
        "properties": {
            "version": {"const": "https://jsonfeed.org/version/1.1"},
            "title": {"type": "string"},
            "items": {"type": "array", "items": {"type": "object", "required": ["id"]}},
        },
        "description": "JSON Feed 1.1.",
    },
}
HTTP = HttpSide(
    (Route("GET", "/feeds.nno", "feeds", LIST, lambda h: h.get),),
    NnoLists,
    schemas=_SCHEMAS,
    forms=(FeedForm(NNO, write_nno_page, stored=True),),
    lists={NNO: lambda h: h.get},
)
