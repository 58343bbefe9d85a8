"""Documents from the web for commands: an address where a file could be named."""

from pathlib import Path
from typing import Any

import click

from smartfeeds.cli.reading import DOCUMENT
from smartfeeds.core.mirror import is_web
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits, Response


class FileOrAddress(click.ParamType[Path | str]):
    """A path of a document, as DOCUMENT; an http or https address stays a text."""

    name = "file or address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """The path or the address; ends the command where there is no such file."""
        if isinstance(value, str) and is_web(value):
            return value
        return Path(DOCUMENT.convert(value, param, ctx))


async def fetch(url: str, *, allow_private: bool) -> Response:
    """What is at an address, no larger than a document may be. Raises FetchError."""
    limits = FetchLimits(max_bytes=MAX_DOCUMENT_BYTES, allowed=EVERYWHERE if allow_private else ())
    async with Fetcher(limits) as fetcher:
        return await fetcher.get(url)
