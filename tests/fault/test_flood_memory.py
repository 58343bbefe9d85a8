"""Memory after floods is bounded: a first round of all floods adds less than 64 MiB, a second less than 32 MiB more.

The run sets `REST_FACTOR` to 0, so that the floods come without pauses: the test is faster, and no rest thins out what
is in memory at once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRST_KIB = 64 * 1024
AGAIN_KIB = 32 * 1024


def test_memory_after_all_floods_is_bounded_and_hardly_grows_in_a_second_round(tmp_path: Path) -> None:
    """In a process of its own, where nothing else allocates. [xep-map 246] [CAM-012]"""
    command = (sys.executable, "-m", "support.flood_memory", str(tmp_path), "2")
    paths = os.pathsep.join((str(ROOT / "component"), str(ROOT / "tests")))
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)

    before_kib, first_kib, second_kib = json.loads(run.stdout.splitlines()[-1])
    print(f"{before_kib} KiB, after the floods {first_kib}, after the same floods {second_kib}")
    assert first_kib - before_kib < FIRST_KIB
    assert second_kib - first_kib < AGAIN_KIB
