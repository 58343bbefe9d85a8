"""`smartfeeds cloud`: lists the registrations of the cloud of rssCloud, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, json_option, node_argument
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_result


@click.group("cloud", cls=Commands)
def cloud_command() -> None:
    """List the registrations of the cloud (rssCloud), and end them."""


@cloud_command.command("list")
@node_argument(required=False)
@list_options
def list_registrations(node: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List registrations, for NODE or for all nodes: feed, host of the callback, protocol, state, end and last
    notification.

    The addresses of callbacks are not shown.
    """
    from smartfeeds.features.cloud.requests import cloud_statuses
    from smartfeeds.features.cloud.resources import REGISTRATIONS

    statuses = read_pages(config, cloud_statuses, lambda status: status.callback.callback_no)
    listed = (status for status in statuses if node in (None, status.node))
    print_list(REGISTRATIONS, listed, as_json=as_json, wide=wide)


@cloud_command.command("remove")
@click.argument("number", type=click.IntRange(min=1))
@config_option
@json_option
def remove(number: int, config: Path | None, *, as_json: bool) -> None:
    """End the registration NUMBER.

    The number is in the first column of the list. The workstation is not told, because rssCloud has no message for it.
    """
    from smartfeeds.features.cloud.requests import drop_registration

    callback = write_offline(config, lambda tx, _context: drop_registration(tx, number))
    text = f"Ended the registration {number} of {callback.host} for {callback.topic}."
    print_result(text, {"registration": number, "host": callback.host, "topic": callback.topic}, as_json=as_json)
