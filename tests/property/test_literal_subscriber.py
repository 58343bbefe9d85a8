"""A subscriber that follows FeedSync 4.1 to the letter ends with every item, whatever happens to the feed.

`HYPOTHESIS_PROFILE=nightly` makes 2,000 runs.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smartfeeds.service import requests as r
from support.component import ALICE, DOMAIN
from support.effort import runs
from support.literal_subscriber import LiteralSubscriber
from support.literal_subscriber import read as read_document
from support.web import Web, WebStarter
from support.world import draft, entry, jid

RUNS = runs(40, nightly=2_000)

PAGE = 4
QUERIES = ("", "&max=1", "&max=3", "&max=50", "&author=alice", "&order=created", "&max=2&order=created")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 9)),
        st.tuples(st.just("burst at one moment"), st.integers(1, 9)),
        st.tuples(st.just("edit"), st.integers(0, 30)),
        st.tuples(st.just("retract"), st.integers(0, 30)),
        st.tuples(st.just("create again"), st.just(0)),
        st.tuples(st.just("read"), st.integers(0, 3)),
        st.tuples(st.just("back"), st.integers(1, 5)),
    ),
    max_size=25,
)


@dataclass
class History:
    """A feed over its life, with a clock that tests move. All publishes are authored by "alice", edits too."""

    web: Web
    node: str
    dialect: str
    ids: list[str] = field(default_factory=list)
    versions: "count[int]" = field(default_factory=lambda: count(1))

    async def handle(self, request: r.Request) -> None:
        await self.web.component.app.service.handle(request)

    async def create(self) -> None:
        form = {"pubsub#sync_dialect": (self.dialect,)}
        await self.handle(r.CreateNode(jid(ALICE), DOMAIN, self.node, form))

    async def publish(self, item_id: str) -> None:
        payload = entry(f"version {next(self.versions)}", author="alice")
        await self.handle(r.Publish(jid(ALICE), DOMAIN, self.node, item_id, draft(payload)))

    async def step(self, what: str, number: int) -> None:
        """One step; reads are not done here."""
        clock = self.web.component.clock
        if what in ("publish", "burst at one moment"):
            for _ in range(number):
                self.ids.append(f"i{next(self.versions)}")
                await self.publish(self.ids[-1])
                clock.advance(1.5 if what == "publish" else 0)
        elif what == "edit" and self.ids:
            # An edit of a deleted item restores it.
            await self.publish(self.ids[number % len(self.ids)])
        elif what == "retract" and self.ids:
            await self.retract(self.ids[number % len(self.ids)])
        elif what == "create again":
            await self.handle(r.DeleteNode(jid(ALICE), DOMAIN, self.node))
            # In SSE each change has a second of its own, so the newest ones are ahead of the clock.
            clock.advance(1_000)
            self.ids.clear()
            await self.create()
        elif what == "back" and self.ids:
            clock.advance(-number)

    async def retract(self, item_id: str) -> None:
        answer = await self.web.component.app.service.handle(r.GetItem(jid(ALICE), DOMAIN, self.node, item_id))
        assert isinstance(answer, r.ItemShown)
        if not answer.item.deleted:
            await self.handle(r.Retract(jid(ALICE), DOMAIN, self.node, item_id))


async def play(web: Web, node: str, dialect: str, suffix: str, steps: list[tuple[str, int]]) -> None:
    """Four subscribers read at random moments; at the end each has exactly what the complete feed has."""
    history = History(web, node, dialect)
    await history.create()

    async def fetch(url: str) -> bytes:
        got = await web.get(url.removeprefix(web.origin))
        assert got.status == 200, got.text
        return got.body

    def subscriber(query: str, *, caches_complete: bool) -> LiteralSubscriber:
        address = f"{web.origin}/feeds/{node}.{suffix}?sync=true{query}"
        return LiteralSubscriber(address, fetch, caches_complete)

    readers = [subscriber(query, caches_complete=number % 2 == 0) for number, query in enumerate(QUERIES)]
    for what, number in steps:
        if what == "read":
            for reader in readers[number :: 2 if number < 2 else 3]:
                await reader.read()
        else:
            await history.step(what, number)
    whole = read_document(await fetch(f"{web.origin}/feeds/{node}.{suffix}?sync=true&max=all")).items
    assert len(whole) == len(history.ids)
    for reader in readers:
        await reader.read()
        assert reader.items == whole, reader.address


@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
@pytest.mark.parametrize("suffix", ["atom", "rss"])
async def test_literal_subscriber_ends_with_every_item(start_web: WebStarter, suffix: str, dialect: str) -> None:
    """[FS-078] [FS-079] [FS-080] [FS-081] [FS-083] [FS-085] [SSE-006] [SSE-008] [A-46] [A-47] Publishes, edits,
    deletions, restored items, feeds that are created again, steps of the clock; windows of several sizes, filtered, and
    in the order of creation."""
    web = await start_web(pubsub={"page_default": PAGE}, limits={"nodes_per_jid": 1_000_000})
    loop = asyncio.get_running_loop()
    numbers = count()

    @settings(max_examples=RUNS)
    @given(STEPS)
    @example([("read", 0), ("read", 1), ("publish", 1), ("publish", 9)])
    @example([("publish", 1), ("read", 0), ("read", 1), ("burst at one moment", 9)])
    @example([("publish", 9), ("read", 0), ("read", 1), ("create again", 0), ("publish", 2)])
    @example([("publish", 1), ("read", 0), ("read", 1), ("back", 5), ("burst at one moment", 9)])
    def run(steps: list[tuple[str, int]]) -> None:
        work: Any = play(web, f"feed{next(numbers)}", dialect, suffix, steps)
        asyncio.run_coroutine_threadsafe(work, loop).result()

    await asyncio.to_thread(run)


@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
@pytest.mark.parametrize("suffix", ["atom", "rss", "opml"])
@pytest.mark.parametrize("caches_complete", [True, False])
async def test_subscriber_of_a_feed_that_outgrows_its_page_has_all_items(
    start_web: WebStarter, suffix: str, dialect: str, caches_complete: bool
) -> None:
    """[FS-079] [FS-081] [A-47] Ten items fit into one page. The subscriber reads them, and reads again after 120
    publishes."""
    web = await start_web()
    history = History(web, "win", dialect)
    await history.create()

    async def fetch(url: str) -> bytes:
        return (await web.get(url.removeprefix(web.origin))).body

    subscriber = LiteralSubscriber(f"{web.origin}/feeds/win.{suffix}?sync=true", fetch, caches_complete)
    await history.step("publish", 10)
    await subscriber.read()
    assert len(subscriber.items) == 10
    await history.step("publish", 120)
    await subscriber.read()
    assert (len(subscriber.items), subscriber.complete_reads) == (130, 2)
    await history.step("publish", 20)
    await subscriber.read()
    assert (len(subscriber.items), subscriber.complete_reads) == (150, 2)
