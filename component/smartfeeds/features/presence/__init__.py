"""Presence: whom a notification can reach, and delivery by presence (XEP-0060 4.2)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.store.row_readers import RowReader


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.presence.rows import to_contact
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.store.sql_tables import CONTACT

    return (RowReader(CONTACT, "jid", CONTACT.columns, to_contact),)


PRESENCE = Feature("presence", row_readers=_row_readers)
