"""An rssCloud for every feed, with its three protocols (rsscloud.md)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.features.cloud.http import CloudDoors
    from smartfeeds.http.side import HttpSide


def _http() -> "HttpSide[CloudDoors]":
    from smartfeeds.features.cloud.http import HTTP

    return HTTP


CLOUD = Feature("cloud", needs=("callbacks",), commands={"cloud": "smartfeeds.features.cloud.command"}, http=_http)
