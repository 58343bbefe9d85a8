"""The event stream: a pull that goes on (`text/event-stream`; HTML Living Standard 9.2; SF-004).

Each event is the JSON page that a pull would give, and its id is the cursor to go on from, so that a browser's
`Last-Event-ID` is where a lost stream is taken up again. A heartbeat says the cursor once more.
"""

import contextlib
from dataclasses import replace

from aiohttp import HttpVersion11, web

from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import Authenticate, HttpCall
from smartfeeds.http.encode import PageAddress, last_cursor
from smartfeeds.http.feeds import FeedRequest, Feeds, FeedUpdate
from smartfeeds.http.http_errors import failure_reply
from smartfeeds.http.queries import FeedQuery, read_query
from smartfeeds.http.replies import Reply

RECONNECT_MS = 3_000
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Streams:
    """Streams of feeds. A stream that came with a token ends when the token does."""

    def __init__(self, feeds: Feeds, authenticate: Authenticate, *, heartbeat_s: float) -> None:
        self._feeds = feeds
        self._authenticate = authenticate
        self._heartbeat_s = heartbeat_s

    async def get(self, call: HttpCall) -> web.StreamResponse:
        """Streams until the client goes. Raises FeedError before anything is sent."""
        query = read_query(call.query)
        if query.until is not None or query.callback or query.max == "0" or query.whole:
            raise FeedError(
                Condition.BAD_REQUEST, "a stream has no end: it takes no until, no callback, no max=0 or all"
            )
        last_seen = call.header("Last-Event-ID")
        since = f"cursor:{last_seen}" if last_seen else query.since
        newest = PageAddress(call.origin, call.name, FeedQuery(query.view, until="", max="1"))
        feed_request = FeedRequest(
            newest, n.JSON, call.actor, document=False, reader=False, zipped=False, credential=call.credential
        )
        answer = await self._feeds.page(feed_request)
        if since is None and (cursor := last_cursor(answer, FeedQuery())):
            since = f"cursor:{cursor}"
        feed_request = replace(feed_request, place=newest._replace(query=FeedQuery(query.view, since, max=query.max)))
        news = await self._feeds.update(feed_request)
        if news is not None and not news.cursor:
            return news.reply.response()
        response = web.StreamResponse(headers=Reply(media_type=n.EVENTS.media_type, headers=_HEADERS).all_headers())
        if answer.public and call.anonymous:
            response.headers["Access-Control-Allow-Origin"] = "*"
        # Before HTTP/1.1 the end of the connection is the end of the stream.
        if call.request.version >= HttpVersion11:
            response.enable_chunked_encoding()
        await response.prepare(call.request)
        if call.method == "HEAD":
            return response
        with contextlib.suppress(ConnectionError):
            await response.write(f"retry: {RECONNECT_MS}\n{_heartbeat(feed_request)}".encode())
            await self._go_on(call, response, answer.node.node_no, feed_request, news)
        return response

    async def _go_on(
        self,
        call: HttpCall,
        response: web.StreamResponse,
        node_no: int,
        feed_request: FeedRequest,
        news: FeedUpdate | None,
    ) -> None:
        """Writes what comes; ends where the feed ends for this reader."""
        seen = -1
        while True:
            if news is None:
                news = await self._feeds.waiting.wait(node_no, feed_request, seen, self._heartbeat_s)
            if news is None:
                news = await self._ended(call)
            if news is None:
                await response.write(_heartbeat(feed_request).encode())
                continue
            await response.write(_event(news))
            if not news.cursor:
                return
            query = feed_request.place.query._replace(since=f"cursor:{news.cursor}")
            feed_request, seen = replace(feed_request, place=feed_request.place._replace(query=query)), news.seen
            news = await self._feeds.update(feed_request) if news.more else None

    async def _ended(self, call: HttpCall) -> FeedUpdate | None:
        """Why the stream must end, None where it need not."""
        if not call.credential:
            return None
        try:
            await self._authenticate(call.credential)
        except (FeedError, StoreError) as error:
            return FeedUpdate(failure_reply(error, "stream", anonymous=False)[0], "", 0)
        return None


def _event(news: FeedUpdate) -> bytes:
    if not news.cursor:
        return b"event: error\ndata: %b\n\n" % news.reply.body.strip()
    return b"id: %b\ndata: %b\n\n" % (news.cursor.encode(), news.reply.body)


def _heartbeat(feed_request: FeedRequest) -> str:
    """A comment that keeps the connection up, with the id once more for who missed it."""
    kind, _, cursor = (feed_request.place.query.since or "").partition(":")
    return f"id: {cursor}\n: \n\n" if kind == "cursor" else ": \n\n"
