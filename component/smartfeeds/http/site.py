"""The HTTP side put together: the objects that hold the handlers, over one service. The routes are in `routes.py`."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any, cast

from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.core.limits import Quota
from smartfeeds.http.calls import CallReader
from smartfeeds.http.changes import Changes
from smartfeeds.http.complete import CompleteFeeds
from smartfeeds.http.encode import Encoder
from smartfeeds.http.entries import Entries
from smartfeeds.http.feed_documents import document_writers
from smartfeeds.http.feed_list import Lists
from smartfeeds.http.feeds import FeedReading, Feeds, FeedWriting
from smartfeeds.http.health import Health
from smartfeeds.http.openapi import OpenApiDocument
from smartfeeds.http.publishing import Publishing
from smartfeeds.http.requirements import Requirements
from smartfeeds.http.router import HttpRouter, Observe
from smartfeeds.http.routes import TABLE, Handlers, document
from smartfeeds.http.server import HttpListener
from smartfeeds.http.settings import HttpSettings
from smartfeeds.http.side import Backend, HttpSide, SiteTools, authenticator_of, links_of, page_writer_of, resources
from smartfeeds.http.streams import Streams
from smartfeeds.parts import Parts
from smartfeeds.service.requests import FeedPage, PullFeed


class Site:
    """Handles the requests that `listener` accepts. `sides` are those of the features. Call `stop` once."""

    def __init__(
        self, settings: HttpSettings, backend: Backend, health: Health, observe: Observe, sides: Sequence[HttpSide[Any]]
    ) -> None:
        handle, domain, parts, forms = backend.handle, backend.domain, backend.parts, backend.forms
        # The service answers this request with a page (`service.feeds.KERNEL`), which no type can say.
        self._pull = cast("Callable[[PullFeed], Awaitable[FeedPage]]", handle)
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
        self._streams = Streams(self.feeds, authenticator.authenticate, heartbeat_s=settings.heartbeat_s)
        complete = CompleteFeeds(self._pull, authenticator.authenticate, domain)
        self.behind_proxies = Quota(settings.connections_per_address)
        reading = FeedReading(self.feeds, self._streams.get, complete.get, self.behind_proxies)
        content = cache(partial(document, sides, forms))  # made when somebody asks for it
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
            behind_proxies=self.behind_proxies,
        )
        made = [(side, side.handlers(tools)) for side in sides]
        lists = {form: get(handlers) for side, handlers in made for form, get in side.lists.items()}
        kernel = Handlers(
            pull=reading.get,
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
        callers = CallReader(parse_networks(settings.proxies), settings.base_url, parts)
        self.router = HttpRouter(callers, resources(tables, forms.suffixes), authenticator, pages, observe)
        self.listener = HttpListener(self.router, settings)

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
        # Held pulls first, because the listener waits for requests in progress. Changes last, because requests begin
        # them.
        await self.feeds.waiting.stop()
        await self.listener.stop()
        await self._changes.stop()
