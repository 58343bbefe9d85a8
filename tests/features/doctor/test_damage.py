"""Damaged rows: found by their checksum, by doctor and at the start, and named in a message."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from smartfeeds.app.config_store import StoreSettings
from smartfeeds.core.model import Slice
from smartfeeds.core.text import escape
from smartfeeds.core.view import SMART
from smartfeeds.errors import StoreError
from smartfeeds.features.doctor import maintenance
from smartfeeds.features.doctor.damage import DamagedItem, damaged_items
from smartfeeds.features.doctor.findings import CheckState
from smartfeeds.features.doctor.probe_items import check_items
from smartfeeds.formats.atom import read_traits
from smartfeeds.store import migrate
from smartfeeds.store.rows import checksum, item_texts
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.store.sqlite_engine import restoring_path
from smartfeeds.store.sqlite_file import schema_version
from store.values import add_feed, item
from support.first_release import create_first_schema

PAYLOAD = "<entry xmlns='http://www.w3.org/2005/Atom'><title>é</title></entry>"


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with a feed of two items."""
    path = tmp_path / "feeds.db"
    store = SqliteStore(path, read_traits)
    await store.open()
    await store.write(add_feed(item("one", 1, PAYLOAD), item("two", 2, PAYLOAD, sync=b"alice"), name="news"))
    await store.close()
    return path


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def findings(path: Path) -> list[str]:
    found = list(check_items(StoreSettings(url=f"sqlite:///{path}")))
    assert all(finding.state is CheckState.FIX for finding in found)
    return [finding.text for finding in found]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE node SET options = '{'", "news of the table node"),
        ("UPDATE node SET name = 'ne' || char(1)", "ne\ufffd of the table node"),
        ("UPDATE node SET name = CAST(x'6eff' AS TEXT)", "n\ufffd of the table node"),
        ("UPDATE affiliation SET affiliation = 'ownes'", "bob@b.example of the table affiliation"),
    ],
)
async def test_damaged_row_is_named(path: Path, raw: sqlite3.Connection, statement: str, name: str) -> None:
    raw.execute("INSERT INTO affiliation VALUES (1, 'bob@b.example', 'owner', NULL)")
    assert findings(path) == []
    raw.execute("PRAGMA ignore_check_constraints = ON")
    raw.execute(statement)
    assert findings(path) == [f"1 row of the database cannot be read: {name}"]


@pytest.mark.parametrize(
    ("payload", "sync"),
    [
        (PAYLOAD[:-1].encode(), b"alice"),
        (PAYLOAD.replace("é", "e").encode(), b"alice"),
        (PAYLOAD.encode("latin-1"), b"alice"),
        (bytes(9), b"alice"),
        (b"", b"alice"),
        (PAYLOAD.encode(), b"alicf"),
        (PAYLOAD.encode(), b""),
    ],
)
async def test_changed_content_is_found(path: Path, raw: sqlite3.Connection, payload: bytes, sync: bytes) -> None:
    assert findings(path) == []
    raw.execute("UPDATE item SET payload = ?, sync = ? WHERE id = 'two'", (payload, sync))
    assert findings(path) == ["the content of 1 item is damaged: two in news"]
    store = SqliteStore(path, read_traits)
    await store.open()
    try:
        one, two = await store.read(lambda tx: tx.items(1, ["one", "two"]))
    finally:
        await store.close()
    assert (one.damaged, one.payload) == (False, PAYLOAD.encode())
    assert (two.damaged, two.payload, two.sync) == (True, b"", b"")


async def test_damaged_sync_data_matters_only_where_they_are_read(path: Path, raw: sqlite3.Connection) -> None:
    raw.execute("UPDATE item SET sync = x'00' WHERE id = 'two'")
    store = SqliteStore(path, read_traits)
    await store.open()
    try:
        plain = await store.read(lambda tx: tx.slice(1, Slice(SMART, 9)))
        whole = await store.read(lambda tx: tx.item(1, "two"))
    finally:
        await store.close()
    assert [each.damaged for each in plain] == [False, False]
    assert whole is not None and whole.damaged


def test_content_that_was_damaged_before_the_upgrade_is_found_by_its_xml() -> None:
    rows = [
        ("news", item_id, "a@x", "", payload, b"", checksum(payload, b"", item_texts(item_id, "a@x", "")))
        for item_id, payload in (("two", b"<a>"), ("bare", b""))
    ]
    assert damaged_items(rows) == [DamagedItem("news", "two")]


