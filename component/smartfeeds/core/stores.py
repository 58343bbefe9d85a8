"""Addresses of stores: `sqlite:///relative.db`, `sqlite:////absolute.db`."""

_SQLITE = "sqlite:///"


def database_path(url: str) -> str:
    """Returns the path of the database file. Raises ValueError for an address that is not of this form."""
    if url.startswith(("postgresql:", "postgres:")):
        raise ValueError("PostgreSQL is not served by this version: use sqlite:///FILE")
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith(":") or "?" in path or "\0" in path:
        raise ValueError(
            f'must look like sqlite:///./smartfeeds.db or sqlite:////var/lib/smartfeeds/feeds.db, not "{url}"'
        )
    return path
