"""Every table of the schema belongs to the kernel or to one feature, which says what an erasure does with each column
that may hold a JID (docs/personal-data.md).
"""

import sqlite3
from collections import Counter
from contextlib import closing

from smartfeeds.app.opening import all_use_cases
from smartfeeds.service.personal import JidUse
from smartfeeds.store.migrate import schema, statements

HIDDEN = ("sqlite_", "word_")  # the tables of SQLite itself, and those behind the full-text index
HOOKS = all_use_cases().hooks
DATA = HOOKS.personal_data


def columns_by_table() -> dict[str, set[str]]:
    """The columns of the schema that hold texts or bytes, by table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements(schema("sqlite")):
            connection.execute(statement)
        rows = connection.execute(
            "SELECT t.name, c.name, c.type NOT IN ('INTEGER', 'REAL')"
            " FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.schema = 'main'"
        ).fetchall()
    columns: dict[str, set[str]] = {}
    for table, column, is_text in rows:
        if not table.startswith(HIDDEN):
            columns.setdefault(table, set()).update([column] if is_text else [])
    return columns


def test_every_table_belongs_to_the_kernel_or_to_one_feature() -> None:
    owners = Counter(table.name for part in HOOKS.personal for table in part.tables)

    assert set(owners) == set(columns_by_table())
    assert set(owners.values()) == {1}


def test_every_text_column_is_named_once() -> None:
    """[OPS-001]"""
    for name, columns in columns_by_table().items():
        table = DATA.tables[name]
        assert set(table.columns) | table.others == columns, f"{name}: name each column where the table is declared"
        assert not set(table.columns) & table.others


def test_every_column_that_is_changed_by_its_table_has_a_key() -> None:
    for use in (JidUse.ROW, JidUse.MENTION, JidUse.TEXT):
        assert all(table.key for table, _ in DATA.columns_for(use))
