"""The nodes of the `[[nno]]` sections, in the running service."""

from collections.abc import Iterable
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.features.nno.planet import Planet, ess_reader, feeds_reader
from smartfeeds.features.nno.settings import NnoSettings
from smartfeeds.features.polling.poller import PollClients
from smartfeeds.features.polling.source import host_of
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.fetch import ANYBODY, FetchResponse, HttpClient, Sender
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
    listed = SectionClient(section.urls, clients.listed, clients.public)
    return Planet(
        section, host.service, clients.private if section.allow_private else listed, host.parts.get(SourceTools)
    )


class SectionClient:
    """The HTTP client of a section: `listed` at the hosts and ports of its `urls`, which the operator has chosen, and
    `public` elsewhere, because the authors of ESS files choose the addresses of feeds."""

    def __init__(self, urls: Iterable[str], listed: HttpClient, public: HttpClient) -> None:
        self._hosts = set(map(_host_of, urls)) - {""}
        self._listed = listed
        self._public = public

    async def get(
        self,
        url: str,
        *,
        known: Validators = NO_VALIDATORS,
        accept: str = "*/*",
        max_bytes: int | None = None,
        sender: Sender = ANYBODY,
        hold_s: float = 0.0,
    ) -> FetchResponse:
        """As `Fetcher.get`."""
        client = self._listed if _host_of(url) in self._hosts else self._public
        return await client.get(url, known=known, accept=accept, max_bytes=max_bytes, sender=sender, hold_s=hold_s)


def _host_of(url: str) -> str:
    """The host and port of an address, "" if it cannot be read: the client says so."""
    try:
        return host_of(url)
    except ValueError:
        return ""
