"""`smartfeeds consumer`: lists the consumers of feeds with their lag and errors, and retries those that failed."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import run_offline, write_offline
from smartfeeds.console import Commands, print_result
from smartfeeds.core.text import counted

if TYPE_CHECKING:
    from smartfeeds.service.consumers import ConsumerStatus
    from smartfeeds.service.feeds import FeedService

_PAGE: Final = 500  # consumers of one transaction: a long read would let the WAL file of a running service grow


@click.group("consumer", cls=Commands)
def consumer_command() -> None:
    """List the consumers that receive the changes of feeds, and retry those that failed."""


@consumer_command.command("list")
@click.option("--behind", is_flag=True, help="Only consumers that are not current.")
@list_options
def list_consumers(config: Path | None, *, behind: bool, as_json: bool, wide: bool) -> None:
    """List consumers: state, items that wait, age of the oldest in seconds, next attempt and last error."""
    from smartfeeds.service.consumer_requests import CONSUMERS
    from smartfeeds.service.consumers import ConsumerState

    statuses = run_offline(config, _statuses)
    listed = (status for status in statuses if not behind or status.state is not ConsumerState.CURRENT)
    empty = "There are no such consumers." if behind else ""
    print_list(CONSUMERS, listed, as_json=as_json, wide=wide, empty=empty)


@consumer_command.command("retry")
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="All consumers whose last delivery failed.")
@config_option
@json_option
def retry(name: str | None, config: Path | None, *, every: bool, as_json: bool) -> None:
    """Make the next attempt for the consumer NAME now, also if the service had given it up.

    The name is in the first column of the list. A running service makes the attempt within seconds.
    """
    from smartfeeds.service.consumers import retry_consumers

    if every == (name is not None):
        raise click.UsageError("name one consumer, or request all failed ones with --all")
    consumers = write_offline(config, lambda tx, context: retry_consumers(tx, context, name))
    text = f"{counted(len(consumers), 'consumer')} will be retried."
    print_result(text, {"retried": len(consumers)}, as_json=as_json)


async def _statuses(service: "FeedService") -> "list[ConsumerStatus]":
    from smartfeeds.service.consumers import FIRST, consumer_statuses

    statuses: list[ConsumerStatus] = []
    after: tuple[int, str, str] | None = FIRST
    while after is not None:
        page, after = await service.read(partial(consumer_statuses, after=after, limit=_PAGE))
        statuses += page
    return statuses
