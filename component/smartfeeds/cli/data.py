"""`smartfeeds db` and `smartfeeds backup`: the file that holds everything."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, read_settings
from smartfeeds.cli.offline import open_offline
from smartfeeds.console import Commands, out, progress_bar, run_async
from smartfeeds.store import maintenance
from smartfeeds.store.backup import copy_database
from smartfeeds.store.base import OpenMode
from smartfeeds.store.lock import lock_database
from smartfeeds.store.migrate import HEAD


@click.group("db", cls=Commands)
def db_command() -> None:
    """Look after the database."""


@db_command.command("upgrade")
@config_option
def upgrade(config: Path | None) -> None:
    """Bring the database to the schema of this version; smartfeeds run does the same when it starts.

    Take a backup and stop the service before. A database that is newer than this program is refused and left alone.
    """
    path = read_settings(config).store.path
    before = maintenance.schema_version(path)
    if before == HEAD:
        out.print(f"{path} has schema {before}: nothing to do.", markup=False)
        return
    # A running service of an older version must not have its schema changed.
    release = lock_database(path, "smartfeeds db upgrade")
    try:
        run_async(_open_once(config))
    finally:
        release()
    after = maintenance.schema_version(path)
    out.print(f"{path}: schema {before or 'none'} is now {after}.", markup=False)


async def _open_once(config: Path | None) -> None:
    async with open_offline(config, OpenMode.SERVE):
        pass


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@config_option
def backup_command(file: Path, config: Path | None) -> None:
    """Copy the database into the new FILE; a running service goes on.

    The copy is one consistent state and opens like any database: to restore it, stop the service and put it in
    the place of the old file, after removing the old -wal and -shm files.
    """
    path = read_settings(config).store.path
    maintenance.schema_version(path)  # says so where there is no database of ours to copy
    with progress_bar() as progress:
        task = progress.add_task("pages copied", total=None)
        copy_database(
            path,
            file,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    out.print(f"Wrote {file} ({file.stat().st_size} bytes).", markup=False)
