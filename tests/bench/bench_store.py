"""How fast a store is alone: `python tests/bench/bench_store.py [items] [--url URL]`. Prints one line a measurement.

The default is a new SQLite database. URL is a `store.url` of an empty PostgreSQL database. The CPU time is that of this
process, without the database server.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from smartfeeds.core.model import Edge, Item, Node, NodeKind, Slice
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.stores import parse_store
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import BARE, CREATED, SMART, Traits
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore

PAYLOAD = (b"<entry xmlns='http://www.w3.org/2005/Atom'><title>An entry</title><content>" + b"words " * 170)[:1010]
PAYLOAD += b"</content></entry>"[:14]
IN_FLIGHT = 64


def index_nothing(_payload: bytes, *, words: bool = True) -> Traits:
    return Traits()


class Measure:
    """The rate and the CPU time of a number of operations."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._start_s, self._start_cpu_s = time.perf_counter(), time.process_time()

    def text(self, what: str) -> str:
        rate = self._count / (time.perf_counter() - self._start_s)
        cpu_us = (time.process_time() - self._start_cpu_s) * 1e6 / self._count
        return f"{rate:,.0f} {what}/s, {cpu_us:,.0f} us of CPU each"


def random_id(number: int) -> str:
    return f"{number * 2654435761 % 2**32:08x}"


def growing_id(number: int) -> str:
    return f"z{number:010d}"


def publish(number: int, name: Callable[[int], str]) -> Callable[[WriteTx], Item]:
    """What a publish asks of the store."""

    def work(tx: WriteTx) -> Item:
        node = tx.lock("feed")
        assert node is not None
        item_id = name(number)
        assert tx.item(node.node_no, item_id) is None
        key_us = node.last_modified_us + 10
        stored = tx.put_item(node.node_no, Item(0, item_id, key_us, key_us, PAYLOAD, "alice@example.org"))
        tx.set_keys(node.node_no, key_us, key_us)
        return stored

    return work


async def put(store: Store, first: int, count: int, in_flight: int, name: Callable[[int], str] = random_id) -> str:
    numbers = iter(range(first, first + count))

    async def one() -> None:
        for number in numbers:
            touch = Touch("feed", "alice@example.org", (name(number),), 1)
            await store.write(publish(number, name), touch=touch)

    measure = Measure(count)
    await asyncio.gather(*(one() for _ in range(in_flight)))
    return measure.text("put_item")


async def pages(store: Store, wanted: list[Slice], in_flight: int) -> str:
    todo = iter(wanted)

    async def one() -> None:
        for page in todo:

            def work(tx: ReadTx, page: Slice = page) -> list[Item]:
                node = tx.node("feed")
                assert node is not None
                return tx.slice(node.node_no, page)

            assert len(await store.read(work, touch=Touch("feed", "alice@example.org"))) == 50

    measure = Measure(len(wanted))
    await asyncio.gather(*(one() for _ in range(in_flight)))
    return measure.text("pages of 50")


def rss_mb() -> float:
    text = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(text) * resource.getpagesize() / 2**20


async def main(items: int, url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store: Store
        if url:
            store = PostgresStore(parse_store(url), index_nothing)
        else:
            store = SqliteStore(Path(folder) / "bench.db", index_nothing)
        await store.open()
        try:
            await measure_store(store, items)
        finally:
            await store.close()


async def measure_store(store: Store, items: int) -> None:
    await store.write(
        lambda tx: tx.add_node(Node(0, "feed", NodeKind.FEED, "alice@example.org", 1, NodeOptions(NodeKind.FEED)))
    )
    print(f"one at a time: {await put(store, 0, 2000, 1)}")
    done, step = 2000, min(100_000, items)
    while done < items:
        count = min(step, items - done)
        rate = await put(store, done, count, IN_FLIGHT)
        done += count
        print(f"{IN_FLIGHT} in flight, at {done:,} items: {rate}, {rss_mb():.0f} MB")
    rate = await put(store, done, step, IN_FLIGHT, growing_id)
    print(f"then, with growing ids: {rate}")
    for name, view in (("bare", BARE), ("smart", SMART), ("created", CREATED)):
        for depth in (0.0, 0.5, 0.99):
            for newest in (False, True):
                spread = [int(items * depth) * 10 + n * 17 % 1000 * 10 + 600 for n in range(4000)]
                edges = [Edge(min(key, items * 10 - 1000), MAX) for key in spread]
                slices = [
                    Slice(view, 50, before=edge, newest=True) if newest else Slice(view, 50, after=edge)
                    for edge in edges
                ]
                rate = await pages(store, slices, 16)
                print(f"{name} {'before' if newest else 'after'} at {depth:.0%}: {rate}")
    print(f"memory: {rss_mb():.0f} MB")


MAX = 2**62

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures a store alone.")
    parser.add_argument("items", type=int, nargs="?", default=100_000)
    parser.add_argument("--url", default="", help="an empty PostgreSQL database; the default is a new SQLite database")
    options = parser.parse_args()
    asyncio.run(main(options.items, options.url))
