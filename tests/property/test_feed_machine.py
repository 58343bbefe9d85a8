"""A feed, its pushes and its followers, while everything that can go wrong goes wrong.

Writers publish, edit, retract, bring back and purge; the clock jumps; pushes are lost or come twice; the link is cut;
the process dies and starts again over its store. Followers know nothing but the cursors they were given. Whatever
happened, any old cursor still gives exactly what changed after it, and the next push that arrives lets a follower
find out that it lacks something, and get it.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import CREATED, FEED, MODIFIED, Event, World, entry, read_event

T = TypeVar("T")
RED = f"{FEED}?category=red"
RED_CREATED = f"{FEED}?category=red&order=created"
VIEWS = (MODIFIED, CREATED, RED, RED_CREATED)
IDS = st.sampled_from("abcdef")
COLOURS = st.sampled_from(["red", "blue"])
PAGE = 2


@dataclass
class Row:
    """What the model knows of an item: when it was first stored and last changed, counted in changes; and whether it
    was ever red."""

    first: int
    last: int
    deleted: bool
    colour: str
    text: str
    reddened: bool

    def shown(self, view: str) -> tuple[bool, str]:
        """Deleted mark and title; the view of what is red shows what was red and is not as gone (A-20)."""
        left = "red" in view and self.colour != "red"
        return (True, "") if self.deleted or left else (False, self.text)


@dataclass
class Follower:
    """A mirror of one view, kept by the algorithm of the Smart Feeds document. `cursor` is its L."""

    address: str
    view: str
    cursor: str = ""
    items: dict[str, tuple[bool, str]] = field(default_factory=dict)
    inbox: list[Event] = field(default_factory=list)

    async def catch_up(self, world: World) -> None:
        """Pulls since L until there is no more (SF-049)."""
        page = await world.pull(self.view, actor=self.address, after=self.cursor, max=PAGE)
        while page.items:
            for item in page.items:
                self.items[item.id] = (item.deleted, title_of(item.payload))
            self.cursor = page.last or ""
            page = await world.pull(self.view, actor=self.address, after=self.cursor, max=PAGE)

    async def read(self, world: World, event: Event) -> None:
        """Takes a push that follows L, else pulls (SF-048, SF-049)."""
        if event.kind != "item":
            return
        if (event.previous or "") == self.cursor.removeprefix("cursor:"):
            self.items[event.item_id] = (event.deleted, event.text)
            self.cursor = event.last or ""
        else:
            await self.catch_up(world)


def title_of(payload: bytes) -> str:
    return payload.decode().partition("<title>")[2].partition("</title>")[0]


class FeedMachine(RuleBasedStateMachine):
    """The world on one side, a model of counted changes on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model: dict[str, Row] = {}
        self.changes = 0
        self.followers: dict[str, Follower] = {}
        self.cursors: list[tuple[str, str, int]] = []
        self.told: dict[tuple[str, str], str] = {}
        self.online = True
        self.joined = 0
        self.run(self.begin())

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(doing)

    async def begin(self) -> None:
        store = SqliteMemoryStore()
        await store.open()
        self.world = World(store, max_age_s=600)
        await self.world.start()
        await self.world.create()

    # The model.

    def changed(self, item_id: str, *, deleted: bool, colour: str = "", text: str = "") -> None:
        self.changes += 1
        before = self.model.get(item_id)
        first = before.first if before else self.changes
        reddened = colour == "red" or (before is not None and before.reddened)
        self.model[item_id] = Row(first, self.changes, deleted, colour, text, reddened)

    def ids_after(self, view: str, change: int) -> list[str]:
        """The ids of a view whose place lies behind that change."""
        order = "first" if "created" in view else "last"
        rows = [
            (getattr(row, order), item_id) for item_id, row in self.model.items() if "red" not in view or row.reddened
        ]
        return [item_id for place, item_id in sorted(rows) if place > change]

    # Writers.

    @rule(item_id=IDS, colour=COLOURS)
    def publish(self, item_id: str, colour: str) -> None:
        text = f"{item_id} {self.changes}"
        self.run(self.world.publish(item_id, title=text, category=colour))
        self.changed(item_id, deleted=False, colour=colour, text=text)

    @rule(item_id=IDS, by_publishing=st.booleans(), told=st.booleans())
    def retract(self, item_id: str, by_publishing: bool, told: bool) -> None:
        row = self.model.get(item_id)
        if row is None or row.deleted:
            return
        if by_publishing:
            self.run(self.world.publish(item_id, entry(deleted=True)))
        else:
            self.run(self.world.retract(item_id, notify=told))
        self.changed(item_id, deleted=True)

    @rule()
    def purge(self) -> None:
        live = sorted((row.last, item_id) for item_id, row in self.model.items() if not row.deleted)
        self.run(self.world.purge())
        for _, item_id in live:
            self.changed(item_id, deleted=True)

    @rule(seconds=st.sampled_from([-86_400.0, -1.0, -0.000001, 0.000001, 1.0, 599.0, 86_400.0]))
    def move_clock(self, seconds: float) -> None:
        self.world.clock.move(seconds)

    # Readers.

    @rule(view=st.sampled_from(VIEWS), size=st.integers(1, 4))
    def walk(self, view: str, size: int) -> None:
        """Pages joined are the view, in the order of the feed, and the count is their number."""
        found: list[str] = []
        after = ""
        while True:
            page = self.run(self.world.pull(view, after=after, max=size))
            if not page.items:
                break
            assert page.index == len(found)
            for item in page.items:
                assert (item.deleted, title_of(item.payload)) == self.model[item.id].shown(view)
            found += page.ids.split()
            after = page.last or ""
            order = "first" if "created" in view else "last"
            self.cursors.append((view, after, getattr(self.model[found[-1]], order)))
        assert found == self.ids_after(view, 0)
        assert page.count == len(found)

    @precondition(lambda self: self.cursors)
    @rule(data=st.data())
    def pull_from_old_cursors(self, data: st.DataObject) -> None:
        """No gap, no repeat: exactly what changed after the cursor was a place."""
        for view, cursor, change in data.draw(st.lists(st.sampled_from(self.cursors), max_size=5)):
            page = self.run(self.world.pull(view, after=cursor, max=100))
            assert page.ids.split() == self.ids_after(view, change)

    # Followers.

    @precondition(lambda self: len(self.followers) < 6)
    @rule(view=st.sampled_from(VIEWS))
    def join(self, view: str) -> None:
        self.joined += 1
        follower = Follower(f"f{self.joined}@example.org", view)
        self.followers[follower.address] = follower
        self.run(self.world.subscribe(follower.address, view))
        self.run(follower.catch_up(self.world))

    @precondition(lambda self: self.followers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        address = data.draw(st.sampled_from(sorted(self.followers)))
        follower = self.followers.pop(address)
        self.run(self.world.unsubscribe(address, follower.view))

    @rule()
    def send(self) -> None:
        """Lets the dispatcher send; what one life of it sends is a chain, until something is lost on purpose."""
        self.run(self.world.settle())
        for stanza in self.world.wire.sent:
            event = read_event(stanza)
            follower = self.followers.get(event.to)
            if event.kind == "purge":
                self.told.clear()
                continue
            key = (event.to, event.node)
            if key in self.told and not self.world.sender.counters.dropped:
                assert event.previous == self.told[key]
            self.told[key] = event.last or ""
            if follower is not None:
                follower.inbox.append(event)
        self.world.wire.sent.clear()

    @precondition(lambda self: self.followers)
    @rule(data=st.data(), fate=st.sampled_from(["lost", "twice", "read", "read", "read"]))
    def deliver(self, data: st.DataObject, fate: str) -> None:
        follower = self.followers[data.draw(st.sampled_from(sorted(self.followers)))]
        for event in follower.inbox:
            if fate != "lost":
                self.run(follower.read(self.world, event))
            if fate == "twice":
                self.run(follower.read(self.world, event))
        follower.inbox.clear()

    # The process.

    @rule()
    def cut(self) -> None:
        self.run(self.world.cut())
        self.online = False
        self.send()
        self.told.clear()

    @rule(ids=st.lists(IDS, min_size=1, max_size=3, unique=True), seconds=st.sampled_from([1.0, 601.0]))
    def lag(self, ids: list[str], seconds: float) -> None:
        """The link is away for so long that what waits may be dropped."""
        self.cut()
        for item_id in ids:
            self.publish(item_id, "red")
        self.world.clock.move(seconds)
        self.come_back()
        self.send()

    @rule()
    def crash(self) -> None:
        self.run(self.world.crash())
        self.online = False
        self.send()
        self.told.clear()

    @precondition(lambda self: not self.online)
    @rule()
    def come_back(self) -> None:
        self.run(self.world.start())
        self.online = True

    @rule()
    def save_marks(self) -> None:
        self.run(self.world.dispatcher.save_marks())

    @invariant()
    def count_is_the_number_of_items(self) -> None:
        page = self.run(self.world.pull(MODIFIED, max=0))
        assert page.count == len(self.model)

    # The proof.

    @rule()
    def prove(self) -> None:
        """One more push arrives, and every mirror is the view without having asked for anything else."""
        self.come_back()
        self.publish(f"proof-{self.changes}", "red")
        self.send()
        for follower in self.followers.values():
            for event in follower.inbox:
                self.run(follower.read(self.world, event))
            follower.inbox.clear()
            self.check(follower)

    def check(self, follower: Follower) -> None:
        ids = self.ids_after(follower.view, 0)
        if follower.view == RED_CREATED:
            # An edit that makes an old item match puts it at its old place: no follower of this order is told.
            ids = [item_id for item_id in ids if self.model[item_id].first == self.model[item_id].last]
        assert set(ids) <= set(follower.items)
        if follower.view != RED_CREATED:
            assert len(ids) == len(follower.items)
        if "created" not in follower.view:
            for item_id in ids:
                assert follower.items[item_id] == self.model[item_id].shown(follower.view)

    def teardown(self) -> None:
        try:
            self.prove()
        finally:
            self.run(self.world.stop())
            self.runner.close()


FeedMachine.TestCase.settings = settings(
    max_examples=runs(100), stateful_step_count=30, deadline=None, report_multiple_bugs=False
)
TestFeedMachine = FeedMachine.TestCase
