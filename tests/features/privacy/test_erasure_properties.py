"""Cursors stay valid over an erasure: a follower at any cursor misses nothing, and receives nothing twice.

People publish, edit and delete. Followers stop at cursors of several views: before the erasure, after each of its
steps, and after it. Later all of them continue, and each must have what a new follower of its view gets.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import Item
from smartfeeds.core.person import Person
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.privacy import erasing
from smartfeeds.features.privacy.erasing import begin_erasure, continue_erasure
from smartfeeds.features.privacy.erasures import ErasureSettings
from smartfeeds.service.steps import MoreSteps
from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import BOB, CREATED, FEED, MODIFIED, OWNER, World

ZOE = "zoe@people.example.net"
PERSON = Person(ZOE)
NAMING = f"{ZOE}-1"  # an id that names the person
NEW_ID = "urn:x-smartfeeds:sha256:"
VIEWS = (MODIFIED, CREATED, FEED, f"{FEED}?author={BOB}")
WRITE = st.tuples(
    st.sampled_from(["publish", "publish", "publish", "retract"]),
    st.sampled_from(["a", "b", "c", "d", NAMING]),
    st.sampled_from([OWNER, BOB, ZOE, ZOE]),
)
WRITES = st.lists(WRITE, max_size=8)
PAGE = st.integers(1, 4)


@dataclass
class Follower:
    """A view, the cursor of a follower (empty: at the beginning), and what it has: by id, the key and what it shows."""

    view: str
    cursor: str
    copy: dict[str, tuple[int, bool]]


def version(item: Item, view: str) -> tuple[int, bool]:
    """What a view shows of an item: its key in the order of the view, and whether it is a deletion."""
    if "created" in view:
        return item.created_us, False  # this order never shows an item again
    return item.modified_us, item.deleted or item.left


async def continued(world: World, follower: Follower, size: int, pages: int = 100) -> tuple[Follower, list[Item]]:
    """The follower after some pages, and the items that it received."""
    items: list[Item] = []
    cursor = follower.cursor
    for _ in range(pages):
        page = await world.pull(follower.view, actor=OWNER, max=size, **({"after": cursor} if cursor else {}))
        if not page.items:
            break
        items += page.items
        assert page.last is not None
        cursor = page.last
    copy = follower.copy | {item.id: version(item, follower.view) for item in items}
    return Follower(follower.view, cursor, copy), items


async def followers(world: World, size: int) -> list[Follower]:
    """Followers of every view that have stopped at each possible place."""
    stopped = []
    for view in VIEWS:
        follower = Follower(view, "", {})
        while True:
            stopped.append(follower)
            follower, items = await continued(world, follower, size, pages=1)
            if not items:
                break
    return stopped


async def write_all(world: World, writes: list[tuple[str, str, str]]) -> None:
    """Writes of several people. The erased person is refused from the beginning of the erasure on."""
    for kind, item_id, who in writes:
        world.clock.move(1)
        try:
            if kind == "publish":
                await world.publish(item_id, actor=who)
            else:
                await world.retract(item_id, actor=who)
        except FeedError as error:
            if error.condition not in (Condition.ITEM_NOT_FOUND, Condition.FORBIDDEN):
                raise


async def run(before: list[tuple[str, str, str]], during: list[tuple[str, str, str]], size: int, chunk: int) -> None:
    store = SqliteMemoryStore()
    await store.open()
    world = World(store)
    await world.create()
    for who in (ZOE, BOB):
        await world.affiliate(who, "publisher")
    await write_all(world, before)
    stopped = await followers(world, size)
    await world.service.write(lambda tx, context: begin_erasure(tx, context, PERSON, ErasureSettings(now=True)))
    steps = 0
    while isinstance(await world.step(partial(continue_erasure, jid=ZOE)), MoreSteps):
        steps += 1
        if steps % chunk == 0:
            await write_all(world, during[:1])
            del during[:1]
            stopped += await followers(world, size)
    stopped += await followers(world, size)
    await write_all(world, during)
    await judge(world, stopped, size)
    await store.close()


def unnamed(copy: dict[str, tuple[int, bool]]) -> dict[str, tuple[int, bool]]:
    """A copy without the ids that name the person, and without those that replace them: the service waits for the
    followers that it knows, and a reader of cursors may have the deletion under either id."""
    return {name: value for name, value in copy.items() if not PERSON.is_in(name) and not name.startswith(NEW_ID)}


async def judge(world: World, stopped: list[Follower], size: int) -> None:
    """Lets all followers continue, and compares each with a new one."""
    fresh = {view: unnamed((await continued(world, Follower(view, "", {}), 500))[0].copy) for view in VIEWS}
    for follower in stopped:
        after, items = await continued(world, follower, size)
        ids = [item.id for item in items]
        assert len(ids) == len(set(ids)), "an item twice"
        # The deletion of an id that names the person is repeated under its new id (SF-108).
        repeated = [item for item in items if follower.copy.get(item.id) == version(item, follower.view)]
        assert not repeated, "an item that had not changed"
        copy = unnamed(after.copy)
        if follower.view == FEED:  # deletions are events here, and pulls do not show them
            live = fresh[FEED]
            assert {name: value for name, value in copy.items() if name in live} == live
        else:
            assert copy == fresh[follower.view]


@settings(max_examples=runs(25))
@given(before=WRITES, during=WRITES, size=PAGE, chunk=st.integers(1, 3))
def test_followers_at_any_cursor_miss_nothing(
    before: list[tuple[str, str, str]], during: list[tuple[str, str, str]], size: int, chunk: int
) -> None:
    """[OPS-046] [CAM-035] [OPS-012] Views in both orders, with and without filters, with tombstones and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasing, "ITEM_CHUNK", 2)  # several steps for a few items
        asyncio.run(run(before, list(during), size, chunk))
