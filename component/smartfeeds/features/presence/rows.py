"""Contacts of the service in SQL (`states`)."""

from smartfeeds.features.presence.states import Contact, ContactState
from smartfeeds.store.engine import Row
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites
from smartfeeds.store.sql_tables import CONTACT

CONTACTS_IN = "contacts@"


def to_contact(row: Row) -> Contact:
    """A contact from the columns of CONTACT. Raises ValueError."""
    address, jid, state = row
    return Contact(address, jid, ContactState(state))


class ContactReads(NodeReads):
    """The part of ReadTx for contacts."""

    def contact(self, address: str, jid: str) -> Contact | None:
        """Returns the contact with this bare JID at one of our addresses."""
        row = self.db.row(f"{CONTACT.select} WHERE address = ? AND jid = ?", (address, jid))
        return to_contact(row) if row else None

    def contacts(self, after: tuple[str, str], limit: int) -> list[Contact]:
        """Returns contacts by address and JID."""
        statement = f"{CONTACT.select} WHERE (address, jid) > (?, ?) ORDER BY address, jid LIMIT ?"
        return self.values(CONTACT, to_contact, statement, after, limit)

    def contacts_of(self, jid: str) -> int:
        """Returns the number of our addresses that a bare JID has as contacts."""
        return self.number("SELECT count(*) FROM contact WHERE jid = ?", (jid,))

    def contacts_in(self, domain: str) -> int:
        """Returns the same number for all bare JIDs of a domain. O(1)."""
        return self.sum_tally(CONTACTS_IN + domain)


class ContactWrites(NodeWrites, ContactReads):
    """The part of WriteTx for contacts."""

    def put_contact(self, contact: Contact) -> None:
        """Stores a contact in place of the one with the same addresses."""
        self.lock_quotas(contact.jid)  # otherwise two processes that add it would both count it
        if self.contact(contact.address, contact.jid) is None:
            self.tally(CONTACTS_IN, contact.jid, 1)
        self.db.run(CONTACT.replace, (contact.address, contact.jid, contact.state.value))

    def remove_contact(self, contact: Contact) -> None:
        """Removes a contact."""
        self.lock_quotas(contact.jid)
        if self.contact(contact.address, contact.jid) is not None:
            self.tally(CONTACTS_IN, contact.jid, -1)
            self.db.run(CONTACT.delete, (contact.address, contact.jid))
