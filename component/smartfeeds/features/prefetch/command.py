"""`smartfeeds prefetch`: enclosures that are loaded in advance (docs/webfeeds-prefetch.md).

A running service applies each change within seconds.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import config_option, json_option, node_argument, read_settings
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import open_offline, read_pages, write_offline
from smartfeeds.console import Commands, exit_failed_if, print_err, print_json, print_out, print_result, run_async
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.text import counted, one_line
from smartfeeds.core.times import format_second
from smartfeeds.errors import ConfigError
from smartfeeds.system import now_us

if TYPE_CHECKING:
    from smartfeeds.features.prefetch.enclosure import Enclosure
    from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder

WATCH_S = 0.5
pause = asyncio.sleep


@click.group("prefetch", cls=Commands)
def prefetch_command() -> None:
    """Enclosures that are loaded in advance (docs/webfeeds-prefetch.md)."""


@prefetch_command.command("list")
@node_argument(required=False)
@list_options
def list_enclosures(node: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List enclosures, of NODE or of all nodes: state, loaded bytes, reason of the last failure, address."""
    from smartfeeds.features.prefetch.enclosures import enclosure_statuses
    from smartfeeds.features.prefetch.requests import ListedEnclosure
    from smartfeeds.features.prefetch.resources import ENCLOSURES

    folder = _folder(config)
    statuses = read_pages(config, enclosure_statuses, lambda status: status.enclosure.enclosure_no)
    listed = (
        ListedEnclosure(status, folder.part_bytes(status.enclosure.digest))
        for status in statuses
        if node in (None, status.node)
    )
    print_list(ENCLOSURES, listed, as_json=as_json, wide=wide)
    if not as_json:
        _print_summary(config, [status.enclosure for status in statuses])


def _folder(config: Path | None) -> "EnclosureFolder":
    """The folder of the files. Raises ConfigError if none is set (PRE-036)."""
    from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
    from smartfeeds.features.prefetch.settings import PrefetchSettings

    path = read_settings(config).section(PrefetchSettings).folder
    if path is None:
        raise ConfigError("nothing is loaded in advance: prefetch.folder is not set; set a folder and restart")
    return EnclosureFolder(path)


def _print_summary(config: Path | None, enclosures: "Sequence[Enclosure]") -> None:
    """Print the space in use and the next window on standard error."""
    from smartfeeds.features.prefetch.enclosure import EnclosureState
    from smartfeeds.features.prefetch.settings import PrefetchSettings

    settings = read_settings(config).section(PrefetchSettings)
    complete = {row.enclosure_no: row.length_bytes or 0 for row in enclosures if row.state is EnclosureState.ARRIVED}
    print_err(f"{counted(len(complete), 'file')}, {sum(complete.values()):,} of {settings.total_bytes:,} bytes")
    time_us = now_us()
    if settings.span_at(time_us) is not None:
        print_err("A window is open.")
    elif (open_us := settings.next_open_us(time_us)) is not None:
        print_err(f"The next window opens at {format_second(open_us)}.")


@prefetch_command.command("log")
@node_argument(required=False)
@list_options
def list_loads(node: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List the loads that have ended, for NODE or for all nodes, the oldest first: when, node, item, bytes, seconds,
    and why a load failed.
    """
    from smartfeeds.features.prefetch import rows as enclosure_rows
    from smartfeeds.features.prefetch.resources import ARRIVALS

    arrivals = read_pages(
        config,
        lambda tx, _context, after, limit: enclosure_rows.arrivals(tx, after, limit),
        lambda arrival: arrival.arrival_no,
    )
    listed = (arrival for arrival in arrivals if node in (None, arrival.node))
    print_list(ARRIVALS, listed, as_json=as_json, wide=wide)


@prefetch_command.command("add")
@click.argument("source")
@click.option("--node", help="The node of the source, if several nodes have this address.")
@click.option("--newest", type=click.IntRange(1), default=1, metavar="NUMBER", help="So many enclosures. Default: 1.")
@config_option
@json_option
def add(source: str, node: str | None, newest: int, config: Path | None, *, as_json: bool) -> None:
    """Load the newest enclosures of SOURCE, a number or address of `source list`, older items included."""
    from smartfeeds.features.polling.sources import find_source
    from smartfeeds.features.prefetch.enclosures import add_newest

    count = write_offline(
        config, lambda tx, context: add_newest(tx, context, find_source(tx, context, source, node), newest)
    )
    text = f"{counted(count, 'enclosure')} of the source {source} will be there after the next window."
    print_result(text, {"source": source, "enclosures": count}, as_json=as_json)


@prefetch_command.command("now")
@click.argument("node")
@click.argument("item")
@click.option("--wait", is_flag=True, help="Wait for the end of the load and show its progress.")
@config_option
@json_option
def now(node: str, item: str, config: Path | None, *, wait: bool, as_json: bool) -> None:
    """Make a running service load the enclosures of ITEM in NODE now, outside the windows, by the same rules.

    Exit code 1: with --wait, a file has not arrived.
    """
    from smartfeeds.features.prefetch.enclosure import EnclosureState
    from smartfeeds.features.prefetch.enclosures import ask_for

    folder = _folder(config)
    count = write_offline(config, lambda tx, context: ask_for(tx, context, node, item))
    if not as_json:
        print_out(f"{counted(count, 'enclosure')} of the item {item} of the node {node} is due now.")
    enclosures = run_async(_watch(config, folder, node, item)) if wait else []
    if as_json:
        files = [{"state": row.state.value, "address": row.url, "reason": row.reason} for row in enclosures]
        print_json({"node": node, "item": item, "enclosures": count, **({"files": files} if wait else {})})
    else:
        for row in enclosures:
            print_out(f"{row.state.value}: {row.url} {row.reason}".rstrip())
    exit_failed_if([row for row in enclosures if row.state is not EnclosureState.ARRIVED])


async def _watch(config: Path | None, folder: "EnclosureFolder", node: str, item_id: str) -> "list[Enclosure]":
    """Show the progress of the enclosures of an item until none of them is asked for any more."""
    from smartfeeds.features.prefetch.enclosure import EnclosureState
    from smartfeeds.features.prefetch.enclosures import enclosure_statuses
    from smartfeeds.terminal import byte_bar

    async with open_offline(config) as service:
        with byte_bar() as bar:
            tasks = {}
            while True:
                statuses = await service.read(lambda tx, context: enclosure_statuses(tx, context, 0, NO_LIMIT))
                rows = [status.enclosure for status in statuses if (status.node, status.item_id) == (node, item_id)]
                for row in rows:
                    if row.digest not in tasks:
                        tasks[row.digest] = bar.add_task(one_line(row.url.rpartition("/")[2]), total=None)
                    total_bytes = row.total_bytes or row.length_bytes
                    done = row.state is EnclosureState.ARRIVED
                    bar.update(
                        tasks[row.digest],
                        total=total_bytes,
                        completed=total_bytes if done else folder.part_bytes(row.digest),
                    )
                if all(row.asked_us is None for row in rows):
                    return rows
                await pause(WATCH_S)
