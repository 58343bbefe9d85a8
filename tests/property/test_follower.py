"""The follower against a model feed and a network that drops, repeats, delays and reorders.

Between two starts of the follower anything may be lost; within one session pushes may be dropped, come late, twice or
in another order, and answers overtake pushes. In the end the mirror equals the feed.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.client import Follower, Proof
from smartfeeds.client.change import Change, ReceivedItem
from smartfeeds.client.events import (
    CaughtUp,
    Connected,
    CursorRefused,
    DelayedPageRequest,
    IntegrityDue,
    Output,
    PageRequest,
    PullFailed,
    PushReceived,
    StartPoint,
    SubscribeRequest,
    SubscriptionAccepted,
)
from smartfeeds.client.follow import FollowerClock
from smartfeeds.client.position import parse_position
from smartfeeds.client.state import FollowState
from support.effort import runs
from unit.client.model_feed import ModelFeed
from unit.client.model_link import ADDRESS, FakeTimers, MemoryStore, ModelLink, atom

IDS = st.sampled_from("abcdefg")
TEXTS = st.sampled_from(["one", "two", "three"])
PUBLISH = st.tuples(st.just("publish"), IDS, TEXTS)
DELETE = st.tuples(st.just("delete"), IDS, st.just(""))
WRITES = st.one_of(PUBLISH, PUBLISH, DELETE)
HONEST = st.sampled_from(["push", "answer", "look"]).map(lambda name: (name, "", ""))
FAULTS = st.sampled_from(
    [
        "drop",
        "drop",
        "repeat",
        "swap",
        "reconnect",
        "restart",
        "kill",
        "silence",
        "tie",
        "tie",
        "forget cursors",
        "cut",
        "lose answer",
    ]
).map(lambda name: (name, "", ""))


@dataclass
class World:
    """A feed, a wire and a mirror. `stored` and `mirror` change together, as in one transaction of the caller."""

    start: StartPoint
    cap: int
    indexed: bool = True
    exactly_once: bool = False
    feed: ModelFeed = field(default_factory=ModelFeed)
    pushes: deque[PushReceived] = field(default_factory=deque)
    delivered: list[PushReceived] = field(default_factory=list)
    requests: deque[Output] = field(default_factory=deque)
    ready: deque[Change] = field(default_factory=deque)
    mirror: dict[str, ReceivedItem] = field(default_factory=dict)
    handed: list[tuple[str, bytes]] = field(default_factory=list)
    stored: str | None = None
    subscribed: bool = False
    refuse: bool = False
    caught_up: int = 0
    state: FollowState = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new run of the follower, from what was stored."""
        self.ready.clear()
        if not self.exactly_once:
            self.handed.clear()
        self.state = FollowState(
            "node", self.start if self.stored is None else parse_position(self.stored), page_items=3
        )
        self.connect()

    def connect(self) -> None:
        self.requests.clear()
        self.take(self.state.receive(Connected()))

    def take(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Change):
                self.ready.append(output)
            elif isinstance(output, SubscribeRequest | PageRequest):
                self.requests.append(output)
            elif isinstance(output, DelayedPageRequest):
                self.requests.append(output.request)
            elif isinstance(output, CaughtUp):
                self.caught_up += 1

    def look(self) -> None:
        """The caller works on one change and stores its position with its work."""
        if self.ready:
            change = self.ready.popleft()
            version = (change.item_id, change.payload)
            last = [payload for item_id, payload in self.handed if item_id == change.item_id][-1:]
            assert last != [change.payload], "the same version twice in a row"
            self.handed.append(version)
            self.mirror[change.item_id] = ReceivedItem(
                change.item_id, change.payload, deleted=change.kind.value == "deleted"
            )
            self.stored = change.position
        elif self.state.position is not None:
            self.stored = str(self.state.position)

    def push(self) -> None:
        if self.pushes:
            event = self.pushes.popleft()
            self.delivered.append(event)
            self.take(self.state.receive(event))

    def answer(self) -> None:
        if not self.requests:
            return
        request = self.requests.popleft()
        if isinstance(request, SubscribeRequest):
            self.subscribed = True
            self.take(self.state.receive(SubscriptionAccepted(request.request_no)))
            return
        assert isinstance(request, PageRequest)
        if self.refuse and request.after:
            self.refuse = False
            self.take(self.state.receive(CursorRefused(request.request_no)))
        else:
            self.take(self.state.receive(self.feed.page(request, cap=self.cap, indexed=self.indexed)))

    def write(self, push: PushReceived) -> None:
        if self.subscribed:
            self.pushes.append(push)

    def drop(self) -> None:
        if self.pushes:
            self.pushes.popleft()

    def repeat(self) -> None:
        if self.delivered:
            self.pushes.append(self.delivered[-3:][0])

    def restart(self) -> None:
        """A clean end: the caller has worked on everything that it was given."""
        while self.ready:
            self.look()
        self.begin()

    def tie(self, text: str) -> None:
        """Two items of one time in one push."""
        self.write(self.feed.put(ReceivedItem("x", text.encode() + b"<x/>"), ReceivedItem("y", b"<y/>")))

    def silence(self) -> None:
        self.take(self.state.receive(IntegrityDue()))

    def forget_cursors(self) -> None:
        """The service refuses the next cursor that it is shown."""
        self.refuse = True

    def fail(self, *, answered: bool) -> None:
        """The answer to the pull that is under way is cut short, or lost."""
        if self.requests and isinstance(self.requests[0], PageRequest):
            request = self.requests.popleft()
            assert isinstance(request, PageRequest)
            self.take(self.state.receive(PullFailed(request.request_no, "trouble", answered)))

    def do(self, name: str, item_id: str, text: str) -> None:
        actions: dict[str, Callable[[], None]] = {
            "publish": lambda: self.write(self.feed.publish(item_id, text)),
            "delete": lambda: self.write(self.feed.delete(item_id, text)),
            "tie": lambda: self.tie(text),
            "push": self.push,
            "answer": self.answer,
            "look": self.look,
            "drop": self.drop,
            "repeat": self.repeat,
            "swap": self.pushes.reverse,
            "reconnect": self.connect,
            "restart": self.restart,
            "kill": self.begin,
            "silence": self.silence,
            "forget cursors": self.forget_cursors,
            "cut": lambda: self.fail(answered=True),
            "lose answer": lambda: self.fail(answered=False),
        }
        actions[name]()

    def calm(self) -> None:
        """Everything that is under way arrives, and the caller works on everything."""
        while self.requests or self.pushes or self.ready:
            self.answer()
            self.push()
            self.look()
        self.look()

    def settle(self) -> None:
        """The network is well again, and a long silence follows."""
        self.refuse = False
        self.calm()
        self.take(self.state.receive(IntegrityDue()))
        self.calm()


