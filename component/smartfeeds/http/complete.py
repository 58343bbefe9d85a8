"""A whole view as one document with sync data: the complete feed of FeedSync 4 (FS-077, FS-078, A-46, A-47).

FeedSync readers do not know cursors: they read one document with every item. The document is written page by page, no
faster than the client reads it, so only one page is in memory.

Others publish while the pages are read. The pages are in the order of creation, in which items do not move. So the
document has each item that existed at its start exactly once, in the version of then or a later one. Items that are
published meanwhile lie after the bound `until` of the partial feed, where the reader gets them. If the document
cannot be finished, the router breaks the connection: XML without its end cannot be mistaken for the whole document.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from aiohttp import web

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import Order, canonical, parse_view
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import Authenticate, HttpCall
from smartfeeds.http.conditions import is_known, representation_mark
from smartfeeds.http.encode import PageAddress, complete_sharing, head_of, items_of
from smartfeeds.http.feed_documents import SHARED
from smartfeeds.http.negotiation import ATOM
from smartfeeds.http.queries import ALL, FeedQuery, read_query
from smartfeeds.http.replies import Reply, access_headers, begin_stream
from smartfeeds.service.requests import FeedPage, PullFeed
from smartfeeds.sync.document_reader import FeedFormat
from smartfeeds.sync.document_writer import DOCUMENTS, SharedDocument

FORMS = {ATOM.suffix: (ATOM, FeedFormat.ATOM)} | {form.suffix: (form, kind) for form, kind in SHARED.items()}
PAGE = 1_000  # items to read at once; fewer if the service has a lower limit or the items are large

Pull = Callable[[PullFeed], Awaitable[FeedPage]]


def is_complete(call: HttpCall) -> bool:
    """Whether a request is for a complete document."""
    return call.suffix in FORMS and f"max={ALL}" in call.query.split("&")


class CompleteFeeds:
    """Handles GET and HEAD of complete documents. `service` is the address of the service."""

    def __init__(self, pull: Pull, authenticate: Authenticate, service: str) -> None:
        self._pull = pull
        self._authenticate = authenticate
        self._service = service

    async def get(self, call: HttpCall) -> Reply | web.StreamResponse:
        """Writes the document. If it fails after the first byte, the router breaks the connection. Raises FeedError."""
        query = read_query(call.query)
        if not query.sync or query.is_pull:
            raise FeedError(Condition.BAD_REQUEST, "max=all can be combined with sync=true and filters only")
        feed_request = self._request(call, query)
        first = await self._pull(feed_request)
        place = PageAddress(call.site_url, call.name, query)
        headers = {
            "ETag": f'W/"{first.version}.{representation_mark(place, call.suffix)}"',
            "Vary": "Authorization",
            **access_headers(public=first.public and call.anonymous, bearer=call.bearer),
        }
        if is_known(call.header("If-None-Match"), headers["ETag"]):
            return Reply(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        form, kind = FORMS[call.suffix]
        response = await begin_stream(call.request, form.media_type, headers)
        if call.method != "HEAD":
            head = replace(
                head_of(first, place), link=place.base_url, self_link=place.complete_url(call.suffix), next_link=""
            )
            document = DOCUMENTS[kind](replace(head, last_cursor=""), complete_sharing(first))
            await self._write(call, response, feed_request, first, document)
        return response

    def _request(self, call: HttpCall, query: FeedQuery) -> PullFeed:
        view = parse_view(query.view)
        assert view is not None  # `read_query` has checked it
        return PullFeed(
            call.actor,
            self._service,
            call.name,
            canonical(replace(view, order=Order.CREATED)),
            page=ResultSetRequest(str(PAGE)),
            asker=call.asker,
        )

    async def _write(
        self,
        call: HttpCall,
        response: web.StreamResponse,
        feed_request: PullFeed,
        first: FeedPage,
        document: SharedDocument,
    ) -> None:
        await response.write(document.begin())
        page: FeedPage | None = first
        while page is not None:
            items = [item for item in items_of(page) if item.created_us <= first.node.last_created_us]
            await response.write(await _written(document, partial(document.add, items)))
            more = page.newer and len(items) == len(items_of(page))
            page = await self._next(call, feed_request, page) if more else None
        await response.write(await _written(document, document.end))
        await response.write_eof()

    async def _next(self, call: HttpCall, feed_request: PullFeed, page: FeedPage) -> FeedPage:
        """The page after this one. Raises FeedError if the caller may not read it any more."""
        assert page.page is not None  # the request named no version that the client has
        assert page.page.result_set is not None
        position = ResultSetRequest(str(PAGE), page.page.result_set.last)
        if call.credential:
            await self._authenticate(call.credential)
        following = await self._pull(replace(feed_request, page=position))
        if following.node.node_no != page.node.node_no:
            raise ConnectionResetError("the feed was deleted and created again while it was read")
        return following


async def _written(document: SharedDocument, write: Callable[[], bytes]) -> bytes:
    return await asyncio.to_thread(write) if document.slow else write()
