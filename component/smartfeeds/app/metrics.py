"""The metrics of the kernel and of all features."""

from smartfeeds.features import FEATURES
from smartfeeds.telemetry import GATHERED, KERNEL


def declare_metrics() -> None:
    """Adds the metrics of all features to those of the kernel. A second call changes nothing."""
    GATHERED.kinds = (*KERNEL, *(kind for feature in FEATURES for kind in feature.service().metrics))
