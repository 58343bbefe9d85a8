"""`smartfeeds restore`: checks a backup and puts it in the place of the database."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import FILE, config_option, json_option, read_settings
from smartfeeds.console import exit_failed_if, print_json, print_out
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from smartfeeds.app.config_store import StoreSettings
    from smartfeeds.features.backup.restoring import BackupContents


@click.command("restore")
@click.argument("file", type=FILE)
@click.option("--check", is_flag=True, help="Only check the backup and print its contents.")
@click.option("--replace", is_flag=True, help="Rename the present database to NAME.before-restore.")
@config_option
@json_option
def restore_command(file: Path, config: Path | None, *, check: bool, replace: bool, as_json: bool) -> None:
    """Check the backup FILE, and put it and its uploaded files in the place of the database.

    Stop the service first. The command reads the whole backup, and prints its feeds with the number of items, the last
    change and a digest. With --check nothing is changed, and the service may be running. The command ends with code 1
    if the backup lacks uploaded files.
    """
    from smartfeeds.features.backup.restoring import check_backup, restore_backup
    from smartfeeds.terminal import step_bars

    store = None if check else _file_store(config)
    if not file.exists():
        raise StoreError(f"the backup {file} does not exist; name a file that smartfeeds backup has written")
    with step_bars() as show:
        contents = check_backup(file, show)
    if as_json:
        print_json(_to_json(contents))
    else:
        _print(file, contents)
    if store is not None:
        former = restore_backup(file, store.path, store.files_folder, replace=replace)
        if not as_json:
            for path in former:
                print_out(f"The former data is {path}.")
            print_out(f"Restored {store.path}. The next start of smartfeeds run upgrades it if necessary.")
    exit_failed_if(contents.missing_files)


def _file_store(config: Path | None) -> "StoreSettings":
    """Return the settings of the database, which must be a file. Raises ConfigError."""
    store = read_settings(config).store
    if store.is_shared:
        raise ConfigError(
            f"the database {store.address.name} is PostgreSQL; copy the backup into an empty "
            "database with smartfeeds db copy (docs/postgres.md)"
        )
    return store


def _to_json(contents: "BackupContents") -> dict[str, object]:
    from smartfeeds.features.backup.digests import digest_of

    return {
        "schema": contents.schema,
        "sha256": digest_of(contents.tables),
        "feeds": [
            {
                "node": feed.name,
                "items": feed.digest.items,
                "modified": format_datetime(feed.last_modified_us),
                "sha256": feed.digest.sha256,
            }
            for feed in contents.feeds
        ],
        "missing_files": contents.missing_files,
    }


def _print(file: Path, contents: "BackupContents") -> None:
    from smartfeeds.features.backup.digests import digest_of

    rows = sum(table.rows for table in contents.tables)
    print_out(f"{file}: no damage, schema {contents.schema}, {rows} rows, sha256 {digest_of(contents.tables)}.")
    for feed in contents.feeds:
        changed = format_datetime(feed.last_modified_us) if feed.digest.items else "never"
        print_out(f"{feed.name}: {feed.digest.items} items, last change {changed}, sha256 {feed.digest.sha256[:16]}")
    for digest in contents.missing_files:
        print_out(f"The uploaded file {digest} is missing.")
