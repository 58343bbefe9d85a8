"""Scans find in a view what the filter index finds there: the same items, places, totals and standings."""

import asyncio
import threading
import tracemalloc
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import pytest

from smartfeeds.core.model import Edge, Item, Slice
from smartfeeds.core.view import Order, View
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.scan import Scan
from smartfeeds.store.sql_items import SCAN_ITEM_BYTES, ItemReads
from smartfeeds.store.sqlite import SqliteStore
from store.values import add_feed, ids, item, read_payload, view
from support.waiting import HANG_S, in_vain

QUERIES = (
    *("category=a", "category=a&order=created", "category=a&category=b", "author=ann", "author=alice@example.org"),
    *("kind=edited", "kind=deleted", "kind=new&category=a", "lang=en", "in-reply-to=r", "q=rain", "q=rain+sun"),
    *("q=rain&category=a", "category=a&author=ann&q=sun&kind=edited", "category=none", "q=none"),
)
CONTENTS = (
    *("in=a | rain", "in=a in=b by=ann | rain sun", "in=b la=en | sun", "by=ann re=r | snow", "in=a la=en-GB |", ""),
    *("in=a by=ann | rain sun", "| rain", "in=c by=bob | hail"),
)


def change(tx: WriteTx, node_no: int, random: Random, clock_us: int) -> None:
    """Publishes, edits, deletes or erases an item, or makes a part of the index."""
    number = random.randrange(12)
    item_id, payload = f"i{number}", random.choice(CONTENTS)
    old = tx.item(node_no, item_id)
    what = random.random()
    if old is None:
        publisher = random.choice(["ann", "alice@example.org", "bob"])
        tx.put_item(node_no, item(item_id, clock_us, payload, created_us=clock_us - number * 7, publisher=publisher))
    elif what < 0.8:
        is_deleted = what < 0.15
        edited = old._replace(modified_us=clock_us, payload=payload.encode(), revision=old.revision + 1)
        stored = tx.put_item(node_no, edited._replace(deleted=is_deleted))
        if what > 0.7:
            tx.forget_versions(node_no, stored)
    else:
        tx.index_node(node_no, random.randrange(1, 5))


def scan_all(tx: WriteTx, node_no: int, one: View) -> Scan:
    """A complete scan, two items at a time."""
    scan = Scan(node_no, one, read_payload)
    while not (complete := tx.scan_on(scan, 2)):
        assert complete is False
    return scan