STEPS = st.lists(st.one_of(WRITES, HONEST, HONEST, HONEST, FAULTS), min_size=10, max_size=100)


@settings(max_examples=runs(300), deadline=None)
@given(before=st.lists(WRITES, max_size=8), steps=STEPS, cap=st.integers(1, 5), indexed=st.booleans())
def test_mirror_any_faults_equals_the_feed(
    before: list[tuple[str, str, str]], steps: list[tuple[str, str, str]], cap: int, indexed: bool
) -> None:
    """[SF-045] [SF-047] [SF-048] [SF-049] [SF-050] [SF-051] [SF-109]: whatever was lost, restarted or moved.

    Each run hands over a version at most once (checked in `World.look`), and the end is in step with the feed.
    """
    world = World(StartPoint.BEGINNING, cap, indexed)
    for step in before:
        world.do(*step)
    for step in steps:
        world.do(*step)
    world.settle()
    assert world.mirror == world.feed.state()
    assert world.state.in_step
    assert parse_position(world.stored or "").cursor == world.feed.newest_cursor()
    assert world.state.counters.gaps_found == world.state.counters.gaps_healed


LOSSES = st.sampled_from(["drop", "repeat", "swap", "reconnect", "restart", "kill", "silence"]).map(
    lambda name: (name, "", "")
)


@settings(max_examples=runs(200), deadline=None)
@given(steps=st.lists(st.one_of(WRITES, HONEST, HONEST, HONEST, LOSSES), min_size=10, max_size=100))
def test_position_stored_with_the_work_each_version_exactly_once(steps: list[tuple[str, str, str]]) -> None:
    """[SF-045] [SF-049]: also when the follower is killed in the middle of a page (checked in `World.look`)."""
    world = World(StartPoint.BEGINNING, 500, exactly_once=True)
    for number, (name, item_id, text) in enumerate(steps):
        world.do(name, item_id, f"{text} {number}")
    world.settle()
    assert world.mirror == world.feed.state()


@settings(max_examples=runs(200), deadline=None)
@given(before=st.lists(WRITES, max_size=8), steps=STEPS, cap=st.integers(1, 5))
def test_from_now_any_faults_has_every_item_changed_since(
    before: list[tuple[str, str, str]], steps: list[tuple[str, str, str]], cap: int
) -> None:
    """[SF-047] [SF-049]: from now on means nothing from before, and everything after."""
    world = World(StartPoint.NOW, cap)
    for step in before:
        world.do(*step)
    world.answer()
    world.answer()
    world.look()
    old = world.feed.state()
    began_after = world.feed.newest_cursor()
    for step in steps:
        if step[0] != "forget cursors":
            world.do(*step)
    world.settle()
    now = world.feed.page(PageRequest(0, began_after, max_items=500)).items
    since = [entry for entry in now if old.get(entry.item_id) != entry or world.mirror.get(entry.item_id) == entry]
    assert {entry.item_id: world.mirror[entry.item_id] for entry in since} == {entry.item_id: entry for entry in since}
    for item_id, entry in world.mirror.items():
        assert entry == world.feed.state()[item_id]
        assert item_id not in old or item_id in {changed.item_id for changed in since}


