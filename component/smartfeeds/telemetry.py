"""Logs and metrics: one set-up, and the metrics of the kernel. A feature declares its own in the same way.

A log line is an event: a constant name and fields. Records that slixmpp and other libraries write through the standard
library have the same form. Metric labels have few distinct values and never contain an address or a node name.
"""

import asyncio
import logging
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Final, Literal, TextIO, get_args, get_origin, get_type_hints

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from structlog.types import Processor

from smartfeeds.recent import RECENT_EVENTS

REGISTRY: Final = CollectorRegistry()

# Bucket bounds in seconds, dense below 10 ms, because most requests are faster than that.
FAST_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LOOP_PERIOD_S: Final = 0.5  # between two measurements; a stall that ends before the next one is not seen
_NOT_REFUSED: Final = frozenset({"ok", "cancelled"})  # outcomes
# These libraries log details of their own work at INFO. Below DEBUG only their warnings are shown.
_QUIET: Final = ("slixmpp", "asyncio")


class Tally(Collector):
    """A counter with labels that every request updates: `counts[labels] += 1`.

    prometheus_client takes four calls and a lock to count. Only the thread of the event loop may count here.
    """

    def __init__(self, name: str, text: str, labels: tuple[str, ...]) -> None:
        self.counts: defaultdict[tuple[str, ...], int] = defaultdict(int)
        self._name, self._text, self._labels = name, text, labels
        self._began_s = time.time()

    def describe(self) -> Iterator[Metric]:
        """Returns the metric without values."""
        yield CounterMetricFamily(self._name, self._text, labels=self._labels)

    def collect(self) -> Iterator[Metric]:
        """Returns the metric with its values."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in list(self.counts.items()):
            family.add_metric(labels, count, created=self._began_s)
        yield family


class Durations(Collector):
    """A histogram of seconds by one label that every request updates.

    prometheus_client takes nine calls and a lock to observe. Only the thread of the event loop may observe here.
    """

    def __init__(self, name: str, text: str, label: str) -> None:
        # The sum, and the number of durations up to each bound and above the bound before it.
        self._series: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * (len(FAST_S) + 2))
        self._name, self._text, self._label = name, text, label
        self._began_s = time.time()

    def observe(self, label: str, seconds: float) -> None:
        """Adds a duration."""
        series = self._series[label]
        series[0] += seconds
        series[bisect_left(FAST_S, seconds) + 1] += 1

    def describe(self) -> Iterator[Metric]:
        """Returns the metric without values."""
        yield HistogramMetricFamily(self._name, self._text, labels=[self._label])

    def collect(self) -> Iterator[Metric]:
        """Returns the metric with its values."""
        family = HistogramMetricFamily(self._name, self._text, labels=[self._label])
        for label, (sum_s, *counts) in list(self._series.items()):
            buckets = zip((*map(floatToGoString, FAST_S), "+Inf"), accumulate(counts), strict=True)
            family.add_metric([label], list(buckets), sum_s)
            family.add_sample(f"{self._name}_created", {self._label: label}, self._began_s)
        yield family


# Metrics that the code updates where the event happens.
REQUESTS = Tally(
    "smartfeeds_requests_total",
    "Requests answered, by operation and outcome (ok, or the condition of the error)",
    ("operation", "outcome"),
)
REQUEST_SECONDS = Durations(
    "smartfeeds_request_seconds", "Seconds from the arrival of a request to its response, by operation", "operation"
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
STORE_SECONDS = Durations(
    "smartfeeds_store_seconds",
    "Seconds of a store operation including its wait, by kind (read or write); a write includes its commit",
    "kind",
)
for meter in (REQUESTS, REQUEST_SECONDS, STORE_SECONDS):
    REGISTRY.register(meter)
STORE_GROUP_SIZE = Histogram(
    "smartfeeds_store_group_size",
    "Writes that shared one commit",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    registry=REGISTRY,
)
STORE_RETRIES = Counter(
    "smartfeeds_store_retries_total",
    "Groups of writes, and single writes, that ran again, by reason: rollback (one write of the group failed), lost "
    "(the connection), deadlock, serialization, unique (another process has added the same row)",
    ["reason"],
    registry=REGISTRY,
)
STORE_ROUND_TRIPS = Counter(
    "smartfeeds_store_round_trips_total",
    "Round trips to PostgreSQL, by kind of the connection: read, write, or locks (only those of marks)",
    ["kind"],
    registry=REGISTRY,
)
STORE_CONNECTIONS = Gauge(
    "smartfeeds_store_connections",
    "Open connections of this process to PostgreSQL without that of the locks, by state: used or idle",
    ["state"],
    registry=REGISTRY,
)
UNANNOUNCED_CHANGES = Counter(
    "smartfeeds_unannounced_changes_total",
    "Changes of feeds with waiting readers that no notice has announced, found by the regular look at the database",
    registry=REGISTRY,
)
LOOP_LAG_SECONDS = Gauge(
    "smartfeeds_loop_lag_seconds", "Seconds by which the event loop was late at the last measurement", registry=REGISTRY
)
SCHEMA_VERSION = Gauge("smartfeeds_schema_version", "Version of the database schema", registry=REGISTRY)
ProcessCollector(namespace="smartfeeds", registry=REGISTRY)  # memory, processor time and files, read from /proc


# Readings: metrics that are read when the registry is scraped. Each annotated field of a class is a metric: its name,
# and its help text. The metric is a counter if its name ends in _total, else a gauge. Fields with a text are labels.


@dataclass(frozen=True, slots=True)
class DeliveryReading:
    """The state and the counts of the deliveries to one kind of consumers. `running` counts deliveries, `retrying` the
    consumers that wait for their next attempt and `stopped` those that the service has given up. `lag_s` is the longest
    time that a consumer has had something to receive. The other numbers count since the start."""

    kind: str
    running: Annotated[int, "smartfeeds_deliveries_running", "Deliveries that run"]
    retrying: Annotated[
        int, "smartfeeds_consumers_retrying", "Consumers whose last delivery failed and that wait for the next attempt"
    ]
    stopped: Annotated[
        int, "smartfeeds_consumers_stopped", "Consumers that the service has given up after too many failures"
    ]
    lag_s: Annotated[
        float,
        "smartfeeds_delivery_lag_seconds",
        "The longest time that a consumer has had something to receive, 0 where nothing waits",
    ]
    done: Annotated[int, "smartfeeds_deliveries_total", "Batches delivered"]
    failed: Annotated[int, "smartfeeds_deliveries_failed_total", "Deliveries that failed"]
    skipped: Annotated[
        int, "smartfeeds_deliveries_skipped_total", "Batches passed over because they can never be delivered"
    ]
    gone: Annotated[
        int,
        "smartfeeds_consumers_gone_total",
        "Consumers removed because the receiver or the feed does not exist any more",
    ]


@dataclass(frozen=True, slots=True)
class BacklogReading:
    """The changes that all feeds have not sent, read from the store every 15 seconds. Every process of one database
    reads the same values, so a dashboard shows their maximum and not their sum."""

    unpushed_feeds: Annotated[
        int,
        "smartfeeds_unpushed_feeds",
        "Feeds with changes not notified over XMPP (from the database, equal in all processes)",
    ]
    oldest_unpushed_s: Annotated[
        float,
        "smartfeeds_oldest_unpushed_seconds",
        "Age of the oldest change not notified over XMPP, or 0 (from the database, equal in all processes)",
    ]
    subscription_lag_s: Annotated[
        float,
        "smartfeeds_subscription_lag_seconds",
        "Age of the oldest item that waits for the presence of a subscriber, or 0 (from the database, equal in all)",
    ]
    followers_behind: Annotated[
        int,
        "smartfeeds_followers_behind",
        "Consumers with items to receive, except XMPP push (from the database, equal in all processes)",
    ]


@dataclass(frozen=True, slots=True)
class Readings:
    """The counts that parts of the kernel maintain themselves, read at one moment."""

    in_flight: Annotated[int, "smartfeeds_requests_in_flight", "Stanzas in the queue or in progress"]
    refused: Annotated[
        int,
        "smartfeeds_requests_refused_total",
        "Stanzas rejected with wait, or dropped, because too many were in progress",
    ]
    sent: Annotated[int, "smartfeeds_notifications_sent_total", "Notifications handed to the server"]
    dropped: Annotated[
        int,
        "smartfeeds_notifications_dropped_total",
        "Changes not notified because they waited too long; the next notification shows the follower the gap",
    ]
    dropped_replies: Annotated[
        int, "smartfeeds_replies_dropped_total", "Responses dropped because the server did not read"
    ]
    lag_s: Annotated[float, "smartfeeds_fanout_lag_seconds", "Age of the change that was notified last"]
    buffer_bytes: Annotated[
        int, "smartfeeds_write_buffer_bytes", "Bytes in the write buffer of the connection to the server"
    ]
    paused_s: Annotated[float, "smartfeeds_write_paused_seconds_total", "Seconds during which the server did not read"]
    online: Annotated[bool, "smartfeeds_link_online", "1 while the component is connected and authenticated, else 0"]
    connects: Annotated[int, "smartfeeds_link_connects_total", "Attempts to connect to the server"]
    pings: Annotated[int, "smartfeeds_link_pings_total", "Pings that were sent because the link was idle"] = 0
    http_connections: Annotated[int, "smartfeeds_http_connections", "Open HTTP connections"] = 0
    http_refused: Annotated[
        int,
        "smartfeeds_http_refused_total",
        "HTTP connections rejected because of too many connections, in total or from one address",
    ] = 0
    http_unreadable: Annotated[
        int, "smartfeeds_http_unreadable_total", "HTTP input that is not a request or has oversized headers"
    ] = 0
    http_held: Annotated[int, "smartfeeds_http_held", "Pulls and event streams that wait for the next item"] = 0
    http_kept: Annotated[
        int, "smartfeeds_http_kept_replies_total", "Pulls answered with the cached bytes of an equal pull"
    ] = 0
    # Without metrics here: a feature that shares the work between processes has metrics of them.
    processes: int = 1
    shards: int = 0


KERNEL_METRICS: Final[tuple[type, ...]] = (Readings, DeliveryReading, BacklogReading)


def families(kind: type, readings: Iterable[object] = ()) -> Iterator[Metric]:
    """Returns the metric families of a class of readings, with the values of its objects."""
    hints = get_type_hints(kind, include_extras=True)
    labels = [name for name, hint in hints.items() if hint is str]
    for name, hint in hints.items():
        if get_origin(hint) is not Annotated:
            continue
        _, metric, text = get_args(hint)
        family = (CounterMetricFamily if metric.endswith("_total") else GaugeMetricFamily)(metric, text, labels=labels)
        for reading in readings:
            family.add_metric([getattr(reading, label) for label in labels], float(getattr(reading, name)))
        yield family


class ReadingsCollector(Collector):
    """Metrics that are read from `source` when the registry is scraped. Without a source they have no values.

    `kinds` are the classes of the readings; those of features are added before the start.
    """

    def __init__(self) -> None:
        self.kinds = KERNEL_METRICS
        self.source: Callable[[], Iterable[object]] | None = None

    def describe(self) -> Iterator[Metric]:
        """Returns the metric families without values."""
        for kind in self.kinds:
            yield from families(kind)

    def collect(self) -> Iterator[Metric]:
        """Returns the metric families with their current values."""
        if self.source is None:
            return
        readings = list(self.source())
        for kind in self.kinds:
            yield from families(kind, [reading for reading in readings if type(reading) is kind])


GATHERED: Final = ReadingsCollector()
REGISTRY.register(GATHERED)


def metrics_text() -> bytes:
    """Returns all metrics in the text format of Prometheus."""
    return generate_latest(REGISTRY)


LOG_LEVELS: Final = ("debug", "info", "warning", "error")


def set_log_level(level: str) -> None:
    """Logs events from this level on, also those of loggers that exist already. `level` is one of LOG_LEVELS."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(**{**structlog.get_config(), "wrapper_class": structlog.make_filtering_bound_logger(threshold)})
    logging.getLogger().setLevel(threshold)
    for name in _QUIET:
        logging.getLogger(name).setLevel(threshold if threshold == logging.DEBUG else logging.WARNING)


