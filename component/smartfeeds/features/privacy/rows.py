"""Erasures of persons in SQL (erasures, person_columns)."""

from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

from smartfeeds.core.files import FeedFile
from smartfeeds.core.filters import facet
from smartfeeds.core.model import Item
from smartfeeds.core.view import ANYTHING
from smartfeeds.features.privacy.block_rows import BlockReads, BlockWrites, to_erasure
from smartfeeds.features.privacy.erasures import Erasure, dump_report
from smartfeeds.features.privacy.person import Person
from smartfeeds.features.privacy.person_columns import JidUse, columns_for
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import checksum, digest, item_texts, to_items
from smartfeeds.store.sql_nodes import NODES_IN
from smartfeeds.store.sql_tables import ERASURE, FACET, FILE, ITEM_ROW, without_index
from smartfeeds.store.tokens import index_tokens

# The keys of the tables whose rows an erasure changes one by one. `table.key` of most of them.
KEYS = {
    "node": "node_no",
    "subscription": "sub_no",
    "event": "event_no",
    "purge": "node_no",
    "mark": "node_no, ord, consumer",
    "failure": "node_no, consumer",
    "batch": "node_no, consumer",
    "token": "token_id",
    "session": "session_id",
    "request_form": "node_no, whom",
    "mirror": "name",
    "redirect": "name",
    "document": "reader, url",
    "chat": "jid",
    "callback": "callback_no",
    "source": "source_no",
    "source_entry": "entry_no",
    "source_push": "push_no",
    "enclosure": "enclosure_no",
    "enclosure_use": "enclosure_no, source_no, item_id",
    "arrival": "arrival_no",
    "file": "node_no, file_id",
}
# Columns with bytes: SQL compares them as they are, so every row is read.
_BYTES = frozenset({("document", "content")})
# Rows of these tables change counts, so the use cases remove them.
_COUNTED = frozenset({"subscription"})
_PUBLISHER_FACETS = ("a", "p")  # the kinds of `core.filters` that have an author or a publisher


class PersonRow(NamedTuple):
    """A column of a row that names a person: the table, the column, the key of the row, and the text."""

    table: str
    column: str
    key: Row
    text: str


class ItemOfNode(NamedTuple):
    """An item and the number of its node."""

    node_no: int
    item: Item


def _match(key: str) -> str:
    return " AND ".join(f"{column} = ?" for column in key.split(", "))


