"""Mirrors of feeds that announce their changes at a hub: over real HTTP, with a clock of our own [WS-099, WS-136]."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from aiohttp import web

from smartfeeds.core.model import Slice
from smartfeeds.core.view import SHARED
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import HUB, POLLED, Direction, MirrorRow, MirrorState, make_mirror
from smartfeeds.features.mirrors.mirror_http import WebMirrorReader
from smartfeeds.features.mirrors.mirror_push import leave_hub
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.features.polling.push_states import OwnCallbacks, PushState
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.additions import FANOUT_NS
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.service.context import Policy
from smartfeeds.store.base import ReadTx
from support.pushing import Pushing, running_pushing
from support.sqlite_memory import SqliteMemoryStore
from support.timers import Timers
from support.waiting import until
from support.website import Page, running_site
from support.world import ATOM_NS, World, running_world

NODE, PATH = "plans", "/plans.rss"


def entry(name: str) -> str:
    history = "<sx:history sequence='1' when='2011-05-01T10:00:00Z' by='ed'/>"
    return (
        f"<entry><id>urn:x:{name}</id><title>{name}</title><updated>2011-05-01T10:00:00Z</updated>"
        f"<sx:sync xmlns:sx='{FEEDSYNC_NS}' id='{name}' updates='1'>{history}</sx:sync></entry>"
    )


def rss(*names: str, hub: str = "") -> bytes:
    history = "<sx:history sequence='1' when='2011-05-01T10:00:00Z' by='ed'/>"
    items = "".join(
        f"<item><guid isPermaLink='false'>urn:x:{name}</guid><title>{name}</title>"
        f"<sx:sync xmlns:sx='{FEEDSYNC_NS}' id='{name}' updates='1'>{history}</sx:sync></item>"
        for name in names
    )
    link = f"<a:link xmlns:a='http://www.w3.org/2005/Atom' rel='hub' href='{hub}'/>" if hub else ""
    return f"<rss version='2.0'><channel><title>t</title>{link}{items}</channel></rss>".encode()


@dataclass
class Following:
    """A mirror that runs. `timers` are its pauses."""

    pushing: Pushing
    reader: WebMirrorReader
    timers: Timers

    @property
    def hub(self) -> str:
        """The address of the hub of the site."""
        return self.pushing.site.url("/hub")

    @property
    def reads(self) -> int:
        """How often the feed was requested."""
        return [asked.path for asked in self.pushing.site.asked].count(PATH)

    @property
    def means(self) -> str:
        return self.reader.state_store.state.means

    def lay_out(self, *names: str) -> None:
        """Changes the feed."""
        self.pushing.site.pages[PATH] = rss(*names, hub=self.hub)

    async def rests(self, reads: int) -> None:
        """Waits until the mirror has read the feed so often, and pauses."""
        await until(lambda: self.reads >= reads and self.timers.planned, "the pause")

    async def ids(self) -> set[str]:
        def read(tx: ReadTx) -> set[str]:
            node = tx.node(NODE)
            return set() if node is None else {item.id for item in tx.slice(node.node_no, Slice(SHARED, 100))}

        return await self.pushing.world.store.read(read)

    async def subscribed(self) -> None:
        """The hub confirms the subscription."""
        await self.pushing.look()
        await self.pushing.check(await self.pushing.push())
        assert (await self.pushing.push()).state is PushState.ACTIVE
        await self.reader.look_for_push()


@asynccontextmanager
async def following(
    page: bytes | web.Response | Page, *, own_url: str = "http://reader.example"
) -> AsyncIterator[Following]:
    async with (
        running_world(SqliteMemoryStore(), Policy("feeds.b.example")) as world,
        running_site() as site,
        running_pushing(world, site) as pushing,
        Fetcher(FetchLimits(allowed=EVERYWHERE)) as fetcher,
    ):
        if isinstance(page, bytes):
            page = page.replace(b"HUB", site.url("/hub").encode())
        site.pages |= {PATH: page, "/hub": pushing.hub}
        one = await _start(world, pushing, fetcher, own_url)
        try:
            yield one
        finally:
            await one.reader.end()


async def _start(world: World, pushing: Pushing, fetcher: Fetcher, own_url: str) -> Following:
    keys, timers = iter(range(100)), Timers()
    tools = SourceTools(world.clock, timers.sleep, lambda: 0.0)
    mirror = make_mirror(node=NODE, address=pushing.site.url(PATH), name="a")
    await world.store.write(lambda tx: stored_mirrors.put(tx, MirrorRow(mirror)))
    state_store = MirrorStateStore(world.service, mirror.name, Direction.IN, MirrorState(), tools)
    hubs = OwnCallbacks(own_url, (lambda size: f"key{next(keys)}".ljust(size, "x")) if own_url else None)
    reader = WebMirrorReader(mirror, world.service, fetcher, state_store, tools, hubs)
    reader.begin()
    one = Following(pushing, reader, timers)
    await one.rests(1)
    return one


async def test_push_of_a_hub_makes_the_mirror_read_its_feed() -> None:
    """No item comes from the push itself, so a hub can add none and lose none."""
    async with following(rss("a", hub="HUB")) as one:
        assert (await one.ids(), one.means) == ({"a"}, POLLED)
        await one.subscribed()
        assert one.pushing.requests[0]["hub.mode"] == "subscribe"
        assert one.pushing.requests[0]["hub.topic"] == one.pushing.site.url(PATH)

        one.lay_out("a", "b")
        got = await one.pushing.deliver(await one.pushing.push(), rss("forged"))
        assert got.status == 202
        await one.reader.look_for_push()
        await one.rests(2)
        assert (await one.ids(), one.means) == ({"a", "b"}, HUB)
        assert one.timers.planned == [300.0]


async def test_change_that_the_feed_does_not_have_yet_is_read_a_minute_later() -> None:
    """RC-075: the publisher may answer from a cache."""
    async with following(rss("a", hub="HUB")) as one:
        await one.subscribed()
        await one.pushing.deliver(await one.pushing.push(), b"")
        await one.reader.look_for_push()
        await one.rests(2)
        assert one.timers.planned == [60.0]

        one.lay_out("a", "b")
        one.timers.fire()
        await one.rests(3)
        assert (await one.ids(), one.timers.planned) == ({"a", "b"}, [300.0])


@pytest.mark.parametrize("status", [404, 410, 500, 503])
async def test_feed_of_a_hub_that_does_not_work_is_polled(status: int) -> None:
    async with following(rss("a", hub="HUB")) as one:
        one.pushing.hub_answer = web.Response(status=status)
        await one.pushing.look()
        assert (await one.pushing.push()).state is PushState.REFUSED
        one.lay_out("a", "b")
        one.timers.fire()
        await one.rests(2)
        assert (await one.ids(), one.means) == ({"a", "b"}, POLLED)
        assert one.reader.state_store.state.error == ""


async def test_feed_of_a_hub_that_is_silent_is_polled_all_the_same() -> None:
    async with following(rss("a", hub="HUB")) as one:
        await one.subscribed()
        one.lay_out("a", "b")
        one.timers.fire()
        await one.rests(2)
        assert (await one.ids(), one.means, one.timers.planned) == ({"a", "b"}, HUB, [300.0])


@pytest.mark.parametrize(
    ("page", "own_url"),
    [
        (rss("a"), "http://reader.example"),
        (rss("a", hub="http://reader.example/hub"), "http://reader.example"),
        (rss("a", hub="xmpp:hub.example"), "http://reader.example"),
        (rss("a", hub="HUB"), ""),
    ],
    ids=["no hub", "own hub", "no web address", "no public address"],
)
async def test_without_a_hub_that_reaches_us_there_is_no_subscription(page: bytes, own_url: str) -> None:
    """[WS-140] Our own hub would announce what we read there to ourselves."""
    async with following(page, own_url=own_url) as one:
        assert (await one.pushing.pushes(), await one.ids(), one.means) == ([], {"a"}, POLLED)


async def test_hub_in_the_header_counts() -> None:
    headers = {"Link": '<http://hub.example/>; rel="hub", <https://files.example/plans.rss>; rel="self"'}
    async with following(web.Response(body=rss("a"), headers=headers)) as one:
        target = (await one.pushing.push()).target
        assert (target.url, target.topic) == ("http://hub.example/", "https://files.example/plans.rss")


async def test_smart_feed_that_holds_no_pull_is_followed_by_its_hub() -> None:
    """It ignores `timeout`. The hub is that of the poll after the mirror has seen this."""
    names = ["a"]

    async def page(request: web.Request) -> web.Response:
        head = f"<fo:last_cursor xmlns:fo='{FANOUT_NS}'>{len(names)}_0_abcdef12</fo:last_cursor>"
        hub = f"<link rel='hub' href='http://{request.host}/hub'/>"
        text = f"<feed xmlns='{ATOM_NS}'><title>t</title>{hub}{head}{''.join(map(entry, names))}</feed>"
        return web.Response(text=text)

    async with following(page) as one:
        while not await one.pushing.pushes():
            reads = one.reads
            one.timers.fire()
            await one.rests(reads + 1)
        assert one.reads < 20
        await one.subscribed()
        assert (await one.pushing.push()).target.topic == one.pushing.site.url(PATH)

        names.append("b")
        reads = one.reads
        await one.pushing.deliver(await one.pushing.push(), b"")
        await one.reader.look_for_push()
        await one.rests(reads + 1)
        assert (await one.ids(), one.means) == ({"a", "b"}, HUB)


async def test_hub_that_the_feed_does_not_name_any_more_is_left() -> None:
    """[WS-135] After two readings, because one may come from an old copy."""
    async with following(rss("a", hub="HUB")) as one:
        await one.subscribed()
        for reads in (2, 3):
            one.pushing.site.pages[PATH] = rss("a")
            one.timers.fire()
            await one.rests(reads)
        assert (await one.pushing.push()).state is PushState.LEAVING


@pytest.mark.parametrize("is_noticed", [True, False])
async def test_subscription_ends_with_its_mirror(*, is_noticed: bool) -> None:
    """[WS-136] Also if the mirror was removed while no service ran: when the lease is to be renewed."""
    async with following(rss("a", hub="HUB")) as one:
        await one.subscribed()
        await one.pushing.look(120)
        assert (await one.pushing.push()).state is PushState.ACTIVE, "it is no subscription of a removed source"

        world = one.pushing.world
        await world.store.write(lambda tx: stored_mirrors.remove(tx, "a"))
        if is_noticed:
            await world.service.write(partial(leave_hub, mirror="a"))
        else:
            push = await one.pushing.push()
            await one.pushing.change(due_us=world.clock(), asked_us=None)
            assert push.mirror == "a"
        await one.pushing.look(1)
        assert one.pushing.requests[-1]["hub.mode"] == "unsubscribe"
        assert (await one.pushing.push()).state is PushState.LEAVING


async def test_push_without_a_right_signature_wakes_nobody() -> None:
    async with following(rss("a", hub="HUB")) as one:
        await one.subscribed()
        push = await one.pushing.push()
        assert push.has_secret
        await one.pushing.deliver(push, rss("forged"), X_Hub_Signature="sha256=00")
        await one.reader.look_for_push()
        await asyncio.sleep(0)
        assert (await one.pushing.push()).hint is None
        assert one.reads == 1