def test_doctor_names_ten_items(path: Path, raw: sqlite3.Connection) -> None:
    for number in range(12):
        raw.execute(
            "INSERT INTO item SELECT ? + 10, node_no, ?, 9, ?, change, revision, notify, total, live, publisher,"
            " x'3c', sync_id, conflicts, sync, checksum FROM item WHERE id = 'one'",
            (number, f"i{number}", number + 9),
        )
    (text,) = findings(path)
    assert text.startswith("the content of 12 items is damaged: i0 in news, ") and text.endswith(
        "i9 in news and 2 more"
    )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE node SET name = cast(x'6eff' AS TEXT)",
        "UPDATE node SET options = cast(x'7bff7d' AS TEXT)",
        "UPDATE node SET creator = cast(x'ff' AS TEXT)",
        "UPDATE node SET options = '{\"title\":'",
    ],
)
async def test_damaged_node_is_a_message_for_whoever_changes_it(
    path: Path, raw: sqlite3.Connection, change: str
) -> None:
    raw.execute(change)
    store = SqliteStore(path, read_traits)
    await store.open()
    try:
        with pytest.raises(StoreError, match="corrupt; stop the service, keep a copy of the file and restore a backup"):
            await store.write(lambda tx: tx.node_by_no(1))
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "cast(x'7477c3' AS TEXT)"),
        ("id", "'t' || char(1) || 'wo'"),
        ("id", "'twp'"),
        ("publisher", "cast(x'ff' AS TEXT)"),
        ("publisher", "char(1)"),
        ("publisher", "'blice@example.org'"),
        ("publisher", "''"),
        ("sync_id", "cast(x'c3' AS TEXT)"),
        ("sync_id", "'x'"),
    ],
)
async def test_changed_text_of_an_item_is_found(path: Path, raw: sqlite3.Connection, column: str, value: str) -> None:
    """The other items are read as before, and no text that XML forbids is left."""
    raw.execute(f"UPDATE item SET {column} = {value} WHERE id = 'two'")
    store = SqliteStore(path, read_traits)
    await store.open()
    try:
        one, two = await store.read(lambda tx: tx.slice(1, Slice(SMART, 9)))
    finally:
        await store.close()
    assert (one.damaged, two.damaged) == (False, True)
    assert escape(two.id + two.publisher) and (two.sync_id, two.payload) == ("", b"")
    assert len(findings(path)) == 1


async def test_damaged_schema_is_a_message_at_the_start(path: Path, raw: sqlite3.Connection) -> None:
    """The text of the error has bytes of the damaged schema, which are no UTF-8."""
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_master SET name = cast(x'6eff' AS TEXT), sql = 'CREATE x' WHERE name = 'node'")
    raw.close()
    store = SqliteStore(path, read_traits)
    with pytest.raises(StoreError, match="restore a backup"):
        await store.open()
    with pytest.raises(StoreError, match="restore a backup"):
        schema_version(path)


async def test_upgrade_gives_all_items_their_checksum(tmp_path: Path) -> None:
    path = tmp_path / "former.db"
    former = sqlite3.connect(path, isolation_level=None)
    create_first_schema(former)
    former.execute("INSERT INTO node VALUES (1, 'news', 'feed', 'live', 'o@x', 1, '{}', 9, 9, 1, 1, 0, 0, 0, 0, 0)")
    former.executemany(
        "INSERT INTO item VALUES (?, 1, ?, ?, ?, 0, 1, 0, 1, 1, ?, ?)",
        [(number, f"i{number}é", number, number, "o@x" * (number % 2), PAYLOAD.encode()) for number in range(1, 10)],
    )
    former.execute("UPDATE item SET id = CAST(x'6eff' AS TEXT) WHERE item_no = 2")  # a text that is no UTF-8
    migrate.prepare(former, path)
    former.close()
    assert findings(path) == ["the content of 1 item is damaged: n\ufffd in news"]
    store = SqliteStore(path, read_traits)
    await store.open()
    try:
        items = await store.read(lambda tx: tx.items(1, ["i1é", "i9é"]))
    finally:
        await store.close()
    assert [(each.damaged, each.payload) for each in items] == [(False, PAYLOAD.encode())] * 2


def test_restore_that_was_interrupted_is_named(tmp_path: Path) -> None:
    """[OPS-092] The folder is writable, and still no start may make an empty database."""
    path = tmp_path / "feeds.db"
    maintenance.check_writable(path)
    restoring_path(path).touch()
    with pytest.raises(StoreError, match=r"feeds\.db does not exist, because smartfeeds restore was interrupted"):
        maintenance.check_writable(path)
