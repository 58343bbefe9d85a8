"""The readers of the rows of tables. The service leaves damaged rows out of lists, and `smartfeeds doctor` names
them."""

from collections.abc import Callable
from typing import Final, NamedTuple

from smartfeeds.store.engine import Row
from smartfeeds.store.rows import read_subscription, to_listed_node
from smartfeeds.store.sql_people import to_affiliation, to_contact
from smartfeeds.store.sql_tables import AFFILIATION, CONTACT, NODE, NODE_COLUMNS, SUBSCRIPTION, SUBSCRIPTION_ROW, Table


class RowReader(NamedTuple):
    """A table, the column by which people know a row, and the function that reads a row.

    The function receives `columns`, and raises one of `rows.DAMAGES` for a damaged row.
    """

    table: Table
    name: str
    columns: str
    read: Callable[[Row], object]


KERNEL: Final = (
    RowReader(NODE, "name", NODE_COLUMNS, to_listed_node),
    RowReader(SUBSCRIPTION, "jid", SUBSCRIPTION_ROW, read_subscription),
    RowReader(AFFILIATION, "jid", "jid, affiliation", to_affiliation),
    RowReader(CONTACT, "jid", CONTACT.columns, to_contact),
)
