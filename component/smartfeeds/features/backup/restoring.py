"""Checks a backup of a SQLite database, and puts it in the place of the database (OPS-092).

`check_backup` reads everything and writes nothing. `restore_backup` copies first and renames last: an interruption
leaves the former database, or a state that the next restore takes back.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from smartfeeds.errors import StoreError
from smartfeeds.features.backup.backup import copy_database
from smartfeeds.features.backup.copy_sqlite import SqliteCopy
from smartfeeds.features.backup.copying import Progress, no_progress, table_digests
from smartfeeds.features.backup.digests import FeedDigest, RowsHash, TableDigest, feed_digests
from smartfeeds.store import migrate
from smartfeeds.store.file_folder import copy_files, folder_of, is_digest, sync_folder
from smartfeeds.store.lock import lock_database
from smartfeeds.store.sqlite_engine import DATABASE_ERRORS, missing, restoring_path, store_error

BEFORE = ".before-restore"  # the suffix of what a restored backup replaces
_LOGS = ("", "-wal", "-shm")  # SQLite finds the log of a database by its name


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed in a backup."""

    name: str
    last_modified_us: int
    digest: FeedDigest


@dataclass(frozen=True, slots=True)
class BackupContents:
    """The contents of a backup. `missing_files` are digests of uploaded files whose bytes the backup lacks."""

    schema: str
    tables: list[TableDigest]
    feeds: list[Feed]
    missing_files: list[str]


def check_backup(path: Path, on_progress: Progress = no_progress) -> BackupContents:
    """Reads all of a backup. Raises StoreError if it is damaged, newer than this program or not one of smartfeeds."""
    if not path.exists():
        raise missing(path)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{_mode(path)}", uri=True)) as connection:
            connection.execute("BEGIN")
            schema = _schema(connection, path)
            if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                raise StoreError(f"the backup {path} is damaged; name another backup")
            if faults := connection.execute("PRAGMA foreign_key_check").fetchall():
                raise StoreError(f"the backup {path} is damaged: {len(faults)} rows belong to no node; name another")
            reader = SqliteCopy(connection, path)
            feeds = _feeds(connection, reader)
            return BackupContents(schema, table_digests(reader, on_progress), feeds, _missing_files(connection, path))
    except DATABASE_ERRORS as error:
        raise store_error(error, str(path)) from error


def _mode(backup: Path) -> str:
    """Returns how SQLite opens a backup. Without a log nothing is written beside it: SQLite would create a log there,
    and could not open a backup on a read-only file system."""
    return "mode=ro" if _with(backup, "-wal").exists() else "immutable=1"


def _schema(connection: sqlite3.Connection, path: Path) -> str:
    schema = migrate.version(connection)
    if schema is None:
        raise StoreError(f"the backup {path} is empty; name another backup")
    try:
        migrate.check_known(schema, migrate.oldest_program(connection))
    except StoreError as error:
        raise StoreError(f"the backup {path}: {error}") from error
    # The service would run a crafted trigger, and a view in place of a table is not checked.
    foreign = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone()
    if foreign is not None:
        raise StoreError(
            f"the backup {path} has the {' '.join(foreign)}, which smartfeeds does not make; name another backup"
        )
    return schema


def _feeds(connection: sqlite3.Connection, reader: SqliteCopy) -> list[Feed]:
    items = next(table for table in reader.tables() if table.name == "item")
    digests = {digest.node_no: digest for digest in feed_digests(items.columns, reader.rows(items))}
    nodes = connection.execute(
        "SELECT node_no, name, last_modified_us FROM node WHERE state = 'live' ORDER BY name"
    ).fetchall()
    return [
        Feed(name, changed_us, digests.get(number) or FeedDigest(number, 0, RowsHash().sha256))
        for number, name, changed_us in nodes
    ]


def _missing_files(connection: sqlite3.Connection, path: Path) -> list[str]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'file'").fetchone():
        return []  # the schema is older than uploaded files
    folder = folder_of(path)
    # The service may have removed unused files after the database was copied and before they were.
    used = connection.execute("SELECT DISTINCT digest FROM file WHERE unused_us IS NULL ORDER BY 1")
    digests = [str(row[0]) for row in used]
    return [digest for digest in digests if not (is_digest(digest) and (folder / digest[:2] / digest).is_file())]


def restore_backup(
    backup: Path, database: Path, files: Path, *, replace: bool, on_progress: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Puts a backup and its uploaded files in the place of the database. Returns the paths of what was there before.

    With `replace` the former database and its files are renamed; without it, StoreError is raised if there is one. The
    service must not run. A restore that was interrupted is taken back first. Raises StoreError.
    """
    release = lock_database(database, "smartfeeds restore")
    # The database is renamed first and appears last, so that it is missing while the parts do not belong together.
    parts = (*(_with(database, log) for log in _LOGS), files)
    new = restoring_path(database)
    new_files = restoring_path(files)  # beside `files`, because a rename stays within a file system
    try:
        if new.exists() and not database.exists():
            _take_back(parts, database)
        former = [path for path in parts if path.exists()]
        if former and not replace:
            raise StoreError(f"{former[0]} exists; use --replace to rename it to {_before(former[0], database).name}")
        # Also if the path itself does not exist: `_take_back` must not confuse two restores.
        for path in parts:
            if _before(path, database).exists():
                raise StoreError(f"{_before(path, database)} exists from an earlier restore; remove it or move it away")
        new.unlink(missing_ok=True)
        shutil.rmtree(new_files, ignore_errors=True)
        # Everything is copied first: an interrupted restore leaves the former database as it was.
        copy_database(backup, new, on_progress, mode=_mode(backup))
        copy_files(folder_of(backup), new_files)
        try:
            for path in former:
                path.rename(_before(path, database))
            if new_files.exists():
                new_files.rename(files)
            new.rename(database)
        except BaseException:
            # A folder of files that is a mount point cannot be renamed, for example.
            _take_back(parts, database)
            raise
        sync_folder(database.parent)
        return [_before(path, database) for path in former]
    except OSError as error:
        raise StoreError(f"the backup cannot be restored: {error.strerror} ({error.filename})") from error
    finally:
        release()


def _take_back(parts: tuple[Path, ...], database: Path) -> None:
    """Gives the former database and its files their names back, after a restore that was interrupted or has failed."""
    for path in reversed(parts):
        before = _before(path, database)
        if before.exists():
            if path.is_dir():
                shutil.rmtree(path)  # the files of the backup
            before.rename(path)


def _with(database: Path, suffix: str) -> Path:
    return database.with_name(database.name + suffix)


def _before(path: Path, database: Path) -> Path:
    """The new name of a former file. The log of a database must have the name of the database and its own suffix."""
    suffix = next((log for log in _LOGS[1:] if path == _with(database, log)), "")
    return path.with_name(f"{path.name.removesuffix(suffix)}{BEFORE}{suffix}")
