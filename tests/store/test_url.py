"""Which store an address names."""

from pathlib import Path

import pytest

from smartfeeds.errors import ConfigError
from smartfeeds.store.memory import MemoryStore
from smartfeeds.store.sqlite import SqliteStore
from smartfeeds.store.url import open_store
from store.values import read_payload


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///feeds.db", "feeds.db"),
        ("sqlite:///./feeds.db", "feeds.db"),
        ("sqlite:///var/lib/feeds.db", "var/lib/feeds.db"),
        ("sqlite:////var/lib/feeds.db", "/var/lib/feeds.db"),
        ("sqlite:///a%20b#c.db", "a%20b#c.db"),
    ],
)
def test_open_store_sqlite_address_names_a_path(url: str, path: str) -> None:
    store = open_store(url, read_payload)
    assert isinstance(store, SqliteStore)
    assert store.path == Path(path)


def test_open_store_memory() -> None:
    assert isinstance(open_store("memory:", read_payload), MemoryStore)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "feeds.db",
        "memory",
        "memory:x",
        "postgresql://localhost/feeds",
        "SQLITE:///a.db",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://feeds.db",
        "sqlite:///:memory:",
        "sqlite:///a?b=c",
        "sqlite:///a\0b",
    ],
)
def test_open_store_other_address_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError):
        open_store(url, read_payload)


async def test_relative_path_is_relative_to_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///./feeds.db", read_payload)
    await store.open()
    await store.close()
    assert [one.name for one in _files(tmp_path)] == ["feeds.db"]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())
