"""Short versions of the campaigns with PostgreSQL: kills of the server, and failovers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.checker import Rule
from campaign.failover import failover_piece
from campaign.service import Preload

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def preload() -> Iterator[Preload]:
    """A process that forks services."""
    with Preload() as process:
        yield process


async def test_killed_database_keeps_what_was_acknowledged(preload: Preload, tmp_path: Path) -> None:
    """[CAM-001] [CAM-054] The service stays, and writes again when the database is back."""
    piece = await failover_piece(preload, tmp_path / "run", 20261, 2)
    assert (piece.problems, piece.verdict.findings) == ((), ())
    assert piece.verdict.counts["acknowledged"] > 0 and piece.verdict.recoveries


async def test_failover_to_a_synchronous_standby_loses_nothing(preload: Preload, tmp_path: Path) -> None:
    """[CAM-011] [CAM-020] [CAM-054]"""
    piece = await failover_piece(preload, tmp_path / "run", 20262, 1, "synchronous")
    assert (piece.problems, piece.verdict.findings) == ((), ())
    assert list(piece.verdict.recoveries) == ["failover"]


async def test_failover_to_an_asynchronous_standby_that_is_behind_loses_writes(
    preload: Preload, tmp_path: Path
) -> None:
    """[CAM-020] [CAM-021] [CAM-036] The known loss of this setting of PostgreSQL; the checker must show it."""
    piece = await failover_piece(preload, tmp_path / "run", 20263, 1, defect="asynchronous")
    assert Rule.LOST in piece.verdict.rules
