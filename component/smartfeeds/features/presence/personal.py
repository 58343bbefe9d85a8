"""Data of persons in contacts (`service.personal`)."""

from collections.abc import Mapping
from typing import Any

from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.person import Person
from smartfeeds.features.presence import rows
from smartfeeds.service.context import Context, Hooks, Personal
from smartfeeds.service.personal import OWN, PersonalTable
from smartfeeds.store.base import ReadTx, WriteTx


def _erase(tx: WriteTx, _context: Context, person: Person) -> Mapping[str, int]:
    contacts = tx.contact_keys(person.jid)
    for address, jid in contacts:
        rows.remove(tx, Contact(address, jid, ContactState.GRANTED))
    return {"contacts": len(contacts)}


def _export(tx: ReadTx, jid: str) -> Mapping[str, Mapping[str, Any]]:
    contacts = [{"address": address, "jid": contact} for address, contact in tx.contact_keys(jid)]
    return {"other.json": {"contacts": contacts}}


CONTACT = PersonalTable("contact", columns={"address": OWN, "jid": OWN}, others=frozenset({"state"}))
HOOKS = Hooks(personal=(Personal((CONTACT,), erase=_erase, export=_export),))
