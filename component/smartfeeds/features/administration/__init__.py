"""Administration: lists of what the service has, and actions, by ad-hoc commands, over HTTP and in pages."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.features.administration.routes import AdminHandlers
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide


def _use_cases() -> "UseCases":
    from smartfeeds.features.administration.counts import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.administration.adhoc import XMPP

    return XMPP


def _http() -> "HttpSide[AdminHandlers]":
    from smartfeeds.features.administration.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.administration.setup import run_operations

    return run_operations(host)


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.administration.log_list import LOG

    return (LOG,)


def _shows(resources: "tuple[Resource[Any], ...]") -> "HttpSide[Any]":
    from smartfeeds.features.administration.tables import tables_of

    return tables_of(resources)


ADMINISTRATION = Feature(
    "administration",
    needs=("accounts", "pages"),
    use_cases=_use_cases,
    xmpp=_xmpp,
    http=_http,
    run=_run,
    resources=_resources,
    shows=_shows,
)
