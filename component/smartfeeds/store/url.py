"""Opening a store by its address: `sqlite:///relative.db`, `sqlite:////absolute.db`, `memory:`."""

from pathlib import Path

from smartfeeds.errors import ConfigError
from smartfeeds.store.base import Indexer, Store
from smartfeeds.store.memory import MemoryStore
from smartfeeds.store.sqlite import SqliteStore

_SQLITE = "sqlite:///"


def open_store(url: str, indexer: Indexer) -> Store:
    """The store of this address, not opened yet. `indexer` reads what views filter by from payloads.

    Raises ConfigError for an address that names no store.
    """
    if url == "memory:":
        return MemoryStore(indexer)
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith(":") or "?" in path or "\0" in path:
        raise ConfigError(f"store.url: {url!r} is not sqlite:///relative.db, sqlite:////absolute.db or memory:")
    return SqliteStore(Path(path), indexer)
