"""The metrics that the service has."""

from smartfeeds.telemetry import GATHERED, REGISTRY


def metric_names() -> dict[str, str]:
    """The name of every metric as Prometheus reads it, with its description."""
    # What is gathered on request is not in the registry while the service does not run.
    families = [*GATHERED.describe(), *REGISTRY.collect()]
    return {f"{one.name}_total" if one.type == "counter" else one.name: one.documentation for one in families}
