"""Sets up the prefetcher of enclosures."""

from dataclasses import replace

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.enclosure_load import DOWNLOAD_LIMITS, LOAD_LIMITS, LoadClients
from smartfeeds.features.prefetch.held_items import document_readers
from smartfeeds.features.prefetch.prefetcher import Prefetcher
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.limiter import HostLimiter


def run_prefetch(host: Host) -> Running:
    """Returns the prefetcher and the folder of its files; nothing without a folder (PRE-036)."""
    settings, section = host.settings, host.settings.section(PrefetchSettings)
    if section.folder is None:
        return Running(document_readers=document_readers)
    folder = EnclosureFolder(section.folder)
    limiter = HostLimiter(LOAD_LIMITS)
    fetchers = tuple(
        Fetcher(replace(DOWNLOAD_LIMITS, allowed=networks), limiter=limiter, contact=settings.http.base_url)
        for networks in ((), settings.sources.networks, EVERYWHERE)
    )
    prefetcher = Prefetcher(host.service, LoadClients(*fetchers), folder, section, host.parts.get(SourceTools))
    return Running(
        duties=(("prefetch", prefetcher.run),),
        parts=(prefetcher, folder),
        clients=fetchers,
        document_readers=document_readers,
        readings=prefetcher.readings,
    )
