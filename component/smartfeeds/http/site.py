"""The HTTP side put together: every route, over one service."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus

from smartfeeds.core.model import Node
from smartfeeds.core.tokens import Scope
from smartfeeds.core.urls import CONFLICTS, ENTRIES, FEEDS, FeedPath, feed_path, read_feed_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http import lists
from smartfeeds.http import negotiation as n
from smartfeeds.http.bodies import Admit, Bodies
from smartfeeds.http.calls import Authenticate, Call, Callers, Network
from smartfeeds.http.complete import Complete, is_complete
from smartfeeds.http.conflicts import Conflicts
from smartfeeds.http.documents import document_writers
from smartfeeds.http.encode import Encoder
from smartfeeds.http.entries import Entries
from smartfeeds.http.feeds import SUFFIXES, Feeds
from smartfeeds.http.health import Health, Watch
from smartfeeds.http.lists import Lists
from smartfeeds.http.openapi import OPENAPI, get_openapi
from smartfeeds.http.pages import Pages
from smartfeeds.http.publishing import Publishing
from smartfeeds.http.replies import Reply
from smartfeeds.http.router import Answered, Observe, Route, Router
from smartfeeds.http.server import Bounds, Listener, PerAddress
from smartfeeds.http.static import ICON, LOGIN, STATIC, get_icon, get_login, get_root, get_static
from smartfeeds.http.streams import Streams
from smartfeeds.service.documents import version_of
from smartfeeds.service.feeds import Answer, FeedService
from smartfeeds.service.requests import FeedPage, PullFeed, Request


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What the operator decided. `base_url` is scheme and host, "" to take what was asked for. `body_bytes` and
    `body_s` bound what is sent to us, and how long that may take."""

    listen: str
    domain: str
    base_url: str
    proxies: tuple[Network, ...]
    poll_default_s: int
    poll_max_s: int
    heartbeat_s: float
    body_bytes: int
    body_s: float
    bounds: Bounds


TOO_MANY = "your address asks for too many feeds at once"


class Site:
    """Listens and answers. `handle` is the service; `start` and `stop` once."""

    def __init__(
        self,
        options: HttpOptions,
        handle: Callable[[Request], Awaitable[Answer]],
        authenticate: Authenticate,
        observe: Observe,
        watch: Watch,
        now_us: Callable[[], int],
        admit: Admit,
    ) -> None:
        self._handle = handle
        self._health = Health(watch)
        self._versions: dict[int, str] = {}
        encoder = Encoder()
        self._entries = Entries(handle, options.domain, encoder)
        bodies = Bodies(options.body_bytes, options.body_s, admit)
        self._publishing = Publishing(handle, options.domain, bodies, self._entries)
        self._conflicts = Conflicts(handle, self._publishing.change, options.domain, bodies)
        self._lists = Lists(handle, options.domain, now_us)
        self.feeds = Feeds(
            self._pull,
            authenticate,
            options.domain,
            encoder,
            {n.HTML: Pages(options.domain).feed, **document_writers(now_us)},
            poll_default_s=options.poll_default_s,
            poll_max_s=options.poll_max_s,
        )
        self._complete = Complete(self._pull, authenticate, options.domain)
        self._streams = Streams(self.feeds, authenticate, heartbeat_s=options.heartbeat_s)
        router = Router(Callers(options.proxies, options.base_url), self._routes(), authenticate, observe)
        self.listener = Listener(router, options.listen, options.bounds, options.proxies)
        self.behind_proxies = PerAddress(options.bounds.per_address)

    async def bind(self) -> None:
        """Reserves the address. Raises ConfigError."""
        await self.listener.bind()

    def unbind(self) -> None:
        """Releases the address of a site that was not started."""
        self.listener.unbind()

    async def start(self) -> None:
        """Begins to listen. Raises ConfigError."""
        await self.listener.start()

    async def watch(self) -> None:
        """What is to run from `start` to `stop`, and never to end by itself."""
        await self.listener.watch()

    async def stop(self) -> None:
        """Ends every connection."""
        await self.feeds.waiting.stop()
        await self.listener.stop()
        await self._publishing.stop()

    def wake(self, node_nos: Collection[int]) -> None:
        """These nodes have changed."""
        self.feeds.waiting.wake(node_nos)

    async def look(self, service: FeedService) -> None:
        """Wakes what is held on feeds that another process has written to."""
        held = self.feeds.waiting.node_nos
        if not held:
            self._versions = {}
            return
        found = await service.read(lambda tx, _context: {no: _version(tx.node_by_no(no)) for no in held})
        former, self._versions = self._versions, found
        self.wake([no for no, version in found.items() if former.get(no, version) != version])

    async def _pull(self, request: PullFeed) -> FeedPage:
        answer = await self._handle(request)
        assert isinstance(answer, FeedPage)
        return answer

    def _routes(self) -> tuple[Route, ...]:
        write = self._publishing
        of_feed = {"GET": self._feed, "PUT": write.create_feed, "DELETE": write.delete_feed}
        of_item = {
            "GET": self._entries.get,
            "POST": write.post_item,
            "PUT": write.put_item,
            "DELETE": write.delete,
        }
        return (
            Route(lists.PATH, "http_feeds", {"GET": self._lists.redirect}),
            *(Route(path, "http_feeds", {"GET": self._lists.get}, exact=True, foreign=True) for path in lists.PATHS),
            Route(FEEDS, "http_feed", of_feed, foreign=True, hint="; items go to /entries/NAME/"),
            Route(ENTRIES, "http_entries", of_item, foreign=True),
            Route(CONFLICTS, "http_conflicts", {"GET": self._conflicts.get, "POST": self._conflicts.post}),
            Route("/", "http_root", {"GET": get_root}, exact=True),
            Route(LOGIN, "http_login", {"GET": get_login}, exact=True),
            Route(STATIC, "http_static", {"GET": get_static}),
            Route(ICON, "http_static", {"GET": get_icon}),
            Route("/healthz", "http_healthz", {"GET": self._health.alive}),
            Route("/readyz", "http_readyz", {"GET": self._health.ready}),
            Route("/metrics", "http_metrics", {"GET": self._health.metrics}),
            Route(OPENAPI, "http_openapi", {"GET": get_openapi}),
        )

    async def _feed(self, call: Call) -> Answered:
        path = read_feed_path(call.path, frozenset(SUFFIXES))
        if path is None:
            return _with_slash(call)
        call.require(Scope.READ, path.name)
        if not call.proxied:
            return await self._got(call, path)
        # What bounds others are their connections; here they are the proxy's, and it says whose each request is.
        if not self.behind_proxies.take(call.address):
            raise FeedError(Condition.BUSY, TOO_MANY)
        try:
            return await self._got(call, path)
        finally:
            self.behind_proxies.release(call.address)

    async def _got(self, call: Call, path: FeedPath) -> Answered:
        if is_complete(call, path):
            return await self._complete.get(call, path)
        if not path.suffix and n.choose(call.header("Accept"), n.OF_FEED) is n.EVENTS:
            return await self._streams.get(call, path)
        return await self.feeds.get(call, path)


def _version(node: Node | None) -> str:
    return "" if node is None else version_of(node)


def _with_slash(call: Call) -> Reply:
    """A feed's address without its slash leads to the one with it."""
    path = read_feed_path(f"{call.path}/", frozenset())
    if path is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such feed")
    query = f"?{call.query}" if call.query else ""
    return Reply(status=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": f"{feed_path(path.name)}{query}"})