@settings(max_examples=runs(200), deadline=None)
@given(
    before=st.lists(WRITES, max_size=8),
    steps=st.lists(st.one_of(WRITES, HONEST), max_size=60),
    start=st.sampled_from(StartPoint),
    overtaken=st.lists(WRITES, max_size=4),
)
def test_pulls_nothing_lost_are_only_the_bootstrap(
    before: list[tuple[str, str, str]],
    steps: list[tuple[str, str, str]],
    start: StartPoint,
    overtaken: list[tuple[str, str, str]],
) -> None:
    """[SF-048] [SF-050] [SF-109]: with every push delivered in order, no pull follows the first catch-up.

    The answers may overtake the pushes of items that do not change again before them.
    """
    world = World(start, 500)
    for step in before:
        world.do(*step)
    world.answer()
    for number, (name, item_id, _) in enumerate(overtaken if start is StartPoint.BEGINNING else overtaken[:1]):
        world.do(name, f"{item_id}{number}", f"overtaken {number}")
    while not world.state.in_step:
        world.answer()
    pulls = world.state.counters.pulls
    for step in steps:
        world.do(*step)
        world.look()
    world.calm()
    assert world.state.counters.pulls == pulls
    assert world.state.counters.gaps_found == 0
    assert world.state.position is not None
    assert world.state.position.cursor == world.feed.newest_cursor()


@settings(max_examples=runs(100), deadline=None)
@given(
    writes=st.lists(IDS, min_size=3, max_size=12),
    lost=st.sets(st.integers(0, 11)),
)
def test_gap_lost_pushes_one_series_of_pulls_each(writes: list[str], lost: set[int]) -> None:
    """[SF-049]: a run of lost pushes costs one series of pulls, when the next push shows it."""
    world = World(StartPoint.BEGINNING, 500)
    while not world.state.in_step:
        world.answer()
    gaps, losing, caught_up = 0, False, world.caught_up
    for number, item_id in enumerate(writes):
        push = world.feed.publish(item_id, f"version {number}")
        if number in lost:
            losing = True
            continue
        gaps += losing
        losing = False
        world.pushes.append(push)
        world.calm()
    assert world.caught_up - caught_up == gaps
    world.settle()
    assert world.mirror == world.feed.state()


SHELL_BYTES = 1_500  # what an answer needs beside the content of its one item, at most
SIZES = st.integers(0, 4_000)


async def _follow(link: ModelLink, store: MemoryStore, page_items: int, pauses: int) -> tuple[list[str], list[Proof]]:
    """What a run of a mirror hands over before it is in step, or has paused so often in a row; and its proofs."""
    found: list[str] = []
    proofs: list[Proof] = []
    timers = FakeTimers()

    async def read(feed: Follower) -> None:
        while True:
            found.append((await anext(feed)).item_id)

    async with Follower(
        link, ADDRESS, store=store, mirror=True, page_items=page_items, clock=FollowerClock(timers, lambda: 0.0),
        on_caught_up=proofs.append,
    ) as feed:  # fmt: skip
        reading = asyncio.ensure_future(read(feed))
        seen, left = 0, pauses
        while left:
            for _ in range(500):  # more turns than an answer causes, which comes from memory
                await asyncio.sleep(0)
            if feed.proof().in_step:
                break
            left = pauses if len(found) > seen else left - 1
            seen = len(found)
            timers.fire()
        reading.cancel()
        await asyncio.wait([reading])
    return found, proofs


@settings(max_examples=runs(60), deadline=None)
@given(
    sizes=st.lists(SIZES, max_size=30),
    room=SIZES,
    page_items=st.integers(1, 40),
    drops=st.booleans(),
)
def test_pages_above_some_size_cut_or_lost_everything_that_fits_arrives(
    sizes: list[int], room: int, page_items: int, drops: bool
) -> None:
    """[SF-045]: what is between cuts long answers, or loses them: the end has all items, each once, in their order.

    An item that does not fit alone is where it stops, without a proof; once it fits, a next run has all.
    """
    link = ModelLink()
    for number, size in enumerate(sizes):
        link.feed.put(atom(f"i{number}", "x" * size))
    link.limit_bytes, link.limit_drops = SHELL_BYTES + room, drops
    everything = [f"i{number}" for number in range(len(sizes))]
    never = [number for number, size in enumerate(sizes) if size > link.limit_bytes]
    surely = [number for number, size in enumerate(sizes) if size > room]
    store = MemoryStore()

    found, proofs = asyncio.run(_follow(link, store, page_items, pauses=8))

    assert found == everything[: len(found)]
    assert len(found) >= (surely or [len(sizes)])[0]
    assert len(found) <= (never or [len(sizes)])[0]
    assert bool(proofs) == (len(found) == len(sizes))
    link.limit_bytes = 10_000_000
    more, _ = asyncio.run(_follow(link, store, page_items, pauses=8))
    assert found + more == everything
