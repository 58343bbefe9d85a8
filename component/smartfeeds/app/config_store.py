"""The section `[store]`: the database, and the folder of uploaded files (docs/operator.md, docs/postgres.md)."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, PrivateAttr, model_validator

from smartfeeds.app.config_types import FOLDER, FilePath, SettingsSection, StoreUrl
from smartfeeds.core.stores import FILES_SUFFIX, StoreAddress, parse_store
from smartfeeds.errors import ConfigError

FILES = "smartfeeds-files"  # the folder of uploaded files beside the configuration, if the database is elsewhere
_STATUS_SUFFIX = ".status"


class StoreSettings(SettingsSection):
    """The location of the database. A relative path is relative to the folder of the configuration file."""

    url: StoreUrl = "sqlite:///./smartfeeds.db"
    password_file: FilePath | None = None
    files: FilePath | None = None
    lease_s: Annotated[float, Field(ge=1, le=60)] = 5.0
    _folder: Path = PrivateAttr(default_factory=lambda: FOLDER.get())

    @model_validator(mode="after")
    def _password_is_readable(self) -> "StoreSettings":
        if self.password_file is not None:
            if not self.is_shared:
                raise ValueError("password_file is for PostgreSQL; remove it, or set url to a PostgreSQL database")
            self.read_password()
        return self

    def read_password(self) -> str:
        """Returns the password of the database, empty without `password_file`. Raises ValueError if the file cannot be
        read."""
        if self.password_file is None:
            return ""
        try:
            password = self.password_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ValueError(f"cannot read password_file {self.password_file}: {reason}") from None
        if not password:
            raise ValueError(f"password_file {self.password_file} is empty; write the password of the database to it")
        return password

    @property
    def is_shared(self) -> bool:
        """Whether several processes may serve the database."""
        return parse_store(self.url).is_shared

    @property
    def address(self) -> StoreAddress:
        """The database, with its absolute path or its password. Raises ConfigError if the password cannot be read."""
        address = parse_store(self.url)
        if not address.is_shared:
            return replace(address, path=str(self.path.absolute()))
        try:
            return replace(address, password=self.read_password())
        except ValueError as error:
            raise ConfigError(f"store: {error}") from None

    @property
    def path(self) -> Path:
        """The database file. Raises ConfigError for a database of PostgreSQL."""
        address = parse_store(self.url)
        if address.is_shared:
            raise ConfigError(f"the database {address.name} is no file; this works with SQLite only")
        return self._folder / address.path

    @property
    def files_folder(self) -> Path:
        """The folder of uploaded files. By default it is beside a database of SQLite, or beside the configuration."""
        if self.files is not None:
            return self.files
        if self.is_shared:
            return self._folder / FILES
        return self.path.with_name(f"{self.path.name}{FILES_SUFFIX}")

    @property
    def status_file(self) -> Path | None:
        """The file of the state of the service if `run --status` names none: beside a database of SQLite, which one
        process serves. None for PostgreSQL."""
        return None if self.is_shared else self.path.with_name(f"{self.path.name}{_STATUS_SUFFIX}")

    @property
    def warning(self) -> str:
        """A warning if the database does not exist, but one of its name is in the working directory; else empty."""
        # In 0.1.0 a relative path was relative to the working directory. This check can go in the second release
        # after it, when databases have been moved.
        name = parse_store(self.url).path
        if not name or self.path.exists() or not Path(name).exists():
            return ""
        return (
            f"store.url: the database {self.path} does not exist, but {Path(name).absolute()} does; a relative path is "
            "relative to the configuration file: move the database there or set an absolute path, if it is the one "
            "you mean"
        )
