"""One sender with many costly requests in flight holds up nobody else (xep-map 246, 249).

The wire rows of the flood table are counted, not timed: answers that come before those of quiet users, and bytes and
tags that are parsed before the event loop does something else.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

import pytest
from lxml import etree

from smartfeeds.xmpp import stream as stream_module
from smartfeeds.xmpp.parsing import REQUEST_BYTES, REQUEST_TAGS, StanzaParser
from smartfeeds.xmpp.stream import BATCH_BYTES, StanzaOutcome
from smartfeeds.xmpp.turns import REST_MOST_S, WORK_BYTES, QueueBounds, StanzaTurns
from support.component import ALICE, BOB, DOMAIN, EVE, PS, Component, Starter, entry
from support.faketime import FakeTime
from support.floods import FLOODS, NODE
from support.waiting import wait_for

FLOOD = 16
READ = {"58 KB", "60 KB of words", "HTML entries"}  # as long as an item may be
REFUSED = {"not-acceptable", "bad-request"}
PULL = f"<pubsub xmlns='{PS}'><items node='good'/></pubsub>"
PUBLISH = f"<pubsub xmlns='{PS}'><publish node='good'><item id='second'>{entry('second')}</item></publish></pubsub>"


class Flooded:
    """A component whose link gets whole floods in one piece, and a clock for the rests of their senders."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.time = FakeTime()
        self.turns = component.app.stream.turns = StanzaTurns(QueueBounds(), clock=self.time.clock)
        self.kinds: dict[str, str] = {}  # what came of each request, in the order of the answers
        self.begun: list[str] = []  # the ids of the stanzas in the order in which they were handled
        handle = component.app.stream._handle

        def recorded(element: etree._Element | None, **options: bool) -> StanzaOutcome:
            if element is not None:
                self.begun.append(element.get("id", ""))
            return handle(element, **options)

        component.app.stream._handle = recorded

    def deliver(self, stanzas: Sequence[tuple[str, str, str, str]]) -> None:
        """Hands IQs to the stream as one read: (id, sender, kind, content)."""
        data = "".join(
            f"<iq id='{stanza_id}' from='{sender}' to='{DOMAIN}' type='{kind}'>{content}</iq>"
            for stanza_id, sender, kind, content in stanzas
        )
        self.component.app.stream.data_received(data.encode())

    async def answers(self, *ids: str) -> None:
        """Waits for these answers."""
        while not self.kinds.keys() >= set(ids):
            missing = set(ids) - self.kinds.keys()
            stanza = await wait_for(self.component.session.stanzas.get(), f"the answers to {missing}")
            self.kinds[str(stanza.get("id"))] = condition(stanza)

    async def rested(self, *ids: str) -> None:
        """Waits for these answers, of which some come after their sender has rested."""
        for stanza_id in ids:
            self.time.now_s += REST_MOST_S
            self.component.app.stream._serve()
            await self.answers(stanza_id)


def condition(answer: etree._Element) -> str:
    """The defined condition of an error, or the type of another answer."""
    return etree.QName(answer[-1][0]).localname if answer.get("type") == "error" else str(answer.get("type"))


async def flooded(start: Starter) -> Flooded:
    component = await start(pubsub={"creators": ["*"]})
    await component.create(ALICE, "good", access_model="open", publish_model="open")
    await component.publish(ALICE, "good", "first")
    await component.create(EVE, NODE, access_model="open")
    await component.deaf()
    return Flooded(component)


IDS = [f"flood{number}" for number in range(FLOOD)]


@pytest.mark.parametrize("flood", FLOODS)
async def test_quiet_users_are_answered_before_a_flood_that_came_first(start: Starter, flood: str) -> None:
    """Sixteen requests arrive before those of two quiet users. A batch of them may be handled first, and of those that
    are read as many as may be in work. The order of the answers is that of the threads of the store."""
    here = await flooded(start)
    here.deliver(
        [(stanza_id, EVE, "set", FLOODS[flood]) for stanza_id in IDS]
        + [("pull", BOB, "get", PULL), ("publish", ALICE, "set", PUBLISH)]
    )
    await here.answers("pull", "publish")

    first = here.begun[: max(map(here.begun.index, ("pull", "publish")))]
    allowed = (WORK_BYTES if flood in READ else BATCH_BYTES) // len(FLOODS[flood]) + 1
    assert len(set(first) & set(IDS)) <= min(allowed, FLOOD - 1)
    assert (here.kinds["pull"], here.kinds["publish"]) == ("result", "result")
    await here.rested(*IDS)
    assert {here.kinds[stanza_id] for stanza_id in IDS} <= ({"result"} if flood in READ else REFUSED)
    assert [stanza_id for stanza_id in here.kinds if stanza_id in IDS] == IDS


