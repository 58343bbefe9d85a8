"""Event streams: pulls that continue with each change (`text/event-stream`; HTML Living Standard 9.2; SF-004).

Each event is the JSON page that a pull returns, and its id is the cursor to continue from. A browser that lost its
stream sends this cursor as `Last-Event-ID`. A heartbeat repeats the cursor.
"""

import contextlib
import random
from dataclasses import replace

from aiohttp import web

from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.http.calls import Authenticate, HttpCall
from smartfeeds.http.encode import PageAddress, last_cursor
from smartfeeds.http.feeds import FeedRequest, Feeds, FeedUpdate
from smartfeeds.http.http_errors import failure_reply
from smartfeeds.http.negotiation import EVENTS, JSON
from smartfeeds.http.queries import FeedQuery, read_query
from smartfeeds.http.replies import access_headers, begin_stream

# A browser opens a lost stream again after this time or up to twice that (HTML Living Standard 9.2.4), at random: the
# readers of a service that was restarted must not return all at once.
RECONNECT_MS = 3_000


class Streams:
    """Handles streams of feeds. A stream with a token ends when the token becomes invalid."""

    def __init__(self, feeds: Feeds, authenticate: Authenticate, *, heartbeat_s: float) -> None:
        self._feeds = feeds
        self._authenticate = authenticate
        self._heartbeat_s = heartbeat_s

    async def get(self, call: HttpCall) -> web.StreamResponse:
        """Streams until the client disconnects. Raises FeedError before anything is sent."""
        query = read_query(call.query)
        if query.until is not None or query.callback or query.max == "0" or query.whole:
            raise FeedError(
                Condition.BAD_REQUEST, "a stream has no end: it supports no until, no callback, and no max=0 or all"
            )
        last_seen = call.header("Last-Event-ID")
        since = f"cursor:{last_seen}" if last_seen else query.since
        newest = PageAddress(call.site_url, call.name, FeedQuery(query.view, until="", max="1"))
        feed_request = FeedRequest(
            newest, JSON, call.actor, document=False, reader=False, zipped=False, credential=call.credential
        )
        answer = await self._feeds.page(feed_request)
        if since is None and (cursor := last_cursor(answer, FeedQuery())):
            since = f"cursor:{cursor}"
        feed_request = replace(feed_request, place=newest._replace(query=FeedQuery(query.view, since, max=query.max)))
        update = await self._feeds.update(feed_request)
        if update is not None and not update.cursor:
            return update.reply.response()
        headers = access_headers(public=answer.public and call.anonymous, bearer=call.bearer)
        # Without the second header nginx would hold events back until its buffer is full.
        headers |= {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = await begin_stream(call.request, EVENTS.media_type, headers)
        if call.method == "HEAD":
            return response
        with contextlib.suppress(ConnectionError):  # the client has left, as in the end of every stream
            retry_ms = RECONNECT_MS + random.randrange(RECONNECT_MS)
            await response.write(f"retry: {retry_ms}\n{_heartbeat(feed_request)}".encode())
            await self._write_updates(call, response, answer.node.node_no, feed_request, update)
        return response

    async def _write_updates(
        self,
        call: HttpCall,
        response: web.StreamResponse,
        node_no: int,
        feed_request: FeedRequest,
        update: FeedUpdate | None,
    ) -> None:
        """Writes the changes. Returns when this reader can read the feed no more."""
        seen = -1  # no number of a change, so the first wait asks at once
        while True:
            if update is None:
                update = await self._feeds.waiting.wait(node_no, feed_request, seen, self._heartbeat_s)
            if update is None:
                update = await self._ended(call)
            if update is None:
                await response.write(_heartbeat(feed_request).encode())
                continue
            await response.write(_event(update))
            if not update.cursor:
                return
            query = feed_request.place.query._replace(since=f"cursor:{update.cursor}")
            feed_request, seen = replace(feed_request, place=feed_request.place._replace(query=query)), update.seen
            update = await self._feeds.update(feed_request) if update.more else None

    async def _ended(self, call: HttpCall) -> FeedUpdate | None:
        """The error that ends the stream, None if the token is still valid."""
        if not call.credential:
            return None
        try:
            await self._authenticate(call.credential)
        except (FeedError, StoreError) as error:
            return FeedUpdate(failure_reply(error, "stream", anonymous=False)[0], "", 0)
        return None


def _event(update: FeedUpdate) -> bytes:
    if not update.cursor:
        return b"event: error\ndata: %b\n\n" % update.reply.body.strip()
    return b"id: %b\ndata: %b\n\n" % (update.cursor.encode(), update.reply.body)


def _heartbeat(feed_request: FeedRequest) -> str:
    """A comment that keeps the connection open, with the id for a client that missed it."""
    kind, _, cursor = (feed_request.place.query.since or "").partition(":")
    return f"id: {cursor}\n: \n\n" if kind == "cursor" else ": \n\n"
