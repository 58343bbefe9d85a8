"""Contacts of the service in every store."""

from smartfeeds.core.consumers import held_consumer
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.features.presence import rows as contact_rows
from smartfeeds.store.base import Store, WriteTx
from store.values import add_feed, item, subscription

BOB = Contact("feeds.x", "bob@x", ContactState.ASKED)
BOB_AT_NEWS = Contact("news@feeds.x", "bob@x", ContactState.GRANTED)
EVE = Contact("feeds.x", "eve@y", ContactState.REFUSED)


async def test_contacts_are_stored_counted_and_paged(store: Store) -> None:
    def fill(tx: WriteTx) -> None:
        for contact in (EVE, BOB_AT_NEWS, BOB, BOB):
            contact_rows.put(tx, contact)

    await store.write(fill)
    assert await store.read(lambda tx: contact_rows.contacts(tx, ("", ""), 2)) == [BOB, EVE]
    assert await store.read(lambda tx: contact_rows.contacts(tx, (EVE.address, EVE.jid), 2)) == [BOB_AT_NEWS]
    assert await store.read(
        lambda tx: (
            contact_rows.contacts_of(tx, "bob@x"),
            contact_rows.contacts_in(tx, "x"),
            contact_rows.contacts_in(tx, "y"),
        )
    ) == (2, 2, 1)


async def test_contact_is_replaced_and_removed(store: Store) -> None:
    granted = BOB._replace(state=ContactState.GRANTED)

    def change(tx: WriteTx) -> None:
        contact_rows.put(tx, BOB)
        contact_rows.put(tx, granted)

    await store.write(change)
    assert await store.read(lambda tx: (tx.contact(BOB.address, BOB.jid), contact_rows.contacts_in(tx, "x"))) == (
        granted,
        1,
    )

    def remove(tx: WriteTx) -> None:
        contact_rows.remove(tx, granted)
        contact_rows.remove(tx, granted)

    await store.write(remove)
    assert await store.read(lambda tx: (tx.contact(BOB.address, BOB.jid), contact_rows.contacts_in(tx, "x"))) == (
        None,
        0,
    )


async def test_subscriptions_that_end_with_presence_are_found(store: Store) -> None:
    """XEP-0060 12.5. They have no time at which they end."""
    node = await store.write(add_feed(name="a"))
    ends = {"1@x": "presence", "2@x": "1970-01-01T00:00:01Z", "3@x": "", "4@x/r": "presence"}

    def work(tx: WriteTx) -> None:
        for jid, end in ends.items():
            tx.put_subscription(subscription(node.node_no, jid)._replace(options={"expire": (end,)} if end else {}))

    await store.write(work)

    async def found(after_no: int, limit: int = 9) -> list[str]:
        return [sub.jid for sub in await store.read(lambda tx: tx.temporary_subscriptions(after_no, limit))]

    assert (await found(0), await found(0, 1), await found(1)) == (["1@x", "4@x/r"], ["1@x"], ["4@x/r"])
    assert [await store.read(lambda tx, jid=jid: tx.has_temporary(jid)) for jid in ("1@x", "2@x", "3@x", "4@x")] == [
        True,
        False,
        False,
        True,
    ]
    assert [sub.jid for sub in await store.read(lambda tx: tx.ended_leases(9_000_000, 9))] == ["2@x"]


async def test_mark_of_held_events_is_removed_with_the_subscription(store: Store) -> None:
    node = await store.write(add_feed(name="a"))

    def work(tx: WriteTx) -> None:
        for jid in ("1@x", "2@x"):
            sub = tx.put_subscription(subscription(node.node_no, jid))
            for order in Order:
                tx.set_mark(node.node_no, order, held_consumer(node.node_no, sub.sub_no).name, Mark(0, ""))

    await store.write(work)
    await store.write(lambda tx: tx.remove_subscription(1))
    rows = await store.read(lambda tx: tx.consumers((0, "", ""), 9))
    assert [row.consumer.name for row in rows] == ["held:2", "held:2"]
    await store.write(lambda tx: tx.remove_consumer(held_consumer(node.node_no, 2)))
    assert await store.read(lambda tx: tx.consumers((0, "", ""), 9)) == []


async def test_consumer_of_held_events_never_is_behind(store: Store) -> None:
    """The return of the subscriber starts its delivery. A look that lists it would read all absent subscribers."""
    node = await store.write(add_feed(item("a", 10), name="a"))
    held = held_consumer(node.node_no, 1)
    await store.write(lambda tx: tx.set_mark(node.node_no, Order.MODIFIED, held.name, Mark(0, "")))
    assert await store.read(lambda tx: tx.behind()) == []
    await store.write(lambda tx: tx.put_item(node.node_no, item("b", 20)))
    assert await store.read(lambda tx: tx.behind()) == []
