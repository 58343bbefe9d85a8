"""Short versions of the campaigns against the service, with fixed seeds, and negative controls that must fail.

`python -m campaign` runs the long versions. A seed that failed there becomes a test here.
"""

import time
from pathlib import Path

from campaign.cable import Cable
from campaign.checker import Rule, judge
from campaign.clients import Follower, Writer, new_session, walk
from campaign.clock import YEAR_S, clock_piece
from campaign.disk import disk_piece, full_disk_piece, slow_disk_piece
from campaign.history import History, Kind, Status, read_history
from campaign.kill import kill_piece
from campaign.moved_clock import VARIABLE, MovedClock
from campaign.pieces import Piece
from campaign.power import power_piece
from campaign.pushes import SUBSCRIBER, notified
from campaign.service import Preload, Service
from support.servers import TestServer


def check(piece: Piece, faults: int) -> None:
    """The service kept its promise, under as many faults as were asked for, and was written to."""
    print(piece.verdict.counts, piece.verdict.recoveries)
    assert piece.problems == ()
    assert piece.verdict.findings == ()
    assert piece.faults == faults
    assert piece.verdict.counts["acknowledged"] > 0
    assert len(read_history(piece.history)) > faults


async def test_killed_service_keeps_what_it_acknowledged(preload: Preload, prosody: TestServer, tmp_path: Path) -> None:
    """[CAM-001] [CAM-030] [CAM-031] [CAM-032] [CAM-033] [CAM-037] [CAM-050]"""
    piece = await kill_piece(preload, prosody, tmp_path / "run", 20261, 4)
    check(piece, 4)
    assert piece.verdict.counts["pushes"] > 0
    assert sum(map(len, piece.verdict.recoveries.values())) > 0


async def test_power_cuts_lose_nothing(preload: Preload, tmp_path: Path) -> None:
    """[CAM-003] [CAM-051] The database is on a file system whose unsynced pages are gone after each cut."""
    check(await power_piece(preload, tmp_path / "run", 20262, 3), 3)


async def test_power_cut_without_syncs_loses_what_was_acknowledged(preload: Preload, tmp_path: Path) -> None:
    """[CAM-036] With synchronous OFF the same cut and the same checker must report lost writes, or a database that
    cannot be read any more.
    """
    piece = await power_piece(preload, tmp_path / "run", 20263, 2, "without_sync")
    assert Rule.LOST in piece.verdict.rules or piece.problems


async def test_store_that_acknowledges_before_its_commit_is_seen(
    preload: Preload, prosody: TestServer, tmp_path: Path
) -> None:
    """[CAM-036] Writes are acknowledged and committed later; a kill in between loses them."""
    piece = await kill_piece(preload, prosody, tmp_path / "run", 20273, 3, "acknowledges_before_commit")
    assert Rule.LOST in piece.verdict.rules


async def test_write_errors_are_answers_and_leave_the_service_working(preload: Preload, tmp_path: Path) -> None:
    """[CAM-004] [CAM-056] A write, and then a sync, fails once; then all of them fail for a while."""
    cases = [
        ("pwrite64", "EIO", "4"),
        ("pwrite64", "ENOSPC", "5+"),
        ("fdatasync", "EIO", "2"),
        ("fdatasync", "EIO", "2+"),
    ]
    piece = await disk_piece(preload, tmp_path / "run", 20265, cases)
    check(piece, len(cases))
    assert piece.notes["error_answers"] >= 2, "errors that stay reach the client"


async def test_full_disk_is_survived_without_loss(preload: Preload, tmp_path: Path) -> None:
    """[CAM-005] [CAM-056] A real file system without room; the service goes on when there is room again."""
    piece = await full_disk_piece(preload, tmp_path / "run", 20266, 2)
    check(piece, 2)
    assert piece.verdict.counts["unknown"] >= 2


async def test_kill_while_syncs_are_slow_loses_nothing(preload: Preload, tmp_path: Path) -> None:
    """[CAM-006] Requests wait for the disk when the service is killed."""
    check(await slow_disk_piece(preload, tmp_path / "run", 20269, 2), 2)


async def test_clock_that_jumps_changes_no_order(preload: Preload, prosody: TestServer, tmp_path: Path) -> None:
    """[CAM-009] [CAM-057] Jumps of an hour and ten years in both directions, and small steps."""
    check(await clock_piece(preload, prosody, tmp_path / "run", 20267, 20), 20)


async def test_notification_that_waits_is_not_too_old_after_the_clock_was_set_forward(
    preload: Preload, prosody: TestServer, tmp_path: Path
) -> None:
    """[CAM-057] [CAM-082] Seed 8004 of the campaign: ten years forward between a commit and its notification.

    The link to the server is cut meanwhile, so that the notification waits for certain.
    """
    moved = MovedClock(tmp_path / "clock")
    with History(tmp_path / "history.jsonl", time.monotonic) as history:
        async with notified(prosody, history) as wire, Cable(wire.relay.port) as link, new_session() as session:
            address = {"jid": prosody.take_name(), "port": link.port}
            service = Service(preload, tmp_path / "run", environment={VARIABLE: str(moved.path)}, component=address)
            await service.prepare(subscriber=f"{SUBSCRIBER}@localhost")
            await service.start()
            await wire.relay.ready()
            writer = Writer(service, history, session, "w0", 8004)
            assert await writer.publish("first") is Status.OK
            await wire.until(1)
            await link.cut()
            assert await writer.publish("waits") is Status.OK
            moved.move(10 * YEAR_S)
            await link.heal()
            items = await walk(service, history, session)
            await wire.until(items[-1].key_us)
            service.end()
    assert [event.item for event in history.events if event.kind is Kind.PUSH] == ["first", "waits"]


async def test_empty_page_behind_a_deleted_item_is_seen(preload: Preload, tmp_path: Path) -> None:
    """[CAM-036] A follower that takes such a page for the end lacks what follows: the service has more."""
    with History(tmp_path / "history.jsonl", time.monotonic) as history:
        service = Service(preload, tmp_path / "run", defect="empty_page_after_deleted_cursor")
        await service.prepare()
        await service.start()
        async with new_session() as session:
            writer = Writer(service, history, session, "w0", 20276)
            follower = Follower(service, history, session, "f0")
            assert await writer.publish("deleted") is Status.OK
            await follower.catch_up()
            assert await writer.retract("deleted") is Status.OK
            assert await writer.publish("new") is Status.OK
            await follower.catch_up()
        service.end()
    assert Rule.FOLLOWER in judge(history.events).rules


async def test_keys_from_the_clock_alone_are_seen(preload: Preload, prosody: TestServer, tmp_path: Path) -> None:
    """[CAM-036] Without the comparison with the last key a clock that steps back breaks the order."""
    piece = await clock_piece(preload, prosody, tmp_path / "run", 20268, 20, "keys_from_clock")
    assert Rule.KEYS in piece.verdict.rules
