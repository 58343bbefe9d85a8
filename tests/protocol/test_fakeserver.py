"""The tools that the speed tests trust: what is counted is what was sent."""

import pytest

from smartfeeds.xmpp.stream import ComponentStream
from support.fakeserver import CountingServer
from support.link import DOMAIN, Taken


class Silent:
    """Stands in for the transport that the counting server greets on."""

    def write(self, data: bytes) -> None:
        """Nobody listens."""


@pytest.mark.parametrize("step", [1, 3, 9, 10, 11, 25, 1_000])
def test_counting_server_any_segments_counts_each_stanza_once(step: int) -> None:
    server = CountingServer()
    server.transport = Silent()  # type: ignore[assignment]
    server.data_received(b"<stream><handshake>x</handshake>")
    data = b"<message>x</message><message></message><message/></message ></message>" * 7

    for at in range(0, len(data), step):
        server.data_received(data[at : at + step])

    assert server.stanzas == 21
    assert server.bytes == len(data)


async def test_counting_server_accepts_a_real_stream() -> None:
    server = CountingServer()
    listener = await server.listen()
    stream = ComponentStream(DOMAIN, "secret", port=listener.sockets[0].getsockname()[1], on_stanza=Taken())
    await stream.open()

    assert await stream.outbox.notify([b"<message></message>"] * 5_000) == 5_000
    await stream.close()

    assert server.stanzas == 5_000
    listener.close()
