"""Answers GET of a feed: pages, held pulls, JSON-P and conditional requests (Smart Feeds, HTTP Pull; A-09 to A-13).

Equal requests share one response (`FeedRequest`): requests at the same moment share the work, later requests get it
from the cache, and held pulls share the bytes. The service checks every request first, so a cached response never
outlives the rights of its reader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from time import perf_counter
from typing import NamedTuple

from smartfeeds.core.ip_addresses import network_of
from smartfeeds.core.jid import ANONYMOUS, Jid
from smartfeeds.core.limits import Quota
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import ABOUT, feed_path, hub_path, list_path, micropub_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.representation import Representation
from smartfeeds.http import negotiation
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import Authenticate, HttpCall
from smartfeeds.http.complete import is_complete
from smartfeeds.http.conditions import is_any, representation_mark, short_hash, tags_of, unless_known
from smartfeeds.http.encode import Encoder, FeedLinks, PageAddress, Write, in_callback, is_feed, items_of, last_cursor
from smartfeeds.http.forms import FeedForms, content_of
from smartfeeds.http.http_errors import HttpError, failure_reply
from smartfeeds.http.operations import (
    CALLBACK,
    IF_NONE_MATCH,
    LAST_EVENT_ID,
    MAX,
    MAX_OR_ALL,
    SINCE,
    TIMEOUT,
    UNTIL,
    VIEW_PARAMETERS,
    Content,
    Operation,
)
from smartfeeds.http.page_writer import PageWriter
from smartfeeds.http.queries import FeedQuery, read_query
from smartfeeds.http.replies import Reply, access_headers, early_writer
from smartfeeds.http.router import Answered, Handler
from smartfeeds.http.shared_work import SharedWork
from smartfeeds.http.waiting import HeldPulls
from smartfeeds.service.requests import FeedPage, PullFeed

# Each change of a feed makes its cached pages useless, so a larger cache would have more pages that nobody gets again.
CACHE_BYTES = 4 * 1024 * 1024
REQUEST_BYTES = 768  # memory of a `FeedRequest` without its longer texts
ACTOR_BYTES = 512  # memory of the address that belongs to a token, and of its parts
# A pause costs a turn of the event loop, which is as much as joining a small page. The loop may be late by 50 ms.
PAUSE_EVERY_S = 0.005
# Documents that a program can merge. The others lack deletions and ids.
_WITH_SYNC = frozenset({negotiation.HTML, negotiation.RSS, negotiation.OPML})
_CALLABLE = (negotiation.JSON, negotiation.ATOM)
TOO_MANY = "too many requests for feeds at once from your address; wait for one to end"
_VARY = "Accept, Accept-Encoding, Authorization"

_SCRIPT: Content = {negotiation.JAVASCRIPT.partition(";")[0]: {"type": "string"}}

PULL = Operation(
    "pull",
    "A page of a feed in the accepted media type; text/event-stream continues with the changes",
    {200: _SCRIPT},
    errors=(406,),
    parameters=(SINCE, UNTIL, MAX, TIMEOUT, CALLBACK, *VIEW_PARAMETERS, IF_NONE_MATCH, LAST_EVENT_ID),
    scope=TokenScope.READ,
    cors=True,
    hint="; items are published at /entries/NAME/",
    forms=lambda forms: content_of(forms.of_feed),
)
DOCUMENT = Operation(
    "document",
    "The newest items of a feed as a document, for readers that know no positions",
    # An unknown suffix belongs to the name of the feed, whose address redirects.
    {200: {**_SCRIPT, negotiation.XML.partition(";")[0]: {"type": "string"}}, 308: {}},
    parameters=(SINCE, UNTIL, MAX_OR_ALL, TIMEOUT, CALLBACK, *VIEW_PARAMETERS, IF_NONE_MATCH),
    scope=TokenScope.READ,
    cors=True,
    forms=lambda forms: content_of(forms.suffixes.values()),
)
FEED_REDIRECT = Operation("feedRedirect", "Redirect to the address with a slash at its end", {308: {}}, cors=True)

Pull = Callable[[PullFeed], Awaitable[FeedPage]]


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Everything that a response depends on besides the state of the feed. Equal requests share one response.

    `document`: the request has no position and gets the newest items. `reader`: it gets a document for feed readers.
    `credential` is the token of the actor, "" for an anonymous caller. `bearer` is that of `HttpCall`. `frame` is that
    of a page for browsers, None for other forms. `style` is that of a document for browsers, "" without one
    (`PageWriter`). `stored`: a document that is stored with the node takes the place of the page. `local`: it names
    files that this service has loaded (`LocalFiles`).
    """

    place: PageAddress
    form: Representation
    actor: Jid
    document: bool
    reader: bool
    zipped: bool
    credential: str = field(default="", repr=False)
    bearer: bool = False
    frame: Hashable = None
    style: str = ""
    stored: bool = False
    local: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = (self.place, self.form, self.actor, self.document, self.reader, self.zipped, self.credential)
        object.__setattr__(self, "_hash", hash((*parts, self.bearer, self.frame, self.style)))

    def __hash__(self) -> int:
        # A request is looked up in caches six times, and most of its parts are texts and tuples.
        return self._hash

    @property
    def size_bytes(self) -> int:
        """The memory of the request. Clients choose the query, which may have 8 KB, and send a token each time."""
        query = self.place.query
        texts = (query.view, query.since or "", query.until or "", self.credential)
        return REQUEST_BYTES + sum(map(len, texts)) + (ACTOR_BYTES if self.credential else 0)

    @property
    def mark(self) -> str:
        """The part of the entity tag that distinguishes this representation from the others of the feed."""
        place, query = self.place, self.place.query
        of_feed = place.site_url, place.name, query.view, place.hub_url, place.cloud
        form = self.form.suffix, self.document, self.reader, self.frame, self.style
        # Most pages are read once, so their positions would only fill the memory of the function.
        shape = representation_mark(*of_feed, place.window, *form)
        return short_hash(f"{shape} {query.since!r} {query.until!r} {query.max!r} {query.callback}")

    def pull_request(self, service: str, known: frozenset[str] = frozenset(), asker: str = "") -> PullFeed:
        """The request to the service. Without view parameters a page shows the Smart view in modified order, with
        deletions; a document shows the bare node, as stock XMPP clients see it."""
        query, reader = self.place.query, self.reader
        view = query.plain_view if reader and self.form not in _WITH_SYNC else query.view
        return PullFeed(
            self.actor,
            service,
            self.place.name,
            view,
            stock=self.document or reader,
            page=ResultSetRequest(query.max, None, "") if self.document else query.page,
            known=known,
            both_sides=reader or (self.form is negotiation.ATOM and query.sync),
            asker=asker if self.actor is ANONYMOUS else "",
            outline=self.stored and self.document and not view,
            local=self.local,
            brief=not reader and self.form in _CALLABLE,
        )