@pytest.mark.parametrize("flood", FLOODS)
async def test_event_loop_parses_a_bounded_piece_of_a_flood_at_a_time(
    start: Starter, flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is sent: a batch of short stanzas or one request of a size and with tags that were checked."""
    here = await flooded(start)
    pieces: list[bytes] = []
    turns: list[int] = []
    parse, serve = StanzaParser.parse, stream_module.ComponentStream._serve

    def counted_parse(self: StanzaParser, frames: Sequence[bytes]) -> Iterator[etree._Element | None]:
        pieces.append(b"".join(frames))
        return parse(self, frames)

    def counted_serve(self: stream_module.ComponentStream, *, last: bool = False) -> None:
        before = len(pieces)
        serve(self, last=last)
        turns.append(len(pieces) - before)

    monkeypatch.setattr(StanzaParser, "parse", counted_parse)
    monkeypatch.setattr(stream_module.ComponentStream, "_serve", counted_serve)
    monkeypatch.setattr(stream_module, "SLICE_S", 0.0)
    here.deliver([(stanza_id, EVE, "set", FLOODS[flood]) for stanza_id in IDS])
    await here.rested(*IDS)

    assert max(map(len, pieces)) <= BATCH_BYTES + REQUEST_BYTES
    assert max(piece.count(b"<") for piece in pieces) <= REQUEST_TAGS + BATCH_BYTES // 100
    assert max(turns) == 1


async def test_full_queue_answers_from_the_frame_and_others_are_served(start: Starter) -> None:
    """[xep-map 249] The answer is wait / resource-constraint; what needs no answer is dropped."""
    here = await flooded(start)
    here.turns = here.component.app.stream.turns = StanzaTurns(QueueBounds(sender_stanzas=2), clock=here.time.clock)

    here.deliver([(f"flood{number}", EVE, "get", PULL) for number in range(5)] + [("pull", BOB, "get", PULL)])
    here.component.app.stream.data_received(f"<message from='{EVE}' to='{DOMAIN}'/>".encode() * 3)
    await here.answers("pull", *IDS[:5])

    refused = [stanza_id for stanza_id, kind in here.kinds.items() if kind == "resource-constraint"]
    assert refused == ["flood2", "flood3", "flood4"]
    assert here.kinds["pull"] == "result"
    assert here.turns.refused == 3 + 3


async def test_socket_is_read_faster_than_costly_stanzas_are_served(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet user's stanza behind 6 MB of another sender has its turn after less than half of them.

    A stanza has its turn when it was read. The event loop reads two of these stanzas in an iteration, and each takes
    1.5 ms. If it served them for 5 ms, the socket would stay full, and the quiet user would wait for all.
    """
    here = await flooded(start)
    loop, stream = asyncio.get_running_loop(), here.component.app.stream
    served: list[str] = []

    def slow(stanza: etree._Element) -> bool:
        served.append(stanza.get("id", ""))
        here.time.now_s += 0.0015
        if len(served) == 51:
            every_one.set()
        return True

    every_one = asyncio.Event()
    monkeypatch.setattr(loop, "time", here.time.clock)
    monkeypatch.setattr(stream, "on_stanza", slow)
    floods = [f"<message id='{number}' from='{EVE}'>{'x' * 120_000}</message>" for number in range(50)]
    data = "".join([*floods, f"<message id='quiet' from='{BOB}'/>"]).encode()
    read_bytes = 262_144  # what event loops read at once
    chunks = deque(data[at : at + read_bytes] for at in range(0, len(data), read_bytes))

    def read() -> None:
        stream.data_received(chunks.popleft())
        if chunks:
            loop.call_soon(read)

    loop.call_soon(read)
    await every_one.wait()

    assert served.index("quiet") < 25


async def test_stream_that_ends_is_read_to_its_end(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounces and events that came before the end count, however much came with them."""
    here = await flooded(start)
    monkeypatch.setattr(stream_module, "SLICE_S", 0.0)
    taken: list[str] = []
    monkeypatch.setattr(
        here.component.app.stream, "on_stanza", lambda stanza: bool(taken.append(stanza.get("id")) or 1)
    )
    messages = [f"<message id='{number}' from='{EVE}'>{'x' * 1_000}</message>" for number in range(200)]

    here.component.app.stream.data_received("".join([*messages, "</stream:stream>"]).encode())

    assert taken == [str(number) for number in range(200)]


async def test_lost_link_forgets_what_waits(start: Starter) -> None:
    here = await flooded(start)
    here.deliver([(f"flood{number}", EVE, "set", FLOODS["2 MB"]) for number in range(4)])
    assert here.turns.stanzas == 3

    here.component.session.cut()
    await here.component.app.stream.wait_closed()

    assert here.turns.stanzas == 0