def log_level() -> str:
    """Returns the level from which events are logged."""
    return logging.getLevelName(logging.getLogger().level).lower()


def _answered(*, refused: bool = False) -> int:
    counts = REQUESTS.counts.items()
    return sum(count for (_, outcome), count in counts if not (refused and outcome in _NOT_REFUSED))


def requests_answered() -> int:
    """Returns the number of requests answered since the start, those of all operations and outcomes."""
    return _answered()


def requests_refused() -> int:
    """Returns the number of requests answered with an error, or dropped, since the start."""
    return _answered(refused=True)


def set_up_logging(form: Literal["console", "json"], level: str, stream: TextIO | None = None) -> None:
    """Writes log events and the records of libraries to `stream` (default: standard error), one line each.

    `level` is one of LOG_LEVELS. The function may be called again.
    """
    stream = sys.stderr if stream is None else stream
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        RECENT_EVENTS,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # `set_log_level` must reach the loggers that modules made at their import
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
    set_log_level(level)


async def watch_loop(period_s: float = _LOOP_PERIOD_S) -> None:
    """Measures the lag of the event loop until cancelled. The caller runs it as a task."""
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
    """Adds the name of the library that wrote the record."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["logger"] = record.name
    return event


def observe_request(operation: str, outcome: str, seconds: float) -> None:
    """Counts a request and the time that it took."""
    REQUESTS.counts[operation, outcome] += 1
    REQUEST_SECONDS.observe(operation, seconds)