@dataclass(frozen=True, slots=True)
class FeedUpdate:
    """A response for held pulls and event streams.

    `cursor` is the bare cursor to continue from, "" after an error, which ends the stream. `seen` is the number of the
    last change that the response includes (`HeldPulls.changes`). `more`: another page exists already.
    """

    reply: Reply
    cursor: str
    seen: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class FeedWriting:
    """The writers of feeds. `encoder` writes the pages of pulls, `documents` the documents for readers, and `pages` the
    pages for browsers. `forms` are the representations, and `links` what features add to them."""

    encoder: Encoder
    forms: FeedForms
    documents: Mapping[Representation, Write]
    pages: PageWriter
    links: FeedLinks


class Feeds:
    """Handles GET and HEAD of feeds. The attribute `forms` has what can be negotiated."""

    def __init__(
        self,
        pull: Pull,
        authenticate: Authenticate,
        service: str,
        writing: FeedWriting,
        *,
        poll_default_s: int,
        poll_max_s: int,
    ) -> None:
        encoder, forms, pages = writing.encoder, writing.forms, writing.pages
        self._pull = pull
        self._authenticate = authenticate
        self._service = service
        self._encoder = encoder
        self._pulls: Mapping[Representation, Write] = {negotiation.JSON: encoder.json, negotiation.ATOM: encoder.atom}
        self._forms = forms
        self._documents = writing.documents
        self._alternates = Alternates(forms.linked, forms.lists)
        every = (*forms.of_feed, *forms.suffixes.values())
        self._for_readers = frozenset(form for form in every if forms.is_for_readers(form))
        self._stored = frozenset(form for form in every if forms.is_stored(form))
        self._pages = pages
        self.forms = pages.offered(forms.of_feed)
        self._poll_default_s = poll_default_s
        self._poll_max_s = poll_max_s
        self._links = writing.links
        self._cache: ByteCache[FeedRequest, tuple[str, Reply]] = ByteCache(CACHE_BYTES)
        # Pages, and documents, are made one at a time (`_new_reply`).
        self._making = asyncio.Lock()
        self._making_document = asyncio.Lock()
        self._busy_s = 0.0  # time spent on pages since the last pause
        self._shared = SharedWork(self._now)
        self.cache_hits = 0
        self.waiting: HeldPulls[FeedRequest, FeedUpdate] = HeldPulls(self.update, lambda update: update.reply.raw())

    async def get(self, call: HttpCall) -> Reply:
        """A page; an empty page is held until an item arrives or the time is over. Raises FeedError."""
        query = read_query(call.query)
        if query.whole:
            raise FeedError(Condition.BAD_REQUEST, "max=all is for the documents NAME.atom?sync=true, .rss and .opml")
        if query.callback and call.credential:
            # Any web page can load a callback as a script, and the browser sends the password of its user along.
            raise FeedError(
                Condition.FORBIDDEN, "callback works only without credentials, on feeds that are open to all"
            )
        request = self.read_request(call, query)
        if request.form is negotiation.HTML:
            request = replace(request, frame=await self._pages.frame(call))
        changes = self.waiting.changes  # before the page is read: the wait then sees a change that comes meanwhile
        none_match = call.header("If-None-Match")
        known = _known(none_match, request) if none_match else frozenset()
        answer, reply = await self._shared.get((request, known), call.address)
        if none_match and is_any(none_match) and "ETag" in reply.headers:
            return unless_known(none_match, reply)
        if answer is None or items_of(answer):
            return reply
        wait_s = self._wait_s(call, request, query.timeout_s)
        if not wait_s:
            return reply
        write = early_writer(call.request)
        update = await self.waiting.wait(answer.node.node_no, request, changes, wait_s, write)
        if update is None:
            return (await self._shared.get((request, frozenset()), call.address))[1]
        call.written = write is not None
        return update.reply

    def read_request(self, call: HttpCall, query: FeedQuery) -> FeedRequest:
        """The request that a call makes. Raises HttpError if the client accepts no offered representation."""
        accept = call.header("Accept")
        form = self._form(accept, call.suffix, query.callback)
        # Documents for readers that do not know cursors: without a position they hold the newest items and a link to
        # older ones. NAME.atom is such a document too, unless the request has sync=true or `since`.
        reader = form in self._for_readers or (
            # Atom as feed readers ask for it.
            form is negotiation.ATOM and bool(call.suffix) and query.since is None and not query.sync
        )
        document = (
            query.since is None
            and query.until is None
            # A program that knows FeedSync, but no cursors, may choose the size of its window.
            and (reader or (bool(call.suffix) and (query.max is None or (form is negotiation.ATOM and query.sync))))
        )
        window = document or (query.since is None and query.until == "")
        hub_url = f"{call.site_url}{hub_path(call.name)}" if self._links.has_hub else ""
        if query.timeout_s is not None:
            query = query._replace(timeout_s=None)
        place = PageAddress(call.site_url, call.name, query, hub_url, self._links.cloud, window)
        zipped = negotiation.takes_gzip(call.header("Accept-Encoding"))
        style = self._pages.style(call, form) if reader and call.suffix and not query.callback else ""
        files = self._links.local
        local = files is not None and reader and files.covers(form) and (form is negotiation.HTML or not query.sync)
        return FeedRequest(
            place,
            form,
            call.actor,
            document,
            reader,
            zipped,
            call.credential,
            call.bearer,
            style=style,
            stored=form in self._stored,
            local=local,
        )

    async def page(self, request: FeedRequest) -> FeedPage:
        """The page itself. Raises FeedError."""
        return await self._pull(request.pull_request(self._service))

    async def update(self, request: FeedRequest) -> FeedUpdate | None:
        """A page with items, or an error that ends the wait; None while the page is empty."""
        seen = self.waiting.changes  # before the page is read, as in `get`
        try:
            answer = await self.page(request)
            # After the page is read: a session that has ended by now must not get what was published since.
            if request.credential:
                await self._authenticate(request.credential)
            if not items_of(answer):
                return None
            reply = await self._new_reply(request, answer)
        except Exception as error:  # noqa: BLE001 - a failure in one view must not end the waits in the other views
            return FeedUpdate(failure_reply(error, "held", anonymous=request.actor is ANONYMOUS)[0], "", seen)
        return FeedUpdate(reply, last_cursor(answer, request.place.query), seen, answer.newer)

    async def _now(self, pull: tuple[FeedRequest, frozenset[str]], asker: str) -> tuple[FeedPage | None, Reply]:
        """The page and its response. The page is None if the client or the cache has the current version."""
        request, known = pull
        cached = self._cache.get(request)
        versions = known if cached is None else known | {cached[0]}
        answer = await self._pull(request.pull_request(self._service, versions, asker))
        if answer.page is not None:
            return answer, await self._new_reply(request, answer)
        if answer.version in known:
            return None, Reply(status=HTTPStatus.NOT_MODIFIED, headers=self._headers(request, answer))
        assert cached is not None  # the answer has no page only for one of `versions`
        self.cache_hits += 1
        return None, cached[1]

    async def _new_reply(self, request: FeedRequest, answer: FeedPage) -> Reply:
        """The response with a page, which goes into the cache.

        A page whose items are not cached takes milliseconds. Pages are made one at a time, with a pause after each
        PAUSE_EVERY_S of such work, in which other requests run. Documents and pages for people read the HTML of their
        entries, which may take half a second if it was written for that. So they are made in a thread.
        """
        is_page = request.form is negotiation.HTML
        beside = await self._pages.beside(request.actor, answer, request.place) if is_page else None
        if not items_of(answer):
            return self._reply(request, answer, beside)
        if request.reader:
            async with self._making_document:
                reply = await asyncio.to_thread(self._reply, request, answer, beside)
        else:
            async with self._making:
                began_s = perf_counter()
                reply = self._reply(request, answer)
                self._busy_s += perf_counter() - began_s
                if self._busy_s > PAUSE_EVERY_S:
                    await asyncio.sleep(0)
                    self._busy_s = 0.0
        self._cache.put(request, (answer.version, reply), request.size_bytes + reply.size_bytes)
        return reply

    def _reply(self, request: FeedRequest, answer: FeedPage, beside: object = None) -> Reply:
        if self._links.local is not None:
            answer = self._links.local.in_page(answer, request.place.site_url, request.form)
        if request.form is negotiation.HTML:
            body = self._pages.feed(request.frame, answer, request.place, beside)
        else:
            writers = self._documents if request.reader else self._pulls
            body = writers[request.form](answer, request.place)
        media_type, callback = request.form.media_type, request.place.query.callback
        if request.style:
            body, media_type = self._pages.styled(body, request.place.site_url, request.style), negotiation.XML
        if callback:
            body = in_callback(callback, body, text=request.form is negotiation.ATOM)
            media_type = negotiation.JAVASCRIPT
        reply = Reply(body, media_type, headers=self._headers(request, answer))
        return reply.zipped() if request.zipped else reply

    def _form(self, accept: str, suffix: str, callback: str) -> Representation:
        """The representation to send. With a callback it is wrapped in a script (SF-059)."""
        if not callback:
            if suffix:
                return self._forms.suffixes[suffix]
            return negotiation.choose(accept, self.forms) or negotiation.negotiate(accept, self.forms, "a feed")
        # A script element of a browser accepts any script, but no JSON.
        form = self._forms.suffixes[suffix] if suffix else negotiation.choose(accept, _CALLABLE) or negotiation.JSON
        if form not in _CALLABLE:
            raise HttpError(HTTPStatus.BAD_REQUEST, "callback works with JSON and Atom only")
        return form

    def _headers(self, request: FeedRequest, answer: FeedPage) -> dict[str, str]:
        public = answer.public and request.actor is ANONYMOUS
        headers = access_headers(public=public, bearer=request.bearer, expose="ETag, Link")
        headers["Vary"] = _VARY
        place = request.place
        self_suffix = request.form.own_suffix if request.reader else ""
        hub_url = place.hub_url if request.form.has_hub else ""
        alternates = self._alternates if is_feed(answer.node) else None
        headers["Link"] = _links(place.site_url, place.name, place.query.view, self_suffix, hub_url, alternates)
        if request.style:
            headers.update(self._pages.style_headers)
        elif request.form is negotiation.HTML:
            headers.update(self._pages.headers)
        # An empty page has no ETag: a client that waits for the next item would get 304 at once.
        if answer.page is None or answer.page.items:
            headers["ETag"] = f'W/"{answer.version}.{request.mark}"'
        return headers

    def _wait_s(self, call: HttpCall, request: FeedRequest, timeout_s: int | None) -> int:
        """Returns the seconds for which the pull is held if it has no items (A-11)."""
        query = request.place.query
        if call.method == "HEAD" or request.reader or query.until is not None or query.max == "0":
            return 0
        if timeout_s is None:
            return 0 if request.document else self._poll_default_s
        return min(timeout_s, self._poll_max_s)


