"""Prefetched enclosures: files that entries link to, fetched before somebody asks."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandExtension, CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, Section, ServiceSide, StoreSide

if TYPE_CHECKING:
    import click

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


def _prefetch() -> "click.Command":
    from smartfeeds.features.prefetch.command import prefetch_command

    return prefetch_command


def _with_check(command: "click.Command") -> "click.Command":
    from smartfeeds.features.prefetch.source_command import with_check

    return with_check(command)


PREFETCH = Feature(
    "prefetch",
    needs=("polling",),
    commands=(
        CommandRow(
            "prefetch",
            CommandTopic.SOURCES,
            "Enclosures that are loaded in advance (docs/webfeeds-prefetch.md).",
            _prefetch,
            {
                "add": "Load the newest enclosures of SOURCE, a number or address of `source list`, older items "
                "included.",
                "list": "List enclosures, of NODE or of all nodes: state, loaded bytes, reason of the last failure, "
                "address.",
                "log": "List the loads that have ended, for NODE or for all nodes, the oldest first: when, node, "
                "item, bytes, seconds, and why "
                "a load failed.",
                "now": "Make a running service load the enclosures of ITEM in NODE now, outside the windows, by the "
                "same rules.",
            },
        ),
    ),
    extends=(CommandExtension("source", _with_check),),
    settings=_settings,
    store=_store,
    service=_service,
    http=_http,
    run=_run,
)
