"""The nodes of the `[[nno]]` sections, in the running service."""

from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.nno.planet import Planet, ess_reader, feeds_reader
from smartfeeds.features.nno.settings import NnoSettings
from smartfeeds.features.polling.poller import PollClients
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.service.feed_pages import outline_reader


def run_planets(host: Host) -> Running:
    """Returns a duty for each section."""
    sections = host.settings.sections(NnoSettings)
    readers = {reader(section.node) for section in sections for reader in (ess_reader, feeds_reader, outline_reader)}
    return Running(
        duties=tuple((f"nno {section.node}", partial(_run, host, section)) for section in sections),
        document_readers=lambda _tx: readers,
    )


async def _run(host: Host, section: NnoSettings) -> None:
    await planet_of(host, section).run()


def planet_of(host: Host, section: NnoSettings) -> Planet:
    """Returns what fills the node of a section."""
    clients = host.parts.get(PollClients)
    fetcher = clients.private if section.allow_private else clients.listed
    return Planet(section, host.service, fetcher, host.parts.get(SourceTools))
