"""Mirrors: feeds that two services keep in step (FeedSync, SSE)."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.xmpp.side import XmppSide


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.mirrors.settings import MirrorSettings, check_mirrors

    return (Section("mirror", MirrorSettings, repeats=True, check=check_mirrors),)


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.mirrors.rows import MIRROR, to_mirror
    from smartfeeds.store.row_readers import RowReader

    return (RowReader(MIRROR, "name", MIRROR.columns, to_mirror),)


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.mirrors.metrics import MirrorReading

    return (MirrorReading,)


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.mirrors.resources import MIRROR_WAYS, MIRRORS

    return (
        MIRRORS,
        MIRROR_WAYS,
    )


def _use_cases() -> "UseCases":
    from smartfeeds.features.mirrors.requests import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.mirrors.adhoc import XMPP

    return XMPP


def _run(host: Host) -> Running:
    from smartfeeds.features.mirrors.setup import run_mirrors

    return run_mirrors(host)


def _hooks() -> "Hooks":
    from smartfeeds.features.mirrors.hooks import HOOKS

    return HOOKS


MIRRORS = Feature(
    "mirrors",
    needs=("polling",),
    commands={"mirror": "smartfeeds.features.mirrors.command"},
    settings=_settings,
    use_cases=_use_cases,
    xmpp=_xmpp,
    run=_run,
    row_readers=_row_readers,
    metrics=_metrics,
    resources=_resources,
    hooks=_hooks,
)
