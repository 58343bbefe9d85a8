"""`smartfeeds hub`: lists the subscriptions of the WebSub hub, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_out, print_rows
from smartfeeds.features.administration.listing import subscription_row
from smartfeeds.features.hub.requests import drop_subscription, hub_statuses


@click.group("hub", cls=Commands)
def hub_command() -> None:
    """List the subscriptions of the WebSub hub, and end them."""


@hub_command.command("list")
@click.option("--node", help="Only subscriptions of this node.")
@config_option
@json_option
def list_subscriptions(node: str | None, config: Path | None, *, as_json: bool) -> None:
    """List subscriptions: topic, host of the callback, state, end of the lease, waiting items and last delivery.

    Secrets and the addresses of callbacks are not shown.
    """
    statuses = read_pages(config, hub_statuses, lambda status: status.callback.callback_no)
    rows = [subscription_row(status) for status in statuses if node in (None, status.node)]
    print_rows(rows, as_json=as_json, empty="There are no subscriptions.")


@hub_command.command("drop")
@click.argument("number", type=click.IntRange(min=1))
@config_option
def drop(number: int, config: Path | None) -> None:
    """End the subscription NUMBER. A running service tells the subscriber within seconds.

    The number is in the first column of the list.
    """
    callback = write_offline(config, lambda tx, context: drop_subscription(tx, context, number))
    print_out(f"Ended the subscription {number} of {callback.host} to {callback.topic}.")
