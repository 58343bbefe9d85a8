"""Memory that a burst has freed is returned to the system."""

import json
import os
import subprocess
import sys
from pathlib import Path

from smartfeeds.cli import run

ROOT = Path(__file__).parents[2]


def test_freed_memory_is_returned_after_a_burst() -> None:
    """[xep-map 246] In a process of its own, where nothing else allocates."""
    paths = os.pathsep.join((str(ROOT / "component"), str(ROOT / "tests")))
    command = (sys.executable, "-m", "support.freed_memory")
    result = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    before, burst, after = json.loads(result.stdout)
    assert burst - before > run.GROWTH_BYTES
    assert after - before < run.GROWTH_BYTES
