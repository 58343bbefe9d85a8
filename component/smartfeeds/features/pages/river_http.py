"""The river at `/`: the newest entries of all feeds of the lists (`http.feed_list`) whose entries the caller may read.

The entity tag is a hash of the body: no version of all feeds exists that would not show changes of closed feeds.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, Node
from smartfeeds.core.page import parse_number
from smartfeeds.core.urls import RIVER, entry_path, feed_path, river_path
from smartfeeds.features.pages.feed_style import STYLED, STYLED_HEADERS, style_language, with_style
from smartfeeds.features.pages.frame import PAGE_HEADERS, frame_of
from smartfeeds.features.pages.look import look_of
from smartfeeds.features.pages.river import ENTRY_PLACE, parse_entry_place
from smartfeeds.features.pages.river_feed import write_river
from smartfeeds.features.pages.river_page import RiverPages, RiverPlace
from smartfeeds.features.pages.river_requests import (
    FeedEntry,
    GetHeadlines,
    GetRiver,
    Headlines,
    River,
)
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.formats.plain_activity import write_item
from smartfeeds.formats.representation import Representation
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.encode import is_comments
from smartfeeds.http.feed_list import list_reply, reader_of
from smartfeeds.http.negotiation import ATOM, HTML, JSON, OF_RIVER, XML, by_suffix, negotiate
from smartfeeds.http.openapi_schemas import place_schema, ref
from smartfeeds.http.operations import IF_NONE_MATCH, WHOLE_NUMBER, Content, Operation, Parameter
from smartfeeds.http.queries import page_path, read_parameters, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.discovery import ChangedNodes, GetChangedNodes

ENTRIES = 30  # entries of a page by default, and at most
ENTRIES_MOST = 100
FEEDS = 10  # feeds beside the river
_SUFFIXES = {river_path(suffix): form for suffix, form in by_suffix(OF_RIVER).items()}


_PAGE = (
    Parameter("max", WHOLE_NUMBER, f"largest number of entries, at most {ENTRIES_MOST}"),
    Parameter("after", place_schema(ENTRY_PLACE), "older entries than the one at this place; next has it"),
)
_CONTENT: Content = {
    JSON.bare_type: ref("River"),
    HTML.bare_type: {"type": "string"},
    ATOM.bare_type: {"type": "string"},
}

GET_RIVER = Operation(
    "river",
    "The entries of all feeds that the caller may read, by last change, the newest first",
    {200: _CONTENT},
    errors=(406,),
    parameters=(*_PAGE, IF_NONE_MATCH),
    cors=True,
)


def river_document(form: Representation) -> Operation:
    """The river in one form, under an address of its own."""
    media_type = form.bare_type
    return Operation(
        f"river{form.suffix.title()}",
        f"The entries of all feeds that the caller may read, as {media_type}",
        {
            200: {media_type: _CONTENT[media_type]}
            | ({XML.partition(";")[0]: {"type": "string"}} if form in STYLED else {})
        },
        parameters=(*_PAGE, IF_NONE_MATCH),
        cors=True,
    )


class Rivers:
    """Handles GET and HEAD of the river. `service` is the address of the service."""

    def __init__(self, handle: Handle, service: str, pages: RiverPages) -> None:
        self._handle = handle
        self._service = service
        self._pages = pages
        self._writing = asyncio.Lock()

    async def get(self, call: HttpCall) -> Reply:
        """A page of the river. Raises FeedError."""
        form = _SUFFIXES.get(call.path) or negotiate(call.header("Accept"), OF_RIVER, "the river of all feeds")
        query = read_parameters(call.query, [parameter.name for parameter in _PAGE])
        limit = min(parse_number(query.get("max", str(ENTRIES)), "max"), ENTRIES_MOST)
        after = parse_entry_place(query["after"]) if query.get("after") else None
        actor = reader_of(call)
        river = await ask(
            self._handle, GetRiver(actor, self._service, limit, after, call.site_url if form is HTML else ""), River
        )
        path = river_path("" if form is HTML else form.suffix)
        next_path = page_path(path, query, after=str(river.next)) if river.next is not None else ""
        if form is HTML:
            feeds, headlines = await self._feeds(actor) if after is None else (ChangedNodes((), None, 0), {})
            place = RiverPlace(call.site_url, next_path, first=after is None)
            write = partial(self._pages.river, frame_of(call), river, place, feeds, headlines)
        elif form is ATOM:
            write = partial(_atom, call, river, query, next_path)
        else:
            write = partial(_json, call, river, next_path)
        # In a thread, because reading 100 entries of the greatest size takes more than 50 ms. One page at a time: the
        # pages share a cache.
        async with self._writing:
            body = await asyncio.to_thread(write)
        # As for a feed, only a document under an address of its own, which a reader opens in a browser, has a style.
        style = style_language(call, form) if call.path in _SUFFIXES else ""
        body = with_style(body, call.site_url, style) if style else body
        reply = list_reply(call, form, body, _SUFFIXES, PAGE_HEADERS if form is HTML else {})
        if style:
            reply = replace(reply, media_type=XML, headers={**reply.headers, **STYLED_HEADERS})
        return unless_known(call.header("If-None-Match"), call.zipped(reply))

    async def _feeds(self, actor: Jid) -> tuple[ChangedNodes, Mapping[str, Item]]:
        """The feeds beside the river, with their newest entries."""
        nodes = await ask(self._handle, GetChangedNodes(actor, self._service, str(FEEDS)), ChangedNodes)
        headlines = await ask(self._handle, GetHeadlines(actor, self._service, nodes.nodes), Headlines)
        return nodes, headlines.items


def activity_json(node: Node, item: Item) -> bytes:
    """An entry as an activity. Without the cache of `encode.Encoder`, which belongs to the thread of the event loop."""
    return write_item(item, comments=is_comments(node))


def feed_json(call: HttpCall, node: Node) -> JsonObject:
    """The feed of an entry."""
    return {"id": node.name, "title": title_of(node), "url": f"{call.site_url}{feed_path(node.name)}"}


def _json(call: HttpCall, river: River, next_path: str) -> bytes:
    head: JsonObject = {"count": len(river.entries), "url": f"{call.site_url}{RIVER}"}
    if next_path:
        head["next"] = f"{call.site_url}{next_path}"
    items = (
        b'{"feed":%b,"item":%b}' % (dump_json(feed_json(call, node)), activity_json(node, item))
        for node, item in ((entry.node, entry.item) for entry in river.entries)
    )
    return dump_json(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _atom(call: HttpCall, river: River, query: Mapping[str, str], next_path: str) -> bytes:
    site_url = call.site_url
    own = f"?{write_query(query)}" if query else ""
    head = FeedHead(
        id=f"{site_url}{RIVER}",
        title=look_of(call).name,
        updated_us=max((entry.item.modified_us for entry in river.entries), default=0),
        self_link=f"{site_url}{river_path(ATOM.suffix)}{own}",
        link=f"{site_url}{RIVER}",
        next_link=f"{site_url}{next_path}" if next_path else "",
        for_readers=True,
    )
    return b"".join(write_river(head, [(_head_of(site_url, entry), entry.item) for entry in river.entries]))


def _head_of(site_url: str, entry: FeedEntry) -> FeedHead:
    """The metadata of the feed of an entry."""
    node = entry.node
    address = f"{site_url}{feed_path(node.name)}"
    prefix = f"{site_url}{entry_path(node.name)}"
    return FeedHead(
        address,
        title_of(node),
        node.last_modified_us,
        link=address,
        language=node.options.language,
        entry_prefix=prefix,
        for_readers=True,
    )
