"""Documents from the web, for commands that accept an address in place of a file.

A module of its own, because commands that only read files should not load the HTTP client.
"""

from pathlib import Path

from smartfeeds.app.config import is_configured_by_environment
from smartfeeds.cli.common import config_file, load_settings
from smartfeeds.cli.reading import DOCUMENT
from smartfeeds.core.ip_addresses import Network
from smartfeeds.core.web_address import is_web
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits, FetchResponse


def file_or_address(text: str) -> Path | str:
    """Return the path of a document, or an http or https address as a text. Raises BadParameter for a missing file."""
    return text if is_web(text) else Path(DOCUMENT.convert(text, None, None))


def allowed_networks(config: Path | None, *, allow_private: bool) -> tuple[Network, ...]:
    """Return the networks that a command may reach although they are not public: all with `--allow-private`, else
    `sources.allowed_networks`. A command that needs no configuration works without one. Raises ConfigError."""
    if allow_private:
        return EVERYWHERE
    if config_file(config) is None and not is_configured_by_environment():
        return ()
    return load_settings(config).sources.networks


async def fetch(url: str, allowed: tuple[Network, ...]) -> FetchResponse:
    """Return the document at an address, up to the maximum size of a document. Raises FetchError."""
    limits = FetchLimits(max_bytes=MAX_DOCUMENT_BYTES, allowed=allowed)
    async with Fetcher(limits) as fetcher:
        return await fetcher.get(url)
