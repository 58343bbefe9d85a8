"""Prefetched enclosures: files that entries link to, fetched before somebody asks."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, Section, ServiceSide, StoreSide

if TYPE_CHECKING:
    from smartfeeds.http.side import HttpSide
    from smartfeeds.http.stored_files import FileReplies


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.prefetch.settings import PrefetchSettings, check_prefetch, prefetch_of

    return (Section("prefetch", PrefetchSettings, check=check_prefetch, policy=prefetch_of),)


def _store() -> StoreSide:
    from smartfeeds.features.prefetch.hooks import HOOKS
    from smartfeeds.features.prefetch.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES, hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.prefetch.metrics import EnclosureReading
    from smartfeeds.features.prefetch.resources import ENCLOSURES

    return ServiceSide(resources=(ENCLOSURES,), metrics=(EnclosureReading,))


def _http() -> "HttpSide[FileReplies]":
    from smartfeeds.features.prefetch.http import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.prefetch.setup import run_prefetch

    return run_prefetch(host)


PREFETCH = Feature(
    "prefetch",
    needs=("polling",),
    commands={"prefetch": "smartfeeds.features.prefetch.command"},
    extends={"source": "smartfeeds.features.prefetch.source_command:with_check"},
    settings=_settings,
    store=_store,
    service=_service,
    http=_http,
    run=_run,
)
