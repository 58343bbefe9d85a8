"""Lists all feeds: in pages as JSON or HTML, and in one document as OPML (SF-008).

A list has the feeds that the caller may know of: an anonymous caller sees the feeds that are listed to everybody, a
token for all feeds sees those of its JID. OPML has at most LISTED feeds. It is written one at a time, in a thread,
because 10,000 feeds would block the event loop, and is cached for a few seconds. Features bring other forms.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from smartfeeds.core.jid import ANONYMOUS, Jid
from smartfeeds.core.model import Node
from smartfeeds.core.node_place import NODE_PLACE, parse_node_place
from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.core.token import ALL_FEEDS
from smartfeeds.core.urls import FEEDS, feed_path, xmpp_uri
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.formats.opml import ListedFeed, write_list
from smartfeeds.formats.representation import Representation
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.forms import FeedForms, content_of
from smartfeeds.http.negotiation import HTML, JSON, OPML, RSS, negotiate, takes_gzip
from smartfeeds.http.openapi_schemas import TEXT, Schema, ref
from smartfeeds.http.operations import IF_NONE_MATCH, WHOLE_NUMBER, Operation, Parameter
from smartfeeds.http.page_writer import ListPage, PageWriter
from smartfeeds.http.queries import page_path, read_parameters
from smartfeeds.http.replies import Reply, access_headers
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.context import Origin
from smartfeeds.service.discovery import ChangedNodes, GetChangedNodes
from smartfeeds.service.origins import GetListedSources, ListedSources
from smartfeeds.service.requests import GetNodes, NodeList

LISTED = 10_000  # feeds in a document
CHUNK = 500  # feeds to read at once
CACHE_BYTES = 4_194_304
CACHE_US = 10 * US_PER_S  # a new feed is missing in a list for as long
CHANGED = "changed"  # the value of `sort`
YES = "true"  # the value of `sources`
LEFT_OUT = "Smartfeeds-Left-Out"  # header: the number of feeds that are not in the document
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
    JSON: (*_PAGE, *_SORT),
    HTML: (*_PAGE, *_SORT),
    OPML: _SOURCES,
}
NAMES = frozenset(parameter.name for parameters in PARAMETERS.values() for parameter in parameters)

LIST = Operation(
    "list",
    "The feeds that the caller may see, in the accepted media type; OPML takes those of /feeds.opml, NNO takes max",
    {200: {JSON.bare_type: ref("List")}},
    errors=(406,),
    parameters=(*_PAGE, *_SORT, IF_NONE_MATCH),
    cors=True,
    forms=lambda forms: content_of(forms.of_list),
)
LIST_REDIRECT = Operation("listRedirect", "Redirect to the list of feeds", {308: {}}, cors=True)


def list_document(form: Representation, parameters: tuple[Parameter, ...]) -> Operation:
    """The list in one form, under an address of its own."""
    media_type = form.bare_type
    return Operation(
        f"list{form.suffix.title()}",
        f"The feeds that the caller may see, as {media_type}",
        {200: {media_type: ref("List") if form is JSON else {"type": "string"}}},
        parameters=(*parameters, IF_NONE_MATCH),
        cors=True,
    )


JSON_LIST = list_document(JSON, PARAMETERS[JSON])
OPML_LIST = list_document(OPML, PARAMETERS[OPML])


@dataclass(frozen=True, slots=True)
class _WholeList:
    """A cached list of all feeds."""

    made_us: int
    reply: Reply


# Handles a list in one form.
GetList = Callable[[HttpCall], Awaitable[Reply]]


class Lists:
    """Handles GET and HEAD of lists. `service` is the address of the service, `pages` writes the pages for browsers,
    `now_us` returns microseconds. `forms` are the representations, and `others` handles those of features."""

    def __init__(
        self,
        handle: Handle,
        service: str,
        pages: PageWriter,
        now_us: Callable[[], int],
        forms: FeedForms,
        others: Mapping[Representation, GetList],
    ) -> None:
        self._handle = handle
        self._service = service
        self._pages = pages
        self._forms = pages.offered(forms.of_list)
        self._linked = forms.linked
        self._paths = forms.list_paths
        self._others = others
        self._now_us = now_us
        self._making = asyncio.Lock()  # a request that waits for it finds the list of the one before in the cache
        self._cache: ByteCache[tuple[object, ...], _WholeList] = ByteCache(CACHE_BYTES)

    async def get(self, call: HttpCall) -> Reply:
        """A list. Raises FeedError."""
        form = self._paths.get(call.path) or negotiate(call.header("Accept"), self._forms, "the list of feeds")
        if form in self._others:
            return await self._others[form](call)
        query = _query(call.query, form)
        actor = reader_of(call)
        zipped = takes_gzip(call.header("Accept-Encoding"))
        if form in (JSON, HTML):
            body = await self._page(call, actor, query, form)
            page_headers = self._pages.headers if form is HTML else {}
            reply = call.zipped(list_reply(call, form, body, self._paths, page_headers))
        else:
            reply = await self._outline(call, actor, zipped=zipped, of_sources="sources" in query)
        return unless_known(call.header("If-None-Match"), reply)

    async def _page(self, call: HttpCall, actor: Jid, query: Mapping[str, str], form: Representation) -> bytes:
        page = await (self._by_change(actor, query) if "sort" in query else self._by_name(actor, query))
        if form is HTML:
            return await self._pages.feed_list(call, actor, page)
        site_url = call.site_url
        head: JsonObject = {"count": len(page.nodes), "totalItems": page.total, "url": f"{site_url}{FEEDS}"}
        if page.next_path:
            head["next"] = f"{site_url}{page.next_path}"
        items = [_listed(self._service, site_url, node, self._linked) for node in page.nodes]
        return dump_json({**head, "items": items})

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
        key = (OPML, of_sources, actor, call.site_url, zipped, call.anonymous, call.bearer)
        async with self._making:
            whole = self._recent(key)
            if whole is None:
                nodes, total = await self._all(actor)
                if of_sources:
                    make = partial(_sources_opml, self._service, await self._sources(actor, nodes))
                else:
                    make = partial(_opml, self._service, call.site_url, nodes, total)
                left_out = total - len(nodes)
                reply = await asyncio.to_thread(document_reply, call, OPML, make, left_out, self._paths, zipped=zipped)
                whole = _WholeList(self._now_us(), reply)
                self._cache.put(key, whole, reply.size_bytes)
            return whole.reply

    async def _sources(self, actor: Jid, nodes: Sequence[Node]) -> list[Origin]:
        """The sources of the feeds. Read in chunks, so that other requests can run."""
        sources: list[Origin] = []
        for start in range(0, len(nodes), CHUNK):
            request = GetListedSources(actor, self._service, tuple(nodes[start : start + CHUNK]))
            sources += (await ask(self._handle, request, ListedSources)).sources
        return sources

    def _recent(self, key: tuple[object, ...]) -> _WholeList | None:
        """A cached list that is not too old. Older lists of all callers are removed."""
        now_us = self._now_us()
        self._cache.drop_where(lambda whole: not 0 <= now_us - whole.made_us < CACHE_US)
        return self._cache.get(key)

    async def _all(self, actor: Jid) -> tuple[list[Node], int]:
        return await all_nodes(self._handle, actor, self._service)

    async def _nodes(self, actor: Jid, page: ResultSetRequest) -> tuple[tuple[Node, ...], int]:
        return await _nodes(self._handle, actor, self._service, page)


async def _nodes(handle: Handle, actor: Jid, service: str, page: ResultSetRequest) -> tuple[tuple[Node, ...], int]:
    answer = await ask(handle, GetNodes(actor, service, page), NodeList)
    total = answer.result_set.count if answer.result_set is not None else None
    return answer.nodes, len(answer.nodes) if total is None else total


async def all_nodes(handle: Handle, actor: Jid, service: str) -> tuple[list[Node], int]:
    """Up to LISTED feeds by name, and the number of all. Read in chunks, so that other requests can run."""
    every: list[Node] = []
    nodes, total = await _nodes(handle, actor, service, ResultSetRequest(str(CHUNK)))
    while nodes and len(every) < LISTED:
        every += nodes
        if len(every) >= total:
            break
        nodes, _ = await _nodes(handle, actor, service, ResultSetRequest(str(CHUNK), every[-1].name))
    return every[:LISTED], max(total, len(every))


async def redirect(call: HttpCall) -> Reply:
    """The address of the list without its slash redirects to the address with it."""
    return call.moved_to(FEEDS)


def _query(raw: str, form: Representation) -> dict[str, str]:
    """The parameters. Raises FeedError(BAD_REQUEST)."""
    query = read_parameters(raw, [parameter.name for parameter in PARAMETERS[form]], NAMES)
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


def document_reply(
    call: HttpCall,
    form: Representation,
    make: Callable[[], bytes],
    left_out: int,
    paths: Mapping[str, Representation],
    *,
    zipped: bool,
) -> Reply:
    """The response with a document of all feeds. Runs in a thread. `paths` are those of its other forms."""
    reply = list_reply(call, form, make(), paths).with_headers(**{LEFT_OUT: str(left_out)})
    return reply.zipped() if zipped else reply


def _listed(service: str, site_url: str, node: Node, linked: Iterable[Representation]) -> JsonObject:
    links = [
        {"rel": "alternate", "type": form.bare_type, "href": f"{site_url}{feed_path(node.name, form.suffix)}"}
        for form in linked
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
            f"{site_url}{feed_path(node.name, RSS.suffix)}",
            f"{site_url}{feed_path(node.name)}",
            xmpp_uri(service, node.name),
            node.options.description,
            created_us=node.created_us,
        )
        for node in nodes
    )
    return b"".join(write_list(title, feeds))


def _sources_opml(service: str, sources: Sequence[Origin]) -> bytes:
    feeds = (ListedFeed(source.title or source.address, source.address) for source in sources)
    return b"".join(write_list(f"Sources of {service}", feeds))
