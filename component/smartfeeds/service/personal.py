"""Data of persons in the store: the columns that may hold a JID, and what an erasure does with it (OPS-020 to OPS-029).

The kernel and each feature declare their own tables (`context.Personal`). A test compares them with the schema, so a
new column must be named. The table `letter` is not in the schema (features/cluster/lock_session.py). It has stanzas for
a minute, and `features/privacy/postgres_scrub.py` removes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple


class JidUse(Enum):
    """The kinds of columns with the JID of a person, and the effect of an erasure on each."""

    OWN = "the use cases of the erasure change it (features/privacy/erasing.py, `Personal.erase`)"
    ROW = "the row is the person's, and is removed at once"
    MENTION = "the row is removed after the followers have received the deletions, if it names the person"
    TEXT = "the JID is replaced by the address of the service"
    NODE = "the name of a node, which cannot change; the report counts live nodes that are named after the person"


OWN, ROW, MENTION, TEXT, NODE = JidUse.OWN, JidUse.ROW, JidUse.MENTION, JidUse.TEXT, JidUse.NODE


class PersonalTable(NamedTuple):
    """A table. `columns` are its texts and BLOBs that may hold a JID, and `others` those that cannot: versions, names
    of states, digests of secrets, times and headers of other servers, host names.

    `key` has the columns of the key by which an erasure changes single rows, separated by commas.
    """

    name: str
    key: str = ""
    columns: Mapping[str, JidUse] = {}
    others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PersonalData:
    """The tables of the kernel and of all features, by their names."""

    tables: Mapping[str, PersonalTable]

    def columns_for(self, use: JidUse) -> list[tuple[PersonalTable, str]]:
        """Returns the tables and columns with this use."""
        return [
            (table, column) for table in self.tables.values() for column, its in table.columns.items() if its is use
        ]


KERNEL_TABLES: Final = (
    PersonalTable("node", "node_no", {"name": NODE, "creator": OWN, "options": TEXT}, frozenset({"kind", "state"})),
    PersonalTable("item", "item_no", {"id": OWN, "publisher": OWN, "payload": OWN, "sync_id": OWN, "sync": OWN}),
    PersonalTable("affiliation", "", {"jid": OWN, "hidden": NODE}, frozenset({"affiliation"})),
    PersonalTable(
        "subscription",
        "sub_no",
        {
            "jid": OWN,
            "bare": OWN,
            "view": MENTION,
            "node_text": MENTION,
            "service": MENTION,
            "options": TEXT,
        },
        frozenset({"state"}),
    ),
    PersonalTable("event", "event_no", {"data": MENTION, "recipient": ROW}, frozenset({"kind"})),
    PersonalTable("purge", "node_no", {"actor": TEXT}),
    PersonalTable("mark", "node_no, ord, consumer", {"consumer": MENTION}, frozenset({"ord", "cursor"})),
    PersonalTable("failure", "node_no, consumer", {"consumer": MENTION, "error": TEXT}),
    PersonalTable("batch", "node_no, consumer", {"consumer": MENTION}),
    PersonalTable("request_form", "node_no, whom", {"whom": MENTION}),
    PersonalTable("redirect", "name", {"name": MENTION, "uri": MENTION, "creator": TEXT}),
    PersonalTable(
        "document",
        "reader, url",
        {"reader": MENTION, "url": MENTION, "source_url": MENTION, "content": MENTION},
        frozenset({"etag", "last_modified"}),
    ),
    PersonalTable("facet", "", {"facet": OWN}),
    PersonalTable("word", "", {"tokens": OWN}),
    PersonalTable("alembic_version", others=frozenset({"version_num"})),
    PersonalTable("compatibility", others=frozenset({"oldest"})),
    PersonalTable("tally", "name, slot", {"name": OWN}),
)
