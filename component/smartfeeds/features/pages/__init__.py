"""Pages for browsers, the river and the search."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    from smartfeeds.features.pages.routes import PageHandlers
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.use_cases import UseCases


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.pages.settings import SiteSettings

    return (Section("site", SiteSettings),)


def _use_cases() -> "UseCases":
    from smartfeeds.features.pages.river_requests import USE_CASES

    return USE_CASES


def _http() -> "HttpSide[PageHandlers]":
    from smartfeeds.features.pages.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    if not host.settings.http.listen:
        return Running()
    from smartfeeds.features.pages.setup import run_pages

    return run_pages(host)


PAGES = Feature("pages", settings=_settings, use_cases=_use_cases, http=_http, run=_run)
