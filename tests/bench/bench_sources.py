"""What polling other feeds costs: the target `sources` of the benchmark.

Fills a SQLite store with sources on as many hosts (addresses of 127.0.0.0/8), serves their feeds from a process of its
own, and polls each twice: every document is read in the first round, 95 % are "not modified" in the second. The cost is
the processor time of this process.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from ipaddress import IPv4Address
from pathlib import Path

from aiohttp import web

from bench.runs import Collector, fresh
from bench.targets import ROOT
from bench.wire import BenchError
from bench.work import Number
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import PollClients, Poller
from smartfeeds.features.polling.source import Source, SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.atom import read_traits
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.net.limiter import POLL_LIMITS, HostLimiter
from smartfeeds.service.context import Context, Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.telemetry import set_up_logging

FEEDS_AN_HOUR = 10_000
ITEMS = 20
FIRST_HOST = int(IPv4Address("127.1.0.1"))
CHANGED_OF_100 = 5
BEGIN_US = 1_767_225_600 * US_PER_S


def feed(number: int, version: int) -> bytes:
    """A feed of 20 entries of about 1 KB; a later version has one more."""
    entries = "".join(
        f"<entry><id>urn:x:{number}:{item}</id><title>Entry {item} of feed {number}</title>"
        f"<updated>{format_datetime(BEGIN_US + item * 3_600 * US_PER_S)}</updated>"
        f"<link href='https://example.org/{number}/{item}'/><content>{'text ' * 160}</content></entry>"
        for item in range(ITEMS + version - 1, version - 1, -1)
    )
    return (
        f"<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:{number}</id><title>Feed {number}</title>{entries}</feed>"
    ).encode()


async def serve() -> None:
    """The web server of the feeds: 5 of 100 change when they are requested a second time."""

    async def answer(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        known = request.headers.get("If-None-Match")
        version = 0 if known is None else int(number % 100 < CHANGED_OF_100)
        tag = f'"{version}"'
        if known == tag:
            return web.Response(status=304, headers={"ETag": tag})
        return web.Response(body=feed(number, version), headers={"ETag": tag}, content_type="application/atom+xml")

    app = web.Application()
    app.router.add_get("/{number}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "0.0.0.0", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


class Clock:
    """The clock of the machine, which may be moved on."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000 + self.ahead_us


def measure(collect: Collector, folder: Path) -> None:
    """Both rounds, as often as the benchmark runs."""
    set_up_logging("console", "warning")
    feeds = collect.scale.sources
    for _ in range(collect.scale.runs):
        server = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True, env=_environment())
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            read_s, poll_s = asyncio.run(_rounds(feeds, port, fresh(folder)))
        finally:
            server.terminate()
            server.wait()
            assert server.stdout is not None
            server.stdout.close()
        share = poll_s * FEEDS_AN_HOUR / 3_600
        numbers = (
            Number("sources_read", read_s * 1_000, f"{feeds:,} feeds"),
            Number("sources_poll", poll_s * 1_000),
            Number("sources_share", share * 100),
        )
        collect.take("ours", iter(numbers))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'component'}:{ROOT / 'tests'}"}


async def _rounds(feeds: int, port: int, folder: Path) -> tuple[float, float]:
    """The seconds of processor time for each poll, in the first round and in the second."""
    clock = Clock()
    store = SqliteStore(folder / "feeds.db", read_traits)
    service = FeedService(
        store, Policy("feeds.example.org"), clock=clock, new_id=lambda: "x", on_change=lambda _nodes: None
    )
    await store.open()
    async with Fetcher(FetchLimits(allowed=EVERYWHERE), limiter=HostLimiter(POLL_LIMITS)) as fetcher:

        def fill(tx: WriteTx, context: Context) -> None:
            for number in range(feeds):
                url = f"http://{IPv4Address(FIRST_HOST + number)}:{port}/{number}"
                add_source(tx, context, new_source(f"n{number}", url, clock(), SourceSettings(every_s=3_600)))

        await service.write(fill)
        rounds = []
        for _ in range(2):
            tools = SourceTools(clock, asyncio.sleep, random.random)
            poller = Poller(service, PollClients(fetcher, fetcher, fetcher), tools)
            rounds.append(await _one_round(poller, service, clock) / feeds)
            clock.ahead_us += 3 * 3_600 * US_PER_S
    await store.close()
    return rounds[0], rounds[1]


async def _one_round(poller: Poller, service: FeedService, clock: Clock) -> float:
    """Polls everything once; returns the seconds of processor time. Raises BenchError if a source was left out."""
    began_us, began_s = clock(), time.process_time()
    for _minute in range(12):  # the first look spreads what is overdue over ten minutes
        await poller.look()
        while await poller.settle():
            await poller.look()
        clock.ahead_us += 60 * US_PER_S
    took_s = time.process_time() - began_s
    left = await service.read(
        lambda tx, _context: [row for row in source_rows.sources(tx, 0, NO_LIMIT) if _is_old(row, began_us)]
    )
    if left:
        raise BenchError(f"{len(left)} sources were not polled: {left[0].reason}")
    return took_s


def _is_old(source: Source, began_us: int) -> bool:
    return source.good_us is None or source.good_us < began_us


if __name__ == "__main__":
    asyncio.run(serve())
