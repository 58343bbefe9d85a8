"""What loads enclosures in advance, from the settings. Without a folder it does nothing (PRE-036)."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from ipaddress import ip_network

from smartfeeds.app.config import Settings
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.enclosure_load import DOWNLOAD_LIMITS, LOAD_LIMITS
from smartfeeds.features.prefetch.metrics import EnclosureReading
from smartfeeds.features.prefetch.prefetcher import Prefetcher
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.net.fetch import Fetcher
from smartfeeds.net.limiter import HostLimiter
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.files import FileFolder


class Prefetch:
    """The prefetcher and its complete files, None without a folder. `clients` are open while it runs."""

    def __init__(self, settings: Settings, service: FeedService, tools: SourceTools) -> None:
        self.clients: tuple[Fetcher, ...] = ()
        self.files: FileFolder | None = None
        self.prefetcher: Prefetcher | None = None
        path, plan = settings.section(PrefetchSettings).folder, service.policy.prefetch
        if path is None or plan is None:
            return
        folder = EnclosureFolder(path)
        # Settings of a source do not open private networks here: its feed chooses the addresses.
        limits = replace(DOWNLOAD_LIMITS, allowed=tuple(map(ip_network, settings.sources.allowed_networks)))
        client = Fetcher(limits, limiter=HostLimiter(LOAD_LIMITS), contact=settings.http.base_url)
        self.clients, self.files = (client,), folder.complete
        self.prefetcher = Prefetcher(service, client, folder, plan, tools)

    def duties(self) -> Iterator[tuple[str, Callable[[], Coroutine[None, None, None]]]]:
        """The work that one process does, with its name."""
        if self.prefetcher is not None:
            yield "prefetch", self.prefetcher.run

    def readings(self) -> tuple[EnclosureReading, ...]:
        """The numbers of enclosures, for metrics."""
        return () if self.prefetcher is None else self.prefetcher.readings()
