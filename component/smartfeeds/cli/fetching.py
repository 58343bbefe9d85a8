"""Documents from the web, for commands that accept an address in place of a file.

The HTTP client is imported when a document is fetched.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from smartfeeds.cli.common import DOCUMENT, config_file, load_settings
from smartfeeds.core.web_address import is_web

if TYPE_CHECKING:
    from smartfeeds.core.ip_addresses import Network
    from smartfeeds.net.fetch import FetchResponse


def file_or_address(text: str) -> Path | str:
    """Return the path of a document, or an http or https address as a text. Raises BadParameter for a missing file."""
    return text if is_web(text) else Path(DOCUMENT.convert(text, None, None))


def allowed_networks(config: Path | None, *, allow_private: bool) -> "tuple[Network, ...]":
    """Return the networks that a command may reach although they are not public: all with `--allow-private`, else
    `sources.allowed_networks`. A command that needs no configuration works without one. Raises ConfigError."""
    from smartfeeds.app.config import is_configured_by_environment
    from smartfeeds.net.addresses import EVERYWHERE

    if allow_private:
        return EVERYWHERE
    if config_file(config) is None and not is_configured_by_environment():
        return ()
    return load_settings(config).sources.networks


async def fetch(url: str, allowed: "tuple[Network, ...]") -> "FetchResponse":
    """Return the document at an address, up to the maximum size of a document. Raises FetchError."""
    from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
    from smartfeeds.net.clients import Fetcher
    from smartfeeds.net.fetch import FetchLimits

    limits = FetchLimits(max_bytes=MAX_DOCUMENT_BYTES, allowed=allowed)
    async with Fetcher(limits) as fetcher:
        return await fetcher.get(url)
