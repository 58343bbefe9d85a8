"""`smartfeeds cloud`: lists the registrations of the cloud of rssCloud, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_out, print_rows
from smartfeeds.features.administration.listing import registration_row
from smartfeeds.features.cloud.requests import cloud_statuses, drop_registration


@click.group("cloud", cls=Commands)
def cloud_command() -> None:
    """List the registrations of the cloud (rssCloud), and end them."""


@cloud_command.command("list")
@click.option("--node", help="Only registrations for this node.")
@config_option
@json_option
def list_registrations(node: str | None, config: Path | None, *, as_json: bool) -> None:
    """List registrations: feed, host of the callback, protocol, state, end and last notification.

    The addresses of callbacks are not shown.
    """
    statuses = read_pages(config, cloud_statuses, lambda status: status.callback.callback_no)
    rows = [registration_row(status) for status in statuses if node in (None, status.node)]
    print_rows(rows, as_json=as_json, empty="There are no registrations.")


@cloud_command.command("drop")
@click.argument("number", type=click.IntRange(min=1))
@config_option
def drop(number: int, config: Path | None) -> None:
    """End the registration NUMBER.

    The number is in the first column of the list. The workstation is not told, because rssCloud has no message for it.
    """
    callback = write_offline(config, lambda tx, _context: drop_registration(tx, number))
    print_out(f"Ended the registration {number} of {callback.host} for {callback.topic}.")
