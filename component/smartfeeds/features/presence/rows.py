"""Contacts of the service in SQL (`core.contacts`). The kernel reads whether somebody is one (`ReadTx.contact`)."""

from smartfeeds.core.contacts import Contact
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.sql_people import to_contact
from smartfeeds.store.sql_tables import CONTACT

CONTACTS_IN = "contacts@"


def contacts(tx: ReadTx, after: tuple[str, str], limit: int) -> list[Contact]:
    """Returns contacts by address and JID."""
    statement = f"{CONTACT.select} WHERE (address, jid) > (?, ?) ORDER BY address, jid LIMIT ?"
    return tx.values(CONTACT, to_contact, statement, after, limit)


def contacts_of(tx: ReadTx, jid: str) -> int:
    """Returns the number of our addresses that a bare JID has as contacts."""
    return tx.number("SELECT count(*) FROM contact WHERE jid = ?", (jid,))


def contacts_in(tx: ReadTx, domain: str) -> int:
    """Returns the same number for all bare JIDs of a domain. O(1)."""
    return tx.sum_tally(CONTACTS_IN + domain)


def put(tx: WriteTx, contact: Contact) -> None:
    """Stores a contact in place of the one with the same addresses."""
    tx.lock_quotas(contact.jid)  # otherwise two processes that add it would both count it
    if tx.contact(contact.address, contact.jid) is None:
        _count(tx, contact, 1)
    tx.db.run(CONTACT.replace, (contact.address, contact.jid, contact.state.value))


def remove(tx: WriteTx, contact: Contact) -> None:
    """Removes a contact."""
    tx.lock_quotas(contact.jid)
    if tx.contact(contact.address, contact.jid) is not None:
        _count(tx, contact, -1)
        tx.db.run(CONTACT.delete, (contact.address, contact.jid))


def _count(tx: WriteTx, contact: Contact, by: int) -> None:
    tx.add_tallies([CONTACTS_IN + contact.jid.rpartition("@")[2]], by)
