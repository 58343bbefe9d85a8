"""`smartfeeds db`: maintenance of the database. Features add to its commands."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import config_option, json_option, read_settings
from smartfeeds.cli.offline import run_offline
from smartfeeds.console import Commands, print_result
from smartfeeds.store.base import OpenMode

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService


@click.group("db", cls=Commands)
def db_command() -> None:
    """Maintain the database."""


@db_command.command("upgrade")
@config_option
@json_option
def upgrade(config: Path | None, *, as_json: bool) -> None:
    """Upgrade the database to the schema of this version. smartfeeds run does the same when it starts.

    Stop the service and take a backup first. A database of a newer version is rejected and left unchanged.
    """
    from smartfeeds.store.lock import lock_database
    from smartfeeds.store.migrate import HEAD
    from smartfeeds.store.sqlite_engine import check_writable
    from smartfeeds.store.sqlite_file import schema_version

    store = read_settings(config).store
    if store.is_shared:
        run_offline(config, _open, OpenMode.SERVE)
        text = f"{store.address.name} has schema {HEAD}."
        print_result(text, {"database": store.address.name, "before": None, "schema": HEAD}, as_json=as_json)
        return
    path = store.path
    check_writable(path)
    before = schema_version(path)
    if before == HEAD:
        text = f"{path} has schema {before} already."
        print_result(text, {"database": str(path), "before": before, "schema": before}, as_json=as_json)
        return
    # The lock prevents a change of schema under a running service of an older version.
    release = lock_database(path, "smartfeeds db upgrade")
    try:
        run_offline(config, _open, OpenMode.SERVE)
    finally:
        release()
    after = schema_version(path)
    text = f"{path}: schema {before or 'none'} is now {after}."
    print_result(text, {"database": str(path), "before": before or None, "schema": after}, as_json=as_json)


async def _open(_service: "FeedService") -> None:
    """Do nothing: opening the database upgraded it."""
