"""`smartfeeds hub`: lists the subscriptions of the WebSub hub, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option
from smartfeeds.cli.list_commands import list_command
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_out
from smartfeeds.core.times import US_PER_S, format_second
from smartfeeds.features.callbacks.resources import last_delivery
from smartfeeds.features.hub.requests import HubStatus, drop_subscription, hub_statuses
from smartfeeds.service.resources import Column, Resource

# The addresses of callbacks are secrets of their receivers, so the list has their hosts only.
HUB_SUBSCRIPTIONS: Resource[HubStatus] = Resource(
    "hub",
    "subscription",
    (
        Column("subscription", lambda status: status.callback.callback_no),
        Column("node", lambda status: status.node),
        Column("topic", lambda status: status.callback.topic),
        Column("host", lambda status: status.callback.host),
        Column("reader", lambda status: status.callback.reader),
        Column("state", lambda status: status.phase.value),
        Column("dialect", lambda status: status.dialect),
        Column("lease_end", lambda status: format_second(status.callback.expires_us)),
        Column("waiting", lambda status: status.waiting),
        Column("lag_s", lambda status: status.lag_us // US_PER_S),
        *last_delivery(lambda status: (status.callback, status.failure)),
    ),
    empty="There are no subscriptions.",
)


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
