"""All feeds: in pages as JSON or HTML, and in one document as OPML or NNO (SF-008, ESS-002, ESS-023, ESS-025).

A list has the feeds that the caller may know of: an anonymous caller sees the feeds that are listed to everybody, a
token for all feeds sees those of its JID. OPML and NNO have at most LISTED feeds. They are written one at a time, in a
thread, because 10,000 feeds would block the event loop, and are cached for a few seconds.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import MappingProxyType

from smartfeeds.core.jid import ANONYMOUS, Jid
from smartfeeds.core.model import Item, Node
from smartfeeds.core.node_place import NODE_PLACE, parse_node_place
from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.core.token import ALL_FEEDS
from smartfeeds.core.urls import FEEDS, feed_path, list_path, xmpp_uri
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.documents.ess import NnoEntry, write_nno
from smartfeeds.features.polling.lists import GetListedSources, ListedSources
from smartfeeds.features.polling.source import Source
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.formats.opml import ListedFeed, write_list
from smartfeeds.formats.writers import nno_entry
from smartfeeds.http import negotiation as n
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.encode import is_feed, items_of
from smartfeeds.http.negotiation import Representation
from smartfeeds.http.openapi_schemas import TEXT, Schema, ref
from smartfeeds.http.operations import IF_NONE_MATCH, WHOLE_NUMBER, Content, Operation, Parameter
from smartfeeds.http.page_writer import ListPage, PageWriter
from smartfeeds.http.queries import page_path, read_parameters
from smartfeeds.http.replies import Reply, access_headers
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.discovery import ChangedNodes, GetChangedNodes
from smartfeeds.service.requests import FeedPage, GetNodes, NodeList, PullFeed

LISTED = 10_000  # feeds in an OPML or NNO document
CHUNK = 500  # feeds to read at once
# Entries of an NNO document by default, and at most. Only these two sizes are made; `max` takes a part of one of them.
NEWEST = 100
NEWEST_MOST = 1_000
READ_AT_ONCE = 16  # feeds to read concurrently
FIRST_READ = 8  # newest items of a feed that are read at first; each further read fetches twice as many
READS_OF_FEED = 8  # such reads of one feed: its newest items may all be deleted
CACHE_BYTES = 8_388_608
ENTRY_BYTES = 256  # memory of an NNO entry in addition to its address
CACHE_US = 10 * US_PER_S
CHANGED = "changed"  # the value of `sort`
YES = "true"  # the value of `sources`
LEFT_OUT = "Smartfeeds-Left-Out"  # header: the number of feeds that are not in the document
_SUFFIXES = {list_path(suffix): form for suffix, form in n.by_suffix(n.OF_LIST).items()}
_PLACE: Schema = {"type": "string"}
_PAGE = (
    Parameter("max", WHOLE_NUMBER, "largest number of feeds; for NNO, of entries"),
    Parameter("after", _PLACE, "feeds after the feed of this name; empty for the first ones"),
    Parameter("before", _PLACE, "feeds before the feed of this name; empty for the last ones"),
)
_SORT = (
    Parameter("sort", {"enum": [CHANGED]}, "by last change, the newest first; after and before have no effect then"),
    Parameter("place", TEXT | {"pattern": f"^{NODE_PLACE}$"}, "with sort, feeds after this place; next has it"),
)
_SOURCES = (
    Parameter(
        "sources", {"enum": [YES]}, "for OPML: the feeds of other servers that fill the feeds, not the feeds themselves"
    ),
)
# OPML lists all feeds and has no pages; NNO has the newest entries.
PARAMETERS: Mapping[Representation, tuple[Parameter, ...]] = {
    n.JSON: (*_PAGE, *_SORT),
    n.HTML: (*_PAGE, *_SORT),
    n.NNO: _PAGE[:1],
    n.OPML: _SOURCES,
}
_CONTENT: Content = {form.bare_type: {"type": "string"} for form in n.OF_LIST} | {n.JSON.bare_type: ref("List")}

_NAMES = frozenset(parameter.name for parameters in PARAMETERS.values() for parameter in parameters)

LIST = Operation(
    "list",
    "The feeds that the caller may see, in the accepted media type; OPML takes those of /feeds.opml, NNO takes max",
    {200: _CONTENT},
    errors=(406,),
    parameters=(*_PAGE, *_SORT, IF_NONE_MATCH),
    cors=True,
)
LIST_REDIRECT = Operation("listRedirect", "Redirect to the list of feeds", {308: {}}, cors=True)


def list_document(form: Representation) -> Operation:
    """The list in one form, under an address of its own."""
    media_type = form.bare_type
    return Operation(
        f"list{form.suffix.title()}",
        f"The feeds that the caller may see, as {media_type}",
        {200: {media_type: _CONTENT[media_type]}},
        parameters=(*PARAMETERS[form], IF_NONE_MATCH),
        cors=True,
    )


@dataclass(frozen=True, slots=True)
class _WholeList:
    """A cached list of all feeds: the response, or for NNO up to `count` entries with paths that have no site_url."""

    made_us: int
    left_out: int
    reply: Reply | None = None
    entries: Sequence[NnoEntry] = ()
    count: int = 0


class Lists:
    """Handles GET and HEAD of lists. `service` is the address of the service, `pages` writes the pages for browsers,
    `now_us` returns microseconds."""

    def __init__(self, handle: Handle, service: str, pages: PageWriter, now_us: Callable[[], int]) -> None:
        self._handle = handle
        self._service = service
        self._pages = pages
        self._forms = pages.offered(n.OF_LIST)
        self._now_us = now_us
        self._making = asyncio.Lock()
        self._cache: ByteCache[tuple[object, ...], _WholeList] = ByteCache(CACHE_BYTES)

    async def get(self, call: HttpCall) -> Reply:
        """A list. Raises FeedError."""
        form = _SUFFIXES.get(call.path) or n.negotiate(call.header("Accept"), self._forms, "the list of feeds")
        query = _query(call.query, form)
        actor = reader_of(call)
        zipped = n.takes_gzip(call.header("Accept-Encoding"))
        if form in (n.JSON, n.HTML):
            body = await self._page(call, actor, query, form)
            page_headers = self._pages.headers if form is n.HTML else {}
            reply = call.zipped(list_reply(call, form, body, _SUFFIXES, page_headers))
        elif form is n.NNO:
            reply = await self._nno(call, actor, query, zipped=zipped)
        else:
            reply = await self._outline(call, actor, zipped=zipped, of_sources="sources" in query)
        return unless_known(call.header("If-None-Match"), reply)

    async def _page(self, call: HttpCall, actor: Jid, query: Mapping[str, str], form: Representation) -> bytes:
        page = await (self._by_change(actor, query) if "sort" in query else self._by_name(actor, query))
        if form is n.HTML:
            return await self._pages.feed_list(call, actor, page)
        site_url = call.site_url
        head: JsonObject = {"count": len(page.nodes), "totalItems": page.total, "url": f"{site_url}{FEEDS}"}
        if page.next_path:
            head["next"] = f"{site_url}{page.next_path}"
        return dump_json({**head, "items": [_listed(self._service, site_url, node) for node in page.nodes]})

    async def _by_name(self, actor: Jid, query: Mapping[str, str]) -> ListPage:
        nodes, total = await self._nodes(
            actor, ResultSetRequest(query.get("max"), query.get("after"), query.get("before"))
        )
        next_path = previous_path = ""
        if nodes and (total > len(nodes) or not query.keys() <= {"max"}):
            first, last = nodes[0].name, nodes[-1].name
            following, _ = await self._nodes(actor, ResultSetRequest("1", last))
            preceding, _ = await self._nodes(actor, ResultSetRequest("1", None, first))
            next_path = page_path(FEEDS, query, after=last) if following else ""
            previous_path = page_path(FEEDS, query, before=first) if preceding else ""
        return ListPage(nodes, total, next_path, previous_path)

    async def _by_change(self, actor: Jid, query: Mapping[str, str]) -> ListPage:
        after = parse_node_place(query["place"]) if "place" in query else None
        answer = await ask(self._handle, GetChangedNodes(actor, self._service, query.get("max"), after), ChangedNodes)
        next_path = page_path(FEEDS, query, place=str(answer.next), sort=CHANGED) if answer.next is not None else ""
        # A feed that changes leaves its page, so there is no page before another: the way back is the beginning.
        previous_path = "" if after is None else page_path(FEEDS, query, sort=CHANGED)
        return ListPage(answer.nodes, answer.total, next_path, previous_path, by_change=True)

    async def _outline(self, call: HttpCall, actor: Jid, *, zipped: bool, of_sources: bool) -> Reply:
        """The feeds, or their sources, as OPML."""
        # The response says who may store and read it, so equal lists for other credentials are other responses.
        key = (n.OPML, of_sources, actor, call.site_url, zipped, call.anonymous, call.bearer)
        async with self._making:
            whole = self._recent(key)
            if whole is None:
                nodes, total = await self._all(actor)
                if of_sources:
                    make = partial(_sources_opml, self._service, await self._sources(actor, nodes))
                else:
                    make = partial(_opml, self._service, call.site_url, nodes, total)
                left_out = total - len(nodes)
                reply = await asyncio.to_thread(_document, call, n.OPML, make, left_out, zipped=zipped)
                whole = _WholeList(self._now_us(), left_out, reply)
                self._cache.put(key, whole, reply.size_bytes)
            assert whole.reply is not None
            return whole.reply

    async def _sources(self, actor: Jid, nodes: Sequence[Node]) -> list[Source]:
        """The sources of the feeds. Read in chunks, so that other requests can run."""
        sources: list[Source] = []
        for start in range(0, len(nodes), CHUNK):
            request = GetListedSources(actor, self._service, tuple(nodes[start : start + CHUNK]))
            sources += (await ask(self._handle, request, ListedSources)).sources
        return sources

    async def _nno(self, call: HttpCall, actor: Jid, query: Mapping[str, str], *, zipped: bool) -> Reply:
        """The newest entries as NNO. They are cached for all origins, because their paths have none."""
        count = min(parse_number(query.get("max", str(NEWEST)), "max"), NEWEST_MOST)
        key = (n.NNO, actor)
        async with self._making:
            whole = self._recent(key)
            if whole is None or whole.count < count:
                nodes, total = await self._all(actor)
                most = NEWEST if count <= NEWEST else NEWEST_MOST
                entries = await self._newest(actor, [node for node in nodes if is_feed(node)], most)
                whole = _WholeList(self._now_us(), total - len(nodes), entries=entries, count=most)
                self._cache.put(key, whole, sum(len(entry.feed_url) + ENTRY_BYTES for entry in entries))
        make = partial(_nno_document, call.site_url, whole.entries[:count], whole.made_us)
        return await asyncio.to_thread(_document, call, n.NNO, make, whole.left_out, zipped=zipped)

    def _recent(self, key: tuple[object, ...]) -> _WholeList | None:
        """A cached list that is not too old. Older lists of all callers are removed."""
        now_us = self._now_us()
        self._cache.drop_where(lambda whole: not 0 <= now_us - whole.made_us < CACHE_US)
        return self._cache.get(key)

    async def _nodes(self, actor: Jid, page: ResultSetRequest) -> tuple[tuple[Node, ...], int]:
        answer = await ask(self._handle, GetNodes(actor, self._service, page), NodeList)
        total = answer.result_set.count if answer.result_set is not None else None
        return answer.nodes, len(answer.nodes) if total is None else total

    async def _all(self, actor: Jid) -> tuple[list[Node], int]:
        """Up to LISTED feeds by name, and the number of all. Read in chunks, so that other requests can run."""
        all_nodes: list[Node] = []
        nodes, total = await self._nodes(actor, ResultSetRequest(str(CHUNK)))
        while nodes and len(all_nodes) < LISTED:
            all_nodes += nodes
            if len(all_nodes) >= total:
                break
            nodes, _ = await self._nodes(actor, ResultSetRequest(str(CHUNK), all_nodes[-1].name))
        return all_nodes[:LISTED], max(total, len(all_nodes))

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
            assert answer.page.result_set is not None
            before, step = answer.page.result_set.first or "", 2 * step
        return entries[:count]


async def redirect(call: HttpCall) -> Reply:
    """The address of the list without its slash redirects to the address with it."""
    return call.moved_to(FEEDS)


def _query(raw: str, form: Representation) -> dict[str, str]:
    """The parameters. Raises FeedError(BAD_REQUEST)."""
    query = read_parameters(raw, [parameter.name for parameter in PARAMETERS[form]], _NAMES)
    if query.get("sort", CHANGED) != CHANGED:
        raise FeedError(
            Condition.BAD_REQUEST, f"sort must be {CHANGED} or missing; feeds are sorted by name without it"
        )
    if query.get("sources", YES) != YES:
        raise FeedError(Condition.BAD_REQUEST, f"sources must be {YES} or missing")
    if "max" in query:
        parse_number(query["max"], "max")
    if "place" in query:
        parse_node_place(query["place"])
    return query


def reader_of(call: HttpCall) -> Jid:
    """The actor of a request for several feeds. A token for one feed does not say what its JID may see elsewhere."""
    return call.actor if call.token is not None and call.token.feed == ALL_FEEDS else ANONYMOUS


def list_reply(
    call: HttpCall,
    form: Representation,
    body: bytes,
    suffixes: Mapping[str, Representation],
    page_headers: Mapping[str, str] = MappingProxyType({}),
) -> Reply:
    """The response with a list. `suffixes` are the paths of its other forms, `page_headers` the headers of a page."""
    links = [f'<{call.site_url}{path}>; rel="alternate"; type="{kind.bare_type}"' for path, kind in suffixes.items()]
    headers = {
        "ETag": f'W/"{hashlib.sha256(body).hexdigest()[:24]}"',
        "Vary": "Accept, Accept-Encoding, Authorization",
        **({"Link": ", ".join(links)} if links else {}),
        **access_headers(public=call.anonymous, bearer=call.bearer, expose=f"ETag, Link, {LEFT_OUT}"),
        **page_headers,
    }
    return Reply(body, form.media_type, headers=headers)


def _document(call: HttpCall, form: Representation, make: Callable[[], bytes], left_out: int, *, zipped: bool) -> Reply:
    """The response with an OPML or NNO document. Runs in a thread."""
    reply = list_reply(call, form, make(), _SUFFIXES).with_headers(**{LEFT_OUT: str(left_out)})
    return reply.zipped() if zipped else reply


def _listed(service: str, site_url: str, node: Node) -> JsonObject:
    links = [
        {"rel": "alternate", "type": form.bare_type, "href": f"{site_url}{feed_path(node.name, form.suffix)}"}
        for form in n.LINKED
    ]
    links.append({"rel": "alternate", "href": xmpp_uri(service, node.name)})
    summary = node.options.description
    return {
        "id": node.name,
        "objectType": "collection",
        "title": title_of(node),
        **({"summary": summary} if summary else {}),
        "url": f"{site_url}{feed_path(node.name)}",
        "published": format_datetime(node.created_us),
        "updated": format_datetime(max(node.last_modified_us, node.created_us)),
        "links": links,
    }


def _opml(service: str, site_url: str, nodes: Sequence[Node], total: int) -> bytes:
    title = f"Feeds of {service}"
    if total > len(nodes):
        title += f" (the first {len(nodes)} of {total})"
    feeds = (
        ListedFeed(
            title_of(node),
            f"{site_url}{feed_path(node.name, n.RSS.suffix)}",
            f"{site_url}{feed_path(node.name)}",
            xmpp_uri(service, node.name),
            node.options.description,
            created_us=node.created_us,
        )
        for node in nodes
    )
    return b"".join(write_list(title, feeds))


def _sources_opml(service: str, sources: Sequence[Source]) -> bytes:
    feeds = (ListedFeed(source.progress.title or source.url, source.url) for source in sources)
    return b"".join(write_list(f"Sources of {service}", feeds))


def _nno_document(site_url: str, entries: Sequence[NnoEntry], now_us: int) -> bytes:
    return write_nno((entry._replace(feed_url=f"{site_url}{entry.feed_url}") for entry in entries), now_us).data


def _entry(node: Node, item: Item) -> NnoEntry:
    """An entry of an NNO document, with the path that the ESS file of the feed has too."""
    return nno_entry(feed_path(node.name, n.RSS.suffix), read_entry(item))
