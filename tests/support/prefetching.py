"""A prefetcher over a world and a web server on this machine, with the clock of the world."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace

from aiohttp import web

from smartfeeds.core.ip_addresses import Network
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import PollClients, Poller
from smartfeeds.features.polling.source import Source, SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import Enclosure, FileArrival
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.enclosure_load import DOWNLOAD_LIMITS, LOAD_LIMITS, LoadClients
from smartfeeds.features.prefetch.enclosures import ask_for
from smartfeeds.features.prefetch.prefetcher import Prefetcher
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.net.limiter import HostLimiter
from smartfeeds.telemetry import REGISTRY
from support.documents import at_once
from support.waiting import until
from support.website import Names, Site
from support.world import OWNER, T0_US, World

NODE = "podcast"
FEED = "/feed"
DAY_S = 86_400

SETTINGS = PrefetchSettings(
    zone="UTC",
    rules=("yes type=audio/*",),
    file_bytes=1_000_000,
    source_bytes_per_night=5_000_000,
    total_bytes=50_000_000,
)


def changed(settings: PrefetchSettings, changes: Mapping[str, object]) -> PrefetchSettings:
    """Other settings. `model_copy` would keep the rules and windows that were read before."""
    return PrefetchSettings.model_validate(settings.model_dump() | changes)


def podcast(*episodes: str | tuple[str, str], length: object = "", media_type: str = "audio/mpeg") -> bytes:
    """An Atom feed, newest first, a day apart: the ids of its entries, and the address of the enclosure of each."""
    entries = ""
    for place, episode in enumerate(episodes):
        title, url = episode if isinstance(episode, tuple) else (episode, f"/{episode}.mp3")
        kind = f' type="{media_type}"' if media_type else ""
        entries += (
            f"<entry><id>urn:x:{title}</id><title>{title}</title>"
            f"<updated>{format_datetime(T0_US - place * DAY_S * US_PER_S)}</updated>"
            f'<link rel="enclosure" href="{url}"{kind} length="{length}"/></entry>'
        )
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:p</id><title>P</title>{entries}</feed>'.encode()


@dataclass
class Prefetching:
    """`chance` is what every random number is, `free` the free share of the disk. `on_sleep` is called with the pauses
    of the rate, which take no time."""

    world: World
    site: Site
    poller: Poller
    folder: EnclosureFolder
    clients: LoadClients
    settings: PrefetchSettings
    chance: float = 0.0
    free: float = 1.0
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prefetcher = self.new_prefetcher()

    def new_prefetcher(self) -> Prefetcher:
        """A prefetcher that knows nothing but the store and the folder, as after a restart."""

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.world.clock.move(seconds)

        tools = SourceTools(self.world.clock, sleep, lambda: self.chance)
        return Prefetcher(self.world.service, self.clients, self.folder, self.settings, tools)

    def change_settings(self, **changes: object) -> None:
        """Other settings, after a restart."""
        self.settings = changed(self.settings, changes)
        self.world.service.policy = replace(self.world.service.policy, of_features=(self.settings,))
        self.prefetcher = self.new_prefetcher()

    async def add(
        self, *episodes: str | tuple[str, str], node: str = NODE, path: str = FEED, owner: str = "", **options: object
    ) -> Source:
        """Adds a source with these episodes, and polls it. All of them are loaded. `options` are settings of the
        source, and those of `podcast`."""
        known = {each.name for each in fields(SourceSettings)}
        settings = {name: options.pop(name) for name in list(options) if name in known}
        settings = {"prefetch": True, "prefetch_first": 100, "every_s": 3_600} | settings
        self.site.pages[path] = podcast(*episodes, **options)  # type: ignore[arg-type]
        source = new_source(node, self.site.url(path), self.world.clock(), SourceSettings(**settings), owner=owner)  # type: ignore[arg-type]
        source = await self.world.service.write(lambda tx, context: add_source(tx, context, source))
        await self.poll(source)
        return source

    async def poll(self, source: Source) -> None:
        """Polls a source."""
        row = await self.world.store.read(lambda tx: source_rows.source(tx, source.source_no))
        assert row is not None
        await self.poller.poll(row)

    def at(self, text: str, days: int = 0) -> None:
        """Moves the clock to a time of the day, UTC, so many days after the first day, or later."""
        hours, minutes = map(int, text.split(":"))
        midnight_us = T0_US - T0_US % (DAY_S * US_PER_S)
        self.world.clock.now_us = midnight_us + (days * DAY_S + hours * 3_600 + minutes * 60) * US_PER_S

    async def look(self, text: str = "", days: int = 0) -> None:
        """Loads everything that may begin now."""
        if text:
            self.at(text, days)
        await self.prefetcher.look()
        while await self.prefetcher.settle():
            await self.prefetcher.look()

    async def rows(self) -> list[Enclosure]:
        """The enclosures, by number."""
        return await self.world.store.read(lambda tx: enclosure_rows.enclosures(tx, 0, NO_LIMIT))

    async def row(self, name: str = "") -> Enclosure:
        """The enclosure whose address ends with a name; the only one."""
        (row,) = [row for row in await self.rows() if row.url.endswith(name)]
        return row

    async def states(self) -> dict[str, str]:
        """The state of each enclosure by the last segment of its address."""
        return {row.url.rpartition("/")[2]: row.state.value for row in await self.rows()}

    async def log(self) -> list[FileArrival]:
        """The log of arrivals."""
        return await self.world.store.read(lambda tx: enclosure_rows.arrivals(tx, 0, NO_LIMIT))

    async def ask(self, title: str) -> None:
        """An operator wants the enclosures of an item now."""
        await self.ask_id((await self.item_ids())[title])

    async def ask_id(self, item_id: str) -> None:
        """An operator wants the enclosures of the item with an id now."""
        await self.world.service.write(lambda tx, context: ask_for(tx, context, NODE, item_id))

    async def item_ids(self, node: str = NODE) -> dict[str, str]:
        """The ids of the items by title."""
        page = await self.world.pull(node, actor=OWNER, max=500)
        return {item.payload.partition(b"<title>")[2].partition(b"<")[0].decode(): item.id for item in page.items}

    def complete(self) -> dict[str, bytes]:
        """The complete files by name."""
        return {path.name: path.read_bytes() for path in self.folder.complete.path.glob("??/*")}

    def partial(self) -> dict[str, bytes]:
        """The partial files by name."""
        folder = self.folder.path / "partial"
        return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}

    @property
    def loads(self) -> list[str]:
        """The paths of enclosures that were requested."""
        return [path for path in self.site.paths if not path.startswith(FEED)]


@asynccontextmanager
async def running_prefetching(world: World, site: Site, path: Path, **options: object) -> AsyncIterator[Prefetching]:
    """A prefetcher that a test drives. `options` are settings, `limits` of its clients, or the `networks` of each of
    them. By default nothing is refused."""
    limits: FetchLimits = options.pop("limits", DOWNLOAD_LIMITS)  # type: ignore[assignment]
    networks: Sequence[Sequence[Network]] = options.pop("networks", (EVERYWHERE,) * 3)  # type: ignore[assignment]
    settings = changed(SETTINGS, options)
    world.service.policy = replace(world.service.policy, of_features=(settings,))

    async def sleep(_seconds: float) -> None:
        await asyncio.sleep(0)

    def clock_s() -> float:
        return world.clock() / US_PER_S

    resolver = Names("127.0.0.1")
    limiter = HostLimiter(LOAD_LIMITS, clock=clock_s, sleep=sleep)
    async with (
        AsyncExitStack() as stack,
        Fetcher(replace(DOWNLOAD_LIMITS, allowed=EVERYWHERE), resolver=resolver, clock=clock_s) as polls,
    ):
        poller = Poller(
            world.service, PollClients(polls, polls, polls), SourceTools(world.clock, sleep, lambda: 0.5, aside=at_once)
        )
        loaders = [
            Fetcher(replace(limits, allowed=tuple(each)), limiter=limiter, resolver=resolver, clock=clock_s)
            for each in networks
        ]
        clients = LoadClients(*[await stack.enter_async_context(loader) for loader in loaders])
        made: list[Prefetching] = []
        folder = EnclosureFolder(path, lambda _path: SimpleNamespace(total=1_000, free=int(1_000 * made[0].free)))
        made.append(Prefetching(world, site, poller, folder, clients, settings))
        yield made[0]
        await made[0].prefetcher.settle()


def sent(data: bytes, **headers: str) -> Callable[[web.Request], "asyncio.Future[web.StreamResponse]"]:
    """A page that answers ranges as RFC 9110 says, with these validators."""

    async def page(request: web.Request) -> web.StreamResponse:
        fields = {"Content-Type": "audio/mpeg"} | {name.replace("_", "-"): value for name, value in headers.items()}
        text = request.headers.get("Range", "")
        condition = request.headers.get("If-Range", "")
        if not text or (condition and condition not in (fields.get("ETag"), fields.get("Last-Modified"))):
            return web.Response(body=data, headers=fields)
        start = int(text.removeprefix("bytes=").partition("-")[0])
        fields["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        return web.Response(status=206, body=data[start:], headers=fields)

    return page  # type: ignore[return-value]


def broken(data: bytes, whole: int, **headers: str) -> Callable[[web.Request], "asyncio.Future[web.StreamResponse]"]:
    """A page that announces so many bytes, sends `data`, and closes the connection once they have come."""

    async def page(request: web.Request) -> web.StreamResponse:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg", "Content-Length": str(whole)} | fields)
        await response.prepare(request)
        await write_received(response, data)
        assert request.transport is not None
        request.transport.close()
        return response

    return page  # type: ignore[return-value]


async def write_received(response: web.StreamResponse, data: bytes) -> None:
    """Writes data of a response, and waits until the prefetcher has them: a lost connection takes those on the way."""
    before = received_bytes()
    await response.write(data)
    await until(lambda: received_bytes() >= before + len(data), f"{len(data)} bytes at the prefetcher")


def received_bytes() -> float:
    """The bytes that all prefetchers of this process have received."""
    return REGISTRY.get_sample_value("smartfeeds_prefetch_bytes_total") or 0.0
