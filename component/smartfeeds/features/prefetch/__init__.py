"""Prefetched enclosures: files that entries link to, fetched before somebody asks."""

from smartfeeds.app.feature import Feature, Section


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.prefetch.settings import PrefetchSettings, check_prefetch

    return (Section("prefetch", PrefetchSettings, check=check_prefetch),)


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.prefetch.metrics import EnclosureReading

    return (EnclosureReading,)


PREFETCH = Feature(
    "prefetch",
    needs=("polling",),
    commands={"prefetch": "smartfeeds.features.prefetch.command"},
    settings=_settings,
    metrics=_metrics,
)
