"""Crafted data of another service: an import reports it, ends soon, and shows no password."""

import os
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from features.moving_in.samples import DUMP, HOST, SAMPLES
from smartfeeds.errors import ConfigError, DocumentError
from smartfeeds.features.moving_in import prosody_files
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.moved import MovedNode, MovedProblem, MovedReader, UnreadableItem
from smartfeeds.features.moving_in.prosody_files import read_items
from smartfeeds.features.moving_in.prosody_sql import read_prosody
from smartfeeds.features.moving_in.sat_pubsub import read_sat_pubsub


def everything(reader: MovedReader, source: Path | str, host: str) -> tuple[list[str], list[MovedProblem]]:
    """Reads the nodes with their items. Returns the names of the nodes, and all problems."""
    names, problems = [], []
    for part in reader(str(source), host):
        if isinstance(part, MovedProblem):
            problems.append(part)
        else:
            assert isinstance(part, MovedNode)
            names.append(part.name)
            problems += [*part.problems, *(item for item in part.items if isinstance(item, MovedProblem))]
    return names, problems


@pytest.mark.parametrize("digits", [19, 5_000])
@pytest.mark.parametrize("record", [rb"\{pubsub_item,\s*\{<<[^<>]*>>,\s*", rb"\{pubsub_node,\s*\{[^{}]*\},\s*"])
def test_number_beyond_all_nodes_is_a_problem(tmp_path: Path, record: bytes, digits: int) -> None:
    """[IMP-067] Python converts no text of 5,000 digits, and SQLite stores 64 bits. The import goes on."""
    path = tmp_path / "mnesia.dump"
    text, count = re.subn(rb"(" + record + rb")\d+", rb"\g<1>" + b"9" * digits, DUMP.read_bytes(), count=1)
    assert count == 1
    path.write_bytes(text)

    names, problems = everything(read_ejabberd, path, HOST)

    # An item of 19 digits is an item of a node that is not there.
    assert len(names) == (5 if b"item" in record else 4)
    assert any(problem.subject.startswith("record at byte") for problem in problems) is (
        b"node" in record or digits > 19
    )


@pytest.mark.parametrize(
    ("sample", "reader", "host"),
    [("ejabberd-23.01", read_ejabberd, HOST), ("prosody-0.12", read_prosody, "sql.localhost")],
)
def test_each_column_may_have_a_value_of_any_type(sample: str, reader: MovedReader, host: str, tmp_path: Path) -> None:
    """[IMP-067] SQLite stores every value in every column. An import reports what it cannot read."""
    original, path = tmp_path / "original.sqlite", tmp_path / "changed.sqlite"
    with closing(sqlite3.connect(original)) as connection:
        connection.executescript((SAMPLES / f"{sample}.sqlite.sql").read_text())
        columns = connection.execute(
            "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND (t.name LIKE 'pubsub%' OR t.name LIKE 'prosody%')"
        ).fetchall()
    count = 0
    for table, column in columns:
        for value in (None, 10**12, b"\xff\xfe"):
            shutil.copyfile(original, path)
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")
                try:
                    connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (value,))
                except sqlite3.IntegrityError:  # the column is the number of the row
                    continue
            count += 1
            with suppress(DocumentError, ConfigError):
                everything(reader, path, host)
    assert count >= 40


def test_time_of_a_list_that_is_damaged_everywhere_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[IMP-012] Here every item reads to the end of the list, because a comment of one is in a text of the others."""
    monkeypatch.setattr(prosody_files, "_REREAD_BYTES", 5_000)
    path = tmp_path / "pubsub_blog.list"
    path.write_bytes(b'\nitem({-- "\n "' * 1_000)

    parts = list(read_items(path))

    assert len(parts) < 10
    last = parts[-1]
    assert isinstance(last, UnreadableItem) and "too many damaged items" in last.reason


@pytest.mark.parametrize("name", ["pubsub_nodes/blog.dat", "pubsub_blog.list"])
def test_pipe_is_not_opened(tmp_path: Path, name: str) -> None:
    """[IMP-012] Opening a pipe waits for a writer for ever, and a device may have no end."""
    folder = tmp_path / "pubsub%2elocalhost"
    shutil.copytree(SAMPLES / "prosody-0.12-files" / folder.name, folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)

    if name.endswith(".dat"):
        assert "no regular file" in str(everything(read_prosody, folder, HOST)[1])
    else:
        with pytest.raises(DocumentError, match="no regular file"):
            everything(read_prosody, folder, HOST)


@pytest.mark.parametrize(
    "source",
    [
        "postgresql://moving:hush@[::1/feeds",
        "postgresql://moving:hu@sh@127.0.0.1:1/feeds",
        "POSTGRESQL://moving:hush@127.0.0.1:1/feeds",
        "postgresql://127.0.0.1:1/feeds?password=hush&x=[",
        "oracle://moving:hush@127.0.0.1/feeds",
    ],
)
@pytest.mark.parametrize("reader", [read_prosody, read_ejabberd, read_sat_pubsub])
def test_messages_have_no_password(reader: MovedReader, source: str) -> None:
    """[OPS-094] Also if the address is not valid."""
    with pytest.raises((ConfigError, DocumentError)) as caught:
        list(reader(source, HOST))

    assert "sh" not in str(caught.value).replace("***", "")


@pytest.mark.parametrize(
    ("reader", "host", "table", "columns"),
    [
        (read_prosody, HOST, "prosody", "'HOST' AS host, n AS user, 'pubsub_nodes' AS store, '' AS key, '' AS type"),
        (read_ejabberd, HOST, "pubsub_node", "'HOST' AS host, n AS node, n AS nodeid"),
    ],
)
def test_view_without_end_is_not_read(reader: MovedReader, host: str, table: str, columns: str, tmp_path: Path) -> None:
    """[IMP-071] A crafted file may have a view where the server has a table."""
    path = tmp_path / "crafted.sqlite"
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE VIEW {table} AS {endless} SELECT {columns.replace('HOST', host)} FROM c")

    with pytest.raises(DocumentError, match=r"prohibited|not authorized"):
        list(reader(str(path), host))
