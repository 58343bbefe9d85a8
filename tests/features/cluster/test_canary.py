"""The canary: what it counts and logs over a link that answers as a test says, and what it notices on real servers."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import structlog
from lxml import etree

from smartfeeds.features.cluster import canary
from smartfeeds.features.cluster.canary import Canary
from smartfeeds.features.cluster.letter import split_letter
from smartfeeds.features.cluster.metrics import CanaryReading
from smartfeeds.features.cluster.relay import StanzaRelay, read_stanza
from smartfeeds.xmpp.link import LinkDownError
from smartfeeds.xmpp.stream import ComponentStream, StreamTools
from support.faketime import FakeTime, settle
from support.servers import SECRET, TestServer
from support.waiting import HANG_S

DOMAIN = "feeds.example.org"
LOST = TimeoutError()


class FakeLink:
    """A link whose calls end with the next of `outcomes`: seconds until the response, or an error."""

    domain = DOMAIN

    def __init__(self, time: FakeTime, *outcomes: float | Exception) -> None:
        self._time = time
        self.outcomes = deque(outcomes)
        self.requests: list[tuple[str, str, bytes, float]] = []

    async def call(self, kind: str, to: str, payload: bytes, timeout_s: float) -> etree._Element:
        self.requests.append((kind, to, payload, timeout_s))
        outcome = self.outcomes.popleft()
        if isinstance(outcome, Exception):
            raise outcome
        self._time.now_s += outcome
        return etree.Element("iq")


async def pinged(*outcomes: float | Exception) -> Canary:
    """A canary after pings with these outcomes."""
    time = FakeTime()
    link = FakeLink(time, *outcomes)
    bird = Canary(link, lambda: True, time.sleep, answer_s=30.0, clock=time.clock)
    for _ in outcomes:
        await bird.ping()
    assert set(link.requests) == {("get", DOMAIN, b"<ping xmlns='urn:xmpp:ping'/>", 30.0)}
    return bird


async def test_pings_without_a_response_are_counted() -> None:
    """[OPS-084] A ping whose link has ended says nothing about the routing."""
    bird = await pinged(0.25, LOST, LinkDownError("lost"), 0.5)

    assert bird.reading() == CanaryReading(sent=3, lost=1, seconds=0.5, lost_lately=1, lately=3)


async def test_loss_is_logged_once_until_it_is_over() -> None:
    """[TOP-033] With several connections, most pings come back while one connection swallows the others."""
    with structlog.testing.capture_logs() as logs:
        bird = await pinged(0.1, LOST, 0.1, LOST, *[0.1] * (canary.LATELY - 1))
        assert [log["event"] for log in logs] == ["canary_lost"]
        assert logs[0] == {"event": "canary_lost", "log_level": "warning", "domain": DOMAIN, "lost": 1, "sent": 2}
        assert bird.reading().lost_lately == 1
    with structlog.testing.capture_logs() as logs:
        bird = await pinged(LOST, *[0.1] * canary.LATELY)
        assert [log["event"] for log in logs] == ["canary_lost", "canary_returns"]
        assert (bird.reading().lost, bird.reading().lost_lately) == (1, 0)


async def test_canary_pings_while_the_link_is_up() -> None:
    """[TOP-033]"""
    time, online = FakeTime(), asyncio.Event()
    link = FakeLink(time, 0.0)
    task = asyncio.create_task(Canary(link, online.is_set, time.sleep, answer_s=30.0, clock=time.clock).run())
    await settle()
    await time.advance(canary.PAUSE_S)
    assert link.requests == []
    online.set()
    await time.advance(canary.PAUSE_S)
    assert len(link.requests) == 1
    task.cancel()


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
