"""`smartfeeds search`: the search of the pages on the command line (`river_requests.search_feeds`)."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from smartfeeds.cli.common import bare_jid
from smartfeeds.cli.item_rows import BRIEF, CUT, item_row, newest_items, rest_notes
from smartfeeds.cli.list_commands import list_options
from smartfeeds.cli.nodes import all_nodes
from smartfeeds.cli.offline import actor_of, run_offline
from smartfeeds.console import print_err
from smartfeeds.core.view import View, parse_view
from smartfeeds.errors import FeedError
from smartfeeds.lists import print_rows

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

MOST: Final = 50  # entries of a search


@click.command("search")
@click.argument("text")
@click.argument("node", required=False)
@click.option(
    "--by",
    type=bare_jid,
    metavar="JID",
    help="Search what this bare JID may read. Default: all feeds that are in public lists, and any NODE.",
)
@click.option("--max", "most", type=click.IntRange(1, 10_000), default=MOST, show_default=True, help="The entries.")
@list_options
def search_command(
    text: str, node: str | None, by: str | None, most: int, config: Path | None, *, as_json: bool, wide: bool
) -> None:
    """Search the entries of NODE, or of all feeds, for the words in TEXT. Quote a TEXT of several words.

    Without NODE, feeds that changed last come first, each with its newest three entries.
    """
    from smartfeeds.store.base import OpenMode

    query = f"q={quote(text)}"
    view = _view(query)
    if view is None or not view.filtered:
        raise click.BadParameter(f"{text!r} has no word to search for, or too many", param_hint="TEXT")
    work = (
        partial(_of_all, view=view, by=by, most=most)
        if node is None
        else partial(_of_node, node=node, query=query, by=by, most=most)
    )
    # The first search writes the filter index.
    rows, notes = run_offline(config, work, OpenMode.WRITE)
    empty = f"Nothing was found for {text!r}."
    print_rows(rows, as_json=as_json, empty=empty, wide=wide, brief=("node", *BRIEF), cut=CUT)
    for note in () if as_json else notes:
        print_err(note)


def _view(query: str) -> View | None:
    try:
        return parse_view(query)
    except FeedError:  # a search without words
        return None


async def _of_node(
    service: "FeedService", node: str, query: str, by: str | None, most: int
) -> tuple[list[dict[str, Any]], list[str]]:
    newest = await newest_items(service, f"{node}{'&' if '?' in node else '?'}{query}", most, by)
    rows = [{"node": node, **item_row(item)} for item in newest.items if not item.deleted]
    return rows, rest_notes(len(newest.items), newest.total)


async def _of_all(
    service: "FeedService", view: View, by: str | None, most: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of the entries, and what to say of others."""
    from smartfeeds.features.pages.river_requests import SearchFeeds, SearchResult
    from smartfeeds.service.answers import ask
    from smartfeeds.service.importing import index_import

    rows: list[dict[str, Any]] = []
    more: list[str] = []
    request = SearchFeeds(actor_of(service, by), service.policy.domain, view)
    # The first search begins the filter indexes. No service completes them in the background of a command.
    await ask(service.handle, request, SearchResult)
    for node in await service.read(lambda tx, _context: all_nodes(tx)):
        await index_import(service, node.name)
    while True:
        result = await ask(service.handle, request, SearchResult)
        for hits in result.feeds:
            rows += [{"node": hits.node.name, **item_row(item)} for item in hits.items]
            more += [hits.node.name] if hits.more else []
        if result.next is None or len(rows) >= most:
            break
        request = SearchFeeds(request.actor, request.service, view, result.next)
    is_cut = result.next is not None or len(rows) > most
    notes = [f"The first {min(most, len(rows)):,} entries, and there may be more; --max lists more."] if is_cut else []
    notes += [f"There are more entries in {', '.join(more)}: name one of them as NODE."] if more else []
    return rows[:most], notes
