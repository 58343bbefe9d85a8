"""A follower of a generic node, while notifications are lost and items are pushed out and expire.

The service, its notifications, its pages and the reader of the client are the real ones; the wire between them loses
what the test loses. Whenever the follower says that it has caught up, it has exactly the items that the node has.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from xml.etree.ElementTree import fromstring

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.client import stanzas
from smartfeeds.client.change import Change, ChangeKind
from smartfeeds.client.events import (
    CaughtUp,
    Connected,
    DelayedPageRequest,
    Disconnected,
    Input,
    IntegrityDue,
    Output,
    PageRequest,
    StartPoint,
    SubscribeRequest,
    SubscriptionAccepted,
)
from smartfeeds.client.state import FollowState
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service import requests as r
from smartfeeds.xmpp.encode import encode_items, encode_result_set
from support.sqlite_memory import SqliteMemoryStore
from support.world import ALICE, OWNER, SERVICE, World, jid, running_world

NODE = "box"
VIEWS = st.sampled_from([f"{NODE}?order=modified", f"{NODE}?author={OWNER}"])
EXPIRY_S = 20
IDS = st.sampled_from("abcde")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["publish", "publish", "retract"]), IDS),
        st.tuples(st.sampled_from(["push", "push", "lose", "repeat"]), st.just("")),
        st.tuples(st.just("answer"), st.just("")),
        st.tuples(st.sampled_from(["purge", "reconnect", "silence", "cut", "start"]), st.just("")),
        st.tuples(st.just("wait"), st.sampled_from(["1", "7", "15", "40"])),
        st.tuples(st.just("limit"), st.sampled_from(["1", "2", "3"])),
    ),
    min_size=15,
    max_size=60,
)


def text_of(payload: bytes) -> str:
    return "".join(fromstring(payload).itertext())


@dataclass
class Wire:
    """A follower and what is on the way to it."""

    world: World
    view: str
    state: FollowState
    mirror: dict[str, str] = field(default_factory=dict)
    pushes: deque[Input] = field(default_factory=deque)
    asked: deque[SubscribeRequest | PageRequest] = field(default_factory=deque)
    caught_up: int = 0

    async def send(self) -> None:
        """Puts what the service has sent on the way."""
        await self.world.settle()
        for stanza in self.world.wire.sent:
            event = stanzas.read_message(fromstring(stanza), self.view)
            if event is not None:
                self.pushes.append(event)
        self.world.wire.sent.clear()

    async def take(self, event: Input) -> None:
        caught_up = False
        for output in self.state.receive(event):
            caught_up |= self.apply(output)
        if caught_up:
            self.caught_up += 1
            assert self.mirror == await self.held()

    def apply(self, output: Output) -> bool:
        if isinstance(output, Change):
            if output.kind in (ChangeKind.DELETED, ChangeKind.LEFT):
                self.mirror.pop(output.item_id, None)
            else:
                self.mirror[output.item_id] = text_of(output.payload)
        elif isinstance(output, SubscribeRequest | PageRequest):
            self.asked.clear()
            self.asked.append(output)
        elif isinstance(output, DelayedPageRequest):
            self.asked.append(output.request)
        return isinstance(output, CaughtUp)

    async def held(self) -> dict[str, str]:
        """What a stock client reads from the node."""
        page = await self.world.pull(NODE, max=100)
        return {item.id: text_of(item.payload) for item in page.items}

    async def answer(self) -> None:
        if not self.asked:
            return
        request = self.asked.popleft()
        if isinstance(request, SubscribeRequest):
            await self.world.subscribe(ALICE, self.view)
            await self.take(SubscriptionAccepted(request.request_no))
            return
        asked = stanzas.pull(self.view, request)
        after = asked.findtext(".//{http://jabber.org/protocol/rsm}after")
        page = await self.world.service.handle(
            r.Pull(jid(ALICE), SERVICE, self.view, page=ResultSetRequest(str(request.max_items), after))
        )
        assert isinstance(page, r.Page)
        body = b"<items node='%b'>%b</items>%b" % (
            self.view.encode(),
            encode_items(page.items, show_publisher=page.show_publisher),
            encode_result_set(page.result_set),
        )
        reply = fromstring(b"<iq><pubsub xmlns='http://jabber.org/protocol/pubsub'>%b</pubsub></iq>" % body)
        await self.take(stanzas.read_page(reply, request.request_no, self.view))

    async def write(self, name: str, value: str, count: int) -> None:
        """A change of the node."""
        if name == "publish":
            await self.world.publish(value, f"<n xmlns='urn:example:n'>{count}</n>", node=NODE)
        elif name == "purge":
            await self.world.purge(node=NODE)
        elif name == "limit":
            await self.world.configure(node=NODE, max_items=value)
        elif value in await self.held():
            await self.world.retract(value, node=NODE)

    async def reconnect(self) -> None:
        self.asked.clear()
        await self.take(Disconnected())
        await self.take(Connected())

    async def receive(self, *, lost: bool = False, again: bool = False) -> None:
        if self.pushes:
            event = self.pushes[0] if again else self.pushes.popleft()
            if not lost:
                await self.take(event)

    async def step(self, name: str, value: str, count: int) -> None:
        if name == "wait":
            self.world.clock.move(float(value))
        elif name in ("publish", "purge", "limit", "retract"):
            await self.write(name, value, count)
        else:
            await {
                "push": self.receive,
                "lose": partial(self.receive, lost=True),
                "repeat": partial(self.receive, again=True),
                "answer": self.answer,
                "silence": partial(self.take, IntegrityDue()),
                "reconnect": self.reconnect,
                "cut": self.world.cut,
                "start": self.world.start,
            }[name]()
        await self.send()


async def follow(view: str, steps: list[tuple[str, str]]) -> None:
    async with running_world(SqliteMemoryStore()) as world:
        await world.create(NODE, kind="generic", max_items="2", item_expire=str(EXPIRY_S))
        wire = Wire(world, view, FollowState(view, StartPoint.BEGINNING, page_items=2))
        await wire.take(Connected())
        for count, (name, value) in enumerate(steps):
            await wire.step(name, value, count)
        # In the end every notification is lost, and the follower asks after a silence.
        await world.start()
        await wire.send()
        wire.pushes.clear()
        before = wire.caught_up
        await wire.reconnect()
        while wire.asked:
            await wire.answer()
        assert wire.caught_up > before and wire.state.in_step
        assert wire.mirror == await wire.held()


@settings(deadline=None)
@given(VIEWS, STEPS)
def test_follower_of_a_generic_node_has_what_the_node_has(view: str, steps: list[tuple[str, str]]) -> None:
    """[SF-045] [xep-map 73]: also what max_items and item_expire remove, which no notification of XEP-0060 shows."""
    asyncio.run(follow(view, steps))
