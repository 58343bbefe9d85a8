"""A large database, made through the store itself: `python -m bench.fill URL ITEMS SUBSCRIPTIONS [FEEDS]`.

Nodes n1000, n100000, ... up to n{ITEMS}, each with that many items and its filter index, a node with subscribers, and
FEEDS nodes w0, w1, ... with one item each.
Run as a process of its own, so that what it needs is not in anybody's memory afterwards.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path

from bench import stanzas
from smartfeeds.core.consumers import PUSH
from smartfeeds.core.model import Affiliation, Item, Mark, Node, NodeKind, Subscription, SubscriptionState
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.position import format_cursor
from smartfeeds.core.stores import parse_store
from smartfeeds.core.view import Order
from smartfeeds.formats.atom import read_traits
from smartfeeds.store.base import Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore

BASE_US = 1_700_000_000_000_000
STEP_US = 1_000_000
CHUNK = 10_000
CROWD = "crowd"
OWNER = f"u0@{stanzas.DOMAIN}"
SIZES = (1_000, 100_000, 1_000_000)


def node_name(items: int) -> str:
    """The node of this many items."""
    return f"n{items}"


def sizes(most: int) -> list[int]:
    """How many items the nodes have, the largest `most`."""
    return [*(size for size in SIZES if size < most), most]


def item_id(number: int) -> str:
    """The id of an item: scattered, as real ids are."""
    return f"{number * 2654435761 % 2**32:08x}-{number:x}"


def cursor(number: int) -> str:
    """The cursor of the item of this number."""
    return f"cursor:{format_cursor(Order.MODIFIED, BASE_US + number * STEP_US, [item_id(number)])}"


def store_at(url: str) -> Store:
    """The store at an address, which the caller opens."""
    address = parse_store(url)
    return PostgresStore(address, read_traits) if address.is_shared else SqliteStore(Path(address.path), read_traits)


async def fill(url: str, items: int, subscriptions: int, feeds: int = 0) -> None:
    """Fills the database at `url`, which is empty or does not exist."""
    store = store_at(url)
    await store.open()
    try:
        for size in sizes(items):
            node_no = await store.write(partial(_add_node, name=node_name(size)))
            for first in range(0, size, CHUNK):
                numbers = range(first, min(first + CHUNK, size))
                await store.write(partial(_add_items, node_no=node_no, numbers=numbers))
        node_no = await store.write(partial(_add_node, name=CROWD))
        for first in range(0, subscriptions, CHUNK):
            numbers = range(first, min(first + CHUNK, subscriptions))
            await store.write(partial(_add_subscriptions, node_no=node_no, numbers=numbers))
        for first in range(0, feeds, CHUNK):
            await store.write(partial(_add_feeds, numbers=range(first, min(first + CHUNK, feeds))))
    finally:
        await store.close()


def _add_node(tx: WriteTx, name: str) -> int:
    options: dict[str, tuple[str, ...]] = {"publish_model": ("open",)}
    node = tx.add_node(Node(0, name, NodeKind.FEED, OWNER, BASE_US, NodeOptions(NodeKind.FEED, options)))
    tx.set_affiliation(node.node_no, OWNER, Affiliation.OWNER)
    return node.node_no


def _add_feeds(tx: WriteTx, numbers: range) -> None:
    for number in numbers:
        _add_items(tx, _add_node(tx, f"w{number}"), range(1))


def _add_items(tx: WriteTx, node_no: int, numbers: range) -> None:
    entry = stanzas.ENTRY.replace("'", '"').replace("/>", "></category>")  # in canonical form, as the service stores it
    for number in numbers:
        key_us = BASE_US + number * STEP_US
        payload = (entry % (number, number)).encode()
        tx.put_item(node_no, Item(0, item_id(number), key_us, key_us, payload, OWNER))
    last_us = BASE_US + numbers[-1] * STEP_US
    tx.set_keys(node_no, last_us, last_us)
    tx.index_node(node_no)


def _add_subscriptions(tx: WriteTx, node_no: int, numbers: range) -> None:
    for number in numbers:
        jid = f"s{number}@{stanzas.DOMAIN}"
        state = SubscriptionState.SUBSCRIBED
        tx.put_subscription(Subscription(0, node_no, jid, "", CROWD, "feeds.localhost", state, -1, -1, BASE_US))
    for order in Order:
        tx.set_mark(node_no, order, PUSH, Mark(-1, ""))


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1], *map(int, sys.argv[2:])))
