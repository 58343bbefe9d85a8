"""What polls other servers, from the settings: the sources, and the nodes of `[[nno]]` sections."""

from collections.abc import Coroutine, Iterator
from functools import partial
from ipaddress import ip_network

from smartfeeds.config import Settings
from smartfeeds.config_lists import NnoSettings
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits
from smartfeeds.net.limiter import POLL_LIMITS, HostLimiter
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.sources import set_configured_sources
from smartfeeds.sources.planet import Planet, PlanetSettings
from smartfeeds.sources.poller import PollClients, Poller
from smartfeeds.sources.tools import SourceTools


class Polls:
    """The poller and the planets. `fetchers` are open while they run."""

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
                for networks in (allowed, EVERYWHERE)
            )
        )
        self.poller = Poller(service, self.fetchers, tools, settings.http.base_url)

    async def start(self) -> None:
        """Stores the sources of the configuration. Raises StoreError."""
        sources = [section.to_source(self._tools.now_us()) for section in self._settings.source]
        await self._service.write(partial(set_configured_sources, sources=sources))

    def tasks(self) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """What runs until it is cancelled, with its names."""
        yield "sources", self.poller.run()
        for section in self._settings.nno:
            yield f"nno {section.node}", self._planet(section).run()

    def _planet(self, section: NnoSettings) -> Planet:
        """Fills a node with the newest entries of other feeds (`sources.planet`)."""
        domain = self._settings.component.jid
        owner = parse_jid(section.owner or domain) or Jid("", domain)
        plan = PlanetSettings(section.node, section.urls, section.entries, section.every_s, owner)
        fetcher = self.fetchers.private if section.allow_private else self.fetchers.public
        return Planet(plan, self._service, fetcher, self._tools)
