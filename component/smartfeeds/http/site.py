"""The HTTP side put together: the objects that hold the handlers, over one service. The routes are in `routes.py`."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any, cast

from smartfeeds.errors import Condition, FeedError
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import CallReader, HttpCall, networks_of
from smartfeeds.http.changes import Changes
from smartfeeds.http.complete import CompleteFeeds, is_complete
from smartfeeds.http.documents import document_writers
from smartfeeds.http.encode import Encoder
from smartfeeds.http.entries import Entries
from smartfeeds.http.feeds import Feeds, FeedWriting
from smartfeeds.http.health import Health
from smartfeeds.http.lists import Lists
from smartfeeds.http.openapi import OpenApiDocument
from smartfeeds.http.publishing import Publishing
from smartfeeds.http.quotas import Quota
from smartfeeds.http.requirements import Requirements
from smartfeeds.http.router import Answered, HttpRouter, Observe
from smartfeeds.http.routes import TABLE, Handlers, document
from smartfeeds.http.server import HttpListener
from smartfeeds.http.settings import HttpSettings
from smartfeeds.http.side import Backend, HttpSide, SiteTools, authenticator_of, links_of, page_writer_of, resources
from smartfeeds.http.streams import Streams
from smartfeeds.parts import Parts
from smartfeeds.service.networks import network_of
from smartfeeds.service.requests import FeedPage, PullFeed

TOO_MANY = "too many requests for feeds at once from your address; wait for one to end"


class Site:
    """Handles the requests that `listener` accepts. `sides` are those of the features. Call `stop` once."""

    def __init__(
        self, settings: HttpSettings, backend: Backend, health: Health, observe: Observe, sides: Sequence[HttpSide[Any]]
    ) -> None:
        handle, domain, parts, forms = backend.handle, backend.domain, backend.parts, backend.forms
        self._pull = cast("Callable[[PullFeed], Awaitable[FeedPage]]", handle)  # the answer to this request
        encoder = Encoder()
        links = links_of(sides, parts)
        authenticator = authenticator_of(sides, handle, backend.bodies, domain, parts)
        pages = page_writer_of(sides, handle, domain, forms)
        self._changes = changes = Changes(handle)
        entries = Entries(handle, domain, encoder, pages, links)
        publishing = Publishing(changes.perform, domain, backend.bodies, entries)
        self.feeds = Feeds(
            self._pull,
            authenticator.authenticate,
            domain,
            FeedWriting(encoder, forms, document_writers(forms, backend.now_us), pages, links),
            poll_default_s=settings.poll_default_s,
            poll_max_s=settings.poll_max_s,
        )
        self._complete = CompleteFeeds(self._pull, authenticator.authenticate, domain)
        self._streams = Streams(self.feeds, authenticator.authenticate, heartbeat_s=settings.heartbeat_s)
        content = cache(partial(document, sides, forms))
        tools = SiteTools(
            handle=handle,
            domain=domain,
            now_us=backend.now_us,
            bodies=backend.bodies,
            parts=parts,
            forms=forms,
            perform=changes.perform,
            authenticator=authenticator,
            publish=publishing.publish,
            openapi=content,
        )
        made = [(side, side.handlers(tools)) for side in sides]
        lists = {form: get(handlers) for side, handlers in made for form, get in side.lists.items()}
        kernel = Handlers(
            pull=self._get_feed,
            lists=Lists(handle, domain, pages, backend.now_us, forms, lists),
            entries=entries,
            publishing=publishing,
            requirements=Requirements(self._pull, domain, forms.suffixes, has_hub=links.has_hub),
            health=health,
            openapi=OpenApiDocument(content),
        )
        tables = [(TABLE, kernel), *((side.routes, handlers) for side, handlers in made)]
        self.handlers = Parts()
        for _, handlers in tables:
            self.handlers.add(handlers)
        callers = CallReader(networks_of(settings.proxies), settings.base_url, parts)
        self.router = HttpRouter(callers, resources(tables, forms.suffixes), authenticator, pages, observe)
        self.listener = HttpListener(self.router, settings)
        self.behind_proxies = Quota(settings.connections_per_address)

    def readings(self) -> dict[str, int]:
        """The metrics of connections and pulls, by name."""
        return {
            "http_connections": self.listener.connections,
            "http_refused": self.listener.refused,
            "http_unreadable": self.listener.unreadable,
            "http_held": self.feeds.waiting.held,
            "http_kept": self.feeds.cache_hits,
        }

    async def stop(self) -> None:
        """Closes every connection and finishes changes that have begun."""
        await self.feeds.waiting.stop()
        await self.listener.stop()
        await self._changes.stop()

    def _get_feed(self, call: HttpCall) -> Awaitable[Answered]:
        return self._in_turn(call) if call.proxied else self._read_feed(call)

    async def _in_turn(self, call: HttpCall) -> Answered:
        # A client that connects directly is bounded by its connections. The connections of a proxy belong to many
        # clients, so the requests of each client are counted instead.
        network = network_of(call.address)
        if not self.behind_proxies.take(network):
            raise FeedError(Condition.BUSY, TOO_MANY)
        try:
            return await self._read_feed(call)
        finally:
            self.behind_proxies.release(network)

    def _read_feed(self, call: HttpCall) -> Awaitable[Answered]:
        if call.suffix:
            return self._complete.get(call) if is_complete(call) else self.feeds.get(call)
        if n.choose(call.header("Accept"), self.feeds.forms) is n.EVENTS:
            return self._streams.get(call)
        return self.feeds.get(call)
