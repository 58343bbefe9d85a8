"""Short versions of the campaign with failovers of PostgreSQL."""

from pathlib import Path

from campaign.checker import Rule
from campaign.failover import failover_piece
from campaign.power_postgres import postgres_power_piece
from campaign.service import Preload


async def test_failover_to_a_synchronous_standby_loses_nothing(preload: Preload, tmp_path: Path) -> None:
    """[CAM-001] [CAM-011] [CAM-020] [CAM-054] The primary is killed."""
    piece = await failover_piece(preload, tmp_path / "run", 20262, 1, "synchronous")
    assert (piece.problems, piece.verdict.findings) == ((), ())
    assert list(piece.verdict.recoveries) == ["failover"]


async def test_failover_to_an_asynchronous_standby_that_is_behind_loses_writes(
    preload: Preload, tmp_path: Path
) -> None:
    """[CAM-020] [CAM-021] [CAM-036] The known loss of this setting of PostgreSQL; the checker must show it."""
    piece = await failover_piece(preload, tmp_path / "run", 20263, 1, defect="asynchronous")
    assert Rule.LOST in piece.verdict.rules


async def test_power_cuts_of_postgresql_lose_nothing(preload: Preload, tmp_path: Path) -> None:
    """[CAM-003] [CAM-051] The data is on a file system whose unsynced pages are gone after each cut."""
    piece = await postgres_power_piece(preload, tmp_path / "run", 20266, 2)
    assert (piece.problems, piece.verdict.findings) == ((), ())
    assert piece.verdict.counts["acknowledged"] > 0
    assert piece.verdict.counts["faults"] == 2
