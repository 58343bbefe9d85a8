"""An rssCloud for every feed, with its three protocols."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.features.cloud.http import CloudDoors
    from smartfeeds.http.side import HttpSide
    from smartfeeds.store.row_readers import RowReader


def _http() -> "HttpSide[CloudDoors]":
    from smartfeeds.features.cloud.http import HTTP

    return HTTP


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.callbacks.rows import row_reader
    from smartfeeds.features.cloud.requests import CLOUD as KIND

    return (row_reader(KIND),)


def _run(host: Host) -> Running:
    from smartfeeds.features.cloud.setup import run_cloud

    return run_cloud(host)


CLOUD = Feature(
    "cloud",
    needs=("callbacks",),
    commands={"cloud": "smartfeeds.features.cloud.command"},
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
