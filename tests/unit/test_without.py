"""Each feature is one folder and one line: three features here, the others in `tests/integration`."""

from pathlib import Path

import pytest

from support.without import QUICK, check_without, fill_cache


@pytest.fixture(scope="module", autouse=True)
def _cache(root: Path) -> None:
    fill_cache(root)


@pytest.mark.parametrize("feature", QUICK)
def test_feature_can_be_taken_away(feature: str, root: Path) -> None:
    check_without(feature, root)