@dataclass(frozen=True, slots=True)
class FeedReading:
    """Handles GET and HEAD of feeds: by `feeds`, as an event stream, or as a complete document. `quota` bounds the
    requests of each client behind a proxy."""

    feeds: Feeds
    stream: Handler
    complete: Handler
    quota: Quota

    def get(self, call: HttpCall) -> Awaitable[Answered]:
        """The response in the form that the request asks for. Raises FeedError."""
        if call.proxied:
            return self._in_turn(call)
        return self._handler(call)(call)

    async def _in_turn(self, call: HttpCall) -> Answered:
        with counted(call, self.quota):
            return await self._handler(call)(call)

    def _handler(self, call: HttpCall) -> Handler:
        if call.suffix:
            return self.complete if is_complete(call) else self.feeds.get
        is_stream = negotiation.choose(call.header("Accept"), self.feeds.forms) is negotiation.EVENTS
        return self.stream if is_stream else self.feeds.get


@contextmanager
def counted(call: HttpCall, behind_proxies: Quota) -> Iterator[None]:
    """Counts a request that may be held, while it is answered. Raises FeedError(BUSY) if its client has too many.

    A client that connects directly is bounded by its connections. The connections of a proxy belong to many clients, so
    the requests of each client are counted instead.
    """
    network = network_of(call.address) if call.proxied else ""
    if network and not behind_proxies.take(network):
        raise FeedError(Condition.BUSY, TOO_MANY)
    try:
        yield
    finally:
        if network:
            behind_proxies.release(network)


