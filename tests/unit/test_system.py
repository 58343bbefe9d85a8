"""The clock for ages follows time, and no jump forward."""

from smartfeeds.system import AgeClock

HOUR_US = 3_600_000_000


class Times:
    """A clock and a monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now_us = 1_000_000_000
        self.passed_s = 50.0

    def wait(self, seconds: float) -> None:
        self.passed_s += seconds
        self.now_us += int(seconds * 1_000_000)


def test_age_grows_with_time_and_not_with_a_jump_of_the_clock() -> None:
    """[CAM-057]"""
    times = Times()
    clock = AgeClock(lambda: times.now_us, lambda: times.passed_s)
    key_us = times.now_us
    times.wait(5)
    assert clock() - key_us == 5_000_000
    times.now_us += HOUR_US
    assert clock() - key_us == 5_000_000
    times.wait(1)
    assert clock() - key_us == 6_000_000


def test_clock_that_is_set_back_makes_nothing_older() -> None:
    """[CAM-057]"""
    times = Times()
    clock = AgeClock(lambda: times.now_us, lambda: times.passed_s)
    key_us = times.now_us
    times.now_us -= HOUR_US
    assert clock() - key_us == -HOUR_US
