"""Servers in a federation."""

from collections.abc import AsyncIterator, Iterator
from importlib import import_module

import pytest

from smartfeeds.core.backoff import Backoff
from support.federation import Country, Federation, run_country


@pytest.fixture(scope="session")
def country(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Country]:
    """The servers of this test process."""
    yield from run_country(tmp_path_factory.mktemp("federation"))


@pytest.fixture
async def pair(country: Country) -> AsyncIterator[Federation]:
    """Two Prosody servers, `a` and `b`."""
    async with Federation(country, "a", "b") as federation:
        yield federation


@pytest.fixture
async def mixed(country: Country) -> AsyncIterator[Federation]:
    """Prosody `a` and ejabberd `e`."""
    async with Federation(country, "a", "e") as federation:
        yield federation


@pytest.fixture
async def ring(country: Country) -> AsyncIterator[Federation]:
    """Three Prosody servers, `a`, `b` and `c`."""
    async with Federation(country, "a", "b", "c") as federation:
        yield federation


@pytest.fixture(params=["ab", "ae", "ea"])
async def two(country: Country, request: pytest.FixtureRequest) -> AsyncIterator[Federation]:
    """Two servers, `near` and `far`: Prosody twice, and Prosody with ejabberd both ways."""
    async with Federation(country, *request.param) as federation:
        yield federation


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mirrors of services in this process try again soon, and may look often."""
    monkeypatch.setattr("smartfeeds.features.mirrors.mirror_state.BACKOFF", Backoff(first_s=0.1, longest_s=300.0))
    monkeypatch.setattr(import_module("smartfeeds.client.follow"), "BACKOFF", Backoff(first_s=0.1, longest_s=60.0))
    monkeypatch.setattr("smartfeeds.features.mirrors.mirror.LEAST_EVERY_S", 0.1)
