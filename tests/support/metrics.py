"""The metrics that the service has."""

from smartfeeds.app.sides import declare_metrics
from smartfeeds.telemetry import GATHERED, REGISTRY

_HISTOGRAM = ("_bucket", "_sum", "_count")


def metric_names() -> dict[str, str]:
    """The name of every metric as Prometheus reads it, with its description."""
    declare_metrics()
    # What is gathered on request is not in the registry while the service does not run.
    families = [*GATHERED.describe(), *REGISTRY.collect()]
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: family.documentation for family in families
    }


def sample_names() -> dict[str, str]:
    """Each name that a query may use, with the name of its metric."""
    declare_metrics()
    names: dict[str, str] = {}
    for family in (*GATHERED.describe(), *REGISTRY.collect()):
        if family.type == "histogram":
            names |= {f"{family.name}{suffix}": family.name for suffix in _HISTOGRAM}
        else:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            names[name] = name
    return names