class ErasureReads(BlockReads):
    """The part of ReadTx for erasures. It is about all tables of the schema."""

    def erasure(self, person: Person) -> Erasure | None:
        """Returns the erasure of a person, also after its end."""
        row = self.db.row(f"{ERASURE.select} WHERE digest = ?", (person.digest(self.person_salt()),))
        return to_erasure(row) if row else None

    def newest_erasures(self, limit: int) -> list[Erasure]:
        """Returns the erasures that began last, those that have ended included. All of them are read."""
        return [
            to_erasure(row)
            for row in self.db.rows(f"{ERASURE.select} ORDER BY started_us DESC, digest LIMIT ?", (limit,))
        ]

    def items_after(self, item_no: int, limit: int) -> list[ItemOfNode]:
        """Returns items of all nodes, deleted nodes included, by item_no behind a number."""
        rows = self.db.rows(
            f"SELECT node_no, {ITEM_ROW} FROM item WHERE item_no > ? ORDER BY item_no LIMIT ?", (item_no, limit)
        )
        return [ItemOfNode(row[0], item) for row, item in zip(rows, to_items([row[1:] for row in rows]), strict=True)]

    def published_before(self, person: Person, first_no: int, last_no: int) -> set[int]:
        """Returns the numbers of the items in a range that the filter index knows as the person's, also in past
        versions.
        """
        facets = [digest(facet(kind, person.jid)) for kind in _PUBLISHER_FACETS]
        # Only the index of the facets of an item may serve this: the others would be read for each item, from the first
        # to the last item of the person. So the facet is an expression, and `states` is needed, which they do not have.
        statement = (
            f"SELECT f.item_no FROM item i {self.db.ordered_join} facet f"
            " ON f.node_no = i.node_no AND f.item_no = i.item_no WHERE i.item_no BETWEEN ? AND ?"
            f" AND {without_index('f.facet')} IN (?, ?) AND f.states > 0"
        )
        return {row[0] for row in self.db.rows(statement, (first_no, last_no, *facets))}

    def person_rows(self, person: Person) -> list[PersonRow]:
        """Returns the rows of a person that are removed at once (`JidUse.ROW`). The cost grows with the tables."""
        return [row for row in self._rows_with(JidUse.ROW, person) if person.has_address(row.text)]

    def mention_rows(self, person: Person) -> list[PersonRow]:
        """Returns the rows that are removed because they name a person (`JidUse.MENTION`). The cost grows with the
        tables.
        """
        return self._rows_with(JidUse.MENTION, person)

    def text_rows(self, person: Person) -> list[PersonRow]:
        """Returns the texts that name a person beside other data (`JidUse.TEXT`). The cost grows with the tables."""
        return self._rows_with(JidUse.TEXT, person)

    def sources_of_person(self, person: Person) -> set[int]:
        """Returns the numbers of the sources whose addresses name a person."""
        return {row.key[0] for column in ("first_url", "url") for row in self._naming(person, "source", column)}

    def _rows_with(self, use: JidUse, person: Person) -> list[PersonRow]:
        return [row for table, column in columns_for(use) for row in self._naming(person, table, column)]

    def _naming(self, person: Person, table: str, column: str) -> list[PersonRow]:
        key = KEYS[table]
        width = key.count(",") + 1
        params: Row = ()
        statement = f"SELECT {key}, {column} FROM {table}"
        if person.hint and (table, column) not in _BYTES:
            statement, params = f"{statement} WHERE lower({column}) LIKE ?", (f"%{_like(person.hint)}%",)
        rows = self.db.rows(statement, params)
        return [PersonRow(table, column, row[:width], row[width]) for row in rows if person.is_in(row[width])]

    def files_owned(self, jid: str) -> list[FeedFile]:
        """Returns the files of a bare JID."""
        return [FeedFile(*row) for row in self.db.rows(f"{FILE.select} WHERE owner = ?", (jid,))]

    def is_file_used(self, file: FeedFile) -> bool:
        """Returns whether an item refers to a file."""
        statement = "SELECT EXISTS (SELECT 1 FROM file_use WHERE node_no = ? AND file_id = ?)"
        return bool(self.number(statement, (file.node_no, file.file_id)))

    def affiliated_nodes(self, jid: str) -> list[int]:
        """Returns the numbers of the nodes with an affiliation of a bare JID, deleted nodes included."""
        rows = self.db.rows("SELECT node_no FROM affiliation WHERE jid = ? ORDER BY node_no", (jid,))
        return [row[0] for row in rows]

    def contact_keys(self, jid: str) -> list[tuple[str, str]]:
        """Returns the keys of the contacts with a bare JID, or at an address of the service that begins with it."""
        rows = self.db.rows("SELECT address, jid FROM contact WHERE jid = ? OR address = ?", (jid, jid))
        return [(row[0], row[1]) for row in rows]

    def nodes_created_by(self, jid: str) -> list[int]:
        """Returns the numbers of the nodes that a bare JID created, deleted nodes included."""
        return [row[0] for row in self.db.rows("SELECT node_no FROM node WHERE creator = ?", (jid,))]

    def deleted_nodes(self) -> list[int]:
        """Returns the numbers of the deleted nodes whose rows are not removed yet."""
        return [row[0] for row in self.db.rows("SELECT node_no FROM node WHERE state = 'deleted' ORDER BY node_no")]


def _like(text: str) -> str:
    # "_" matches any character, so nothing needs an escape: each row is compared again.
    return text.replace("%", "_").replace("\\", "_")


