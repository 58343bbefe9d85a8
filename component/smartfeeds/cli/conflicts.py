"""`smartfeeds conflicts`: items that were changed in several places at once, and deciding on them (FeedSync 3.4)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.cli.nodes import all_nodes
from smartfeeds.cli.offline import actor_of, named_or_admin, open_offline, operator
from smartfeeds.console import Commands, err, out, print_json, run_async
from smartfeeds.core.model import NodeKind
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted, one_line
from smartfeeds.core.times import format_datetime
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.conflicts import ConflictedItem, ConflictList, ListConflicts, ResolveConflicts, Resolved
from smartfeeds.service.context import Context, locate
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import OpenMode, ReadTx
from smartfeeds.sync.record import Version

_LONGEST_TITLE = 80


class _ListFirst(Commands):
    """A group that lists where no command of its own is named: `smartfeeds conflicts news`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts `list` in front of what belongs to it."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("conflicts", cls=_ListFirst)
def conflicts_command() -> None:
    """See items that were changed in several places at once, and decide on them.

    Without a command it lists them: smartfeeds conflicts [NODE].
    """


@conflicts_command.command("list")
@click.argument("node", required=False)
@config_option
@json_option
def list_conflicts(node: str | None, config: Path | None, *, as_json: bool) -> None:
    """List the items in conflict, of NODE or of all feeds, with their versions.

    Of each version: whether it wins, its tag, when and by whom it was made, its title.
    """
    found = run_async(_list(config, node))
    if as_json:
        print_json(found)
        return
    for item in found:
        _tell(item)
    if not found:
        err.print("There are no conflicts.", markup=False)


@conflicts_command.command("resolve")
@click.argument("node")
@click.argument("item")
@click.option("--keep", default="", metavar="TAG", help="The version whose content stays. Default: the one that wins.")
@click.option(
    "--settle",
    multiple=True,
    metavar="TAG",
    help="A conflict that is settled by this; others stay, but for versions that whoever decides made here. "
    "Repeatable. Default: all that the item has now.",
)
@click.option("--by", help="The bare JID that decides. Default: the first of pubsub.admins, else the component.")
@config_option
@json_option
def resolve_conflicts(
    node: str, item: str, keep: str, settle: tuple[str, ...], by: str | None, config: Path | None, *, as_json: bool
) -> None:
    """Settle conflicts of ITEM in NODE, and tell everybody who shares the feed.

    The tags are those of the list. A version that is deleted can be kept too: then the item is deleted.
    """
    by = named_or_admin(config, by)
    done = run_async(_resolve(config, node, item, keep, settle, by))
    title = "deleted" if done.item.deleted else _title(done.item.payload)
    if as_json:
        print_json({"node": node, "item": item, "title": title, "deleted": done.item.deleted, "left": done.left})
    else:
        out.print(one_line(f"Resolved {item} of {node}: {title}; {counted(done.left, 'conflict')} left."), markup=False)


async def _list(config: Path | None, node: str | None) -> list[dict[str, Any]]:
    async with open_offline(config) as service:
        names = await service.read(lambda tx, context: _names(tx, context, node))
        return [_as_json(name, one) for name in names async for one in _conflicted(service, name)]


def _names(tx: ReadTx, _context: Context, node: str | None) -> list[str]:
    """The feeds to look at; none but those that have conflicts."""
    nodes = [locate(tx, node).node] if node is not None else all_nodes(tx)
    return [one.name for one in nodes if one.kind is NodeKind.FEED and tx.conflict_count(one.node_no)]


async def _conflicted(service: FeedService, name: str) -> AsyncIterator[ConflictedItem]:
    """All of a feed, page by page."""
    after: str | None = None
    while True:
        page = ResultSetRequest(max=str(service.policy.page_max), after=after)
        answer = await service.handle(ListConflicts(operator(service), service.policy.domain, name, page))
        found = cast("ConflictList", answer)
        for one in found.entries:
            yield one
        if not found.entries or found.result_set is None:
            return
        after = found.result_set.last


async def _resolve(
    config: Path | None, node: str, item: str, keep: str, settle: tuple[str, ...], by: str | None
) -> Resolved:
    async with open_offline(config, OpenMode.WRITE) as service:
        actor = actor_of(service, by)
        # Whoever the operator names may decide.
        service.policy = replace(service.policy, admins=service.policy.admins | {str(actor)})
        request = ResolveConflicts(actor, service.policy.domain, node, item, keep, settle or None)
        return cast("Resolved", await service.handle(request))


def _as_json(node: str, found: ConflictedItem) -> dict[str, Any]:
    return {
        "node": node,
        "item": found.item.id,
        "sync_id": found.version.sync_id,
        "versions": [_version(tag, one, wins=place == 0) for place, (tag, one) in enumerate(found.versions)],
    }


def _version(tag: str, version: Version, *, wins: bool) -> dict[str, Any]:
    top = version.top
    return {
        "tag": tag,
        "wins": wins,
        "changes": version.counter,
        "when": None if top.when_us is None else format_datetime(top.when_us),
        "by": unquote(top.by),
        "deleted": version.deleted.on,
        "title": _title(version.payload),
    }


def _title(payload: bytes) -> str:
    return one_line(read_meta(payload).body)[:_LONGEST_TITLE]


def _tell(item: dict[str, Any]) -> None:
    """An item with a line for each version."""
    versions = item["versions"]
    out.print(one_line(f"{item['node']}: {item['item']}, {counted(len(versions), 'version')}"), markup=False)
    width = max(len(one["by"]) for one in versions)
    for one in versions:
        what = "wins" if one["wins"] else "conflict"
        title = "(deleted)" if one["deleted"] else one["title"] or "(no title)"
        when = one["when"] or "-"
        out.print(one_line(f"  {what:8}  {one['tag']}  {when:20}  {one['by'] or '-':{width}}  {title}"), markup=False)
