"""Logs in both forms, records of libraries among them, and the metrics."""

import asyncio
import io
import json
import logging
import re

import pytest
import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from smartfeeds import telemetry
from smartfeeds.recent import RecentRates, Throughput
from smartfeeds.telemetry import observe_request, requests_answered, requests_refused
from support.metrics import metric_names
from support.waiting import until


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_json_log_event_is_one_line_with_its_fields(stream: io.StringIO) -> None:
    telemetry.set_up_logging("json", "info", stream)

    structlog.get_logger().info("link_online", domain="feeds.example", epoch=1)

    line = json.loads(stream.getvalue())
    assert (line["event"], line["domain"], line["epoch"], line["level"]) == ("link_online", "feeds.example", 1, "info")


def test_json_log_record_of_a_library_has_the_same_form(stream: io.StringIO) -> None:
    telemetry.set_up_logging("json", "info", stream)

    logging.getLogger("slixmpp.xmlstream").warning("Parse error: %r", b"<")

    line = json.loads(stream.getvalue())
    assert line["event"] == "Parse error: b'<'"
    assert (line["logger"], line["level"]) == ("slixmpp.xmlstream", "warning")


def test_json_log_exception_stays_one_line(stream: io.StringIO) -> None:
    telemetry.set_up_logging("json", "info", stream)

    try:
        raise ValueError("broken\nin two")
    except ValueError:
        structlog.get_logger().exception("work_failed")

    assert stream.getvalue().count("\n") == 1
    assert "ValueError" in json.loads(stream.getvalue())["exception"]


def test_console_log_event_is_readable_without_colours(stream: io.StringIO) -> None:
    telemetry.set_up_logging("console", "info", stream)

    structlog.get_logger().warning("notifications_dropped", count=3)

    assert "notifications_dropped" in stream.getvalue()
    assert "count=3" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_log_below_the_level_is_not_written(stream: io.StringIO) -> None:
    telemetry.set_up_logging("json", "warning", stream)

    structlog.get_logger().info("link_online")
    logging.getLogger("slixmpp").info("connected")

    assert stream.getvalue() == ""


def test_set_up_again_writes_each_event_once(stream: io.StringIO) -> None:
    telemetry.set_up_logging("json", "info", stream)
    telemetry.set_up_logging("json", "info", stream)

    structlog.get_logger().info("link_online")

    assert stream.getvalue().count("\n") == 1


def test_metrics_have_our_prefix_a_text_and_known_labels() -> None:
    known = {"operation", "outcome", "condition", "kind", "le", "result", "effect", "state"}
    known |= {"dialect", "mirror", "direction", "reason", "role", "version", "schema"}

    assert all(name.startswith("smartfeeds_") and text for name, text in metric_names().items())
    for family in telemetry.REGISTRY.collect():
        for sample in family.samples:
            assert set(sample.labels) <= known, family.name


# The metrics of OPS-080 to OPS-084, without the prefix.
PROMISED = (
    "requests_total request_seconds stream_errors_total cursor_degradations_total store_seconds loop_lag_seconds"
    " schema_version requests_in_flight requests_refused_total notifications_sent_total notifications_dropped_total"
    " replies_dropped_total fanout_lag_seconds http_connections http_held"
    " store_round_trips_total store_group_size store_retries_total store_connections unpushed_feeds"
    " oldest_unpushed_seconds subscription_lag_seconds followers_behind"
)


def test_promised_metrics_exist() -> None:
    """[OPS-080] [OPS-081] [OPS-082] [OPS-083] [OPS-084]"""
    assert {f"smartfeeds_{name}" for name in PROMISED.split()} <= set(metric_names())


def test_names_of_metrics_end_with_their_base_unit() -> None:
    """[OPS-080] [OPS-086] As OpenMetrics has it: _total for counters, seconds and bytes, and no other unit."""
    for family in (*telemetry.GATHERED.describe(), *telemetry.REGISTRY.collect()):
        words = family.name.split("_")
        assert "total" not in words, f"{family.name}: prometheus-client adds the suffix of counters"
        assert {"ms", "us", "millis", "milliseconds", "minutes", "hours", "kib", "kb", "mb"}.isdisjoint(words)
        for unit in ("seconds", "bytes"):
            assert unit not in words[:-1], f"{family.name}: the unit comes last"
        about_time = re.search(r"(?i)^(seconds|age|how long|the longest time)\b", family.documentation)
        assert not about_time or words[-1] == "seconds", family.name


