"""The metrics of sources."""

from dataclasses import dataclass
from typing import Annotated

from prometheus_client import Counter

from smartfeeds.telemetry import REGISTRY

SOURCE_POLLS = Counter(
    "smartfeeds_source_polls_total",
    "Polls of sources, by result: read, unchanged, unreadable, refused (4xx), failed, gone (410), busy (429)",
    ["result"],
    registry=REGISTRY,
)
SOURCE_BYTES = Counter("smartfeeds_source_bytes_total", "Bytes of the documents of sources", registry=REGISTRY)
SOURCE_ITEMS = Counter(
    "smartfeeds_source_items_total",
    "Items that sources have brought, by effect: added or changed",
    ["effect"],
    registry=REGISTRY,
)
SOURCE_PUSHES = Counter(
    "smartfeeds_source_pushes_total",
    "Pushes and notifications from hubs and clouds, by result: stored, hint (polled), forged, ended, unknown, busy",
    ["result"],
    registry=REGISTRY,
)
SOURCE_PUSH_REQUESTS = Counter(
    "smartfeeds_source_push_requests_total",
    "Requests to hubs and clouds of other servers, by result: accepted or failed",
    ["result"],
    registry=REGISTRY,
)


@dataclass(frozen=True, slots=True)
class SourceStateReading:
    """The number of sources in one state."""

    state: str
    sources: Annotated[
        int, "smartfeeds_sources", "Sources by state: polled, waiting, slowed, stopped or paused; counted every minute"
    ]


@dataclass(frozen=True, slots=True)
class PollerReading:
    """The state of the poller: the delay of the latest poll, and the paused hosts."""

    behind_s: Annotated[
        float, "smartfeeds_sources_behind_seconds", "Seconds by which the source that is due first is late"
    ] = 0.0
    paused_hosts: Annotated[
        int, "smartfeeds_source_hosts_paused", "Hosts that asked for a pause that has not ended"
    ] = 0


@dataclass(frozen=True, slots=True)
class SourcePushReading:
    """The number of subscriptions of sources at hubs and clouds in one state."""

    state: str
    subscriptions: Annotated[
        int,
        "smartfeeds_source_subscriptions",
        "Subscriptions of sources at hubs and clouds, by state; counted every minute",
    ]
