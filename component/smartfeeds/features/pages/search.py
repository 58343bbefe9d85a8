"""The search at `/search` over all feeds of the lists (`http.feed_list`) whose entries the caller may read.

The use case is `river_requests.search_feeds`. It reads the filter index, so entries of the last seconds may be missing.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.filters import FILTERS
from smartfeeds.core.node_place import NODE_PLACE, NodePlace, parse_node_place
from smartfeeds.core.urls import SEARCH, feed_path
from smartfeeds.core.view import MAX_FIELDS, PARAMETER_SCHEMAS, View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.pages.frame import PAGE_HEADERS, Frame, frame_of
from smartfeeds.features.pages.river_http import activity_json, feed_json
from smartfeeds.features.pages.river_page import make_card
from smartfeeds.features.pages.river_requests import SearchFeeds, SearchResult
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.feed_list import list_reply, reader_of
from smartfeeds.http.negotiation import HTML, JSON, OF_SEARCH, negotiate
from smartfeeds.http.openapi_schemas import place_schema, ref
from smartfeeds.http.operations import IF_NONE_MATCH, Operation, Parameter
from smartfeeds.http.queries import read_fields, read_pairs, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask

_AFTER = "after"
SEARCH_FEEDS = Operation(
    "search",
    "The entries that match in all feeds that the caller may read, grouped by feed; the feed that changed last first",
    {200: {JSON.bare_type: ref("SearchResult"), HTML.bare_type: {"type": "string"}}},
    errors=(406,),
    parameters=(
        *(Parameter(row.name, dict(PARAMETER_SCHEMAS[row.name]), row.text) for row in FILTERS.values()),
        Parameter(_AFTER, place_schema(NODE_PLACE), "feeds after this place; next has it"),
        IF_NONE_MATCH,
    ),
    cors=True,
)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search: the view without an order, its query string as written, and the place to go on from."""

    view: View
    text: str
    after: NodePlace | None = None

    @property
    def words(self) -> str:
        """The value of `q`."""
        return dict(read_fields(self.text, MAX_FIELDS)).get("q", "") if self.text else ""


class Searches:
    """Handles GET and HEAD of the search. `service` is the address of the service."""

    def __init__(self, handle: Handle, service: str) -> None:
        self._handle = handle
        self._service = service
        self._writing = asyncio.Lock()

    async def get(self, call: HttpCall) -> Reply:
        """A page of the search over all feeds; without filters nothing, in HTML with a form. Raises FeedError."""
        form = negotiate(call.header("Accept"), OF_SEARCH, "a search")
        query = read_search(call.query)
        result = SearchResult((), None, 0)
        if query.view.filtered:
            request = SearchFeeds(reader_of(call), self._service, query.view, query.after)
            result = await ask(self._handle, request, SearchResult)
        next_path = f"{SEARCH}?{query.text}&{write_query({_AFTER: str(result.next)})}" if result.next else ""
        if form is HTML:
            write = partial(search_page, frame_of(call), query, result, next_path)
        else:
            write = partial(_json, call, query, result, next_path)
        page_headers = PAGE_HEADERS if form is HTML else {}
        # In a thread, as the river, and one page at a time, so that searches leave threads to others.
        async with self._writing:
            body = await asyncio.to_thread(write)
        return unless_known(call.header("If-None-Match"), call.zipped(list_reply(call, form, body, {}, page_headers)))


def read_search(raw: str) -> SearchQuery:
    """The search of a raw query string, in the syntax of the filters of a view. Raises FeedError(BAD_REQUEST)."""
    fields = read_pairs(raw, (*FILTERS, _AFTER))
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    after = values.pop(_AFTER, [""])
    if len(after) > 1 or len(fields) > MAX_FIELDS:
        raise FeedError(Condition.BAD_REQUEST, f"a search takes {MAX_FIELDS} parameters at most, and {_AFTER} once")
    filters = []
    for row in FILTERS.values():
        selected = row.read(values.get(row.name, ()))
        if selected is None:
            raise FeedError(Condition.BAD_REQUEST, f"{row.name}: the value is not valid; /openapi.json has the schema")
        if selected:
            filters.append((row.name, selected))
    text = write_query([pair for pair in fields if pair[0] != _AFTER])
    return SearchQuery(View(filters=tuple(filters)), text, parse_node_place(after[0]) if after[0] else None)


def _json(call: HttpCall, query: SearchQuery, result: SearchResult, next_path: str) -> bytes:
    head: JsonObject = {
        "count": len(result.feeds),
        "searched": result.searched,
        "url": f"{call.site_url}{SEARCH}?{query.text}",
    }
    if next_path:
        head["next"] = f"{call.site_url}{next_path}"
    feeds = []
    for hits in result.feeds:
        own: JsonObject = {
            "feed": feed_json(call, hits.node),
            "more": hits.more,
            "url": f"{call.site_url}{feed_path(hits.node.name)}?{query.text}",
        }
        items = b",".join(activity_json(hits.node, item) for item in hits.items)
        feeds.append(dump_json(own)[:-1] + b',"items":[' + items + b"]}")
    return dump_json(head)[:-1] + b',"items":[' + b",".join(feeds) + b"]}"


def search_page(frame: Frame, query: SearchQuery, result: SearchResult, next_path: str) -> bytes:
    """A page of the search. The first one says how many entries match, if the search knows."""
    view = query.view
    return frame.page(
        "search.html",
        feeds=[
            {
                "title": title_of(hits.node),
                "path": feed_path(hits.node.name),
                "all_path": f"{feed_path(hits.node.name)}?{query.text}" if hits.more else "",
                "cards": [make_card(hits.node, item, view.query) for item in hits.items],
            }
            for hits in result.feeds
        ],
        words=query.words,
        total=result.total,
        first=query.after is None,
        filters=[(name, ", ".join(sorted(values))) for name, values in view.filters if FILTERS[name].index],
        filtered=view.filtered,
        searched=result.searched,
        next_path=next_path,
    )
