"""`smartfeeds hub`: lists the subscriptions of the WebSub hub, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option
from smartfeeds.cli.list_commands import list_command
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_out
from smartfeeds.features.hub.requests import drop_subscription, hub_statuses
from smartfeeds.features.hub.resources import HUB_SUBSCRIPTIONS


@click.group("hub", cls=Commands)
def hub_command() -> None:
    """List the subscriptions of the WebSub hub, and end them."""


hub_command.add_command(
    list_command(
        HUB_SUBSCRIPTIONS,
        lambda config: read_pages(config, hub_statuses, lambda status: status.callback.callback_no),
        "List subscriptions: topic, host of the callback, state, end of the lease, waiting items and last delivery."
        "\n\nSecrets and the addresses of callbacks are not shown.",
        lambda status: status.node,
        "Only subscriptions of this node.",
    )
)


@hub_command.command("drop")
@click.argument("number", type=click.IntRange(min=1))
@config_option
def drop(number: int, config: Path | None) -> None:
    """End the subscription NUMBER. A running service tells the subscriber within seconds.

    The number is in the first column of the list.
    """
    callback = write_offline(config, lambda tx, context: drop_subscription(tx, context, number))
    print_out(f"Ended the subscription {number} of {callback.host} to {callback.topic}.")
