"""Administration: lists of what the service has, and actions, by ad-hoc commands, over HTTP and in pages."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running, ServiceSide, StoreSide

if TYPE_CHECKING:
    from smartfeeds.features.administration.http import Administration
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.resources import Resource


def _store() -> StoreSide:
    from smartfeeds.features.administration.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES)


def _service() -> ServiceSide:
    from smartfeeds.features.administration.adhoc import XMPP
    from smartfeeds.features.administration.log_list import LOG

    return ServiceSide(xmpp=XMPP, resources=(LOG,))


def _http() -> "HttpSide[Administration]":
    from smartfeeds.features.administration.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.administration.setup import run_operations

    return run_operations(host)


def _shows(resources: "tuple[Resource[Any], ...]") -> "HttpSide[Any]":
    from smartfeeds.features.administration.tables import pages_of

    return pages_of(resources)


ADMINISTRATION = Feature(
    "administration",
    needs=("accounts", "pages"),
    store=_store,
    service=_service,
    http=_http,
    shows=_shows,
    run=_run,
)
