"""`smartfeeds backup` and `smartfeeds db copy`."""

import re
from copy import copy as shallow_copy
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Final

import click

from smartfeeds.cli.common import FILE, config_option, json_option, read_settings
from smartfeeds.console import print_out, print_result
from smartfeeds.core.stores import StoreAddress
from smartfeeds.errors import ConfigError
from smartfeeds.features.backup.addresses import store_address

# The end of a name that `_free_name` or an operator has given: a date, and perhaps a number.
_DATED: Final = re.compile(r"(?:^|[-_. ])\d{4}-?\d{2}-?\d{2}(?:-\d{1,3})?$")


def with_copy(command: click.Command) -> click.Command:
    """Return `smartfeeds db` with its command `copy`."""
    assert isinstance(command, click.Group)  # `extends` names a group of the kernel
    group = shallow_copy(command)
    group.commands = {**command.commands, "copy": copy}
    return group


@click.command("copy")
@click.argument("source", metavar="FROM", type=store_address)
@click.argument("target", metavar="TO", type=store_address)
@click.option("--password-file", type=FILE, help="The file with the password of the PostgreSQL database.")
@json_option
def copy(source: StoreAddress, target: StoreAddress, password_file: Path | None, *, as_json: bool) -> None:
    """Copy everything from the database FROM into the new or empty database TO: addresses as in store.url.

    Stop the service first. All numbers and times are copied, so the cursors of followers stay valid. A copy that was
    interrupted continues when the command runs again. At the end the digests of both databases are compared.
    """
    from smartfeeds.features.backup.addresses import open_source, open_target, with_password
    from smartfeeds.features.backup.copying import copy_store
    from smartfeeds.features.backup.digests import digest_of
    from smartfeeds.store.file_folder import folder_of
    from smartfeeds.terminal import step_bars

    if source.name == target.name:
        raise click.UsageError("FROM and TO are the same database; name another target")
    ends = [with_password(address, password_file) for address in (source, target)]
    with step_bars() as show, open_source(ends[0]) as from_store, open_target(ends[1]) as to_store:
        tables = copy_store(from_store, to_store, source.name, show)
    rows = sum(table.rows for table in tables)
    digest = digest_of(tables)
    text = f"Copied {rows} rows of {len(tables)} tables to {target.name}. Both have the sha256 {digest}."
    result = {"target": target.name, "rows": rows, "tables": len(tables), "sha256": digest}
    print_result(text, result, as_json=as_json)
    folder = folder_of(Path(source.path)) if source.path else None
    if folder is not None and folder.is_dir() and not as_json:
        print_out(f"Uploaded files are not copied. Set store.files to {folder.absolute()}, or to a copy of it.")


@click.command("backup")
@click.argument("file", type=FILE)
@config_option
@json_option
def backup_command(file: Path, config: Path | None, *, as_json: bool) -> None:
    """Copy the database to the new FILE, and uploaded files to the folder FILE-files, while the service may be running.

    The copy is a consistent state. smartfeeds restore checks it and puts it in the place of the database.
    """
    from smartfeeds.features.backup.backup import copy_database
    from smartfeeds.store.file_folder import copy_files, folder_of
    from smartfeeds.store.sqlite_file import schema_version
    from smartfeeds.terminal import progress_bar

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
        raise click.UsageError(f"{former} exists already; name another file, for example {_free_name(file)}")
    with progress_bar() as progress:
        task = progress.add_task("pages copied", total=None)
        copy_database(path, file, lambda done, total: progress.update(task, completed=done, total=total))
    # After the database: a file is stored before its row, so the other order would miss files that come meanwhile.
    copied = copy_files(store.files_folder, folder_of(file))
    also = f" and {folder_of(file)} ({copied} files)" if copied else ""
    size_bytes = file.stat().st_size
    result = {
        "file": str(file),
        "bytes": size_bytes,
        "folder": str(folder_of(file)) if copied else None,
        "files": copied,
    }
    print_result(f"Wrote {file} ({size_bytes} bytes){also}.", result, as_json=as_json)


def _free_name(file: Path) -> Path:
    """Return a path beside a backup that does not exist: its name with the date of today, and then with a number.

    The date or number of the former name is replaced: people call a backup by the date in the first place.
    """
    from smartfeeds.store.file_folder import folder_of

    stem = _DATED.sub("", file.stem)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    numbers = chain(("",), map(str, count(2)))
    paths = (file.with_name("-".join(filter(None, (stem, today, number))) + file.suffix) for number in numbers)
    return next(path for path in paths if not path.exists() and not folder_of(path).exists())
