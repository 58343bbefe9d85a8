"""Sources: RSS, Atom and JSON feeds that the service polls, or subscribes to, and publishes as items."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, Section, ServiceSide, StoreSide

if TYPE_CHECKING:
    from smartfeeds.features.polling.http import PollingHandlers
    from smartfeeds.http.side import HttpSide
    from smartfeeds.store.row_readers import RowReader


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.polling.settings import SourceSection, check_sources

    return (Section("source", SourceSection, repeats=True, check=check_sources),)


def _store() -> StoreSide:
    from smartfeeds.features.polling import following, requests
    from smartfeeds.features.polling.hooks import HOOKS

    return StoreSide(use_cases=requests.USE_CASES | following.USE_CASES, hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.polling.adhoc import XMPP
    from smartfeeds.features.polling.chat import CHAT
    from smartfeeds.features.polling.metrics import PollerReading, SourcePushReading, SourceStateReading
    from smartfeeds.features.polling.resources import FOLLOWED, SOURCES

    return ServiceSide(
        xmpp=XMPP,
        chat=CHAT,
        resources=(SOURCES, FOLLOWED),
        metrics=(SourceStateReading, PollerReading, SourcePushReading),
    )


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.polling.push_rows import SOURCE_PUSH, to_push
    from smartfeeds.features.polling.rows import SOURCE, to_source
    from smartfeeds.store.row_readers import RowReader

    return (
        RowReader(SOURCE, "url", SOURCE.columns, to_source),
        RowReader(SOURCE_PUSH, "push_no", SOURCE_PUSH.columns, to_push),
    )


def _http() -> "HttpSide[PollingHandlers]":
    from smartfeeds.features.polling.http import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.polling.setup import run_polling

    return run_polling(host)


POLLING = Feature(
    "polling",
    needs=("callbacks",),
    commands={"source": "smartfeeds.features.polling.command"},
    settings=_settings,
    store=_store,
    service=_service,
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
