"""The commands that list things: the rows of `service.resources` as a table or as JSON."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.lists import print_rows, wide_option

if TYPE_CHECKING:
    from smartfeeds.service.resources import Resource

E = TypeVar("E")
Command = TypeVar("Command", bound=Callable[..., Any])


def list_options(command: Command) -> Command:
    """Add the options of every list: `--config`, `--json` and `--wide`."""
    return config_option(json_option(wide_option(command)))


def print_list(
    resource: "Resource[E]",
    entries: Iterable[E],
    keys: Sequence[str] = (),
    *,
    as_json: bool,
    wide: bool,
    empty: str = "",
) -> None:
    """Print entries of a list, all columns or those with these `keys`. `empty` is the text of an empty selection."""
    rows = [{key: row[key] for key in keys or row} for row in map(resource.row, entries)]
    columns, cut = resource.brief
    print_rows(rows, as_json=as_json, empty=empty or resource.empty, wide=wide, brief=columns, cut=cut)
