"""Sources: RSS, Atom and JSON feeds that the service polls, or subscribes to, and publishes as items."""

from smartfeeds.app.feature import Feature, Section


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.polling.settings import SourceSection, check_sources

    return (Section("source", SourceSection, repeats=True, check=check_sources),)


POLLING = Feature(
    "polling",
    commands={"source": "smartfeeds.features.polling.command"},
    settings=_settings,
)
