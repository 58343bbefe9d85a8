"""Sets up the prefetcher of enclosures."""

from dataclasses import replace

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.enclosure_load import DOWNLOAD_LIMITS, LOAD_LIMITS
from smartfeeds.features.prefetch.held_items import document_readers
from smartfeeds.features.prefetch.prefetcher import Prefetcher
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.limiter import HostLimiter


def run_prefetch(host: Host) -> Running:
    """Returns the prefetcher and the folder of its files; nothing without a folder (PRE-036)."""
    settings, section = host.settings, host.settings.section(PrefetchSettings)
    if section.folder is None:
        return Running(document_readers=document_readers)
    folder = EnclosureFolder(section.folder)
    # Settings of a source do not open private networks here: its feed chooses the addresses.
    limits = replace(DOWNLOAD_LIMITS, allowed=settings.sources.networks)
    client = Fetcher(limits, limiter=HostLimiter(LOAD_LIMITS), contact=settings.http.base_url)
    prefetcher = Prefetcher(host.service, client, folder, section, host.parts.get(SourceTools))
    return Running(
        duties=(("prefetch", prefetcher.run),),
        parts=(prefetcher, folder),
        clients=(client,),
        document_readers=document_readers,
        readings=prefetcher.readings,
    )
