"""A poller over a world and a web server on this machine, with the clock of the world."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from aiohttp import web

from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import PollClients, Poller
from smartfeeds.features.polling.source import Source, SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.atom import read_meta
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.net.limiter import POLL_LIMITS, HostLimiter
from support.documents import at_once
from support.website import Names, Site, running_site
from support.world import OWNER, T0_US, World

NODE = "news"
PATH = "/feed"
_BLOG = (
    b"<html><head><title>Alice &amp; her blog</title>"
    b"<link rel='alternate' type='application/atom+xml' href='/feed' title='Entries'>"
    b"<link rel='alternate' type='application/rss+xml' href='/comments' title='Comments'></head><body></body></html>"
)


def atom(*titles: str, feed: str = "A blog", inner: str = "", every_s: int = 86_400) -> bytes:
    """An Atom feed whose entries have these titles as ids, newest first, a day apart."""
    entries = "".join(
        f"<entry><id>urn:x:{title}</id><title>{title}</title>"
        f"<updated>{format_datetime(T0_US - place * every_s * US_PER_S)}</updated></entry>"
        for place, title in enumerate(titles)
    )
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:blog</id><title>{feed}</title>{inner}{entries}</feed>'
    ).encode()


@asynccontextmanager
async def running_blog() -> AsyncIterator[Site]:
    """A blog on 127.0.0.1: a page with two feeds, one of which is missing."""
    async with running_site() as site:
        site.pages |= {"/": _BLOG, "/feed": atom("second", "first", feed="The Blog")}
        yield site


@dataclass
class Polling:
    """`chance` is what every random number is; `slept` are the pauses of the limiter, which take no time."""

    world: World
    site: Site
    poller: Poller
    slept: list[float] = field(default_factory=list)

    async def add(self, path: str = PATH, node: str = NODE, host: str = "127.0.0.1", **settings: object) -> Source:
        """Adds a source of the site."""
        source = new_source(node, self.site.url(path, host), self.world.clock(), SourceSettings(**settings))  # type: ignore[arg-type]
        return await self.world.service.write(lambda tx, context: add_source(tx, context, source))

    async def poll(self, source: Source, later_s: float = 0.0) -> Source:
        """Polls a source, after the clock was moved, whether it is due or not."""
        self.world.clock.move(later_s)
        await self.poller.poll(await self.source(source))
        return await self.source(source)

    async def look(self, later_s: float = 0.0) -> None:
        """Moves the clock in small steps, and polls what is due at each of them."""
        while True:
            step_s = min(later_s, 60.0)
            self.world.clock.move(step_s)
            later_s -= step_s
            await self.poller.look()
            while await self.poller.settle():
                await self.poller.look()
            if later_s <= 0:
                return

    async def source(self, source: Source) -> Source:
        """The source as it is stored now."""
        row = await self.world.store.read(lambda tx: source_rows.source(tx, source.source_no))
        assert row is not None
        return row

    async def change(self, source: Source, **changes: object) -> Source:
        """Changes fields of a stored source."""
        row = replace(await self.source(source), **changes)  # type: ignore[arg-type]
        await self.world.store.write(lambda tx: source_rows.put(tx, row))
        return row

    async def titles(self, node: str = NODE) -> list[str]:
        """The titles of the items of a node, in the order of the feed."""
        page = await self.world.pull(node, actor=OWNER, max=500)
        return [read_meta(item.payload).body for item in page.items]


@asynccontextmanager
async def running_polling(world: World, site: Site, **options: object) -> AsyncIterator[Polling]:
    """A poller that a test drives. `options` are those of the Poller."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def clock_s() -> float:
        return world.clock() / US_PER_S

    limiter = HostLimiter(POLL_LIMITS, clock=clock_s, sleep=sleep)
    fetcher = Fetcher(
        FetchLimits(allowed=EVERYWHERE), limiter=limiter, resolver=Names("127.0.0.1"), clock=clock_s,
        contact="https://feeds.example.org",
    )  # fmt: skip
    guarded = Fetcher(FetchLimits(), limiter=limiter, resolver=Names("127.0.0.1"), clock=clock_s)
    async with fetcher, guarded:
        tools = SourceTools(world.clock, sleep, lambda: 0.5, aside=at_once)
        poller = Poller(world.service, PollClients(fetcher, fetcher, fetcher), tools, **options)  # type: ignore[arg-type]
        yield Polling(world, site, poller, slept)


def tagged(body: bytes, tag: str = '"1"', **headers: str) -> web.Response:
    """A page with an ETag."""
    return web.Response(body=body, headers={"ETag": tag, **headers})
