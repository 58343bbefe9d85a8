"""Opening a store by its address (`core.stores`)."""

from pathlib import Path

from smartfeeds.core.stores import database_path
from smartfeeds.errors import ConfigError
from smartfeeds.store.base import Indexer, OpenMode, Store
from smartfeeds.store.memory import MemoryStore
from smartfeeds.store.sqlite import SqliteStore


def open_store(url: str, indexer: Indexer, *, folder: Path = Path(), mode: OpenMode = OpenMode.SERVE) -> Store:
    """The store of this address, not opened yet. `indexer` reads what views filter by from payloads.

    A relative path is relative to `folder`. Raises ConfigError for an address that names no store.
    """
    try:
        path = database_path(url)
    except ValueError as error:
        raise ConfigError(f"store.url: {error}") from None
    return MemoryStore(indexer) if path is None else SqliteStore(folder / path, indexer, mode=mode)
