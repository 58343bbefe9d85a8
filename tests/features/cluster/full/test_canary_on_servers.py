"""What the canary notices on real servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from smartfeeds.features.cluster.canary import Canary
from smartfeeds.features.cluster.letter import split_letter
from smartfeeds.features.cluster.metrics import CanaryReading
from smartfeeds.features.cluster.relay import StanzaRelay, read_stanza
from smartfeeds.xmpp.stream import ComponentStream, StreamTools
from support.servers import SECRET, TestServer
from support.waiting import HANG_S


@asynccontextmanager
async def opened(server: TestServer, domain: str, names: str) -> AsyncIterator[list[ComponentStream]]:
    """Streams of processes that share a domain and pass letters to each other."""
    streams: dict[str, ComponentStream] = {}
    loop = asyncio.get_running_loop()

    def post(recipient: str, data: bytes) -> bool:
        loop.call_soon(pass_on, streams[recipient], data)
        return True

    def pass_on(stream: ComponentStream, data: bytes) -> None:
        stream.receive_shared(read_stanza(split_letter(data)[1]))

    async with AsyncExitStack() as stack:
        for name in names:
            relay = StanzaRelay(name, post, lambda: len(names) > 1)
            stream = ComponentStream(
                domain,
                SECRET,
                port=server.component_port,
                on_stanza=lambda _stanza: False,
                tools=StreamTools(relay=relay),
            )
            streams[name] = stream
            await stream.open()
            stack.push_async_callback(stream.close)
        yield list(streams.values())


async def ping_often(stream: ComponentStream, count: int, answer_s: float) -> CanaryReading:
    bird = Canary(stream, lambda: True, asyncio.sleep, answer_s=answer_s)
    await asyncio.gather(*(bird.ping() for _ in range(count)))
    assert bird.reading().sent == count
    return bird.reading()


@pytest.mark.parametrize("names", ["a", "ab"])
async def test_no_ping_is_lost_on_sound_connections(request: pytest.FixtureRequest, names: str) -> None:
    """[TOP-033] [OPS-084] One connection to Prosody, two to ejabberd, which sends each stanza to either of them."""
    server: TestServer = request.getfixturevalue("prosody" if names == "a" else "ejabberd")
    async with opened(server, server.take_name(), names) as streams:
        for stream in streams:
            reading = await ping_often(stream, 30, HANG_S)
            assert reading.lost == 0 and reading.seconds > 0


async def test_connection_that_swallows_stanzas_is_noticed(ejabberd: TestServer) -> None:
    """[TOP-033] [OPS-084] The kernel accepts what the server sends to a process that hangs."""
    async with opened(ejabberd, ejabberd.take_name(), "ab") as (sound, hanging):
        assert isinstance(hanging.transport, asyncio.ReadTransport)
        hanging.transport.pause_reading()
        reading = await ping_often(sound, 40, 5.0)
        hanging.transport.resume_reading()
    # A ping and its response arrive with a probability of 1/4.
    assert 0 < reading.lost < 40
