"""The tables of the SQL store: their columns, and the statements over whole rows.

Statements that select, join or change a part of a row are written where they are used, and the tables of features in
their `rows.py`. `sqlite.sql` is the schema.
"""

from collections.abc import Collection

from smartfeeds.core.model import Item


class Table:
    """A table with the columns `key`, `values` and `parent`, separated by commas.

    Parameters of the statements are in the order of `columns`. `add` leaves out the key, which the database assigns;
    `value_columns` are its columns. `update` has the key last and leaves out the parent: SQLite checks a foreign key
    that is set, even to its old value.
    """

    __slots__ = ("add", "columns", "delete", "insert", "key", "name", "replace", "select", "update", "value_columns")

    def __init__(self, name: str, key: str, values: str, parent: str = "") -> None:
        self.name = name
        self.key = key
        rest = f"{values}, {parent}" if parent else values
        self.columns = f"{key}, {rest}"
        self.select = f"SELECT {self.columns} FROM {name}"
        self.value_columns = rest
        self.add = _insert(name, rest)
        self.insert = _insert(name, self.columns)
        match = " AND ".join(f"{column} = ?" for column in key.split(", "))
        self.update = f"UPDATE {name} SET {', '.join(f'{column} = ?' for column in values.split(', '))} WHERE {match}"
        self.delete = f"DELETE FROM {name} WHERE {match}"
        changes = ", ".join(f"{column} = excluded.{column}" for column in values.split(", "))
        self.replace = f"{self.insert} ON CONFLICT ({key}) DO UPDATE SET {changes}"


def _insert(name: str, columns: str) -> str:
    return f"INSERT INTO {name} ({columns}) VALUES (?{', ?' * columns.count(',')})"


def none_of(column: str, values: Collection[object]) -> str:
    """Returns the condition that a column has none of these values, which are its parameters."""
    return f"{column} NOT IN ({', '.join('?' * len(values))})" if values else "TRUE"


# The end of a subquery of EXISTS. With OFFSET PostgreSQL looks up each row. Without it the planner may make a join that
# compares all rows with all rows. SQLite has no OFFSET without LIMIT.
LOOK_UP_EACH = "LIMIT 1 OFFSET 0"


def without_index(column: str) -> str:
    """Returns the value of a column as an expression, which no index has."""
    return f"coalesce({column}, {column})"


def order_few_by(column: str) -> str:
    """Returns the ORDER BY of a query whose condition selects few rows by an index that has another order.

    The sessions of PostgreSQL avoid sorts (`postgres_session`). With the plain column they would read the whole table
    in the order of the index of this column.
    """
    return f"ORDER BY {without_index(column)}"


def first_due(table: Table) -> str:
    """Returns the statement for the keys of the rows that are due first for each host.

    Parameters: the time up to which rows are due, and the number of hosts.
    """
    place = f"row_number() OVER (PARTITION BY host ORDER BY due_us, {table.key})"
    due = f"SELECT {table.key}, due_us, {place} AS place FROM {table.name} WHERE due_us <= ?"
    return f"SELECT {table.key} FROM ({due}) AS due WHERE place = 1 ORDER BY due_us, {table.key} LIMIT ?"


# The columns of a node in the order of `core.model.Node`, those of `rows.NodeRow`, and what only statements use.
NODE_COLUMNS = (
    "node_no, name, kind, creator, created_us, options, state, total, live, last_modified_us, last_created_us, audience"
)
NODE_ROW = f"{NODE_COLUMNS}, subscribed, indexed_us, indexed_no, stale"
NODE = Table("node", "node_no", f"{NODE_ROW.removeprefix('node_no, ')}, listed")

# An item is stored with its node, its checksum (`rows.checksum`) and the fields of `Item` in their order, except that
# `deleted` is one of the values of `change`, and `left` and `damaged` are never stored.
ITEM_COLUMNS = tuple(
    "change" if name == "deleted" else name for name in Item._fields if name not in ("left", "damaged")
)
ITEM_ROW = ", ".join((*ITEM_COLUMNS, "checksum"))
# For pages that do not show sync data, which may be longer than everything else.
ITEM_WITHOUT_SYNC = ITEM_ROW.replace("sync, checksum", "NULL, checksum")
# For pages: the fields without a default and what the checksum covers. Python's sqlite3 takes several locks for each
# column of each row, and six columns less make a page of 50 take 0.93 of its time over XMPP.
ITEM_BRIEF = "item_no, id, created_us, modified_us, payload, publisher, change, sync_id, checksum"
ITEM = Table("item", "item_no", ITEM_ROW.removeprefix("item_no, "), "node_no")
FACET = Table("facet", "node_no, facet, modified_us, item_no", "created_us, states")

SUBSCRIPTION_ROW = (
    "sub_no, node_no, jid, view, node_text, service, state, since_us, since_created_us, created_us, options"
)
SUBSCRIPTION = Table("subscription", "sub_no", f"{SUBSCRIPTION_ROW.removeprefix('sub_no, ')}, bare, expires_us")
AFFILIATION = Table("affiliation", "node_no, jid", "affiliation, hidden")

PURGE = Table("purge", "node_no", "up_to_us, actor")
EVENT = Table("event", "event_no", "node_no, at_us, kind, data, recipient")
MARK = Table("mark", "node_no, ord, consumer", "key_us, cursor, behind")
FAILURE = Table("failure", "node_no, consumer", "failures, since_us, next_us, error")
BATCH = Table("batch", "node_no, consumer", "end_us, joined")

REQUEST_FORM = Table("request_form", "node_no, whom", "since_us, forms")

CONTACT = Table("contact", "address, jid", "state")
TOKEN = Table("token", "token_id", "digest, jid, scope, feed, label, created_us, expires_us")
REDIRECT = Table("redirect", "name", "uri, creator")
FILE = Table("file", "node_no, file_id", "digest, name, media_type, size_bytes, owner, created_us, unused_us")
# Its statements match all files of an item, although file_id is a part of the primary key.
FILE_USE = Table("file_use", "node_no, item_no", "file_id")
DOCUMENT = Table("document", "reader, url", "source_url, etag, last_modified, content")
