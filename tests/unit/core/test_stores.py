"""Which database a store address names."""

import pytest

from smartfeeds.core.stores import StoreAddress, StoreEngine, parse_store


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
    address = parse_store(url)

    assert address == StoreAddress(StoreEngine.SQLITE, path=path)
    assert (address.name, address.is_shared) == (path, False)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://feeds@db.example/feeds", "postgresql://feeds@db.example/feeds"),
        ("postgres://db.example:5433/feeds?sslmode=verify-full", "postgres://db.example:5433/feeds"),
        ("postgresql:///feeds?host=/run/postgresql", "postgresql:///feeds"),
        ("postgresql://feeds@[::1]:5432/feeds", "postgresql://feeds@[::1]:5432/feeds"),
        ("postgresql://a,b/feeds?target_session_attrs=any", "postgresql://a,b/feeds"),
    ],
)
def test_postgres_address_is_passed_on(url: str, name: str) -> None:
    address = parse_store(url)

    assert address == StoreAddress(StoreEngine.POSTGRES, url=url)
    assert (address.name, address.is_shared) == (name, True)


@pytest.mark.parametrize(
    ("url", "sign"), [("postgresql://a,b:2/f", "?"), ("postgresql://a,b:2/f?sslmode=require", "&")]
)
def test_several_hosts_mean_the_primary(url: str, sign: str) -> None:
    """[OPS-094]"""
    assert parse_store(url).url == f"{url}{sign}target_session_attrs=read-write"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "feeds.db",
        "memory",
        "memory:",
        "mysql://localhost/feeds",
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
        parse_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a:hush@db.example/feeds",
        "postgresql://db.example/feeds?password=hush",
        "postgresql://db.example/feeds?sslmode=require&sslpassword=hush",
        "postgresql://a:hush@@db.example/feeds",
        "postgresql://a:hush@db.example",
        "postgresql:feeds?password=hush",
        "POSTGRESQL://a:hush@db.example/feeds",
        "mysql://a:hu/sh@hush@db.example/feeds",
        "mysql://db.example/feeds?password=hush",
    ],
)
def test_password_in_an_address_is_refused_and_not_shown(url: str) -> None:
    """[OPS-094]"""
    with pytest.raises(ValueError, match=r"postgresql://|must not contain a password") as caught:
        parse_store(url)

    assert "hush" not in str(caught.value)
