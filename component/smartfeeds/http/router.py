"""Requests to answers over HTTP: who asks, which handler, what a failure is told as; the mirror of `xmpp/router.py`.

Nothing that is no FeedError reaches the wire: it is logged under an incident id.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import structlog
from aiohttp import HttpVersion10, HttpVersion11, web

from smartfeeds.core.jid import parse_jid
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.http.calls import ANONYMOUS, Authenticate, Call, Callers
from smartfeeds.http.http_errors import STORE_AWAY, HttpError, error_reply
from smartfeeds.http.pages import for_reader
from smartfeeds.http.replies import Reply
from smartfeeds.http.wire import Written, early_writer, has_begun

CORS_HEADERS = "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID"
CORS_AGE_S = 86_400
_HEAD = frozenset({"GET", "HEAD"})
_VERSIONS = frozenset({HttpVersion10, HttpVersion11})
_EVERYTHING = "*"  # the target of OPTIONS for the server itself (RFC 9110 9.3.7)

_log = structlog.get_logger()

Answered = Reply | web.StreamResponse
Handler = Callable[[Call], Awaitable[Answered]]
Observe = Callable[[str, str, float], None]


@dataclass(frozen=True, slots=True)
class Route:
    """What is done with requests whose path is `path`, or begins with it where it ends in a slash and `exact` is not
    set. `methods` maps to handlers; HEAD goes with GET."""

    path: str
    operation: str
    methods: Mapping[str, Handler]
    exact: bool = False
    foreign: bool = False  # whether pages of other hosts may use it (CORS)
    hint: str = ""  # where else to go, for who uses another method

    def takes(self, path: str) -> bool:
        """Whether a path is for this route."""
        return path == self.path or (not self.exact and self.path.endswith("/") and path.startswith(self.path))


class Router:
    """Answers every request."""

    def __init__(
        self,
        callers: Callers,
        routes: tuple[Route, ...],
        authenticate: Authenticate,
        observe: Observe,
    ) -> None:
        self._callers = callers
        self._routes = routes
        self._authenticate = authenticate
        self._observe = observe

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer, always."""
        began_s = time.perf_counter()
        operation, outcome = "unread", "ok"
        call: Call | None = None
        route: Route | None = None
        try:
            if request.version not in _VERSIONS:
                raise HttpError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "this is spoken to with HTTP/1.1 or 1.0")
            call = self._callers.read(request)
            route = self._route(call)
            operation = route.operation
            answered = await self._answer(call, route)
        except FeedError as error:
            answered, outcome = error_reply(error, anonymous=call is None or call.actor is ANONYMOUS), _outcome(error)
        except StoreError as error:
            _log.error("store_failed", reason=str(error))
            answered, outcome = _unavailable(STORE_AWAY), "service-unavailable"
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:  # noqa: BLE001
            incident = secrets.token_hex(4)
            _log.exception("request_failed", incident=incident, operation=operation)
            answered, outcome = _internal(incident), "internal-server-error"
        self._observe(operation, outcome, time.perf_counter() - began_s)
        if call is not None and call.written:
            return Written()
        if isinstance(answered, web.StreamResponse):
            return answered
        if has_begun(request):
            raise ConnectionResetError("an answer had begun that cannot be finished")
        answered = for_reader("" if call is None else call.header("Accept"), answered)
        if route is not None and route.foreign and _is_for_all(answered.status):
            answered = answered.with_headers(Access_Control_Allow_Origin="*")
        return await _send(request, answered)

    def _route(self, call: Call) -> Route:
        if call.method == "OPTIONS" and call.path == _EVERYTHING:
            methods = {method: handler for route in self._routes for method, handler in route.methods.items()}
            return Route(_EVERYTHING, "http_options", methods)
        for route in self._routes:
            if route.takes(call.path):
                return route
        raise HttpError(HTTPStatus.NOT_FOUND, "there is nothing here; the feeds are under /feeds/")

    async def _answer(self, call: Call, route: Route) -> Answered:
        if call.method == "OPTIONS":
            return _preflight(call, route)
        handler = route.methods.get("GET" if call.method in _HEAD else call.method)
        if handler is None:
            allowed = ", ".join(_allowed(route))
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"this takes {allowed}{route.hint}", Allow=allowed)
        if call.credential:
            call.token = await self._authenticate(call.credential)
            actor = parse_jid(call.token.jid)
            assert actor is not None
            call.actor = actor
        return await handler(call)


async def _send(request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    """Writes an answer to GET as it is where the connection stays open; the rest is for aiohttp, which takes longer."""
    write = early_writer(request) if request.method == "GET" else None
    if write is None:
        return reply.response()
    write(reply.raw())
    await request.writer.drain()
    return Written()


def _allowed(route: Route) -> list[str]:
    return [name for method in route.methods for name in ((method, "HEAD") if method == "GET" else (method,))]


def _preflight(call: Call, route: Route) -> Reply:
    """OPTIONS: what there is; for pages of other hosts, what they may do (the Fetch standard, CORS)."""
    headers = {"Allow": ", ".join([*_allowed(route), "OPTIONS"])}
    if route.foreign and call.header("Origin"):
        headers |= {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": ", ".join(_allowed(route)),
            "Access-Control-Allow-Headers": CORS_HEADERS,
            "Access-Control-Max-Age": str(CORS_AGE_S),
        }
    return Reply(status=HTTPStatus.NO_CONTENT, headers=headers)


def _is_for_all(status: HTTPStatus) -> bool:
    """Whether pages of other hosts may see an answer that is not a feed: what is said of rights is not for them."""
    return status >= HTTPStatus.MULTIPLE_CHOICES and status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def _outcome(error: FeedError) -> str:
    return f"http-{error.status.value}" if isinstance(error, HttpError) else error.condition.value


def _unavailable(text: str) -> Reply:
    return error_reply(FeedError(Condition.UNAVAILABLE, text))


def _internal(incident: str) -> Reply:
    return error_reply(FeedError(Condition.INTERNAL, f"incident {incident}"))
