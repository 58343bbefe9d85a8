"""`smartfeeds backup` and `smartfeeds db copy`."""

from datetime import UTC, datetime
from pathlib import Path

import click

from smartfeeds.cli.common import FILE, config_option, read_settings
from smartfeeds.console import print_out
from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import ConfigError
from smartfeeds.features.backup.addresses import open_source, open_target, store_address, with_password
from smartfeeds.features.backup.backup import copy_database
from smartfeeds.features.backup.copying import copy_store
from smartfeeds.features.backup.digests import digest_of
from smartfeeds.store.file_folder import copy_files, folder_of
from smartfeeds.store.sqlite_file import schema_version
from smartfeeds.terminal import progress_bar, step_bars


def with_copy(command: click.Command) -> click.Command:
    """Return `smartfeeds db` with its command `copy`."""
    assert isinstance(command, click.Group)  # `extends` names a group of the kernel
    command.add_command(copy)
    return command


@click.command("copy")
@click.argument("source", metavar="FROM", type=store_address)
@click.argument("target", metavar="TO", type=store_address)
@click.option("--password-file", type=FILE, help="The file with the password of the PostgreSQL database.")
def copy(source: StoreAddress, target: StoreAddress, password_file: Path | None) -> None:
    """Copy everything from the database FROM into the new or empty database TO: addresses as in store.url.

    Stop the service first. All numbers and times are copied, so the cursors of followers stay valid. A copy that was
    interrupted continues when the command runs again. At the end the digests of both databases are compared.
    """
    if source.name == target.name:
        raise click.UsageError("FROM and TO are the same database; name another target")
    ends = [with_password(address, password_file) for address in (source, target)]
    with step_bars() as show, open_source(ends[0]) as from_store, open_target(ends[1]) as to_store:
        tables = copy_store(from_store, to_store, source.name, show)
    rows = sum(table.rows for table in tables)
    print_out(f"Copied {rows} rows of {len(tables)} tables to {target.name}. Both have the sha256 {digest_of(tables)}.")
    folder = folder_of(Path(source.path)) if source.path else None
    if folder is not None and folder.is_dir():
        print_out(f"Uploaded files are not copied. Set store.files to {folder.absolute()}, or to a copy of it.")


@click.command("backup")
@click.argument("file", type=FILE)
@config_option
def backup_command(file: Path, config: Path | None) -> None:
    """Copy the database to the new FILE, and uploaded files to the folder FILE-files, while the service may be running.

    The copy is a consistent state. smartfeeds restore checks it and puts it in the place of the database.
    """
    store = read_settings(config).store
    if store.is_shared:
        raise ConfigError(
            f"the database {store.address.name} is PostgreSQL; back it up with pg_dump or base "
            "backups (docs/postgres.md)"
        )
    path = store.path
    schema_version(path)  # raises if the file is not a database of smartfeeds
    former = next((path for path in (file, folder_of(file)) if path.exists()), None)
    if former is not None:
        example = file.with_name(f"{file.stem}-{datetime.now(UTC):%Y-%m-%d}{file.suffix}")
        raise click.UsageError(f"{former} exists already; name another file, for example {example}")
    with progress_bar() as progress:
        task = progress.add_task("pages copied", total=None)
        copy_database(path, file, lambda done, total: progress.update(task, completed=done, total=total))
    # After the database: a file is stored before its row, so the other order would miss files that come meanwhile.
    count = copy_files(store.files_folder, folder_of(file))
    also = f" and {folder_of(file)} ({count} files)" if count else ""
    print_out(f"Wrote {file} ({file.stat().st_size} bytes){also}.")
