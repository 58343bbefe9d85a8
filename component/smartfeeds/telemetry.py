"""Logs and metrics: one set-up, and every metric of the project named once (style section 10).

Log lines are events: a constant name and fields. slixmpp and other libraries log through the standard library; their
records come out in the same form. Labels of metrics have few values, never an address or a node name.
"""

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final, Literal, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase
from structlog.types import Processor

REGISTRY: Final = CollectorRegistry()

OK: Final = "ok"
_FAST_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LAG_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0)
_LOOP_PERIOD_S: Final = 0.5
# Libraries that say at INFO what is of interest to their authors only.
_QUIET: Final = ("slixmpp", "asyncio", "aiosqlite", "alembic")

REQUESTS = Counter(
    "smartfeeds_requests_total",
    "Requests answered, by operation and outcome (ok, or the condition of the error)",
    ["operation", "outcome"],
    registry=REGISTRY,
)
REQUEST_SECONDS = Histogram(
    "smartfeeds_request_seconds",
    "Seconds from the arrival of a request to its answer, by operation",
    ["operation"],
    buckets=_FAST_S,
    registry=REGISTRY,
)
IN_FLIGHT = Gauge("smartfeeds_requests_in_flight", "Requests that are being worked on", registry=REGISTRY)
NOTIFICATIONS_SENT = Counter(
    "smartfeeds_notifications_sent_total", "Notifications handed to the server", registry=REGISTRY
)
NOTIFICATIONS_DROPPED = Counter(
    "smartfeeds_notifications_dropped_total",
    "Notifications given up, by reason; the next one shows the follower that it missed something",
    ["reason"],
    registry=REGISTRY,
)
FANOUT_LAG_SECONDS = Histogram(
    "smartfeeds_fanout_lag_seconds",
    "Seconds between a change and its last notification",
    buckets=_LAG_S,
    registry=REGISTRY,
)
WRITE_BUFFER_BYTES = Gauge(
    "smartfeeds_write_buffer_bytes", "Bytes that wait because the server does not read", registry=REGISTRY
)
LINK_ONLINE = Gauge("smartfeeds_link_online", "1 while the server accepts us, else 0", registry=REGISTRY)
LINK_CONNECTS = Counter("smartfeeds_link_connects_total", "Attempts to connect to the server", registry=REGISTRY)
STREAM_ERRORS = Counter(
    "smartfeeds_stream_errors_total",
    "Times the link went down or did not come up, by condition",
    ["condition"],
    registry=REGISTRY,
)
CURSOR_DEGRADATIONS = Counter(
    "smartfeeds_cursor_degradations_total",
    "Cursors whose item was not found, so that their time decided",
    registry=REGISTRY,
)
STORE_SECONDS = Histogram(
    "smartfeeds_store_seconds",
    "Seconds of a store operation, by kind (read or write); a write includes its commit",
    ["kind"],
    buckets=_FAST_S,
    registry=REGISTRY,
)
LOOP_LAG_SECONDS = Gauge(
    "smartfeeds_loop_lag_seconds", "Seconds by which the event loop was late, last time looked", registry=REGISTRY
)
SCHEMA_VERSION = Gauge("smartfeeds_schema_version", "The version of the store's schema", registry=REGISTRY)

METRICS: Final[tuple[MetricWrapperBase, ...]] = (
    REQUESTS,
    REQUEST_SECONDS,
    IN_FLIGHT,
    NOTIFICATIONS_SENT,
    NOTIFICATIONS_DROPPED,
    FANOUT_LAG_SECONDS,
    WRITE_BUFFER_BYTES,
    LINK_ONLINE,
    LINK_CONNECTS,
    STREAM_ERRORS,
    CURSOR_DEGRADATIONS,
    STORE_SECONDS,
    LOOP_LAG_SECONDS,
    SCHEMA_VERSION,
)


def set_up_logging(form: Literal["console", "json"], level: str, stream: TextIO | None = None) -> None:
    """Sends our events and the records of libraries to `stream` (standard error), one line each.

    `level` is debug, info, warning or error. May be called again.
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


@contextmanager
def measured(operation: str) -> Iterator[None]:
    """Counts a request as in flight and its seconds; the caller counts its outcome."""
    begin = perf_counter()
    IN_FLIGHT.inc()
    try:
        yield
    finally:
        IN_FLIGHT.dec()
        REQUEST_SECONDS.labels(operation).observe(perf_counter() - begin)


async def watch_loop(period_s: float = _LOOP_PERIOD_S) -> None:
    """Measures for ever how late the event loop is. To be run as a task."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + period_s
        await asyncio.sleep(period_s)
        LOOP_LAG_SECONDS.set(max(0.0, loop.time() - due))


def _renderer(form: str, stream: TextIO) -> list[Processor]:
    if form == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [structlog.dev.ConsoleRenderer(colors=stream.isatty())]


def _name_of_record(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """Says which library a record is from."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["logger"] = record.name
    return event
