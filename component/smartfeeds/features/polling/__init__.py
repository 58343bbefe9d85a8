"""Sources: RSS, Atom and JSON feeds that the service polls, or subscribes to, and publishes as items."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, Section, ServiceSide, StoreSide

if TYPE_CHECKING:
    import click

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


def _source() -> "click.Command":
    from smartfeeds.features.polling.command import source_command

    return source_command


POLLING = Feature(
    "polling",
    needs=("callbacks",),
    commands=(
        CommandRow(
            "source",
            CommandTopic.SOURCES,
            "Fill nodes with feeds of other servers (docs/webfeeds.md).",
            _source,
            {
                "add": "Fill a node with the feed at URL, or with the first feed that the page at URL links to.",
                "check": "Explain what a poll of URL sees: redirects, format, items, hints, and the feeds that a web "
                "page offers.",
                "export": "Write the sources, of NODE or of all nodes, as a subscription list in OPML, which "
                "`source import` and feed readers read.",
                "follow": "Follow the subscription list LIST: its feeds become sources, with the settings given here.",
                "import": "Add the feeds of FILE, a subscription list in OPML.",
                "list": "List sources, of NODE or of all nodes, with their state, the next poll, and what is wrong.",
                "pause": "Stop the polls of SOURCE, a number or address of the list, until it is resumed.",
                "poll": "Make a running service poll SOURCE now, a number or address of the list.",
                "remove": "End SOURCE, a number or address of the list.",
                "renew": "Make a running service subscribe SOURCE, a number or address of the list, at its hub or "
                "cloud again.",
                "resume": "Poll SOURCE again, a number or address of the list, after it was paused or stopped.",
                "set": "Change the settings of SOURCE, a number or address of the list.",
                "show": "Show SOURCE, a number or address of the list: its state, its last answers and its settings.",
            },
        ),
    ),
    settings=_settings,
    store=_store,
    service=_service,
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
