"""The canary: what it counts and logs over a link that answers as a test says."""

import asyncio
from collections import deque

import structlog
from lxml import etree

from smartfeeds.features.cluster import canary
from smartfeeds.features.cluster.canary import Canary
from smartfeeds.features.cluster.metrics import CanaryReading
from smartfeeds.xmpp.link import LinkDownError
from support.faketime import FakeTime, settle

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
