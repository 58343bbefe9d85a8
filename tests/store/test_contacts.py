"""Contacts of the service in every store."""

from smartfeeds.core.presence import Contact, ContactState
from smartfeeds.store.base import Store, WriteTx

BOB = Contact("feeds.x", "bob@x", ContactState.ASKED)
BOB_AT_NEWS = Contact("news@feeds.x", "bob@x", ContactState.GRANTED)
EVE = Contact("feeds.x", "eve@y", ContactState.REFUSED)


async def test_contacts_are_stored_counted_and_paged(store: Store) -> None:
    def fill(tx: WriteTx) -> None:
        for contact in (EVE, BOB_AT_NEWS, BOB, BOB):
            tx.put_contact(contact)

    await store.write(fill)
    assert await store.read(lambda tx: tx.contacts(("", ""), 2)) == [BOB, EVE]
    assert await store.read(lambda tx: tx.contacts((EVE.address, EVE.jid), 2)) == [BOB_AT_NEWS]
    assert await store.read(lambda tx: (tx.contacts_of("bob@x"), tx.contacts_in("x"), tx.contacts_in("y"))) == (2, 2, 1)


async def test_contact_is_replaced_and_removed(store: Store) -> None:
    granted = BOB._replace(state=ContactState.GRANTED)

    def change(tx: WriteTx) -> None:
        tx.put_contact(BOB)
        tx.put_contact(granted)

    await store.write(change)
    assert await store.read(lambda tx: (tx.contact(BOB.address, BOB.jid), tx.contacts_in("x"))) == (granted, 1)

    def remove(tx: WriteTx) -> None:
        tx.remove_contact(granted)
        tx.remove_contact(granted)

    await store.write(remove)
    assert await store.read(lambda tx: (tx.contact(BOB.address, BOB.jid), tx.contacts_in("x"))) == (None, 0)
