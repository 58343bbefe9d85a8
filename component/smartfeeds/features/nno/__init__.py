"""The newest entries of many feeds by their ESS files: `smartfeeds nno`, and nodes that fill themselves (ESS-011)."""

from smartfeeds.app.feature import Feature, Host, Running, Section


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.nno.settings import NnoSettings

    return (Section("nno", NnoSettings, repeats=True),)


def _run(host: Host) -> Running:
    from smartfeeds.features.nno.setup import run_planets

    return run_planets(host)


NNO = Feature(
    "nno",
    needs=("documents", "polling"),
    commands={"nno": "smartfeeds.features.nno.command"},
    settings=_settings,
    run=_run,
)
