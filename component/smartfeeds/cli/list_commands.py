"""The commands that list things: the rows of `service.resources` as a table or as JSON."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.service.resources import Resource
from smartfeeds.terminal import print_rows

E = TypeVar("E")


def print_list(
    resource: Resource[E], entries: Iterable[E], keys: Sequence[str] = (), *, as_json: bool, empty: str = ""
) -> None:
    """Print entries of a list, all columns or those with these `keys`. `empty` is the text of an empty selection."""
    rows = [{key: row[key] for key in keys or row} for row in map(resource.row, entries)]
    print_rows(rows, as_json=as_json, empty=empty or resource.empty)


def list_command(
    resource: Resource[E],
    read: Callable[[Path | None], Iterable[E]],
    text: str,
    node: Callable[[E], str] | None = None,
    node_text: str = "",
    name: str = "list",
) -> click.Command:
    """Return the command that lists all entries, which `read` returns. `text` is its help.

    With `node`, which returns the node of an entry, the option --node selects the entries of a node; `node_text` is its
    help.
    """

    def run(config: Path | None, *, as_json: bool, chosen: str | None = None) -> None:
        entries = (entry for entry in read(config) if node is None or chosen in (None, node(entry)))
        print_list(resource, entries, as_json=as_json)

    command: Callable[..., Any] = json_option(run)
    command = config_option(command)
    if node is not None:
        command = click.option("--node", "chosen", help=node_text)(command)
    return click.command(name, help=text)(command)
