"""Every column that may hold a JID is named, with what an erasure does with it (docs/personal-data.md)."""

import sqlite3
from contextlib import closing
from importlib import resources

from smartfeeds.features.privacy.person_columns import NOT_PERSONAL, PERSON_COLUMNS, JidUse, columns_for
from smartfeeds.features.privacy.rows import KEYS
from smartfeeds.store.migrate import SCHEMA, statements

HIDDEN = ("sqlite_", "word_")  # the tables of SQLite itself, and those behind the full-text index


def text_columns() -> dict[str, set[str]]:
    """The columns of the schema that hold texts or bytes, by table."""
    text = resources.files("smartfeeds.store").joinpath(SCHEMA).read_text("utf-8")
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements(text):
            connection.execute(statement)
        rows = connection.execute(
            "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c"
            " WHERE t.schema = 'main' AND c.type NOT IN ('INTEGER', 'REAL')"
        ).fetchall()
    columns: dict[str, set[str]] = {}
    for table, column in rows:
        if not table.startswith(HIDDEN):
            columns.setdefault(table, set()).add(column)
    return columns


def test_every_text_column_is_named_once() -> None:
    """[OPS-001]"""
    for table, columns in text_columns().items():
        personal, rest = set(PERSON_COLUMNS.get(table, ())), NOT_PERSONAL.get(table, frozenset())
        assert personal | rest == columns, f"{table}: name each column in features/privacy/person_columns.py"
        assert not personal & rest
    assert set(PERSON_COLUMNS) | set(NOT_PERSONAL) == set(text_columns())


def test_every_column_that_is_changed_by_its_table_has_a_key() -> None:
    for use in (JidUse.ROW, JidUse.MENTION, JidUse.TEXT):
        assert {table for table, _ in columns_for(use)} <= set(KEYS)
