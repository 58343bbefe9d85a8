"""Servers in a federation."""

from collections.abc import Iterator

import pytest

from support.federation import Country, run_country


@pytest.fixture(scope="session")
def country(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Country]:
    """The servers of this test process."""
    yield from run_country(tmp_path_factory.mktemp("federation"))
