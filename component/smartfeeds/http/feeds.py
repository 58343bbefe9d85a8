"""GET of a feed: pulls, long polls, JSON-P, conditional requests (Smart Feeds, HTTP Pull; A-09 to A-13)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from smartfeeds import __version__
from smartfeeds.core.jid import Jid
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.tokens import Scope
from smartfeeds.core.urls import feed_path, list_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import ANONYMOUS, Authenticate, Call
from smartfeeds.http.conditions import is_any, tags_of
from smartfeeds.http.encode import Encoder, Place, in_callback, is_feed, items_of, last_cursor
from smartfeeds.http.http_errors import HttpError, failure_reply
from smartfeeds.http.kept import Kept
from smartfeeds.http.negotiation import Form
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.http.operations import IF_NONE_MATCH, LAST_EVENT_ID, Content, Operation
from smartfeeds.http.pages import PAGE_POLICY
from smartfeeds.http.queries import (
    CALLBACK,
    MAX,
    MAX_OR_ALL,
    SINCE,
    TIMEOUT,
    UNTIL,
    VIEW_PARAMETERS,
    FeedQuery,
    read_query,
)
from smartfeeds.http.replies import Reply
from smartfeeds.http.sharing import Shared
from smartfeeds.http.waiting import Waiting
from smartfeeds.http.wire import early_writer
from smartfeeds.service.requests import FeedPage, PullFeed

KEPT_BYTES = 8 * 1024 * 1024
SUFFIXES = n.by_suffix(n.OF_FEED)
# For readers that know no cursors: the newest items unless told otherwise, and a way to older ones. NAME.atom is such a
# document too, unless it is asked for sync data or for what is behind a position.
_DOCUMENTS = frozenset({n.HTML, n.RSS, n.JSON_FEED, n.ESS, n.OPML})
_CALLABLE = (n.JSON, n.ATOM)
_PUBLIC = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Link",
    "Cache-Control": "no-cache",
}
_PRIVATE = {"Cache-Control": "private, no-cache"}
_OF_FORM = {n.HTML: {"Content-Security-Policy": PAGE_POLICY}}
_VARY = "Accept, Accept-Encoding, Authorization"

_CONTENT: Content = {form.bare_type: {"type": "string"} for form in n.OF_FEED} | {
    n.JSON.bare_type: ref("Collection"),
    n.JSON_FEED.bare_type: ref("JsonFeed"),
}
_SCRIPT: Content = {n.JAVASCRIPT.partition(";")[0]: {"type": "string"}}

PULL = Operation(
    "pull",
    "A page of a feed in the accepted media type; text/event-stream continues with the changes",
    {200: {**_CONTENT, **_SCRIPT}},
    errors=(406,),
    parameters=(SINCE, UNTIL, MAX, TIMEOUT, CALLBACK, *VIEW_PARAMETERS, IF_NONE_MATCH, LAST_EVENT_ID),
    scope=Scope.READ,
    cors=True,
    hint="; items are published at /entries/NAME/",
)
DOCUMENT = Operation(
    "document",
    "The newest items of a feed as a document, for readers that know no positions",
    # An unknown suffix belongs to the name of the feed, whose address redirects.
    {200: {form.bare_type: _CONTENT[form.bare_type] for form in SUFFIXES.values()} | {**_SCRIPT}, 308: {}},
    parameters=(SINCE, UNTIL, MAX_OR_ALL, TIMEOUT, CALLBACK, *VIEW_PARAMETERS, IF_NONE_MATCH),
    scope=Scope.READ,
    cors=True,
)
FEED_REDIRECT = Operation("feedRedirect", "Redirect to the address with a slash at its end", {308: {}}, cors=True)

Pull = Callable[[PullFeed], Awaitable[FeedPage]]
# A document of a page, for the forms that are not made here.
Write = Callable[[FeedPage, Place], bytes]


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that an answer depends on beside the feed's state. Requests that are alike are equal.

    `document` wants the newest items whatever the position, which was not given; `reader` wants a document for feed
    readers. `credential` is the token that the actor came with, "" for nobody.
    """

    place: Place
    form: Form
    actor: Jid
    document: bool
    reader: bool
    zipped: bool
    credential: str = field(default="", repr=False)

    def request(self, service: str, known: frozenset[str] = frozenset(), asker: str = "") -> PullFeed:
        """The pull to be made. A feed without parameters is the Smart view in modified order, where deletions are
        seen; a document of it is what stock clients see, the bare node."""
        query, reader = self.place.query, self.reader
        # Only Atom and JSON carry sync data whole: in the others deletions or payloads would not be what is merged.
        view = query.plain_view if reader and self.form is not n.HTML else query.view
        return PullFeed(
            self.actor,
            service,
            self.place.name,
            view,
            stock=self.document or reader,
            page=ResultSetRequest(query.max, None, "") if self.document else query.page,
            known=known,
            both_sides=reader or (self.form is n.ATOM and query.sync),
            asker=asker if self.actor is ANONYMOUS else "",
        )


