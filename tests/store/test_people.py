"""Subscriptions by address, the same in every store."""

from smartfeeds.store.base import Store, WriteTx
from store.values import add_feed, subscription


async def test_subscriptions_on_a_node_are_those_of_one_address(store: Store) -> None:
    """[xep-map 113] [xep-map 249]: with its resources, and not of addresses that begin alike."""
    made, other = await store.write(add_feed(name="a")), await store.write(add_feed(name="b"))
    jids = [
        "bob@x",
        "bob@x/1",
        "bob@x/\U0001f600",
        "bob@x.org/1",
        "bob@x-y",
        "bob@x0",
        "bob@",
        "x",
        "bob@x0/1",
    ]

    def work(tx: WriteTx) -> None:
        for jid in jids:
            tx.put_subscription(subscription(made.node_no, jid))
        tx.put_subscription(subscription(other.node_no, "bob@x/1"))

    await store.write(work)
    found = await store.read(lambda tx: tx.subscriptions_on(made.node_no, "bob@x"))
    assert [one.jid for one in found] == jids[:3]
    assert await store.read(lambda tx: (tx.subscribed_by("bob@x"), tx.subscribed_by("x"))) == (4, 1)
