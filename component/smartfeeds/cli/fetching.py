"""Documents from the web, for commands that accept an address in place of a file.

A module of its own, because commands that only read files should not load the HTTP client.
"""

from pathlib import Path

from smartfeeds.cli.reading import DOCUMENT
from smartfeeds.core.mirror import is_web
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits, Response


def file_or_address(text: str) -> Path | str:
    """Return the path of a document, or an http or https address as a text. Raises BadParameter for a missing file."""
    return text if is_web(text) else Path(DOCUMENT.convert(text, None, None))


async def fetch(url: str, *, allow_private: bool) -> Response:
    """Return the document at an address, up to the maximum size of a document. Raises FetchError."""
    limits = FetchLimits(max_bytes=MAX_DOCUMENT_BYTES, allowed=EVERYWHERE if allow_private else ())
    async with Fetcher(limits) as fetcher:
        return await fetcher.get(url)
