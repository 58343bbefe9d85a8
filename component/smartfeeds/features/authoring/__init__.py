"""Writing over HTTP: the editor, files, Micropub and Markdown."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.features.authoring.routes import AuthoringHandlers
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.use_cases import UseCases


def _use_cases() -> "UseCases":
    from smartfeeds.features.authoring.requests import USE_CASES

    return USE_CASES


def _http() -> "HttpSide[AuthoringHandlers]":
    from smartfeeds.features.authoring.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.authoring.setup import run_authoring

    return run_authoring(host)


def _hooks() -> "Hooks":
    from smartfeeds.features.authoring.personal import HOOKS

    return HOOKS


AUTHORING = Feature("authoring", needs=("pages",), use_cases=_use_cases, http=_http, run=_run, hooks=_hooks)
