"""`smartfeeds db` and `smartfeeds backup`: maintenance of the database file."""

from datetime import UTC, datetime
from pathlib import Path

import click

from smartfeeds.cli.common import FILE, config_option, read_settings
from smartfeeds.cli.offline import run_offline
from smartfeeds.console import Commands, print_out, progress_bar
from smartfeeds.service.feeds import FeedService
from smartfeeds.store import maintenance
from smartfeeds.store.backup import copy_database
from smartfeeds.store.base import OpenMode
from smartfeeds.store.files import copy_files, folder_of
from smartfeeds.store.lock import lock_database
from smartfeeds.store.migrate import HEAD


@click.group("db", cls=Commands)
def db_command() -> None:
    """Maintain the database."""


@db_command.command("upgrade")
@config_option
def upgrade(config: Path | None) -> None:
    """Upgrade the database to the schema of this version. smartfeeds run does the same when it starts.

    Stop the service and take a backup first. A database of a newer version is rejected and left unchanged.
    """
    path = read_settings(config).store.path
    before = maintenance.schema_version(path)
    if before == HEAD:
        print_out(f"{path} has schema {before} already.")
        return
    # The lock prevents a change of schema under a running service of an older version.
    release = lock_database(path, "smartfeeds db upgrade")
    try:
        run_offline(config, _open, OpenMode.SERVE)
    finally:
        release()
    after = maintenance.schema_version(path)
    print_out(f"{path}: schema {before or 'none'} is now {after}.")


async def _open(_service: FeedService) -> None:
    """Do nothing: opening the database upgraded it."""


@click.command("backup")
@click.argument("file", type=FILE)
@config_option
def backup_command(file: Path, config: Path | None) -> None:
    """Copy the database to the new FILE, and uploaded files to the folder FILE-files, while the service may be running.

    The copy is a consistent state. To restore it, stop the service, remove the old database, its -wal and -shm files
    and its folder, and put the copies in their places.
    """
    path = read_settings(config).store.path
    maintenance.schema_version(path)  # raises if the file is not a database of smartfeeds
    former = next((path for path in (file, folder_of(file)) if path.exists()), None)
    if former is not None:
        example = file.with_name(f"{file.stem}-{datetime.now(UTC):%Y-%m-%d}{file.suffix}")
        raise click.UsageError(f"{former} exists already; name another file, for example {example}")
    with progress_bar() as progress:
        task = progress.add_task("pages copied", total=None)
        copy_database(path, file, lambda done, total: progress.update(task, completed=done, total=total))
    count = copy_files(folder_of(path), folder_of(file))
    also = f" and {folder_of(file)} ({count} files)" if count else ""
    print_out(f"Wrote {file} ({file.stat().st_size} bytes){also}.")
