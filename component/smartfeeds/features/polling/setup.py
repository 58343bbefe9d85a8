"""What polls other servers and follows their hubs, from the settings."""

import secrets
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from ipaddress import ip_network
from typing import Final

import structlog

from smartfeeds.app.config import Settings
from smartfeeds.features.mirrors.mirror_hub import HubOptions
from smartfeeds.features.polling.clouds import Clouds
from smartfeeds.features.polling.finding import FeedFinder
from smartfeeds.features.polling.poller import PollClients, Poller
from smartfeeds.features.polling.push_inbox import PushInbox
from smartfeeds.features.polling.settings import SourceSection
from smartfeeds.features.polling.sources import set_configured_sources
from smartfeeds.features.polling.subscriber import PushClients, PushOptions, Subscriber
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch.setup import Prefetch
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.callbacks import CallbackClient
from smartfeeds.net.fetch import Fetcher, FetchLimits
from smartfeeds.net.limiter import POLL_LIMITS, HostLimiter
from smartfeeds.service.feeds import FeedService

Work = Callable[[], Coroutine[None, None, None]]

SEARCH_S: Final = 20.0  # a person waits so long for each request of a search

_log = structlog.get_logger()


class Polls:
    """The poller and the subscriber. `finder` is for people who name an address, and `fetchers` are those of polls.

    `inbox` is None if hubs cannot reach this service, because it has no public address, or if push is off (WS-102).
    """

    def __init__(self, settings: Settings, service: FeedService, tools: SourceTools) -> None:
        self._settings = settings
        self._service = service
        self._tools = tools
        # Polls have a limiter of their own: they are spaced by a second, and mirrors hold requests for a minute.
        limiter = HostLimiter(POLL_LIMITS)
        allowed = tuple(ip_network(text) for text in settings.sources.allowed_networks)
        self.fetchers = PollClients(
            *(
                Fetcher(FetchLimits(allowed=networks), limiter=limiter, contact=settings.http.base_url)
                for networks in ((), allowed, EVERYWHERE)
            )
        )
        own_url = settings.http.base_url
        self._can_push = bool(settings.http.listen and own_url and settings.sources.push)
        self.poller = Poller(service, self.fetchers, tools, own_url, secrets.token_urlsafe if self._can_push else None)
        # A person waits for the result of a search, so it is not spaced as polls are.
        searches = HostLimiter()
        limits = FetchLimits(total_s=SEARCH_S)
        self._search_fetchers = (
            Fetcher(limits, limiter=searches, contact=own_url),
            Fetcher(replace(limits, allowed=allowed), limiter=searches, contact=own_url),
        )
        self.finder = FeedFinder(*self._search_fetchers, self.poller, tools, own_url)
        self._push_clients = PushClients(
            *(
                CallbackClient(networks, allowed_by="sources.allowed_networks", contact=own_url)
                for networks in ((), allowed, EVERYWHERE)
            )
        )
        options = PushOptions(own_url, settings.sources.secret_over_http)
        self.inbox = (
            PushInbox(service, self.fetchers, tools, options, secrets.token_urlsafe) if self._can_push else None
        )
        self.subscriber = Subscriber(service, self._push_clients, Clouds(own_url), tools, options)
        self.prefetch = Prefetch(settings, service, tools)

    @property
    def hub_options(self) -> HubOptions:
        """What mirrors need to follow hubs."""
        return HubOptions(self._settings.http.base_url, secrets.token_urlsafe if self._can_push else None)

    def readings(self) -> Iterator[object]:
        """The metrics of everything that polls bring."""
        yield from self.poller.readings()
        yield from self.subscriber.readings()
        yield from self.prefetch.readings()

    async def start(self) -> None:
        """Stores the sources of the configuration. Raises StoreError."""
        if not self._can_push and self._settings.sources.push:
            _log.info("source_push_off", reason="http.base_url is not set; hubs cannot reach this service")
        sources = [section.to_source(self._tools.now_us()) for section in self._settings.sections(SourceSection)]
        await self._service.write(partial(set_configured_sources, sources=sources))

    @property
    def clients(self) -> tuple[Fetcher | CallbackClient, ...]:
        """What has to be open while they run."""
        return (*self._search_fetchers, *self.fetchers, *self._push_clients, *self.prefetch.clients)

    def duties(self) -> Iterator[tuple[str, Work]]:
        """The work that one process does, with its names. Each call of a work returns a run of it."""
        yield "sources", self.poller.run
        if self.inbox is not None:
            yield "hubs of sources", self.subscriber.run
        yield from self.prefetch.duties()

    def tasks(self) -> Iterator[tuple[str, Work]]:
        """The work that every process does, with its names."""
        if self.inbox is not None:
            yield "pushes of sources", self.inbox.run