class ErasureWrites(BlockWrites, ErasureReads):
    """The part of WriteTx for erasures."""

    def put_erasure(self, job: Erasure) -> None:
        """Stores a job, or replaces it. The person is refused from the first job on until it ends."""
        former = self.db.row("SELECT jid FROM erasure WHERE digest = ?", (job.digest,))
        if former is None or former[0] != job.jid:
            self.change_blocks()
        values = (job.digest, job.jid, job.phase.value, job.place, dump_report(job), job.started_us, job.ended_us)
        self.change(ERASURE.replace, values)

    def remove_rows(self, rows: Iterable[PersonRow]) -> int:
        """Removes rows and returns their number. Subscriptions must be removed one by one (`remove_subscription`)."""
        keys = dict.fromkeys((row.table, row.key) for row in rows if row.table not in _COUNTED)
        self.changes += 1
        self._ahead.clear()
        for table, key in keys:
            self.db.run(f"DELETE FROM {table} WHERE {_match(KEYS[table])}", key)
        return len(keys)

    def replace_texts(self, rows: Iterable[PersonRow], person: Person, by: str) -> int:
        """Replaces the JID of a person in texts by another address. Returns the number of texts."""
        self.changes += 1
        count = 0
        for row in rows:
            self.db.run(
                f"UPDATE {row.table} SET {row.column} = ? WHERE {_match(KEYS[row.table])}",
                (person.replaced(row.text, by), *row.key),
            )
            count += 1
        if count:
            # Nodes in memory may have the former options.
            self.settle()
            self.forget()
        return count

    def set_creator(self, node_no: int, creator: str) -> None:
        """Replaces the creator of a node, who counts the node against a quota."""
        row = self._edit(node_no)
        if row.node.state.value == "live":
            self.tally(NODES_IN, row.node.creator, -1)
            self.tally(NODES_IN, creator, 1)
        row.node = row.node._replace(creator=creator)
        self.db.run("UPDATE node SET creator = ? WHERE node_no = ?", (creator, node_no))

    def rename_item(self, node_no: int, item_no: int, item_id: str, sync_id: str) -> None:
        """Replaces the ids of an item. Cursors that name the former id degrade to their time (SF-108)."""
        self._edit(node_no)
        self._ahead.clear()
        former_id, publisher, former_sync_id, check = self._texts(item_no)
        # The payload is not read again: if it is damaged, the new checksum must show it, too.
        texts = (item_texts(former_id, publisher, former_sync_id), item_texts(item_id, publisher, sync_id))
        check ^= crc32(texts[0]) ^ crc32(texts[1])
        values = (item_id, sync_id, check, item_no)
        self.db.run("UPDATE item SET id = ?, sync_id = ?, checksum = ? WHERE item_no = ?", values)
        self._last_item = None

    def replace_content(self, item_no: int, payload: bytes, sync: bytes) -> None:
        """Replaces the content of a tombstone without a new key."""
        self._ahead.clear()
        *texts, _ = self._texts(item_no)
        values = (payload, sync, checksum(payload, sync, item_texts(*texts)), item_no)
        self.change("UPDATE item SET payload = ?, sync = ?, checksum = ? WHERE item_no = ?", values)
        self._last_item = None

    def _texts(self, item_no: int) -> Row:
        row = self.db.row("SELECT id, publisher, sync_id, checksum FROM item WHERE item_no = ?", (item_no,))
        assert row is not None
        return row

    def forget_versions(self, node_no: int, item: Item) -> None:
        """Replaces what the filter index knows of an item by a version that matches every filter.

        The index must not remember the person, but followers of every view must receive the change.
        """
        self.changes += 1
        self._ahead.wildcards.pop(node_no, None)
        self.db.run("DELETE FROM facet WHERE node_no = ? AND item_no = ?", (node_no, item.item_no))
        self.db.drop_documents([item.item_no])
        self.db.put_documents({(item.item_no, 0): index_tokens(node_no, ANYTHING, {})})
        values = [
            (node_no, digest(name), item.modified_us, item.item_no, item.created_us, 1) for name in ANYTHING.facets
        ]
        self.db.run_many(FACET.insert, values)

    def set_file_owner(self, file: FeedFile, owner: str) -> None:
        """Replaces the owner of a file."""
        statement = "UPDATE file SET owner = ? WHERE node_no = ? AND file_id = ?"
        self.change(statement, (owner, file.node_no, file.file_id))