def test_gathered_metrics_are_read_from_the_source_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = telemetry.Readings(
        in_flight=1, refused=2, sent=3, dropped=4, dropped_replies=5, lag_s=0.5, buffer_bytes=6, paused_s=0.7,
        online=True, connects=8,
    )  # fmt: skip
    monkeypatch.setattr(telemetry.GATHERED, "source", lambda: [now])

    text = generate_latest(telemetry.REGISTRY).decode()

    for name in metric_names():
        assert f"# HELP {name} " in text
    for line in (
        "smartfeeds_notifications_sent_total 3.0",
        "smartfeeds_link_online 1.0",
        "smartfeeds_fanout_lag_seconds 0.5",
    ):
        assert f"\n{line}\n" in text


def test_registry_without_a_source_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry.GATHERED, "source", None)

    assert "smartfeeds_link_online" not in generate_latest(telemetry.REGISTRY).decode()


async def test_watch_loop_measures_how_late_the_loop_is() -> None:
    telemetry.LOOP_LAG_SECONDS.set(-1)
    task = asyncio.create_task(telemetry.watch_loop(0))

    lag_s = "smartfeeds_loop_lag_seconds"
    await until(lambda: telemetry.REGISTRY.get_sample_value(lag_s) != -1, "the first measurement")

    task.cancel()
    assert (telemetry.REGISTRY.get_sample_value("smartfeeds_loop_lag_seconds") or 0) >= 0


def test_deliveries_are_told_by_kind_of_consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label has few values: never a node or an address."""
    push = telemetry.DeliveryReading("push", 1, 2, 3, 4.5, 6, 7, 8, 9)
    monkeypatch.setattr(telemetry.GATHERED, "source", lambda: [push])

    text = generate_latest(telemetry.REGISTRY).decode()

    values = {
        "deliveries_running": 1, "consumers_retrying": 2, "consumers_stopped": 3, "delivery_lag_seconds": 4.5,
        "deliveries_total": 6, "deliveries_failed_total": 7, "deliveries_skipped_total": 8, "consumers_gone_total": 9,
    }  # fmt: skip
    for name, value in values.items():
        assert f'smartfeeds_{name}{{kind="push"}} {float(value)}\n' in text


def test_rates_are_those_of_the_last_minute() -> None:
    """Twelve snapshots of five seconds; the number of snapshots is bounded."""
    now_s, counts = 0, Throughput(0, 0, 0, 0)
    recent = RecentRates(lambda: counts, lambda: now_s * 1_000_000)
    assert recent.rates() == (0, 0, 0, 0)

    for now_s in range(0, 200, 5):
        counts = Throughput(now_s * 2, 1_000, now_s, 0)
        recent.take()
    now_s += 5
    counts = Throughput(now_s * 2, 1_600, now_s + 60, 6)

    assert recent.rates() == (2.0, 10.0, 2.0, 0.1)
    now_s = 0
    assert recent.rates().refused == 6.0


def test_durations_are_told_as_the_library_tells_them() -> None:
    """[OPS-080] `Tally` and `Durations` write what Counter and Histogram of prometheus-client write."""
    registry, library = CollectorRegistry(), CollectorRegistry()
    tally, durations = telemetry.Tally("done_total", "Done", ("kind",)), telemetry.Durations("took_s", "Took", "kind")
    counter = Counter("done_total", "Done", ["kind"], registry=library)
    histogram = Histogram("took_s", "Took", ["kind"], buckets=telemetry.FAST_S, registry=library)
    registry.register(tally)
    registry.register(durations)

    for seconds in (0.0, 0.0005, 0.0006, 0.3, 10.0, 11.0):
        tally.counts[("read",)] += 1
        durations.observe("read", seconds)
        counter.labels("read").inc()
        histogram.labels("read").observe(seconds)

    ours, theirs = (
        [line for line in generate_latest(each).decode().splitlines() if not re.match(r"\w+_created\{", line)]
        for each in (registry, library)
    )
    assert ours == theirs


def test_refused_requests_are_counted_by_their_outcome() -> None:
    answered, refused = requests_answered(), requests_refused()
    for outcome in ("ok", "cancelled", "forbidden", "dropped"):
        observe_request("publish", outcome, 0.0)

    assert (requests_answered() - answered, requests_refused() - refused) == (4, 2)


def test_level_debug_shows_details_of_libraries() -> None:
    level = telemetry.log_level()
    telemetry.set_log_level("debug")
    try:
        assert logging.getLogger("slixmpp").isEnabledFor(logging.DEBUG)
    finally:
        telemetry.set_log_level(level)
