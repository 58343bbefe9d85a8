"""Documents from the web, for commands that accept an address in place of a file."""

from pathlib import Path
from typing import Any

import click

from smartfeeds.cli.reading import DOCUMENT
from smartfeeds.core.mirror import is_web
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits, Response


class FileOrAddress(click.ParamType[Path | str]):
    """A path to a document, or an http or https address, which stays a text."""

    name = "file or address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """Return the path or the address. Ends the command if the file does not exist."""
        if isinstance(value, str) and is_web(value):
            return value
        return Path(DOCUMENT.convert(value, param, ctx))


async def fetch(url: str, *, allow_private: bool) -> Response:
    """Return the document at an address, up to the maximum size of a document. Raises FetchError."""
    limits = FetchLimits(max_bytes=MAX_DOCUMENT_BYTES, allowed=EVERYWHERE if allow_private else ())
    async with Fetcher(limits) as fetcher:
        return await fetcher.get(url)
