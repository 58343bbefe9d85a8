"""`smartfeeds db`: maintenance of the database. Features add to its commands."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, read_settings
from smartfeeds.cli.offline import run_offline
from smartfeeds.console import Commands, print_out
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import OpenMode
from smartfeeds.store.lock import lock_database
from smartfeeds.store.migrate import HEAD
from smartfeeds.store.sqlite_engine import check_writable
from smartfeeds.store.sqlite_file import schema_version


@click.group("db", cls=Commands)
def db_command() -> None:
    """Maintain the database."""


@db_command.command("upgrade")
@config_option
def upgrade(config: Path | None) -> None:
    """Upgrade the database to the schema of this version. smartfeeds run does the same when it starts.

    Stop the service and take a backup first. A database of a newer version is rejected and left unchanged.
    """
    store = read_settings(config).store
    if store.is_shared:
        run_offline(config, _open, OpenMode.SERVE)
        print_out(f"{store.address.name} has schema {HEAD}.")
        return
    path = store.path
    check_writable(path)
    before = schema_version(path)
    if before == HEAD:
        print_out(f"{path} has schema {before} already.")
        return
    # The lock prevents a change of schema under a running service of an older version.
    release = lock_database(path, "smartfeeds db upgrade")
    try:
        run_offline(config, _open, OpenMode.SERVE)
    finally:
        release()
    after = schema_version(path)
    print_out(f"{path}: schema {before or 'none'} is now {after}.")


async def _open(_service: FeedService) -> None:
    """Do nothing: opening the database upgraded it."""
