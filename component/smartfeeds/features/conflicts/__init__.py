"""Conflicts: listing them, and keeping one of the versions, by people, programs and operators (FeedSync 3.4, SSE 5)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, ServiceSide, StoreSide

if TYPE_CHECKING:
    from smartfeeds.features.conflicts.http import Conflicts
    from smartfeeds.http.side import HttpSide


def _store() -> StoreSide:
    from smartfeeds.features.conflicts.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES)


def _service() -> ServiceSide:
    from smartfeeds.features.conflicts.adhoc import XMPP
    from smartfeeds.features.conflicts.chat import CHAT

    return ServiceSide(xmpp=XMPP, chat=CHAT)


def _http() -> "HttpSide[Conflicts]":
    from smartfeeds.features.conflicts.http import HTTP

    return HTTP


CONFLICTS = Feature(
    "conflicts",
    needs=("pages",),
    commands={"conflicts": "smartfeeds.features.conflicts.command"},
    store=_store,
    service=_service,
    http=_http,
)
