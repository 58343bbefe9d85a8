"""The one back-off of everything that tries again."""

import pytest

from smartfeeds.core.backoff import Backoff

BACKOFF = Backoff(first_s=2.0, longest_s=60.0)


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 2.0), (2, 4.0), (3, 8.0), (5, 32.0), (6, 60.0), (7, 60.0)])
def test_pause_doubles_with_each_failure_up_to_the_longest(failures: int, pause_s: float) -> None:
    assert BACKOFF.pause_s(failures, 1.0) == pause_s


@pytest.mark.parametrize(("jitter", "pause_s"), [(0.0, 4.0), (0.5, 6.0), (1.0, 8.0)])
def test_half_of_the_pause_is_jitter(jitter: float, pause_s: float) -> None:
    assert BACKOFF.pause_s(3, jitter) == pause_s


def test_pause_after_very_many_failures_is_the_longest() -> None:
    """A process that fails every minute for years must not overflow a float."""
    assert BACKOFF.pause_s(10_000_000, 1.0) == 60.0


def test_first_pause_is_never_longer_than_the_longest() -> None:
    assert Backoff(first_s=90.0, longest_s=60.0).pause_s(1, 1.0) == 60.0
