"""Addresses of stores: `sqlite:///relative.db`, `sqlite:////absolute.db`, `memory:`."""

MEMORY = "memory:"
_SQLITE = "sqlite:///"


def database_path(url: str) -> str | None:
    """The path of the database that an address names, None for the store in memory. Raises ValueError for another."""
    if url == MEMORY:
        return None
    if url.startswith(("postgresql:", "postgres:")):
        raise ValueError("PostgreSQL is not served by this version: use sqlite:///FILE")
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith(":") or "?" in path or "\0" in path:
        raise ValueError(
            f'must look like sqlite:///./smartfeeds.db or sqlite:////var/lib/smartfeeds/feeds.db, not "{url}"'
        )
    return path
