"""How fast the SQLite store is alone: `python tests/bench/bench_store.py [items]`. Prints one line a measurement."""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from smartfeeds.core.model import Edge, Item, Node, NodeKind, Slice
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.view import BARE, CREATED, SMART
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.sqlite import SqliteStore

PAYLOAD = (b"<entry xmlns='http://www.w3.org/2005/Atom'><title>An entry</title><content>" + b"words " * 170)[:1010]
PAYLOAD += b"</content></entry>"[:14]
IN_FLIGHT = 64


def index_nothing(_payload: bytes, _publisher: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(), frozenset()


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


async def put(
    store: SqliteStore, first: int, count: int, in_flight: int, name: Callable[[int], str] = random_id
) -> float:
    numbers = iter(range(first, first + count))

    async def one() -> None:
        for number in numbers:
            await store.write(publish(number, name))

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(in_flight)))
    return count / (time.perf_counter() - start)


async def pages(store: SqliteStore, wanted: list[Slice], in_flight: int) -> float:
    todo = iter(wanted)

    async def one() -> None:
        for page in todo:

            def work(tx: ReadTx, page: Slice = page) -> list[Item]:
                return tx.slice(1, page)

            assert len(await store.read(work)) == 50

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(in_flight)))
    return len(wanted) / (time.perf_counter() - start)


def rss_mb() -> float:
    text = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(text) * resource.getpagesize() / 2**20


async def main(items: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "bench.db", index_nothing)
        await store.open()
        await store.write(
            lambda tx: tx.add_node(Node(0, "feed", NodeKind.FEED, "alice@example.org", 1, NodeOptions(NodeKind.FEED)))
        )
        print(f"one at a time: {await put(store, 0, 2000, 1):,.0f} put_item/s")
        done, step = 2000, min(100_000, items)
        while done < items:
            count = min(step, items - done)
            rate = await put(store, done, count, IN_FLIGHT)
            done += count
            print(f"at {done:,} items: {rate:,.0f} put_item/s, {rss_mb():.0f} MB")
        rate = await put(store, done, step, IN_FLIGHT, growing_id)
        print(f"then, with growing ids: {rate:,.0f} put_item/s")
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
                    print(f"{name} {'before' if newest else 'after'} at {depth:.0%}: {rate:,.0f} pages of 50/s")
        print(f"memory: {rss_mb():.0f} MB")
        await store.close()


MAX = 2**62

if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
