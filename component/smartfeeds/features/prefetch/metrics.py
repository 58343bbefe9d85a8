"""The metrics of enclosures."""

from dataclasses import dataclass
from typing import Annotated

from prometheus_client import Counter

from smartfeeds.telemetry import REGISTRY

PREFETCH_LOADS = Counter(
    "smartfeeds_prefetch_loads_total",
    "Loads of enclosures that have ended, by result: arrived, failed, given-up, busy or cut",
    ["result"],
    registry=REGISTRY,
)
PREFETCH_BYTES = Counter(
    "smartfeeds_prefetch_bytes_total", "Bytes of enclosures that came over the network", registry=REGISTRY
)


@dataclass(frozen=True, slots=True)
class EnclosureReading:
    """The enclosures in one state, counted every minute."""

    state: str
    count: Annotated[int, "smartfeeds_enclosures", "Enclosures by state: waiting, arrived or given-up"]
    size_bytes: Annotated[int, "smartfeeds_enclosure_bytes", "Bytes of complete and partial enclosures, by state"]
