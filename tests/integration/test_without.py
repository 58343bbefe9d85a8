"""Each feature is one folder and one line, those that `tests/unit/test_without.py` leaves out."""

from pathlib import Path

import pytest

from smartfeeds.features import FEATURES
from support.without import QUICK, check_without, fill_cache


@pytest.fixture(scope="module", autouse=True)
def _cache(root: Path) -> None:
    fill_cache(root)


@pytest.mark.parametrize("feature", [feature.name for feature in FEATURES if feature.name not in QUICK])
def test_feature_can_be_taken_away(feature: str, root: Path) -> None:
    check_without(feature, root)
