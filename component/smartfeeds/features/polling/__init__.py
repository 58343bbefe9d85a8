"""Sources: RSS, Atom and JSON feeds that the service polls, or subscribes to, and publishes as items."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    from smartfeeds.chat.commands import ChatTable
    from smartfeeds.features.polling.http import SourcePushEndpoint
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.xmpp.side import XmppSide


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.polling.settings import SourceSection, check_sources

    return (Section("source", SourceSection, repeats=True, check=check_sources),)


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.polling.metrics import PollerReading, SourcePushReading, SourceStateReading

    return (SourceStateReading, PollerReading, SourcePushReading)


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.polling.push_rows import SOURCE_PUSH, to_push
    from smartfeeds.features.polling.rows import SOURCE, to_source
    from smartfeeds.store.row_readers import RowReader

    return (
        RowReader(SOURCE, "url", SOURCE.columns, to_source),
        RowReader(SOURCE_PUSH, "push_no", SOURCE_PUSH.columns, to_push),
    )


def _http() -> "HttpSide[SourcePushEndpoint]":
    from smartfeeds.features.polling.http import HTTP

    return HTTP


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.polling.resources import SOURCES

    return (SOURCES,)


def _use_cases() -> "UseCases":
    from smartfeeds.features.polling.requests import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.polling.adhoc import XMPP

    return XMPP


def _run(host: Host) -> Running:
    from smartfeeds.features.polling.setup import run_polling

    return run_polling(host)


def _chat() -> "ChatTable":
    from smartfeeds.features.polling.chat import CHAT

    return CHAT


def _hooks() -> "Hooks":
    from smartfeeds.features.polling.hooks import HOOKS

    return HOOKS


POLLING = Feature(
    "polling",
    needs=("callbacks",),
    commands={"source": "smartfeeds.features.polling.command"},
    settings=_settings,
    use_cases=_use_cases,
    xmpp=_xmpp,
    run=_run,
    metrics=_metrics,
    row_readers=_row_readers,
    http=_http,
    resources=_resources,
    chat=_chat,
    hooks=_hooks,
)
