"""Each feature is one folder and one line: without them nothing names it, and the types fit."""

import subprocess
import sys
from pathlib import Path

import pytest

from smartfeeds.features import FEATURES


@pytest.fixture(scope="module", autouse=True)
def checked(root: Path) -> None:
    """The cache of mypy, which makes the check of each copy short."""
    subprocess.run([sys.executable, "-m", "mypy"], cwd=root, check=True)


@pytest.mark.parametrize("feature", [feature.name for feature in FEATURES])
def test_feature_can_be_taken_away(feature: str, root: Path) -> None:
    run = subprocess.run([root / "tools/without", feature], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, [f"without {feature}: everything else works"]), run
