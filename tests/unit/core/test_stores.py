"""Which database file a store address names."""

import pytest

from smartfeeds.core.stores import database_path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///feeds.db", "feeds.db"),
        ("sqlite:///./feeds.db", "./feeds.db"),
        ("sqlite:///var/lib/feeds.db", "var/lib/feeds.db"),
        ("sqlite:////var/lib/feeds.db", "/var/lib/feeds.db"),
        ("sqlite:///a%20b#c.db", "a%20b#c.db"),
    ],
)
def test_sqlite_address_names_a_path(url: str, path: str) -> None:
    assert database_path(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "",
        "feeds.db",
        "memory",
        "memory:",
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
def test_other_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///"):
        database_path(url)
