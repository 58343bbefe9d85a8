"""Mirrors: feeds that two services keep in step (FeedSync, SSE)."""

from smartfeeds.app.feature import Feature, Section


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.mirrors.settings import MirrorSettings, check_mirrors

    return (Section("mirror", MirrorSettings, repeats=True, check=check_mirrors),)


MIRRORS = Feature(
    "mirrors",
    needs=("polling",),
    commands={"mirror": "smartfeeds.features.mirrors.command"},
    settings=_settings,
)
