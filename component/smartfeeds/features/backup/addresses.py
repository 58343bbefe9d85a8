"""Addresses of stores as arguments of commands. psycopg is imported only for PostgreSQL."""

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.core.stores import NO_PSYCOPG, StoreAddress, parse_store
from smartfeeds.errors import ConfigError

if TYPE_CHECKING:
    from smartfeeds.features.backup.copying import CopySource, CopyTarget


def store_address(text: str) -> StoreAddress:
    """Return the database that an argument names. Raises BadParameter."""
    try:
        address = parse_store(text)
    except ValueError as error:
        raise click.BadParameter(
            str(error).replace("set store.password_file", "name it with --password-file")
        ) from None
    return replace(address, path=str(Path(address.path).absolute())) if address.path else address


def with_password(address: StoreAddress, password_file: Path | None) -> StoreAddress:
    """Return the address with the password of a file, if it is one of PostgreSQL. Raises ConfigError."""
    if password_file is None or not address.is_shared:
        return address
    try:
        return replace(address, password=password_file.read_text("utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot read {password_file}: {reason}") from None


def open_source(address: StoreAddress) -> "AbstractContextManager[CopySource]":
    """Return the database to read, which no service may use. Raises ConfigError, StoreError."""
    from smartfeeds.features.backup.copy_sqlite import sqlite_source

    if not address.is_shared:
        return sqlite_source(Path(address.path))
    try:
        from smartfeeds.features.backup.copy_postgres import postgres_source
    except ImportError:
        raise ConfigError(NO_PSYCOPG) from None
    return postgres_source(address)


def open_target(address: StoreAddress) -> "AbstractContextManager[CopyTarget]":
    """Return the database to write, which no service may use. Raises ConfigError, StoreError."""
    from smartfeeds.features.backup.copy_sqlite import sqlite_target

    if not address.is_shared:
        return sqlite_target(Path(address.path))
    try:
        from smartfeeds.features.backup.copy_postgres import postgres_target
    except ImportError:
        raise ConfigError(NO_PSYCOPG) from None
    return postgres_target(address)
