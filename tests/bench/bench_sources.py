"""What polling costs: `python tests/bench/bench_sources.py [feeds]`.

Fills a SQLite store with sources on as many hosts (addresses of 127.0.0.0/8), serves their feeds from a process of its
own, and polls each twice: every document is read in the first round, 95 % are "not modified" in the second. It prints
the processor time of the polling process for each poll, and the share of one core for 10,000 feeds an hour.
"""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from ipaddress import IPv4Address
from pathlib import Path

from aiohttp import web

from smartfeeds.core.sources import Source, SourceSettings, new_source
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.formats.atom import read_traits
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.fetch import Fetcher, FetchLimits
from smartfeeds.net.limiter import POLL_LIMITS, HostLimiter
from smartfeeds.service.context import Context, Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.sources import add_source
from smartfeeds.sources.poller import PollClients, Poller
from smartfeeds.sources.tools import SourceTools
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.sqlite import SqliteStore

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


async def measure(feeds: int, port: int, folder: Path) -> None:
    clock = Clock()
    store = SqliteStore(folder / "feeds.db", read_traits)
    service = FeedService(
        store, Policy("feeds.example.org"), clock=clock, new_id=lambda: "x", on_change=lambda _nodes: None
    )
    await store.open()
    fetcher = Fetcher(FetchLimits(allowed=EVERYWHERE), limiter=HostLimiter(POLL_LIMITS))
    async with fetcher:
        poller = Poller(service, PollClients(fetcher, fetcher), SourceTools(clock, asyncio.sleep, random.random))

        def fill(tx: WriteTx, context: Context) -> None:
            for number in range(feeds):
                url = f"http://{IPv4Address(FIRST_HOST + number)}:{port}/{number}"
                add_source(tx, context, new_source(f"n{number}", url, clock(), SourceSettings(every_s=3_600)))

        await service.write(fill)
        await one_round(poller, service, clock, feeds, "first round, all documents read")
        clock.ahead_us += 3 * 3_600 * US_PER_S
        poller._looked_us = clock()  # no jump: the round shall not be spread over ten minutes
        per_poll_s = await one_round(poller, service, clock, feeds, "second round, 95 % not modified")
        share = per_poll_s * FEEDS_AN_HOUR / 3_600
        print(f"{FEEDS_AN_HOUR:,} feeds an hour: {share:.1%} of one core (goal: under 10 %)")
    await store.close()


async def one_round(poller: Poller, service: FeedService, clock: Clock, feeds: int, title: str) -> float:
    """Polls everything that is due; returns the seconds of processor time for each poll."""

    def late(tx: ReadTx, _context: Context) -> list[Source]:
        return tx.sources_due(clock(), 1)

    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    while await service.read(late):
        await poller.look()
        await poller._free.wait()
        poller._free.clear()
    await poller.settle()
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    print(f"{title}: {feeds / took_s:,.0f} polls/s, {cpu_s / feeds * 1_000:.2f} ms of processor time for each")
    return cpu_s / feeds


def main(feeds: int) -> None:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(feeds, port, Path(folder)))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
