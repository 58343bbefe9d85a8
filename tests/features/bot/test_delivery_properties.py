"""Deliveries by chat with kills, lost links and returned messages between any two steps: nothing is lost.

Whatever is sent again is the batch that was sent last, with the same ids.
"""

import asyncio
import re
from collections.abc import Iterable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.delivery.deliverer import ConsumerPosition, Delivered, RetryAfter
from smartfeeds.delivery.letters import Letters
from smartfeeds.errors import LinkError
from smartfeeds.features.bot.delivery import Call, ChatSender, Reachability, is_message_id
from smartfeeds.features.bot.render import Links
from smartfeeds.features.bot.room_letters import OtherProcesses
from smartfeeds.service.chat_follows import consumer_of, follow
from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import BOB, FEED, SERVICE, World, entry, jid

RUNS = runs(100, nightly=2_000)
# What happens to an attempt. A kill ends the process before the messages are sent, or before the mark is stored.
FAULTS = ("none", "none", "returned", "returned in part", "no link", "link lost", "early kill", "kill")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 30)),
        st.tuples(st.sampled_from(["edit", "retract"]), st.integers(0, 40)),
        st.tuples(st.just("deliver"), st.sampled_from(FAULTS)),
    ),
    max_size=25,
)


class Peer:
    """The link and the server of the recipient. `attempts` has what each attempt sent, by id; `fault` is the next.
    `condition` is the error of the ping, if it is not empty."""

    online = True

    def __init__(self) -> None:
        self.fault = "none"
        self.condition = ""
        self.sender: ChatSender | None = None
        self.attempts: list[dict[str, str]] = []
        self.accepted: list[str] = []

    async def notify(self, stanzas: Iterable[bytes]) -> int:
        """Records the messages."""
        if self.fault in ("no link", "early kill"):
            raise LinkError("down")
        messages = [etree.fromstring(stanza) for stanza in stanzas]
        self.attempts.append({str(one.get("id")): str(one.findtext("body")) for one in messages})
        return len(messages)

    async def call(self, _kind: str, _to: str, _body: bytes, _timeout_s: float) -> etree._Element:
        """Answers the ping, behind the error responses."""
        assert self.sender is not None
        ids = list(self.attempts[-1])
        assert all(map(is_message_id, ids))
        if self.fault == "link lost":
            raise LinkError("down")
        if self.fault.startswith("returned"):
            self.sender.note_error(jid(BOB), ids[-1 if "part" in self.fault else 0], "service-unavailable")
        else:
            self.accepted += self.attempts[-1].values()
        if self.condition:
            error = f"<error type='cancel'><{self.condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
            return etree.fromstring(f"<iq xmlns='jabber:component:accept' type='error'>{error}</iq>")
        return etree.fromstring("<iq type='result'/>")


class Run:
    """A feed that Bob follows by chat, and the process that delivers it."""

    def __init__(self) -> None:
        self.world, self.peer = World(SqliteMemoryStore()), Peer()
        self.newest: dict[str, str] = {}
        self.names = 0

    async def start(self) -> None:
        await self.world.store.open()
        await self.world.create()
        await self.world.service.write(partial(follow, actor=jid(BOB), node_name=FEED))
        node = await self.world.node()
        self.consumer = consumer_of(node.node_no, BOB)
        self.restart()

    def restart(self) -> None:
        """Another process, which knows what the store has."""
        call: Call = self.peer.call
        links = Links(SERVICE)
        world = self.world
        reach = Reachability(nick_in=lambda _room: None, is_available=lambda _jid: None)
        alone = OtherProcesses(Letters())
        self.sender = ChatSender(world.service, self.peer, call, links, reach, alone, world.clock)
        self.peer.sender = self.sender
        self.position = ConsumerPosition()

    async def publish(self, name: str, version: int) -> None:
        self.newest[name] = f"({name} version {version})"
        await self.world.publish(name, entry(title=self.newest[name]))

    async def step(self, what: str, value: int | str) -> None:
        self.world.clock.move(1)
        if isinstance(value, str):
            await self.deliver(value)
        elif what == "publish":
            for _ in range(value):
                self.names += 1
                await self.publish(f"item{self.names}", 1)
        elif self.newest:
            name = sorted(self.newest)[value % len(self.newest)]
            if what == "edit":
                await self.publish(name, int(self.newest[name].split()[-1][:-1]) + 1)
            else:
                del self.newest[name]
                await self.world.retract(name)

    async def deliver(self, fault: str) -> bool:
        """Makes one attempt. Returns whether nothing is left."""
        self.peer.fault = fault
        try:
            outcome = await self.sender.deliver(self.consumer, self.position)
        except LinkError:
            outcome = None
        if "kill" in fault:
            self.restart()
        if outcome is None or "kill" in fault:
            return False
        if isinstance(outcome, RetryAfter):
            assert fault.startswith("returned"), outcome
            return False
        assert isinstance(outcome, Delivered)
        self.position = outcome.position
        return not outcome.more


async def run(steps: Iterable[tuple[str, int | str]]) -> Run:
    one = Run()
    await one.start()
    for what, value in steps:
        await one.step(what, value)
    while not await one.deliver("none"):
        pass
    return one


@settings(max_examples=RUNS, deadline=None)
@given(STEPS)
def test_nothing_is_lost_and_a_repetition_has_the_ids_of_before(steps: list[tuple[str, int | str]]) -> None:
    end = asyncio.run(run(steps))

    texts = "\n".join(end.peer.accepted)
    assert [title for title in end.newest.values() if title not in texts] == []
    ids: dict[str, set[str]] = {}
    places: dict[str, list[int]] = {}
    for number, attempt in enumerate(end.peer.attempts):
        for message_id, body in attempt.items():
            places.setdefault(message_id, []).append(number)
            for title in re.findall(r"\(item\d+ version \d+\)", body):
                ids.setdefault(title, set()).add(message_id)
    assert {title: names for title, names in ids.items() if len(names) > 1} == {}
    # Only the batch that was sent last is sent again.
    assert all(numbers == list(range(numbers[0], numbers[-1] + 1)) for numbers in places.values())


@pytest.mark.parametrize(
    ("condition", "arrived"),
    [
        ("remote-server-not-found", False),
        ("remote-server-timeout", False),
        ("service-unavailable", True),
        ("feature-not-implemented", True),
    ],
)
async def test_ping_that_finds_no_server_shows_that_nothing_arrived(condition: str, arrived: bool) -> None:
    """A client that knows no pings refuses them too, and has the messages."""
    one = Run()
    await one.start()
    await one.step("publish", 1)
    one.peer.condition = condition
    outcome = await one.sender.deliver(one.consumer, one.position)

    assert isinstance(outcome, Delivered) is arrived
    if not arrived:
        assert isinstance(outcome, RetryAfter) and condition in outcome.error
        one.peer.condition = ""
        await one.deliver("none")
        first, second = one.peer.attempts
        assert first == second != {}
