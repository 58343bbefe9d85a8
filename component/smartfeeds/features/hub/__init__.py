"""A WebSub hub for every feed."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.features.hub.http import HubEndpoint
    from smartfeeds.http.side import HttpSide
    from smartfeeds.store.row_readers import RowReader


def _http() -> "HttpSide[HubEndpoint]":
    from smartfeeds.features.hub.http import HTTP

    return HTTP


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.callbacks.rows import row_reader
    from smartfeeds.features.hub.requests import HUB as KIND

    return (row_reader(KIND),)


def _run(host: Host) -> Running:
    from smartfeeds.features.hub.setup import run_hub

    return run_hub(host)


HUB = Feature(
    "hub",
    needs=("callbacks",),
    commands={"hub": "smartfeeds.features.hub.command"},
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
