"""`smartfeeds hub`: lists the subscriptions of the WebSub hub, and ends them."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, json_option, node_argument
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import read_pages, write_offline
from smartfeeds.console import Commands, print_result


@click.group("hub", cls=Commands)
def hub_command() -> None:
    """List the subscriptions of the WebSub hub, and end them."""


@hub_command.command("list")
@node_argument(required=False)
@list_options
def list_subscriptions(node: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List subscriptions, of NODE or of all nodes: topic, host of the callback, state, end of the lease, waiting items
    and last delivery.

    Secrets and the addresses of callbacks are not shown.
    """
    from smartfeeds.features.hub.requests import hub_statuses
    from smartfeeds.features.hub.resources import HUB_SUBSCRIPTIONS

    statuses = read_pages(config, hub_statuses, lambda status: status.callback.callback_no)
    listed = (status for status in statuses if node in (None, status.node))
    print_list(HUB_SUBSCRIPTIONS, listed, as_json=as_json, wide=wide)


@hub_command.command("remove")
@click.argument("number", type=click.IntRange(min=1))
@config_option
@json_option
def remove(number: int, config: Path | None, *, as_json: bool) -> None:
    """End the subscription NUMBER. A running service tells the subscriber within seconds.

    The number is in the first column of the list.
    """
    from smartfeeds.features.hub.requests import drop_subscription

    callback = write_offline(config, lambda tx, context: drop_subscription(tx, context, number))
    text = f"Ended the subscription {number} of {callback.host} to {callback.topic}."
    print_result(text, {"subscription": number, "host": callback.host, "topic": callback.topic}, as_json=as_json)
