"""Addresses of stores: `sqlite:///FILE`, `postgresql://USER@HOST/DATABASE`.

The address of a PostgreSQL database is a connection URI of libpq, which may name several hosts (PostgreSQL 15 manual,
section 34.1.1.2). It never contains a password, so it may appear in logs and messages.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl

NO_PSYCOPG: Final = "PostgreSQL needs psycopg; install it with: pip install 'psycopg[binary]'"
FILES_SUFFIX = "-files"  # of the folder of uploaded files beside a database file
_SQLITE = "sqlite:///"
_POSTGRES = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#\s]*)(?P<password>:[^@/?#\s]*)?@)?(?P<hosts>[^@/?#\s]*)/(?P<database>[^/?#\s]+)"
    r"(?:\?(?P<options>[^#\s]*))?"
)
_SECRET_OPTIONS = {"password", "sslpassword"}
# A password may contain every character of an address that is not valid, so it ends at the last "@".
_PASSWORD_IN = re.compile(r"(://[^:/@?#\s]*:)\S*@|((?:ssl)?password=)[^&#\s\"']*", re.IGNORECASE)
# With several hosts libpq would otherwise use the first that answers, which may be a standby.
_PRIMARY = "target_session_attrs=read-write"


class StoreEngine(Enum):
    """The database program behind a store."""

    SQLITE = "SQLite"
    POSTGRES = "PostgreSQL"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The database that an address names.

    `url` is the connection URI for libpq, empty for SQLite; `path` is the file of SQLite, empty for PostgreSQL.
    `password` comes from a file, and is empty if libpq finds one by itself (`PGPASSFILE`, `PGPASSWORD`).
    """

    engine: StoreEngine
    url: str = ""
    path: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_shared(self) -> bool:
        """Whether several processes may serve the database."""
        return self.engine is StoreEngine.POSTGRES

    @property
    def name(self) -> str:
        """The address for messages: the path, or the URI without its options."""
        return self.path or self.url.partition("?")[0]


def parse_store(url: str) -> StoreAddress:
    """Returns the database that `url` names. Raises ValueError, whose text contains no password."""
    if url.startswith(("postgresql:", "postgres:")):
        return _parse_postgres(url)
    return StoreAddress(StoreEngine.SQLITE, path=database_path(url))


def database_path(url: str) -> str:
    """Returns the path of the database file of SQLite. Raises ValueError for an address that is not of this form."""
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith(":") or "?" in path or "\0" in path:
        raise ValueError(
            "must look like sqlite:///./smartfeeds.db, sqlite:////var/lib/smartfeeds/feeds.db or "
            f'postgresql://smartfeeds@db.example.org/smartfeeds, not "{without_password(url)}"'
        )
    return path


def without_password(text: str) -> str:
    """Returns a text for messages and logs, without the passwords of the addresses in it."""
    return _PASSWORD_IN.sub(lambda match: f"{match[1]}***@" if match[1] else f"{match[2]}***", text)


def _parse_postgres(url: str) -> StoreAddress:
    match = _POSTGRES.fullmatch(url)
    if match is None:  # the text does not show the address: its password may be what makes it invalid
        raise ValueError(
            "must look like postgresql://smartfeeds@db.example.org/smartfeeds; several hosts are separated by commas, "
            "special characters are percent-encoded"
        )
    options = dict(parse_qsl(match["options"] or "", keep_blank_values=True))
    if match["password"] or not _SECRET_OPTIONS.isdisjoint(options):
        raise ValueError("must not contain a password; write the password to a file and set store.password_file")
    if "," in match["hosts"] and "target_session_attrs" not in options:
        url += f"{'&' if options else '?'}{_PRIMARY}"
    return StoreAddress(StoreEngine.POSTGRES, url=url)
