"""Open purges in every store."""

from smartfeeds.core.model import OpenPurge
from smartfeeds.store.base import Store
from store.values import add_feed


async def test_open_purges_are_stored_replaced_and_removed(store: Store) -> None:
    numbers = [(await store.write(add_feed(name=name))).node_no for name in ("b", "a")]
    first, second = (OpenPurge(node_no, 5, "alice@example.org") for node_no in numbers)
    later = first._replace(up_to_us=7)
    for purge in (second, first, later):
        await store.write(lambda tx, purge=purge: tx.put_purge(purge))

    assert await store.read(lambda tx: tx.open_purges()) == sorted([later, second])
    assert await store.read(lambda tx: tx.open_purge(first.node_no)) == later
    await store.write(lambda tx: tx.remove_purge(first.node_no))
    assert await store.read(lambda tx: tx.open_purge(first.node_no)) is None
    assert await store.read(lambda tx: tx.open_purges()) == [second]


async def test_open_purge_goes_with_its_node(store: Store) -> None:
    node_no = (await store.write(add_feed())).node_no
    await store.write(lambda tx: tx.put_purge(OpenPurge(node_no, 5, "alice@example.org")))
    await store.write(lambda tx: tx.retire_node(node_no))

    assert await store.write(lambda tx: tx.reap(node_no, 100))
    assert await store.read(lambda tx: tx.open_purges()) == []
