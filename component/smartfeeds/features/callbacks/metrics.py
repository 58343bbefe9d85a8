"""The metrics of callbacks."""

from dataclasses import dataclass
from typing import Annotated

from prometheus_client import Histogram

from smartfeeds.telemetry import FAST_S, REGISTRY

CALLBACK_SECONDS = Histogram(
    "smartfeeds_callback_seconds",
    "Seconds of a delivery to a callback, by kind and result (the class of the status, such as 2xx, or none)",
    ["kind", "result"],
    buckets=FAST_S,
    registry=REGISTRY,
)


@dataclass(frozen=True, slots=True)
class CallbackReading:
    """The registrations of callbacks in one dialect: those at the start of the process, and those that it has made."""

    dialect: str
    count: Annotated[
        int,
        "smartfeeds_callbacks",
        "Active registrations of callbacks that this process knows, by dialect (nearly equal in all processes)",
    ]
