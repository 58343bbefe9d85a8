"""The statements of contacts, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.features.presence import rows
from smartfeeds.store.base import WriteTx


def write(tx: WriteTx) -> None:
    contact = Contact("feeds.example.org", "a@x", ContactState.ASKED)
    rows.put(tx, contact)
    rows.remove(tx, contact)
