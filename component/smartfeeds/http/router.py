"""Dispatches each HTTP request to a route and turns every outcome into a response; the HTTP side of `xmpp/router.py`.

aiohttp's `web.Application` is not used: its routing and one middleware add 12 us to the 44 us of a small request, and
it decodes `%FF` to the text "%FF", so that two addresses would name one feed.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from itertools import groupby
from typing import Final, NamedTuple

from aiohttp import HttpVersion10, HttpVersion11, web

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.token import Token, TokenScope, covers
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.authentication import Authenticator
from smartfeeds.http.calls import CallReader, HttpCall, is_from_here
from smartfeeds.http.http_errors import HttpError, Problem, as_text, failure_reply
from smartfeeds.http.negotiation import FORM_TYPES, PLAIN
from smartfeeds.http.operations import METHODS, Operation
from smartfeeds.http.page_writer import PageWriter
from smartfeeds.http.paths import PathTemplate, decode_value, first_segment, no_such_name
from smartfeeds.http.replies import ALREADY_SENT, Reply, has_begun, write_at_once

CORS_HEADERS = "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID"
CORS_AGE_S = 86_400
_VERSIONS = frozenset({HttpVersion10, HttpVersion11})
# Most requests are for few paths. A path that is remembered takes 1 us, another one 8 us.
REMEMBERED_PATHS: Final = 512
_REMEMBERED_CHARACTERS: Final = 256  # a longer path is not remembered, because clients choose it
_SERVER = "*"  # the target of OPTIONS for the server itself (RFC 9110 9.3.7)

Answered = Reply | web.StreamResponse
Handler = Callable[[HttpCall], Awaitable[Answered]]
Observe = Callable[[str, str, float], None]


@dataclass(frozen=True, slots=True)
class PathResource:
    """A path with its methods. HEAD is served by the handler of GET. `metric` labels its requests in the metrics."""

    template: PathTemplate
    metric: str
    methods: dict[str, tuple[Operation, Handler]] = field(default_factory=dict)

    def allowed(self, token: Token | None, feed: str) -> str:
        """The value of Allow: the methods; with a token, those that its scope covers (RFC 9110 10.2.1)."""
        methods = [
            method
            for method, (operation, _) in self.methods.items()
            if token is None or operation.scope is None or covers(token, operation.scope, feed)
        ]
        return ", ".join([*_with_head(methods), "OPTIONS"])

    @property
    def plain_errors(self) -> bool:
        """Whether errors are plain text."""
        return any(operation.plain_errors for operation, _ in self.methods.values())

    @property
    def cors(self) -> bool:
        """Whether pages of other hosts may use any of the methods."""
        return any(operation.cors for operation, _ in self.methods.values())


class Target(NamedTuple):
    """The resource of a path, and what the path names (`HttpCall`). Nothing can have a name that is not `possible`.
    `is_text`: XML can carry what the path names."""

    resource: PathResource
    name: str = ""
    item_id: str = ""
    suffix: str = ""
    subject: str = ""
    possible: bool = True
    is_text: bool = True


class HttpRouter:
    """Answers every request. `pages` writes errors for browsers. If a path fits several templates, the one with the
    longest fixed text is taken, so the order of `resources` does not matter."""

    def __init__(
        self,
        callers: CallReader,
        resources: Iterable[PathResource],
        authenticator: Authenticator,
        pages: PageWriter,
        observe: Observe,
    ) -> None:
        self._callers = callers
        resources = sorted(resources, key=lambda resource: -resource.template.fixed_length)
        # A path that is fixed as a whole needs no search, and another one is compared with few templates.
        self._fixed = {resource.template.text: resource for resource in resources if not resource.template.variables}
        by_segment = sorted(resources, key=_segment)  # those of a segment stay in their order
        self._templates = {segment: list(group) for segment, group in groupby(by_segment, _segment)}
        server = PathResource(PathTemplate(_SERVER), "http_options")
        for resource in resources:
            server.methods.update(resource.methods)
        self._fixed[_SERVER] = server
        self._remembered = lru_cache(REMEMBERED_PATHS)(self._target)
        self._authenticator = authenticator
        self._pages = pages
        self._observe = observe

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response. Every exception of a request ends here, except that its connection or its task ended."""
        start_s = time.perf_counter()
        exchange = _Exchange(request)
        answered: Answered
        # Two handlers, and no function around both: each coroutine that waits for another one is entered twice.
        try:
            answered = await self._answer(exchange)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: nothing else may reach aiohttp
            answered = exchange.failure(error)
        answer_s = time.perf_counter() - start_s
        try:
            return await _response(exchange, answered, self._pages)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            return _last_response(exchange, exchange.failure(error))
        finally:
            self._observe(exchange.metric, exchange.outcome, answer_s)

    def _target(self, path: str, *, is_post: bool) -> Target:
        """Returns the resource at a path, with the values in the path. Raises HttpError(404)."""
        # People forget the slash at the end of an address. A redirect would lose the body of a post in many clients.
        also = (f"{path}/",) if is_post and not path.endswith("/") else ()
        for each in (path, *also):
            if (resource := self._fixed.get(each)) is not None:
                return Target(resource)
            for resource in self._templates.get(first_segment(each), ()):
                if (values := resource.template.match(each)) is not None:
                    return _target_of(resource, values)
        raise HttpError(HTTPStatus.NOT_FOUND, "there is no such page; the feeds are under /feeds/")

    async def _answer(self, exchange: "_Exchange") -> Answered:
        if exchange.request.version not in _VERSIONS:
            raise HttpError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "use HTTP/1.1 or 1.0")
        call = exchange.call = self._callers.read(exchange.request)
        method = call.method
        find = self._remembered if len(call.path) <= _REMEMBERED_CHARACTERS else self._target
        target = find(call.path, is_post=method == "POST")
        resource, call.name, call.item_id, call.suffix, call.subject, possible, is_text = target
        exchange.resource, exchange.metric = resource, resource.metric
        if call.credential or "Cookie" in call.request.headers:
            await self._authenticator.identify(call)
        if not possible:
            raise no_such_name()
        route = resource.methods.get("GET" if method == "HEAD" else method)
        if route is None or resource.template.text == _SERVER:
            return _without_handler(call, resource)
        operation, handler = route
        _authorize(call, operation)
        if not is_text:
            raise FeedError(Condition.BAD_REQUEST, "names and ids cannot hold characters that XML cannot carry")
        if operation.guests or (call.session_id and not operation.own_token):
            await self._authenticator.check_form(call)
        return await handler(call)


