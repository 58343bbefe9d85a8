"""Logs and metrics: one set-up, and every metric of the project named once.

A log line is an event: a constant name and fields. Records that slixmpp and other libraries write through the standard
library have the same form. Metric labels have few distinct values and never contain an address or a node name.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from structlog.types import Processor

REGISTRY: Final = CollectorRegistry()

# Bucket bounds in seconds, dense below 10 ms, because most requests are faster than that.
_FAST_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LOOP_PERIOD_S: Final = 0.5
# These libraries log details of their own work at INFO. Below DEBUG only their warnings are shown.
_QUIET: Final = ("slixmpp", "asyncio", "aiosqlite", "alembic")

# Metrics that the code updates where the event happens.
REQUESTS = Counter(
    "smartfeeds_requests_total",
    "Requests answered, by operation and outcome (ok, or the condition of the error)",
    ["operation", "outcome"],
    registry=REGISTRY,
)
REQUEST_SECONDS = Histogram(
    "smartfeeds_request_seconds",
    "Seconds from the arrival of a request to its response, by operation",
    ["operation"],
    buckets=_FAST_S,
    registry=REGISTRY,
)
STREAM_ERRORS = Counter(
    "smartfeeds_stream_errors_total",
    "Failed connections to the server, by condition; lost connections are included",
    ["condition"],
    registry=REGISTRY,
)
CURSOR_DEGRADATIONS = Counter(
    "smartfeeds_cursor_degradations_total",
    "Cursors whose item no longer exists, so that the time in the cursor determined the position",
    registry=REGISTRY,
)
STORE_SECONDS = Histogram(
    "smartfeeds_store_seconds",
    "Seconds of a store operation including its wait, by kind (read or write); a write includes its commit",
    ["kind"],
    buckets=_FAST_S,
    registry=REGISTRY,
)
LOOP_LAG_SECONDS = Gauge(
    "smartfeeds_loop_lag_seconds", "Seconds by which the event loop was late at the last measurement", registry=REGISTRY
)
SCHEMA_VERSION = Gauge("smartfeeds_schema_version", "Version of the database schema", registry=REGISTRY)


@dataclass(frozen=True, slots=True)
class MirrorReading:
    """The state of one direction (in or out) of a mirror. The counts start when the mirror is added."""

    mirror: str
    direction: str
    lag_s: float
    in_step: bool
    changes: int
    refused: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class DeliveryReading:
    """What the deliveries to one kind of consumers do. `running` counts deliveries, `retrying` the consumers that wait
    for their next attempt and `stopped` those that the service has given up. `lag_s` is the longest time that a
    consumer has had something to receive. The other numbers count since the start."""

    kind: str
    running: int
    retrying: int
    stopped: int
    lag_s: float
    done: int
    failed: int
    skipped: int
    gone: int


@dataclass(frozen=True, slots=True)
class Readings:
    """The counts that parts of the service maintain themselves, read at one moment."""

    in_flight: int
    refused: int
    sent: int
    dropped: int
    dropped_replies: int
    lag_s: float
    buffer_bytes: int
    paused_s: float
    online: bool
    connects: int
    http_connections: int = 0
    http_refused: int = 0
    http_unreadable: int = 0
    http_held: int = 0
    http_kept: int = 0
    mirrors: tuple[MirrorReading, ...] = ()
    deliveries: tuple[DeliveryReading, ...] = ()


_Family = type[CounterMetricFamily] | type[GaugeMetricFamily]

# Metrics read from `Readings` when the registry is scraped: name, type, help text, value.
_GATHERED: Final[tuple[tuple[str, _Family, str, Callable[[Readings], float]], ...]] = (
    (
        "smartfeeds_requests_in_flight",
        GaugeMetricFamily,
        "Stanzas in the queue or in progress",
        lambda now: now.in_flight,
    ),
    (
        "smartfeeds_requests_refused_total",
        CounterMetricFamily,
        "Stanzas rejected with wait, or dropped, because too many were in progress",
        lambda now: now.refused,
    ),
    (
        "smartfeeds_notifications_sent_total",
        CounterMetricFamily,
        "Notifications handed to the server",
        lambda now: now.sent,
    ),
    (
        "smartfeeds_notifications_dropped_total",
        CounterMetricFamily,
        "Changes not notified because they waited too long; the next notification shows the follower the gap",
        lambda now: now.dropped,
    ),
    (
        "smartfeeds_replies_dropped_total",
        CounterMetricFamily,
        "Responses dropped because the server did not read",
        lambda now: now.dropped_replies,
    ),
    (
        "smartfeeds_fanout_lag_seconds",
        GaugeMetricFamily,
        "Age of the change that was notified last",
        lambda now: now.lag_s,
    ),
    (
        "smartfeeds_write_buffer_bytes",
        GaugeMetricFamily,
        "Bytes in the write buffer of the connection to the server",
        lambda now: now.buffer_bytes,
    ),
    (
        "smartfeeds_write_paused_seconds_total",
        CounterMetricFamily,
        "Seconds during which the server did not read",
        lambda now: now.paused_s,
    ),
    (
        "smartfeeds_link_online",
        GaugeMetricFamily,
        "1 while the component is connected and authenticated, else 0",
        lambda now: now.online,
    ),
    (
        "smartfeeds_link_connects_total",
        CounterMetricFamily,
        "Attempts to connect to the server",
        lambda now: now.connects,
    ),
    (
        "smartfeeds_http_connections",
        GaugeMetricFamily,
        "Open HTTP connections",
        lambda now: now.http_connections,
    ),
    (
        "smartfeeds_http_refused_total",
        CounterMetricFamily,
        "HTTP connections rejected because of too many connections, in total or from one address",
        lambda now: now.http_refused,
    ),
    (
        "smartfeeds_http_unreadable_total",
        CounterMetricFamily,
        "HTTP input that is not a request or has oversized headers",
        lambda now: now.http_unreadable,
    ),
    (
        "smartfeeds_http_held",
        GaugeMetricFamily,
        "Pulls and event streams that wait for the next item",
        lambda now: now.http_held,
    ),
    (
        "smartfeeds_http_kept_replies_total",
        CounterMetricFamily,
        "Pulls answered with the cached bytes of an equal pull",
        lambda now: now.http_kept,
    ),
)


# Metrics for each direction of each mirror, with the labels `mirror` and `direction`.
_OF_MIRRORS: Final[tuple[tuple[str, _Family, str, Callable[[MirrorReading], float]], ...]] = (
    (
        "smartfeeds_mirror_lag_seconds",
        GaugeMetricFamily,
        "Seconds since the oldest change of a mirror started to wait or to fail, or 0 if no change is waiting",
        lambda one: one.lag_s,
    ),
    (
        "smartfeeds_mirror_in_step",
        GaugeMetricFamily,
        "1 while no change is known to be missing, rejected items included, else 0",
        lambda one: one.in_step,
    ),
    (
        "smartfeeds_mirror_changes_total",
        CounterMetricFamily,
        "Changes that a mirror received or sent",
        lambda one: one.changes,
    ),
    (
        "smartfeeds_mirror_refused_total",
        CounterMetricFamily,
        "Items that the mirror or the remote feed rejected",
        lambda one: one.refused,
    ),
    (
        "smartfeeds_mirror_conflicts_total",
        CounterMetricFamily,
        "Received changes that conflicted with a local change",
        lambda one: one.conflicts,
    ),
)
# The same for each kind of consumers, with the label `kind`.
_OF_DELIVERIES: Final[tuple[tuple[str, _Family, str, Callable[[DeliveryReading], float]], ...]] = (
    ("smartfeeds_deliveries_running", GaugeMetricFamily, "Deliveries that run", lambda one: one.running),
    (
        "smartfeeds_delivery_lag_seconds",
        GaugeMetricFamily,
        "The longest time that a consumer has had something to receive, 0 where nothing waits",
        lambda one: one.lag_s,
    ),
    (
        "smartfeeds_consumers_retrying",
        GaugeMetricFamily,
        "Consumers whose last delivery failed and that wait for the next attempt",
        lambda one: one.retrying,
    ),
    (
        "smartfeeds_consumers_stopped",
        GaugeMetricFamily,
        "Consumers that the service has given up after too many failures",
        lambda one: one.stopped,
    ),
    ("smartfeeds_deliveries_total", CounterMetricFamily, "Batches delivered", lambda one: one.done),
    ("smartfeeds_deliveries_failed_total", CounterMetricFamily, "Deliveries that failed", lambda one: one.failed),
    (
        "smartfeeds_deliveries_skipped_total",
        CounterMetricFamily,
        "Batches passed over because they can never be delivered",
        lambda one: one.skipped,
    ),
    (
        "smartfeeds_consumers_gone_total",
        CounterMetricFamily,
        "Consumers removed because the receiver or the feed does not exist any more",
        lambda one: one.gone,
    ),
)


def _labelled(now: Readings | None) -> Iterator[Metric]:
    """The families with labels; without readings they have no values."""
    for name, family, text, mirror_value in _OF_MIRRORS:
        made = family(name, text, labels=("mirror", "direction"))
        for mirror in now.mirrors if now else ():
            made.add_metric((mirror.mirror, mirror.direction), float(mirror_value(mirror)))
        yield made
    for name, family, text, delivery_value in _OF_DELIVERIES:
        made = family(name, text, labels=("kind",))
        for delivery in now.deliveries if now else ():
            made.add_metric((delivery.kind,), float(delivery_value(delivery)))
        yield made


class ReadingsCollector(Collector):
    """Metrics that are read from `source` when the registry is scraped. Without a source they have no values."""

    def __init__(self) -> None:
        self.source: Callable[[], Readings] | None = None

    def describe(self) -> Iterator[Metric]:
        """Return the metric families without values."""
        yield from (family(name, text) for name, family, text, _ in _GATHERED)
        yield from _labelled(None)

    def collect(self) -> Iterator[Metric]:
        """Return the metric families with their current values."""
        now = self.source() if self.source else None
        if now is not None:
            for name, family, text, value in _GATHERED:
                yield family(name, text, value=float(value(now)))
            yield from _labelled(now)


GATHERED: Final = ReadingsCollector()
REGISTRY.register(GATHERED)


def metrics_text() -> bytes:
    """Return all metrics in the text format of Prometheus."""
    return generate_latest(REGISTRY)


def set_up_logging(form: Literal["console", "json"], level: str, stream: TextIO | None = None) -> None:
    """Write log events and the records of libraries to `stream` (default: standard error), one line each.

    `level` is debug, info, warning or error. The function may be called again.
    """
    stream = sys.stderr if stream is None else stream
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(), _name_of_record],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderer(form, stream)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name in _QUIET:
        logging.getLogger(name).setLevel(threshold if threshold == logging.DEBUG else logging.WARNING)


async def watch_loop(period_s: float = _LOOP_PERIOD_S) -> None:
    """Measure the lag of the event loop until cancelled. Run it as a task."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + period_s
        await asyncio.sleep(period_s)
        LOOP_LAG_SECONDS.set(max(0.0, loop.time() - due))


def _renderer(form: str, stream: TextIO) -> list[Processor]:
    if form == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # structlog's default formatter prints the values of local variables: tokens, addresses, whole requests.
    return [
        structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback),
    ]


def _name_of_record(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """Add the name of the library that wrote the record."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["logger"] = record.name
    return event


def observe_request(operation: str, outcome: str, seconds: float) -> None:
    """Counts a request and the time that it took."""
    _requests(operation, outcome).inc()
    _request_seconds(operation).observe(seconds)


# Finding a metric by its labels takes longer than counting; there are few of them.
_requests = lru_cache(None)(REQUESTS.labels)
_request_seconds = lru_cache(None)(REQUEST_SECONDS.labels)
