"""Items whose bytes are damaged in the database: mirrors in both directions, and the hub."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.client.change import Change, ChangeKind
from smartfeeds.features.mirrors.mirror_in import NO_SYNC, read_changes
from smartfeeds.formats.atom import read_traits
from smartfeeds.store.base import WriteTx
from smartfeeds.store.sqlite import SqliteStore
from support.callbacks import HubBench, running_hub
from support.mesh import Net, Site
from support.versions import B1, version
from support.world import FEED, World, running_world

DAMAGES = ["payload", "sync", "publisher"]


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    made = Net()
    yield made
    await made.close()


async def two(net: Net, folder: Path) -> tuple[Site, Site]:
    """Two services whose databases are files."""
    for letter in "ab":
        (folder / letter).mkdir()
        await net.add(letter, SqliteStore(folder / letter / "feeds.db", read_traits))
    return net.sites["feeds.a.example"], net.sites["feeds.b.example"]


async def spoil(owner: Site | World, item: str, column: str = "payload") -> None:
    """Cuts the stored bytes of an item as a disk does."""

    def change(tx: WriteTx) -> None:
        (data,) = tx.db.row(f"SELECT {column} FROM item WHERE id = ?", (item,)) or ()
        tx.db.run(f"UPDATE item SET {column} = ? WHERE id = ?", (data[:-7], item))

    await owner.service.store.write(change)


@pytest.mark.parametrize("column", DAMAGES)
async def test_outgoing_mirror_leaves_a_damaged_item_out_and_goes_on(net: Net, tmp_path: Path, column: str) -> None:
    a, b = await two(net, tmp_path)
    await a.create(b.domain)
    await b.create()
    for item in ("one", "two", "three"):
        await b.publish(item)
    await spoil(b, "two", column)  # before the mirror, which else may have read the item already
    await b.mirror(a, "both")
    await net.settle_all()
    assert await a.titles() == {"one": "one", "three": "three"}
    assert all(one.in_step and not one.state.error for one in (await b.status()).standings)

    await b.publish("two", "two again")
    await net.settle_all()
    assert await a.titles() == {"one": "one", "two": "two again", "three": "three"}


@pytest.mark.parametrize("column", DAMAGES)
@pytest.mark.parametrize("change", ["publish", "retract"])
async def test_version_of_another_service_ends_the_damage(net: Net, tmp_path: Path, column: str, change: str) -> None:
    a, b = await two(net, tmp_path)
    await a.create(b.domain)
    await b.mirror(a, "in")
    for item in ("one", "two"):
        await a.publish(item)
    await net.settle_all()
    await spoil(b, "two", column)
    assert [item.damaged for item in await b.items()] == [False, True]

    await (a.publish("two", "two again") if change == "publish" else a.retract("two"))
    await net.settle_all()
    assert [item.damaged for item in await b.items()] == [False, False]
    assert await b.shown() == await a.shown()


@pytest.mark.parametrize("column", DAMAGES)
async def test_mirror_of_a_service_with_a_damaged_item_goes_on(net: Net, tmp_path: Path, column: str) -> None:
    a, b = await two(net, tmp_path)
    await a.create(b.domain)
    for item in ("one", "two", "three"):
        await a.publish(item)
    await spoil(a, "two", column)
    await b.mirror(a, "in")
    await net.settle_all()
    assert await b.titles() == {"one": "one", "three": "three"}

    await a.publish("four")
    await a.publish("two", "two again")
    await net.settle_all()
    assert await b.titles() == {"one": "one", "two": "two again", "three": "three", "four": "four"}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[HubBench]:
    async with running_world(SqliteStore(tmp_path / "feeds.db", read_traits)) as world:
        await world.create("news")
        async with running_hub(world) as made:
            yield made


@pytest.mark.parametrize("column", ["payload", "publisher"])
async def test_hub_leaves_a_damaged_item_out_and_goes_on(bench: HubBench, column: str) -> None:
    await bench.subscribe("reader")
    await bench.dispatcher.pause("hub")
    await bench.publish("one two three")
    await spoil(bench.world, "two", column)
    await bench.restart()
    await bench.quiet()
    ids = [item for got in bench.subscribers.got("reader") for item in got.split()]
    assert ids == ["one", "three"]
    await bench.push("four")
    assert bench.subscribers.got("reader") == ["four"]


def test_item_that_a_mirror_cannot_read_is_refused_and_the_others_go_on() -> None:
    """[A-52] Each refusal has its reason; the digests stay beside their items."""
    payloads = {
        "torn": version(B1)[:-20],
        "good": version(B1, sync_id="good"),
        "plain": "<entry xmlns='http://www.w3.org/2005/Atom'/>",
        "last": version(B1, sync_id="last"),
    }
    changes = [Change(ChangeKind.NEW, name, payload.encode(), FEED, "") for name, payload in payloads.items()]
    batch = read_changes(changes, 7, digests=True)

    assert [item.item_id for item in batch.items] == ["good", "last"]
    assert len(set(batch.digests)) == 2
    assert [(one.item_id, one.at_us) for one in batch.refused] == [("torn", 7), ("plain", 7)]
    torn, plain = (one.reason for one in batch.refused)
    assert plain == NO_SYNC and "not well-formed" in torn