async def redirect(call: HttpCall) -> Reply:
    """The address of a feed without its slash redirects to the address with it."""
    return call.moved_to(feed_path(call.name))


class Alternates(NamedTuple):
    """The representations to which a Smart Feed links: its own, and those of the list of feeds."""

    of_feed: tuple[Representation, ...]
    of_list: tuple[Representation, ...]


# Writing the addresses takes as long as reading the query of the request, and feeds have few views.
@lru_cache(256)
def _links(site_url: str, name: str, view: str, self_suffix: str, hub_url: str, alternates: Alternates | None) -> str:
    """The header Link: the other representations of the feed if it is a Smart Feed (SF-112; ESS-024), and its hub
    (SF-074). The address of the response itself is the same as in its document (WS-082)."""
    query = f"?{view}" if view else ""
    links = [f'<{site_url}{feed_path(name, self_suffix)}{query}>; rel="self"']
    if alternates is not None:
        if hub_url:
            links.append(f'<{hub_url}>; rel="hub"')
        for form in alternates.of_feed:
            address = f"{site_url}{feed_path(name, form.suffix)}{query}"
            links.append(f'<{address}>; rel="alternate"; type="{form.bare_type}"')
        links.append(f'<{site_url}{feed_path(name, folder=ABOUT)}{query}>; rel="describedby"')
        links.append(f'<{site_url}{micropub_path(name)}>; rel="micropub"')
        links += [
            f'<{site_url}{list_path(form.suffix)}>; rel="alternate"; type="{form.media_type}"'
            for form in alternates.of_list
        ]
    return ", ".join(links)


def _known(header: str, request: FeedRequest) -> frozenset[str]:
    """The versions that If-None-Match has for this representation."""
    end = f".{request.mark}"
    return frozenset(tag.removesuffix(end) for tag in tags_of(header) if tag.endswith(end))
