"""Pages for browsers, the river and the search."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, Section, StoreSide

if TYPE_CHECKING:
    import click

    from smartfeeds.features.pages.routes import PageHandlers
    from smartfeeds.http.side import HttpSide


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.pages.settings import SiteSettings

    return (Section("site", SiteSettings),)


def _store() -> StoreSide:
    from smartfeeds.features.pages import reply_requests, river_requests

    return StoreSide(use_cases=river_requests.USE_CASES | reply_requests.USE_CASES)


def _http() -> "HttpSide[PageHandlers]":
    from smartfeeds.features.pages.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    if not host.settings.http.listen:
        return Running()
    from smartfeeds.features.pages.setup import run_pages

    return run_pages(host)


def _search() -> "click.Command":
    from smartfeeds.features.pages.command import search_command

    return search_command


PAGES = Feature(
    "pages",
    commands=(
        CommandRow(
            "search", CommandTopic.FEEDS, "Search the entries of NODE, or of all feeds, for the words in TEXT.", _search
        ),
    ),
    settings=_settings,
    store=_store,
    http=_http,
    run=_run,
)
