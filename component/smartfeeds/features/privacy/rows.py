"""Erasures of persons, and the entries of the block lists, in SQL (`erasures`, `service.personal`).

The columns with personal data come from the kernel and the features (`PersonalData`). A search for a person in texts
reads whole tables: SQL narrows it down, and `Person` decides.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.filters import facet
from smartfeeds.core.model import Item
from smartfeeds.core.person import Person
from smartfeeds.features.privacy.erasures import ERASURE_REPORT, Erasure
from smartfeeds.service.personal import JidUse, PersonalData, PersonalTable
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import digest, to_items
from smartfeeds.store.sql_tables import ITEM_ROW, Table, without_index

ERASURE = Table("erasure", "digest", "jid, phase, place, report, started_us, ended_us")

# Columns with bytes: SQL compares them as they are, so every row is read.
_BYTES = frozenset({("document", "content")})
# Rows of these tables change counts, so the use cases remove them.
_COUNTED = frozenset({"subscription"})
_PUBLISHER_FACETS = ("a", "p")  # the kinds of `core.filters` that have an author or a publisher


class PersonRow(NamedTuple):
    """A column of a row that names a person: the table, the column, the key of the row, and the text."""

    table: PersonalTable
    column: str
    key: Row
    text: str


class ItemOfNode(NamedTuple):
    """An item and the number of its node."""

    node_no: int
    item: Item


def to_erasure(row: Row) -> Erasure:
    """An erasure from its row."""
    key, jid, phase, place, report, started_us, ended_us = row
    columns = {"jid": jid, "phase": phase, "place": place, "started_us": started_us, "ended_us": ended_us}
    return ERASURE_REPORT.read(report, digest=bytes(key), **columns)


def _match(key: str) -> str:
    return " AND ".join(f"{column} = ?" for column in key.split(", "))


def erasure(tx: ReadTx, person: Person) -> Erasure | None:
    """Returns the erasure of a person, also after its end."""
    row = tx.db.row(f"{ERASURE.select} WHERE digest = ?", (person.digest(tx.person_salt()),))
    return to_erasure(row) if row else None


def newest_erasures(tx: ReadTx, limit: int) -> list[Erasure]:
    """Returns the erasures that began last, those that have ended included. All of them are read."""
    return [
        to_erasure(row) for row in tx.db.rows(f"{ERASURE.select} ORDER BY started_us DESC, digest LIMIT ?", (limit,))
    ]


def items_after(tx: ReadTx, item_no: int, limit: int) -> list[ItemOfNode]:
    """Returns items of all nodes, deleted nodes included, by item_no behind a number."""
    rows = tx.db.rows(
        f"SELECT node_no, {ITEM_ROW} FROM item WHERE item_no > ? ORDER BY item_no LIMIT ?", (item_no, limit)
    )
    return [ItemOfNode(row[0], item) for row, item in zip(rows, to_items([row[1:] for row in rows]), strict=True)]


def items_by_no(tx: ReadTx, numbers: Collection[int]) -> list[ItemOfNode]:
    """Returns the items of these numbers that are there, by number."""
    if not numbers:
        return []
    marks = ", ".join("?" * len(numbers))
    rows = tx.db.rows(
        f"SELECT node_no, {ITEM_ROW} FROM item WHERE item_no IN ({marks}) ORDER BY item_no", tuple(numbers)
    )
    return [ItemOfNode(row[0], item) for row, item in zip(rows, to_items([row[1:] for row in rows]), strict=True)]


def published_before(tx: ReadTx, person: Person, first_no: int, last_no: int) -> set[int]:
    """Returns the numbers of the items in a range that the filter index knows as the person's, also in past
    versions.
    """
    facets = [digest(facet(kind, person.jid)) for kind in _PUBLISHER_FACETS]
    # Only the index of the facets of an item may serve this: the others would be read for each item, from the first
    # to the last item of the person. So the facet is an expression, and `states` is needed, which they do not have.
    statement = (
        f"SELECT f.item_no FROM item i {tx.db.ordered_join} facet f"
        " ON f.node_no = i.node_no AND f.item_no = i.item_no WHERE i.item_no BETWEEN ? AND ?"
        f" AND {without_index('f.facet')} IN (?, ?) AND f.states > 0"
    )
    return {row[0] for row in tx.db.rows(statement, (first_no, last_no, *facets))}


def person_rows(tx: ReadTx, data: PersonalData, person: Person) -> list[PersonRow]:
    """Returns the rows of a person that are removed at once (`JidUse.ROW`). The cost grows with the tables."""
    return [row for row in _rows_with(tx, data, JidUse.ROW, person) if person.has_address(row.text)]


def texts_left(tx: ReadTx, data: PersonalData, person: Person) -> dict[str, int]:
    """Returns the numbers of texts that still have the address of a person after an erasure, by table and column: names
    of nodes, and texts in which it may be the address of somebody else. The cost grows with the tables."""
    columns = [*data.columns_for(JidUse.MENTION), *data.columns_for(JidUse.TEXT), (data.tables["node"], "name")]
    counts = {
        f"{table.name}.{column}": len(_naming(tx, person.may_be_in, person.hint, table, column))
        for table, column in columns
    }
    return {place: count for place, count in counts.items() if count}


def mention_rows(tx: ReadTx, data: PersonalData, person: Person) -> list[PersonRow]:
    """Returns the rows that are removed because they name a person (`JidUse.MENTION`). The cost grows with the
    tables.
    """
    return _rows_with(tx, data, JidUse.MENTION, person)


def text_rows(tx: ReadTx, data: PersonalData, person: Person) -> list[PersonRow]:
    """Returns the texts that name a person beside other data (`JidUse.TEXT`). The cost grows with the tables."""
    return _rows_with(tx, data, JidUse.TEXT, person)


def _rows_with(tx: ReadTx, data: PersonalData, use: JidUse, person: Person) -> list[PersonRow]:
    return [
        row for table, column in data.columns_for(use) for row in _naming(tx, person.is_in, person.hint, table, column)
    ]


def _naming(
    tx: ReadTx, names: Callable[[str | bytes], bool], hint: str, table: PersonalTable, column: str
) -> list[PersonRow]:
    width = table.key.count(",") + 1  # `key` is a list of columns, as SQL writes it
    params: Row = ()
    statement = f"SELECT {table.key}, {column} FROM {table.name}"
    if hint and (table.name, column) not in _BYTES:
        statement, params = f"{statement} WHERE lower({column}) LIKE ?", (f"%{_like(hint)}%",)
    rows = tx.db.rows(statement, params)
    return [PersonRow(table, column, row[:width], row[width]) for row in rows if names(row[width])]


def _like(text: str) -> str:
    # "_" matches any character, so nothing needs an escape: each row is compared again.
    return text.replace("%", "_").replace("\\", "_")


def affiliated_nodes(tx: ReadTx, jid: str) -> list[int]:
    """Returns the numbers of the nodes with an affiliation of a bare JID, deleted nodes included."""
    rows = tx.db.rows("SELECT node_no FROM affiliation WHERE jid = ? ORDER BY node_no", (jid,))
    return [row[0] for row in rows]


def nodes_created_by(tx: ReadTx, jid: str) -> list[int]:
    """Returns the numbers of the nodes that a bare JID created, deleted nodes included."""
    return [row[0] for row in tx.db.rows("SELECT node_no FROM node WHERE creator = ?", (jid,))]


def put_erasure(tx: WriteTx, job: Erasure) -> None:
    """Stores a job, or replaces it. The person is refused from the first job on until it ends."""
    former = tx.db.row("SELECT jid FROM erasure WHERE digest = ?", (job.digest,))
    if former is None or former[0] != job.jid:
        tx.change_blocks()
    values = (job.digest, job.jid, job.phase.value, job.place, ERASURE_REPORT.write(job), job.started_us, job.ended_us)
    tx.change(ERASURE.replace, values)


def remove_rows(tx: WriteTx, rows: Iterable[PersonRow]) -> int:
    """Removes rows and returns their number. Subscriptions must be removed one by one (`remove_subscription`)."""
    keys = dict.fromkeys((row.table.name, row.table.key, row.key) for row in rows if row.table.name not in _COUNTED)
    tx.changes += 1
    for table, columns, key in keys:
        tx.db.run(f"DELETE FROM {table} WHERE {_match(columns)}", key)
    if keys:
        # Rows in memory may be among them.
        tx.settle()
        tx.forget()
    return len(keys)


def replace_texts(tx: WriteTx, rows: Iterable[PersonRow], person: Person, by: str) -> int:
    """Replaces the JID of a person in texts by another address. Returns the number of texts."""
    tx.changes += 1
    count = 0
    for row in rows:
        tx.db.run(
            f"UPDATE {row.table.name} SET {row.column} = ? WHERE {_match(row.table.key)}",
            (person.replaced(row.text, by), *row.key),
        )
        count += 1
    if count:
        # Nodes in memory may have the former options.
        tx.settle()
        tx.forget()
    return count


def open_erasures(tx: ReadTx) -> list[Erasure]:
    """Returns the erasures that have not ended. Their number is small."""
    return [to_erasure(row) for row in tx.db.rows(f"{ERASURE.select} WHERE jid <> '' ORDER BY started_us")]


def blocks(tx: ReadTx, kind: ListKind) -> list[str]:
    """Returns the entries of a list, in their order. The list of an operator is short."""
    return [str(row[0]) for row in tx.db.rows("SELECT name FROM block WHERE kind = ? ORDER BY name", (kind.value,))]


def subscription_nos(tx: ReadTx, bare: str, limit: int) -> list[int]:
    """Returns the numbers of the subscriptions of a bare JID and its resources, those to deleted nodes included."""
    rows = tx.db.rows("SELECT sub_no FROM subscription WHERE bare = ? ORDER BY sub_no LIMIT ?", (bare, limit))
    return [row[0] for row in rows]


def set_person_salt(tx: WriteTx, salt: bytes) -> None:
    """Stores the salt, which never changes."""
    tx.change("INSERT INTO salt (salt) VALUES (?)", (salt,))


def add_blocks(tx: WriteTx, kind: ListKind, names: Collection[str]) -> None:
    """Adds entries to a list. Entries that it has stay."""
    tx.change_blocks()
    tx.db.run_many(
        "INSERT INTO block (kind, name) VALUES (?, ?) ON CONFLICT (kind, name) DO NOTHING",
        [(kind.value, name) for name in names],
    )


def remove_blocks(tx: WriteTx, kind: ListKind, names: Collection[str]) -> None:
    """Removes entries of a list."""
    tx.change_blocks()
    tx.db.run_many("DELETE FROM block WHERE kind = ? AND name = ?", [(kind.value, name) for name in names])
