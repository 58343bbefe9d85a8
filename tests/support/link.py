"""A component stream against the fake server, as an async context manager."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from lxml import etree

from smartfeeds.xmpp.stream import ComponentStream, StreamTools
from support.fakeserver import FakeServer

DOMAIN = "feeds.example.org"
SECRET = "secret"


class Taken:
    """A callback that keeps what it was offered. `accept` says which stanzas it takes."""

    def __init__(self, accept: Callable[[etree._Element], bool] = lambda _: True) -> None:
        self.accept = accept
        self.stanzas: list[etree._Element] = []

    def __call__(self, element: etree._Element) -> bool:
        taken = self.accept(element)
        if taken:
            self.stanzas.append(element)
        return taken

    @property
    def ids(self) -> list[str | None]:
        """The ids of the stanzas taken, in order."""
        return [element.get("id") for element in self.stanzas]


def make_stream(server: FakeServer, taken: Callable[[etree._Element], bool], secret: str = SECRET) -> ComponentStream:
    """A stream for this server, not yet opened."""
    return ComponentStream(
        server.domain, secret, port=server.port, on_stanza=taken, tools=StreamTools(software_version="1.2")
    )


@asynccontextmanager
async def linked(
    taken: Callable[[etree._Element], bool] | None = None,
) -> AsyncIterator[tuple[FakeServer, ComponentStream]]:
    """A fake server and a stream that is online; both are closed at the end."""
    async with FakeServer(DOMAIN, SECRET) as server:
        stream = make_stream(server, Taken() if taken is None else taken)
        await stream.open()
        try:
            yield server, stream
        finally:
            await stream.close()
