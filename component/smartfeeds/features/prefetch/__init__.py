"""Prefetched enclosures: files that entries link to, fetched before somebody asks."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    from smartfeeds.http.side import HttpSide
    from smartfeeds.http.stored_files import FileReplies
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.prefetch.settings import PrefetchSettings, check_prefetch, prefetch_of

    return (Section("prefetch", PrefetchSettings, check=check_prefetch, policy=prefetch_of),)


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.prefetch.metrics import EnclosureReading

    return (EnclosureReading,)


def _http() -> "HttpSide[FileReplies]":
    from smartfeeds.features.prefetch.http import HTTP

    return HTTP


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.prefetch.resources import ENCLOSURES

    return (ENCLOSURES,)


def _use_cases() -> "UseCases":
    from smartfeeds.features.prefetch.requests import USE_CASES

    return USE_CASES


def _run(host: Host) -> Running:
    from smartfeeds.features.prefetch.setup import run_prefetch

    return run_prefetch(host)


def _hooks() -> "Hooks":
    from smartfeeds.features.prefetch.hooks import HOOKS

    return HOOKS


PREFETCH = Feature(
    "prefetch",
    needs=("polling",),
    commands={"prefetch": "smartfeeds.features.prefetch.command"},
    extends={"source": "smartfeeds.features.prefetch.source_command:with_check"},
    settings=_settings,
    use_cases=_use_cases,
    run=_run,
    metrics=_metrics,
    http=_http,
    resources=_resources,
    hooks=_hooks,
)