@dataclass(frozen=True, slots=True)
class News:
    """What those who wait get: an answer and the bare cursor to go on from, "" where there is no going on. `seen` is
    which change of the feeds it has in it (`Waiting.changes`); `more` tells that there is another page already."""

    reply: Reply
    cursor: str
    seen: int
    more: bool = False


class Feeds:
    """Answers GET and HEAD of feeds. `writers` make the documents, `encoder` makes pulls."""

    def __init__(
        self,
        pull: Pull,
        authenticate: Authenticate,
        service: str,
        encoder: Encoder,
        writers: Mapping[Form, Write],
        *,
        poll_default_s: int,
        poll_max_s: int,
    ) -> None:
        self._pull = pull
        self._authenticate = authenticate
        self._service = service
        self._encoder = encoder
        self._pulls: Mapping[Form, Write] = {n.JSON: encoder.json, n.ATOM: encoder.atom}
        self._documents = writers
        self._poll_default_s = poll_default_s
        self._poll_max_s = poll_max_s
        self._kept: Kept[Asked, tuple[str, Reply]] = Kept(KEPT_BYTES)
        self._making = asyncio.Lock()
        self._shared = Shared(self._now)
        self.kept_hits = 0
        self.waiting: Waiting[Asked, News] = Waiting(self.news, lambda news: news.reply.raw())

    async def get(self, call: Call) -> Reply:
        """A page now, or after the wait when there is nothing in range. Raises FeedError."""
        query = read_query(call.query)
        if query.whole:
            raise FeedError(Condition.BAD_REQUEST, "max=all is for the document NAME.atom?sync=true")
        if query.callback and call.credential:
            # A script of any page gets what a callback gets: it must not get what a browser's password lets it.
            raise FeedError(Condition.FORBIDDEN, "a callback is for what everybody may read")
        asked = self.asked(call, query)
        seen = self.waiting.changes
        none_match = call.header("If-None-Match")
        answer, reply = await self._shared.get((asked, _known(none_match, asked)), call.address)
        if is_any(none_match) and "ETag" in reply.headers:
            headers = {name: text for name, text in reply.headers.items() if name != "Content-Encoding"}
            return Reply(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        wait_s = self._wait_s(call, asked, query.timeout_s)
        if answer is None or items_of(answer) or not wait_s:
            return reply
        write = early_writer(call.request)
        news = await self.waiting.wait(answer.node.node_no, asked, seen, wait_s, write)
        if news is None:
            return (await self._shared.get((asked, frozenset()), call.address))[1]
        call.written = write is not None
        return news.reply

    def asked(self, call: Call, query: FeedQuery) -> Asked:
        """What a call asks for. Raises HttpError where no offered form is wanted."""
        form = _form(call.header("Accept"), call.suffix, query.callback)
        reader = form in _DOCUMENTS or _is_atom_document(form, call.suffix, query)
        document = reader and query.since is None and query.until is None
        document = document or bool(call.suffix and not query.positioned)
        place = Place(call.origin, call.name, replace(query, timeout_s=None))
        zipped = n.takes_gzip(call.header("Accept-Encoding"))
        return Asked(place, form, call.actor, document, reader, zipped, call.credential)

    async def page(self, asked: Asked) -> FeedPage:
        """The page itself. Raises FeedError."""
        return await self._pull(asked.request(self._service))

    async def news(self, asked: Asked) -> News | None:
        """A page that has items, or the reason why there will be none; None where there is nothing yet."""
        seen = self.waiting.changes
        try:
            if asked.credential:
                await self._authenticate(asked.credential)
            answer = await self.page(asked)
            if not items_of(answer):
                return None
            reply = await self._made(asked, answer)
        except Exception as error:  # noqa: BLE001 - a failure in one view must not end the waits in the other views
            return News(failure_reply(error, "held", anonymous=asked.actor is ANONYMOUS)[0], "", seen)
        return News(reply, last_cursor(answer, asked.place.query), seen, answer.newer)

    async def _now(self, wanted: tuple[Asked, frozenset[str]], asker: str) -> tuple[FeedPage | None, Reply]:
        """The page and its answer; no page where the asker, who knows some versions, or the memory here, has it."""
        asked, known = wanted
        kept = self._kept.get(asked)
        versions = known if kept is None else known | {kept[0]}
        answer = await self._pull(asked.request(self._service, versions, asker))
        if answer.page is not None:
            return answer, await self._made(asked, answer)
        if answer.version in known:
            return None, Reply(status=HTTPStatus.NOT_MODIFIED, headers=_headers(asked, answer))
        assert kept is not None
        self.kept_hits += 1
        return None, kept[1]

    async def _made(self, asked: Asked, answer: FeedPage) -> Reply:
        """The answer that a page is. One that has not been read lately takes milliseconds: one is made at a time, and
        then others have their turn."""
        if not items_of(answer):
            return self._reply(asked, answer)
        async with self._making:
            reply = self._reply(asked, answer)
            await asyncio.sleep(0)
        self._kept.put(asked, (answer.version, reply), len(reply.body))
        return reply

    def _reply(self, asked: Asked, answer: FeedPage) -> Reply:
        writers = self._documents if asked.reader else self._pulls
        body = writers[asked.form](answer, asked.place)
        media_type, callback = asked.form.media_type, asked.place.query.callback
        if callback:
            body = in_callback(callback, body, text=asked.form is n.ATOM)
            media_type = n.JAVASCRIPT
        reply = Reply(body, media_type, headers=_headers(asked, answer))
        return reply.zipped() if asked.zipped else reply

    def _wait_s(self, call: Call, asked: Asked, timeout_s: int | None) -> int:
        """How long to hold the pull when it has no items (A-11)."""
        query = asked.place.query
        if call.method == "HEAD" or asked.reader or query.until is not None or query.max == "0":
            return 0
        if timeout_s is None:
            return 0 if asked.document else self._poll_default_s
        return min(timeout_s, self._poll_max_s)


async def redirect(call: Call) -> Reply:
    """The address of a feed without its slash redirects to the address with it."""
    query = f"?{call.query}" if call.query else ""
    return Reply(status=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": f"{feed_path(call.name)}{query}"})


def _is_atom_document(form: Form, suffix: str, query: FeedQuery) -> bool:
    """Whether Atom is asked for as a feed reader does: by suffix, without sync data, from the newest item backwards."""
    return form is n.ATOM and bool(suffix) and query.since is None and not query.sync


def _form(accept: str, suffix: str, callback: str) -> Form:
    """The form of the answer. With a callback a script is wanted, and Accept chooses what is in it (SF-059)."""
    form = SUFFIXES[suffix] if suffix else n.choose(accept, _CALLABLE if callback else n.OF_FEED)
    if callback:
        form = form or n.JSON
        if form not in _CALLABLE:
            raise HttpError(HTTPStatus.BAD_REQUEST, "a callback gets JSON or Atom")
    if form is None:
        offered = ", ".join(form.asked_as[0] for form in n.OF_FEED)
        raise HttpError(HTTPStatus.NOT_ACCEPTABLE, f"a feed is one of {offered}")
    return form


def _headers(asked: Asked, answer: FeedPage) -> dict[str, str]:
    headers = dict(_PUBLIC if answer.public and asked.actor is ANONYMOUS else _PRIVATE)
    headers["Vary"] = _VARY
    headers["Link"] = _links(asked, answer)
    headers.update(_OF_FORM.get(asked.form, {}))
    # Who got nothing may wait for more, and must not be told that nothing is what it has.
    if answer.page is None or answer.page.items:
        headers["ETag"] = _etag(asked, answer.version)
    return headers


def _links(asked: Asked, answer: FeedPage) -> str:
    """The ways to get at the feed (SF-112; ESS-024)."""
    place = asked.place
    plain = replace(place, query=FeedQuery(place.query.view))
    view = f"?{place.query.view}" if place.query.view else ""
    links = [f'<{plain.base_url}>; rel="self"']
    for form in n.LINKED:
        address = f"{place.origin}{feed_path(place.name, form.suffix)}{view}"
        links.append(f'<{address}>; rel="alternate"; type="{form.asked_as[0]}"')
    links.append(f'<{place.origin}{list_path(n.NNO.suffix)}>; rel="alternate"; type="{n.NNO.media_type}"')
    return ", ".join(links) if is_feed(answer.node) else links[0]


def _etag(asked: Asked, version: str) -> str:
    return f'W/"{version}.{asked.form.suffix}.{__version__}"'


def _known(header: str, asked: Asked) -> frozenset[str]:
    """The versions that If-None-Match names for this form."""
    end = f".{asked.form.suffix}.{__version__}"
    return frozenset(tag.removesuffix(end) for tag in tags_of(header) if tag.endswith(end))
