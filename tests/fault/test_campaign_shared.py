"""Short versions of the campaigns with several processes on one database, and the control that must fail."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from campaign.checker import Rule
from campaign.pieces import Piece
from campaign.service import Preload
from campaign.shared import ARRANGEMENTS, shared_piece
from support.postgres import PostgresServer, running_postgres
from support.servers import TestServer


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A PostgreSQL of this module, which faults kill."""
    with running_postgres(durable=True) as server:
        yield server


async def run(
    preload: Preload,
    database: PostgresServer,
    server: TestServer,
    folder: Path,
    seed: int,
    faults: Sequence[str],
    variant: str = "",
    defect: str = "",
) -> Piece:
    """A piece with few writes."""
    return await shared_piece(
        *(preload, database, server, server.take_name(), folder, seed, faults, ARRANGEMENTS[variant], defect),
        pause_s=0.2,
        write_pause_s=0.4,
    )


def check(piece: Piece) -> None:
    """The processes kept the promise together, and notified, and were written to."""
    print(piece.verdict.counts, piece.verdict.recoveries)
    assert (piece.problems, piece.verdict.findings) == ((), ())
    assert piece.verdict.counts["acknowledged"] > 0
    assert piece.verdict.counts["pushes"] > 0
    assert piece.notes["mark_writes"] > 0


async def test_two_processes_take_over_from_each_other(
    preload: Preload, database: PostgresServer, ejabberd: TestServer, tmp_path: Path
) -> None:
    """[CAM-001] [CAM-002] [CAM-007] [CAM-033] [CAM-034] [CAM-037] [CAM-052] [CAM-055] With a partition from both."""
    piece = await run(preload, database, ejabberd, tmp_path / "run", 20271, ["kill", "stop-long", "hold-both"])
    check(piece)
    assert {"takeover after kill", "takeover after pause longer than the lease"} <= piece.verdict.recoveries.keys()


async def test_standby_takes_the_link_after_a_kill_of_the_active_process(
    preload: Preload, database: PostgresServer, prosody: TestServer, tmp_path: Path
) -> None:
    """[CAM-053] [CAM-054] Prosody accepts one link; then PostgreSQL is restarted."""
    faults = ["kill", "kill", "restart-database"]
    check(await run(preload, database, prosody, tmp_path / "run", 20272, faults, "prosody"))


async def test_processes_without_ownership_are_seen(
    preload: Preload, database: PostgresServer, ejabberd: TestServer, tmp_path: Path
) -> None:
    """[CAM-036] Each process sends every notification; the marks are written without locks."""
    piece = await run(preload, database, ejabberd, tmp_path / "run", 20274, ["cut-link"], defect="without_ownership")
    assert Rule.TAKEOVER in piece.verdict.rules
    assert any("without the lock of the shard" in problem for problem in piece.problems)