@dataclass(slots=True)
class _Exchange:
    """A request on its way through the router. `call` and `resource` are None if the request failed before them.
    `outcome` labels it in the metrics, and `metric` its operation, also in the log."""

    request: web.BaseRequest
    call: HttpCall | None = None
    resource: PathResource | None = None
    outcome: str = "ok"
    metric: str = "unread"

    def failure(self, error: Exception) -> Reply:
        """The response to a failure, which becomes the outcome."""
        anonymous = self.call is None or self.call.actor is ANONYMOUS
        reply, self.outcome = failure_reply(error, self.metric, anonymous=anonymous)
        return reply


async def _response(exchange: _Exchange, answered: Answered, pages: PageWriter) -> web.StreamResponse:
    """Writes the response, for browsers with a page for people."""
    call = exchange.call
    if call is not None and call.written:
        return ALREADY_SENT
    if isinstance(answered, web.StreamResponse):
        return answered
    reply = answered
    if isinstance(reply, Problem):
        if exchange.resource is not None and exchange.resource.plain_errors:
            reply = as_text(reply)
        elif call is not None:
            reply = pages.problem(call, reply)
    _check_unsent(exchange.request)
    # aiohttp's own writer takes 10 us more. It writes the other responses, and adds the headers of the connection.
    if exchange.request.method != "GET" or not write_at_once(exchange.request, reply):
        return reply.response()
    await exchange.request.writer.drain()
    return ALREADY_SENT


def _last_response(exchange: _Exchange, problem: Reply) -> web.StreamResponse:
    """The response to a request whose response cannot be written: the problem as JSON, and the connection ends."""
    _check_unsent(exchange.request)
    response = problem.response()
    response.force_close()
    return response


def _check_unsent(request: web.BaseRequest) -> None:
    """Raises ConnectionResetError if a part of a response was sent already."""
    if has_begun(request):
        raise ConnectionResetError("a response that had begun cannot be finished")


def _target_of(resource: PathResource, values: Mapping[str, str]) -> Target:
    """The target of a path with these raw values of its variables."""
    try:
        name, item_id = (decode_value(values[part]) if part in values else "" for part in ("name", "id"))
        subject = next((decode_value(values[part]) for part in ("jid", "token") if part in values), "")
    except FeedError:
        return Target(resource, possible=False)
    is_text = is_xml_text(f"{name}{item_id}{subject}")
    return Target(resource, name, item_id, values.get("suffix", ""), subject, is_text=is_text)


def _authorize(call: HttpCall, operation: Operation) -> None:
    """Raises FeedError if the caller may not use the operation, HttpError for a form of another site.

    A browser that knows the password of Basic sends it with any form, whatever page the form is on. So a form is
    checked first: otherwise a page of another host could make the browser ask its user for the password.
    """
    # Most operations take no body.
    media_type = call.media_type if operation.body else ""
    is_form = media_type in FORM_TYPES and (media_type or PLAIN) in operation.body
    if is_form and not operation.any_site and not is_from_here(call):
        raise HttpError(HTTPStatus.FORBIDDEN, "a form must be sent from a page of this service; programs send JSON")
    if operation.scope is not None:
        if call.token is None and operation.scope is not TokenScope.READ:
            feeds = "on this feed" if call.name else "for all feeds"
            text = f"this takes a bearer token with the scope {operation.scope.text} {feeds}"
            raise FeedError(Condition.NOT_AUTHORIZED, text)
        if call.token is not None:
            call.require(operation.scope, call.name)


def _segment(resource: PathResource) -> str:
    return first_segment(resource.template.text)


def _with_head(methods: Iterable[str]) -> list[str]:
    ordered = sorted(methods, key=METHODS.index)
    return [name for method in ordered for name in ((method, "HEAD") if method == "GET" else (method,))]


def _without_handler(call: HttpCall, resource: PathResource) -> Reply:
    """OPTIONS: the methods; for pages of other hosts, those that they may use (the Fetch standard, CORS).

    Raises HttpError(405) with the same methods for every other method.
    """
    allowed = resource.allowed(call.token, call.name)
    if call.method != "OPTIONS":
        hint = "".join(operation.hint for operation, _ in resource.methods.values())
        text = f"the methods of this address are {allowed}{hint}"
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=allowed)
    headers = {"Allow": allowed}
    if resource.cors and call.header("Origin"):
        methods = [method for method, (operation, _) in resource.methods.items() if operation.cors]
        headers |= {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": ", ".join(_with_head(methods)),
            "Access-Control-Allow-Headers": CORS_HEADERS,
            "Access-Control-Max-Age": str(CORS_AGE_S),
        }
    return Reply(status=HTTPStatus.NO_CONTENT, headers=headers)