def answers(tx: WriteTx, node_no: int, one: View) -> list[object]:
    """Everything that reads of a view return: pages from both ends and in between, counts, standings."""
    whole = Slice(one, 100)
    items = tx.slice(node_no, whole)
    keys = [item.created_us if one.order is Order.CREATED else item.modified_us for item in items]
    edges = [None, *(Edge(key, item.item_no) for key, item in zip(keys, items, strict=True))]
    pages = [
        tx.slice(node_no, Slice(one, limit, after, before, newest, offset))
        for after, before in ((None, None), (edges[len(edges) // 3], edges[-1]))
        for newest in (False, True)
        for limit, offset in ((1, 0), (3, 1))
    ]
    counts = [count(node_no, one, before=edge) for edge in edges[::3] for count in (tx.count, tx.bounded_count)]
    everything = tx.slice(node_no, Slice(view("order=modified"), 100))
    standings = [tx.standings(node_no, item, [one]) for item in everything]
    return [items, pages, counts, standings]


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("seed", range(3))
async def test_scan_finds_what_the_index_finds(store: Store, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """[A-20] [SF-014] Also of items with past versions, tombstones, and items that an erasure has made unknown."""
    random = Random(seed)
    made = await store.write(add_feed(name="feed"))
    if seed % 2:
        await store.write(lambda tx: tx.set_options(made.node_no, {"itemreply": ("none",)}))
    if seed == 2:
        monkeypatch.setattr("smartfeeds.store.versions.STATES", 4)
    hidden = [View(filters=view(query).filters) for query in ("category=a", "q=rain")]
    views = [*map(view, QUERIES), *hidden]
    found = 0

    def changes(tx: WriteTx, start_us: int) -> None:
        for step in range(8):
            change(tx, made.node_no, random, start_us + 10 * step)

    def compare(tx: WriteTx) -> None:
        nonlocal found
        for one in views:
            scan_all(tx, made.node_no, one)
        scanned = [answers(tx, made.node_no, one) for one in views]
        tx.settle()
        tx.forget()
        tx.index_node(made.node_no)
        indexed = [answers(tx, made.node_no, one) for one in views]
        assert scanned == indexed
        found += sum(len(row[0]) for row in indexed)
        raise _RolledBackError  # the next round begins with the index that there was

    for round_no in range(5):
        await store.write(partial(changes, start_us=1_000 * (round_no + 1)))
        with pytest.raises(_RolledBackError):
            await store.write(compare)
    assert found > 50


class _RolledBackError(Exception):
    pass


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
async def test_scan_follows_changes_between_its_steps(store: Store) -> None:
    """An item that changes is judged again where it is then."""
    made = await store.write(add_feed(*(item(f"i{key}", key + 1, "in=a | rain") for key in range(10))))
    scan = Scan(made.node_no, view("category=a"), read_payload)

    def edit(tx: WriteTx) -> None:
        for key, payload in ((0, b"in=b | sun"), (1, b"in=a | sun"), (9, b"in=c | sun")):
            old = tx.item(made.node_no, f"i{key}")
            assert old is not None
            tx.put_item(made.node_no, old._replace(modified_us=20 + key, payload=payload, revision=2))
        tx.put_item(made.node_no, item("new", 40, "in=a | sun"))

    assert await store.read(lambda tx: tx.scan_on(scan, 4)) is False
    await store.write(edit)
    assert await store.read(lambda tx: tx.scan_on(scan, 4)) is False

    def page(tx: ReadTx) -> list[Item]:
        while not tx.scan_on(scan, 4):
            pass
        return tx.slice(made.node_no, Slice(scan.view, 100))

    scanned = await store.read(page)
    assert ids(scanned) == "i2 i3 i4 i5 i6 i7 i8 i0 i1 i9 new"
    assert ids([item for item in scanned if item.left]) == "i0 i9"
    await store.write(lambda tx: tx.index_node(made.node_no))
    assert await store.read(lambda tx: tx.slice(made.node_no, Slice(scan.view, 100))) == scanned


async def test_scan_is_not_used_in_an_older_snapshot(sqlite: SqliteStore) -> None:
    """Readers that share a scan read in several connections. The older snapshot has not the items that were judged."""
    made = await sqlite.write(add_feed(*(item(f"i{key}", key + 1, "in=a") for key in range(3))))
    scan = Scan(made.node_no, view("category=a"), read_payload)
    reads, goes_on = threading.Event(), threading.Event()

    def late(tx: ReadTx) -> tuple[bool | None, int]:
        assert tx.count(made.node_no, view("order=modified")) == 3  # begins the snapshot
        reads.set()
        assert goes_on.wait(HANG_S), in_vain("the newer snapshot")
        return tx.scan_on(scan, 10), scan.judged

    older = asyncio.create_task(sqlite.read(late))
    await asyncio.to_thread(reads.wait, HANG_S)
    await sqlite.write(lambda tx: tx.put_item(made.node_no, item("new", 40, "in=a"), (40, 40)))
    assert await sqlite.read(lambda tx: tx.scan_on(scan, 10)) is True
    goes_on.set()
    assert await older == (False, 4)
    assert await sqlite.read(lambda tx: tx.scan_on(scan, 10)) is True


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
async def test_scan_of_another_past_is_void(store: Store) -> None:
    """Items that an import adds among those that were read, and another meaning of `author`."""
    made = await store.write(add_feed(*(item(f"i{key}", key + 1, "in=a | rain") for key in range(6))))
    scans = [Scan(made.node_no, view("author=ann"), read_payload) for _ in range(2)]
    for scan in scans:
        assert await store.read(lambda tx, scan=scan: tx.scan_on(scan, 4)) is False  # type: ignore[misc]
    await store.write(lambda tx: tx.put_item(made.node_no, item("old", 2, "in=a | rain")))
    assert await store.read(lambda tx: tx.scan_on(scans[0], 4)) is None
    fresh = Scan(made.node_no, view("author=ann"), read_payload)
    assert await store.read(lambda tx: tx.scan_on(fresh, 4)) is False
    await store.write(lambda tx: tx.set_options(made.node_no, {"itemreply": ("none",)}))
    assert await store.read(lambda tx: tx.scan_on(fresh, 4)) is None


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
async def test_bytes_of_a_step_stay_within_their_budget(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other readers wait for a step: 200 items of 60 KB of HTML took 1.4 s. A step fetches few items in vain."""
    size = 60_000
    small = [item(f"s{key}", key + 1, "in=a | rain") for key in range(300)]
    large = [item(f"l{key}", key + 1_000, f"in=a | {'x' * size}") for key in range(12)]
    made = await store.write(add_feed(*small, *large))
    scan = Scan(made.node_no, view("category=a"), read_payload)
    add, steps, fetched = Scan.add, list[list[int]](), list[int]()

    def added(scan: Scan, items: Sequence[Item], histories: Mapping[int, int]) -> None:
        steps.append([len(one.payload) for one in items])
        add(scan, items, histories)

    def sliced(tx: ItemReads, node_no: int, page: Slice) -> list[Item]:
        items = whole(tx, node_no, page)
        fetched.append(sum(len(one.payload) for one in items))
        return items

    whole = ItemReads.slice
    monkeypatch.setattr(Scan, "add", added)
    monkeypatch.setattr("smartfeeds.store.sql_items.ItemReads.slice", sliced)
    while (complete := await store.read(lambda tx: tx.scan_on(scan, 200))) is False:
        pass
    assert complete
    assert sum(map(len, steps)) == 312
    assert max(sum(sizes) - sizes[-1] for sizes in steps) < 200 * SCAN_ITEM_BYTES
    assert sum(fetched) < 2.5 * sum(map(sum, steps))
    assert len(steps) < 16


@pytest.mark.parametrize("query", ["category=a", "category=none"])
def test_size_of_a_scan_is_that_of_its_memory(query: str) -> None:
    """The memory of all scans has a bound, and so has the error of the estimate."""
    scan = Scan(1, view(query), read_payload)
    tracemalloc.start()
    try:
        for start in range(0, 6_000, 200):
            numbers = range(2**40 + start, 2**40 + start + 200)
            scan.add([item("i", key, "in=a", created_us=key + 7)._replace(item_no=key) for key in numbers], {})
        scan.page(Slice(scan.view, 1))
        size_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.6 * scan.size_bytes() < size_bytes < 1.4 * scan.size_bytes()


async def test_scan_is_used_only_where_it_is_much_shorter(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the items must wait for the index, more than a thousand; the items of a scan fit into the memory."""
    monkeypatch.setattr("smartfeeds.store.sql_items.SCAN_LEAST", 5)
    made = await sqlite.write(add_feed(*(item(f"i{key}", key + 1, "in=a") for key in range(40))))

    async def is_shorter() -> bool:
        return await sqlite.read(lambda tx: tx.scan_is_shorter(made.node_no))

    assert await is_shorter()
    await sqlite.write(lambda tx: tx.index_node(made.node_no, 29))
    assert await is_shorter()
    await sqlite.write(lambda tx: tx.index_node(made.node_no, 1))
    assert not await is_shorter()
    monkeypatch.setattr("smartfeeds.store.sql_items.SCAN_ITEMS", 30)
    await sqlite.write(add_feed(*(item(f"j{key}", key + 1, "in=a") for key in range(31)), name="large"))
    assert not await sqlite.read(lambda tx: tx.scan_is_shorter(made.node_no + 1))
