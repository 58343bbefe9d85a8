"""Mirrors: feeds that two services keep in step (FeedSync, SSE)."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, Section, ServiceSide, StoreSide

if TYPE_CHECKING:
    import click

    from smartfeeds.store.row_readers import RowReader


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.mirrors.settings import MirrorSettings, check_mirrors

    return (Section("mirror", MirrorSettings, repeats=True, check=check_mirrors),)


def _store() -> StoreSide:
    from smartfeeds.features.mirrors.hooks import HOOKS
    from smartfeeds.features.mirrors.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES, hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.mirrors.adhoc import XMPP
    from smartfeeds.features.mirrors.metrics import MirrorReading
    from smartfeeds.features.mirrors.resources import MIRROR_WAYS, MIRRORS

    return ServiceSide(
        xmpp=XMPP,
        resources=(
            MIRRORS,
            MIRROR_WAYS,
        ),
        metrics=(MirrorReading,),
    )


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.mirrors.rows import MIRROR, to_mirror
    from smartfeeds.store.row_readers import RowReader

    return (RowReader(MIRROR, "name", MIRROR.columns, to_mirror),)


def _run(host: Host) -> Running:
    from smartfeeds.features.mirrors.setup import run_mirrors

    return run_mirrors(host)


def _mirror() -> "click.Command":
    from smartfeeds.features.mirrors.command import mirror_command

    return mirror_command


MIRRORS = Feature(
    "mirrors",
    needs=("polling",),
    commands=(
        CommandRow(
            "mirror",
            CommandTopic.SOURCES,
            "Synchronise nodes with feeds elsewhere (docs/mirrors.md).",
            _mirror,
            {
                "add": "Synchronise NODE with the feed at ADDRESS, such as xmpp:feeds.b.example?;node=plans or "
                "https://b.example/feeds/plans/.",
                "list": "List all mirrors, including those in the configuration.",
                "remove": "End the mirror NAME.",
                "restart": "Make the mirror NAME read and send everything again, for example after a backup was "
                "restored on either side.",
                "status": "Show the state of mirrors: lag, conflicts, rejected items with reasons.",
            },
        ),
    ),
    settings=_settings,
    store=_store,
    service=_service,
    run=_run,
    row_readers=_row_readers,
)
