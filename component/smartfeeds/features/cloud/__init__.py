"""An rssCloud for every feed, with its three protocols."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    import click

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


def _cloud() -> "click.Command":
    from smartfeeds.features.cloud.command import cloud_command

    return cloud_command


CLOUD = Feature(
    "cloud",
    needs=("callbacks",),
    commands=(
        CommandRow(
            "cloud",
            CommandTopic.SOURCES,
            "List the registrations of the cloud (rssCloud), and end them.",
            _cloud,
            {
                "list": "List registrations, for NODE or for all nodes: feed, host of the callback, protocol, state, "
                "end and last notification.",
                "remove": "End the registration NUMBER.",
            },
            {"drop": "remove"},
        ),
    ),
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
