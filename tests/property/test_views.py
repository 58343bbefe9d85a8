"""A follower of any filtered view ends with exactly the items that match, and says so only when it is true (A-20).

The real follower talks to the real service in stanzas. Items are published, edited, retracted and brought back; pushes
are lost or come twice, sessions end, answers are lost. The expected items are computed from the last versions alone, by
a comparison of its own, so this test knows nothing of how views remember what has left them.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlencode
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
    IntegrityDue,
    Output,
    PageRequest,
    PullFailed,
    PushReceived,
    StartPoint,
    SubscribeRequest,
    SubscriptionAccepted,
)
from smartfeeds.client.state import FollowState
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service import requests as r
from smartfeeds.xmpp.encode import ENCODERS
from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import (
    ALICE,
    BOB,
    FEED,
    OWNER,
    SERVICE,
    World,
    jid,
)


@dataclass(frozen=True)
class DeliveredVersion:
    """What a publish says."""

    category: str
    author: str
    text: str
    reply_to: str
    publisher: str
    lang: str


@dataclass(frozen=True)
class Filters:
    """The filters of a view; empty ones are left out."""

    category: tuple[str, ...] = ()
    author: tuple[str, ...] = ()
    reply_to: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    q: tuple[str, ...] = ()
    lang: tuple[str, ...] = ()
    sync: bool = False

    def node(self) -> str:
        pairs = [("category", value) for value in self.category] + [("author", value) for value in self.author]
        pairs += [("in-reply-to", value) for value in self.reply_to] + [("kind", value) for value in self.kind]
        pairs += [("q", value) for value in self.q] + [("lang", value) for value in self.lang]
        pairs += [("sync", "true")] * self.sync
        return f"{FEED}?{urlencode([*pairs, ('order', 'modified')])}"

    def match(self, version: DeliveredVersion, *, first: bool) -> bool:
        """Whether a live item with this last version belongs to the view."""
        return (
            (not self.category or version.category in self.category)
            and (not self.author or not {version.author, version.publisher}.isdisjoint(self.author))
            and (not self.reply_to or version.reply_to in self.reply_to)
            and (not self.kind or ("new" if first else "edited") in self.kind)
            and set(self.q) <= set(version.text.split())
            and (not self.lang or any(f"{version.lang.lower()}-".startswith(f"{lang}-") for lang in self.lang))
        )


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    """Often nothing, else some of the values."""
    few = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True).map(tuple)
    return st.one_of(st.just(()), st.just(()), few)


FILTERS = st.builds(
    Filters,
    category=some("red", "blue"),
    author=some("Ann", "Cid", OWNER, BOB),
    reply_to=some("tag:1", "tag:2"),
    kind=some("new", "edited", "deleted"),
    q=some("sun", "rain"),
    lang=some("en", "en-gb", "de"),
    sync=st.sampled_from([False, False, True]),
)
VERSIONS = st.builds(
    DeliveredVersion,
    category=st.sampled_from(["red", "blue"]),
    author=st.sampled_from(["Ann", "Cid"]),
    text=st.sampled_from(["sun", "rain", "sun rain", "fog"]),
    reply_to=st.sampled_from(["", "tag:1", "tag:2"]),
    publisher=st.sampled_from([OWNER, OWNER, BOB]),
    lang=st.sampled_from(["", "en", "en-GB", "de", "den"]),
)
IDS = st.sampled_from("abc")
WRITES = st.one_of(
    st.tuples(st.just("publish"), IDS, VERSIONS),
    st.tuples(st.just("publish"), IDS, VERSIONS),
    st.tuples(st.just("retract"), IDS, st.none()),
)
EVENTS = [*(["deliver"] * 4), *(["answer"] * 4), "lose push", "repeat push", "lose answer", "reconnect", "silence"]
STEPS = st.lists(st.one_of(WRITES, st.tuples(st.sampled_from(EVENTS), st.none(), st.none())), min_size=10, max_size=60)


@dataclass
class Follow:
    """A feed with its model on one side, a mirror of one view on the other."""

    world: World
    filters: Filters
    state: FollowState
    items: dict[str, tuple[DeliveredVersion, int, str] | None] = field(default_factory=dict)  # None: deleted
    revisions: dict[str, int] = field(default_factory=dict)
    mirror: dict[str, str] = field(default_factory=dict)
    requests: deque[SubscribeRequest | PageRequest] = field(default_factory=deque)
    pushes: deque[bytes] = field(default_factory=deque)
    delivered: list[bytes] = field(default_factory=list)
    claims: int = 0
    lost: bool = False  # a push, since the last time that a pull showed everything

    def expected(self) -> dict[str, str]:
        """The items that match now, with their titles."""
        live = {item_id: row for item_id, row in self.items.items() if row is not None}
        return {
            item_id: title
            for item_id, (version, revision, title) in live.items()
            if self.filters.match(version, first=revision == 1)
        }

    async def publish(self, item_id: str, version: DeliveredVersion) -> None:
        revision = self.revisions[item_id] = self.revisions.get(item_id, 0) + 1
        title = f"{item_id}{revision}"
        await self.world.publish(
            item_id,
            actor=version.publisher,
            title=title,
            category=version.category,
            author=version.author,
            content=version.text,
            reply_to=version.reply_to,
            lang=version.lang,
        )
        self.items[item_id] = (version, revision, title)
        await self.sent()

    async def retract(self, item_id: str) -> None:
        if self.items.get(item_id) is not None:
            self.revisions[item_id] += 1
            await self.world.retract(item_id)
            self.items[item_id] = None
            await self.sent()

    async def sent(self) -> None:
        """Lets the service send what there is to push."""
        await self.world.settle()
        self.pushes += self.world.wire.sent
        self.world.wire.sent.clear()

    def take(self, outputs: Iterable[Output]) -> None:
        """Works on outputs; every claim to have everything is checked."""
        for output in outputs:
            if isinstance(output, Change):
                if output.kind in (ChangeKind.DELETED, ChangeKind.LEFT):
                    self.mirror.pop(output.item_id, None)
                else:
                    self.mirror[output.item_id] = output.title
            elif isinstance(output, SubscribeRequest | PageRequest):
                self.requests.append(output)
            elif isinstance(output, DelayedPageRequest):
                self.requests.append(output.request)
            elif isinstance(output, CaughtUp):
                self.claims += 1
                self.lost = False
                assert self.mirror == self.expected()

    async def answer(self) -> None:
        """Answers the next request with what there is now."""
        if not self.requests:
            return
        request = self.requests.popleft()
        if isinstance(request, SubscribeRequest):
            await self.world.subscribe(ALICE, self.filters.node())
            self.take(self.state.receive(SubscriptionAccepted(request.request_no)))
            return
        node = self.filters.node()
        page = ResultSetRequest(str(request.max_items), f"cursor:{request.after}" if request.after else None)
        answer = await self.world.service.handle(r.Pull(jid(ALICE), SERVICE, node, page=page))
        body = ENCODERS[r.Page](answer)
        reply = fromstring(b"<iq type='result'>%b</iq>" % body)
        self.take(self.state.receive(stanzas.read_page(reply, request.request_no, node)))

    async def deliver(self) -> None:
        """One push arrives."""
        if not self.pushes:
            return
        stanza = self.pushes.popleft()
        self.delivered.append(stanza)
        push = stanzas.read_message(fromstring(stanza), self.filters.node())
        assert isinstance(push, PushReceived)
        self.take(self.state.receive(push))

    async def check(self) -> None:
        """A follower that is in step has everything, if nothing is on its way and nothing was lost unseen; and if it is
        where the view ends."""
        if not self.state.in_step or self.state.position is None:
            return
        end = await self.world.pull(self.filters.node(), before="", max=1)
        at_end = self.state.position.cursor == (end.last or "").removeprefix("cursor:")
        complete = not (self.requests or self.pushes or self.lost)
        assert at_end or not complete
        if at_end:
            assert self.mirror == self.expected()
            assert self.state.position.total in (None, end.count)

    async def step(self, name: str, item_id: str | None, version: DeliveredVersion | None) -> None:
        if name == "publish":
            assert item_id is not None and version is not None
            await self.publish(item_id, version)
        elif name == "retract":
            assert item_id is not None
            await self.retract(item_id)
        elif name == "deliver":
            await self.deliver()
        elif name == "answer":
            await self.answer()
        elif name == "lose push" and self.pushes:
            self.pushes.popleft()
            self.lost = True
        elif name == "repeat push" and self.delivered:
            self.pushes.append(self.delivered[-1])
        elif name == "lose answer" and self.requests and isinstance(self.requests[0], PageRequest):
            request = self.requests.popleft()
            self.take(self.state.receive(PullFailed(request.request_no, "lost", answered=False)))
        elif name == "reconnect":
            self.requests.clear()
            self.take(self.state.receive(Disconnected()))
            self.take(self.state.receive(Connected()))
        elif name == "silence":
            self.take(self.state.receive(IntegrityDue()))

    async def calm(self) -> None:
        """Everything on its way arrives."""
        while self.requests or self.pushes:
            await self.answer()
            await self.deliver()


async def run(filters: Filters, steps: list[tuple[str, str | None, DeliveredVersion | None]]) -> None:
    store = SqliteMemoryStore()
    await store.open()
    world = World(store)
    await world.start()
    await world.create()
    await world.affiliate(BOB, "publisher")
    follow = Follow(world, filters, FollowState(filters.node(), StartPoint.BEGINNING, page_items=2))
    try:
        follow.take(follow.state.receive(Connected()))
        for step in steps:
            await follow.step(*step)
            await follow.check()
        await follow.calm()
        follow.take(follow.state.receive(IntegrityDue()))
        await follow.calm()
        await follow.check()
        assert follow.state.in_step
        assert follow.claims
        assert follow.mirror == follow.expected()
    finally:
        await world.stop()
        await store.close()


@settings(max_examples=runs(150), deadline=None)
@given(filters=FILTERS, steps=STEPS)
def test_follower_of_any_view_ends_with_what_matches_and_says_so_only_then(
    filters: Filters, steps: list[tuple[str, str | None, DeliveredVersion | None]]
) -> None:
    """[A-20] [SF-015] [SF-045] [SF-049] for every filter and combination, and items that come and go."""
    asyncio.run(run(filters, steps))
