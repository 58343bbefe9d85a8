"""A WebSub hub for every feed."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    import click

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


def _hub() -> "click.Command":
    from smartfeeds.features.hub.command import hub_command

    return hub_command


HUB = Feature(
    "hub",
    needs=("callbacks",),
    commands=(
        CommandRow(
            "hub",
            CommandTopic.SOURCES,
            "List the subscriptions of the WebSub hub, and end them.",
            _hub,
            {
                "list": "List subscriptions, of NODE or of all nodes: topic, host of the callback, state, end of the "
                "lease, waiting items and last delivery.",
                "remove": "End the subscription NUMBER.",
            },
            {"drop": "remove"},
        ),
    ),
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
