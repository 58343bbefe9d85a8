"""Writing over HTTP: the editor, files, Micropub and Markdown."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, StoreSide

if TYPE_CHECKING:
    from smartfeeds.features.authoring.routes import AuthoringHandlers
    from smartfeeds.http.side import HttpSide


def _store() -> StoreSide:
    from smartfeeds.features.authoring.personal import HOOKS
    from smartfeeds.features.authoring.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES, hooks=HOOKS)


def _http() -> "HttpSide[AuthoringHandlers]":
    from smartfeeds.features.authoring.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.authoring.setup import run_authoring

    return run_authoring(host)


AUTHORING = Feature(
    "authoring",
    needs=("pages",),
    store=_store,
    http=_http,
    run=_run,
)
