"""The watchdog ends a process whose event loop hangs."""

import subprocess
import sys
from pathlib import Path

from smartfeeds.watchdog import EXIT_CODE, Watchdog
from support.waiting import HANG_S

PACKAGE = Path(__file__).parents[2] / "component"


def test_loop_that_turns_is_left_alone() -> None:
    """[TOP-031]"""
    hangs: list[int] = []
    watchdog = Watchdog(3, hangs.append)
    for _ in range(10):
        watchdog.tick()
        watchdog.tick()
        watchdog.turn()
    assert hangs == []
    for _ in range(3):
        watchdog.tick()
    assert hangs == [3]


HANGS = """
import asyncio, time
from smartfeeds.cli.run import _watched

async def serve():
    async with _watched(1):
        await asyncio.sleep(0)
        time.sleep(600)

asyncio.run(serve())
"""


def test_process_that_hangs_ends_with_the_reason() -> None:
    """[TOP-031] As `smartfeeds run` watches its event loop."""
    process = subprocess.run(
        [sys.executable, "-c", HANGS],
        env={"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert process.returncode == EXIT_CODE and "has not turned for 1 s" in process.stderr


def test_watchdog_stops_in_order() -> None:
    watchdog = Watchdog(1_000)
    watchdog.start()
    watchdog.stop()
