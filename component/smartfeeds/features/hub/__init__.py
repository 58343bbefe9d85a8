"""A WebSub hub for every feed (websub.md)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.features.hub.http import HubEndpoint
    from smartfeeds.http.side import HttpSide


def _http() -> "HttpSide[HubEndpoint]":
    from smartfeeds.features.hub.http import HTTP

    return HTTP


HUB = Feature("hub", needs=("callbacks",), commands={"hub": "smartfeeds.features.hub.command"}, http=_http)
