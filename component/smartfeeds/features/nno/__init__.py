"""The newest entries of many feeds by their ESS files: `smartfeeds nno`, and nodes that fill themselves (ESS-011)."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    import click


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.nno.settings import NnoSettings

    return (Section("nno", NnoSettings, repeats=True),)


def _run(host: Host) -> Running:
    from smartfeeds.features.nno.setup import run_planets

    return run_planets(host)


def _nno() -> "click.Command":
    from smartfeeds.features.nno.command import nno_command

    return nno_command


NNO = Feature(
    "nno",
    needs=("documents", "polling"),
    commands=(
        CommandRow(
            "nno",
            CommandTopic.DOCUMENTS,
            "Print the newest entries of many feeds as an NNO file.",
            _nno,
        ),
    ),
    settings=_settings,
    run=_run,
)
