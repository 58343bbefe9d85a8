"""`smartfeeds cloud`: lists the registrations of the cloud of rssCloud, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option
from smartfeeds.cli.list_commands import list_command
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_out
from smartfeeds.core.times import format_second
from smartfeeds.features.callbacks.resources import last_delivery
from smartfeeds.features.cloud.requests import CloudStatus, cloud_statuses, drop_registration
from smartfeeds.service.resources import Column, Resource

# The addresses of callbacks are secrets of their receivers, so the list has their hosts only.
REGISTRATIONS: Resource[CloudStatus] = Resource(
    "cloud",
    "registration",
    (
        Column("registration", lambda status: status.callback.callback_no),
        Column("node", lambda status: status.node),
        Column("url", lambda status: status.url),
        Column("host", lambda status: status.callback.host),
        Column("protocol", lambda status: status.protocol.value),
        Column("state", lambda status: status.phase.value),
        Column("expires", lambda status: format_second(status.callback.expires_us)),
        *last_delivery(lambda status: (status.callback, status.failure)),
    ),
    empty="There are no registrations.",
)


@click.group("cloud", cls=Commands)
def cloud_command() -> None:
    """List the registrations of the cloud (rssCloud), and end them."""


cloud_command.add_command(
    list_command(
        REGISTRATIONS,
        lambda config: read_pages(config, cloud_statuses, lambda status: status.callback.callback_no),
        "List registrations: feed, host of the callback, protocol, state, end and last notification."
        "\n\nThe addresses of callbacks are not shown.",
        lambda status: status.node,
        "Only registrations for this node.",
    )
)


@cloud_command.command("drop")
@click.argument("number", type=click.IntRange(min=1))
@config_option
def drop(number: int, config: Path | None) -> None:
    """End the registration NUMBER.

    The number is in the first column of the list. The workstation is not told, because rssCloud has no message for it.
    """
    callback = write_offline(config, lambda tx, _context: drop_registration(tx, number))
    print_out(f"Ended the registration {number} of {callback.host} for {callback.topic}.")
