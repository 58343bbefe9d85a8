"""The last minute, the last 24 hours, and the last warnings and errors."""

import io
import logging
import sys

import pytest
import structlog

from smartfeeds import recent, telemetry
from smartfeeds.recent import RECENT_EVENTS, RecentEvents, RecentRates, Throughput

SECRET = "sf_0123456789ab_" + "x" * 43
DAY_S = 24 * 3_600


class Process:
    """A process with a clock that a test moves, which publishes two items a second."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.uptime_s = 0.0
        self.lag_s = 0.0
        self.rates = RecentRates(self._counts, lambda: int(self.now_s * 1_000_000), lambda: self.lag_s)

    def _counts(self) -> Throughput:
        return Throughput(2 * self.uptime_s, 5 * self.uptime_s, self.uptime_s, 0)

    def run(self, seconds: float) -> None:
        """Lets time pass, with a snapshot every five seconds."""
        for _ in range(int(seconds / 5)):
            self.now_s += 5
            self.uptime_s += 5
            self.rates.take()


@pytest.fixture
def process() -> Process:
    made = Process()
    made.rates.take()
    return made


def test_a_minute_becomes_a_sample_of_what_happened_in_it(process: Process) -> None:
    process.run(59)
    assert process.rates.history() == ()

    process.run(70)
    first, second = process.rates.history()
    assert (first.time_us, second.time_us) == (1_060_000_000, 1_120_000_000)
    assert first.counts == second.counts == (120, 300, 60, 0)


def test_a_sample_has_the_longest_lag_of_its_minute(process: Process) -> None:
    process.run(20)
    process.lag_s = 7.5
    process.run(5)
    process.lag_s = 0.0
    process.run(100)

    assert [sample.lag_s for sample in process.rates.history()] == [7.5, 0.0]


def test_history_ends_after_24_hours(process: Process) -> None:
    process.run(DAY_S + 3_600)

    history = process.rates.history()
    assert len(history) == 24 * 60
    assert history[-1].time_us - history[0].time_us == (DAY_S - 60) * 1_000_000


def test_a_clock_that_steps_back_ends_the_minute(process: Process) -> None:
    process.run(30)
    process.now_s -= 3_600
    process.run(65)

    first, second = process.rates.history()
    assert first.time_us > second.time_us - 3_600_000_000
    assert sum(sample.counts.published for sample in (first, second)) == 2 * 95


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> RecentEvents:
    """The events of a log that begins with this test."""
    fresh = RecentEvents()
    monkeypatch.setattr(telemetry, "RECENT_EVENTS", fresh)
    telemetry.set_up_logging("json", "debug", io.StringIO())
    return fresh


def test_warnings_and_errors_are_remembered_newest_first(events: RecentEvents) -> None:
    log = structlog.get_logger()
    log.info("link_online")
    log.warning("link_lost", server="xmpp.example")
    logging.getLogger("slixmpp").error("broken %s", "stream")

    second, first = events.newest()
    assert (first.level, first.event, first.fields) == ("warning", "link_lost", {"server": "xmpp.example"})
    assert (second.level, second.event) == ("error", "broken stream")
    assert first.time.endswith("Z")


def test_events_hold_no_secret_and_no_message_of_an_exception(events: RecentEvents) -> None:
    log = structlog.get_logger()
    try:
        raise ValueError(f"request with {SECRET}")
    except ValueError:
        log.exception("request_failed", token=SECRET, reason=f"Bearer {SECRET} is wrong", api_secret="x1")
        log.error("task_failed", exc_info=sys.exc_info())

    text = repr(events.newest())
    assert SECRET not in text and "x1" not in text and "request with" not in text
    assert "sf_0123456789ab_..." in text
    assert [event.fields["exception"] for event in events.newest()] == ["ValueError"] * 2


def test_events_are_bounded_in_number_and_length(events: RecentEvents) -> None:
    for number in range(recent.EVENTS + 50):
        structlog.get_logger().warning("x" * 5_000, number=number, reason="y" * 5_000)

    newest = events.newest()
    assert len(newest) == recent.EVENTS and newest[0].fields["number"] == str(recent.EVENTS + 49)
    assert len(newest[0].event) == len(newest[0].fields["reason"]) == recent.EVENT_CHARACTERS


def test_the_log_of_the_process_is_remembered() -> None:
    assert telemetry.RECENT_EVENTS is RECENT_EVENTS
