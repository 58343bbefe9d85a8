"""Taking features away in a copy with `tools/without`: nothing else names them, and the types fit."""

import subprocess
import sys
from pathlib import Path

# A small feature, one with tables, and one that six others need.
QUICK = ("doctor", "bot", "callbacks")


def fill_cache(root: Path) -> None:
    """Checks all types. The cache of mypy makes the check of each copy short."""
    subprocess.run([sys.executable, "-m", "mypy"], cwd=root, check=True)


def check_without(feature: str, root: Path) -> None:
    run = subprocess.run([root / "tools/without", feature], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, [f"without {feature}: everything else works"]), run
