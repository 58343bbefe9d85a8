"""`smartfeeds conflicts`: lists items that were changed in several places at once, and resolves them (FeedSync 3.4).

The tags that `list` prints name the versions in `resolve`.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from smartfeeds.cli.common import DOCUMENT, config_option, json_option, name_of
from smartfeeds.cli.list_commands import list_options
from smartfeeds.cli.nodes import all_nodes
from smartfeeds.cli.offline import act_as, named_or_admin, operator, run_offline
from smartfeeds.console import Commands, print_err, print_json, print_out
from smartfeeds.core.model import NodeKind
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted, one_line
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import ConfigError
from smartfeeds.lists import print_columns

if TYPE_CHECKING:
    from smartfeeds.features.conflicts.requests import CombinedText, ConflictedItem, ResolvedItem
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.store.base import ReadTx
    from smartfeeds.sync.record import Version

_LONGEST_TITLE = 80  # characters, so that a version fits a line of a terminal


@click.group("conflicts", cls=Commands)
def conflicts_command() -> None:
    """List and resolve conflicts: items that were changed in several places at once.

    Without a command it lists them: smartfeeds conflicts [NODE].
    """


@conflicts_command.command("list")
@click.argument("node", required=False)
@list_options
def list_conflicts(node: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List the items in conflict, of NODE or of all feeds, with their versions.

    Each version has a line: winner or conflict, tag, time, author, title.
    """
    items = run_offline(config, partial(_list, node=node))
    if as_json:
        print_json(items)
        return
    for item in items:
        _print_item(item, wide=wide)
    if not items:
        print_err("There are no conflicts.")


@conflicts_command.command("resolve")
@click.argument("node")
@click.argument("item")
@click.option("--keep", default="", metavar="TAG", help="The version to keep. Default: the winner.")
@click.option(
    "--settle",
    multiple=True,
    metavar="TAG",
    help="A conflict to resolve. The others stay, except versions by the same author. "
    "Repeatable. Default: all conflicts of the item.",
)
@click.option(
    "--combine",
    "combined",
    type=DOCUMENT,
    metavar="FILE",
    help="A text in plain UTF-8 that you wrote out of several versions; - for standard input. It replaces title and "
    "text of the version to keep. Its first line is the title.",
)
@click.option("--by", help="The bare JID of the author. Default: the first of pubsub.admins, else the component.")
@config_option
@json_option
def resolve_conflicts(
    node: str,
    item: str,
    keep: str,
    settle: tuple[str, ...],
    combined: Path | None,
    by: str | None,
    config: Path | None,
    *,
    as_json: bool,
) -> None:
    """Resolve conflicts of ITEM in NODE. All services that share the feed receive the result.

    The list shows the tags. If you keep a deleted version, the item is deleted.
    """
    from smartfeeds.features.conflicts.requests import CombinedText
    from smartfeeds.store.base import OpenMode

    by = named_or_admin(config, by)
    text = None if combined is None else CombinedText(_text_in(combined))
    work = partial(_resolve, node=node, item=item, keep=keep, settle=settle, combined=text, by=by)
    answer = run_offline(config, work, OpenMode.WRITE)
    title = "deleted" if answer.item.deleted else _title(answer.item.payload)
    if as_json:
        print_json({"node": node, "item": item, "title": title, "deleted": answer.item.deleted, "left": answer.left})
    else:
        print_out(f"Resolved {item} of {node}: {title}; {counted(answer.left, 'conflict')} left.")


async def _list(service: "FeedService", node: str | None) -> list[dict[str, Any]]:
    names = await service.read(lambda tx, _context: _names(tx, node))
    return [_as_json(name, item) for name in names async for item in _conflicted(service, name)]


def _names(tx: "ReadTx", name: str | None) -> list[str]:
    """Return the feeds that have conflicts."""
    from smartfeeds.service.context import locate

    nodes = [locate(tx, name).node] if name is not None else all_nodes(tx)
    return [node.name for node in nodes if node.kind is NodeKind.FEED and tx.conflict_count(node.node_no)]


async def _conflicted(service: "FeedService", name: str) -> "AsyncIterator[ConflictedItem]":
    """Yield all items of a feed that are in conflict, page by page."""
    from smartfeeds.features.conflicts.requests import ConflictList, ListConflicts
    from smartfeeds.service.answers import ask

    after: str | None = None
    while True:
        page = ResultSetRequest(max=str(service.policy.page_max), after=after)
        request = ListConflicts(operator(service), service.policy.domain, name, page)
        conflicts = await ask(service.handle, request, ConflictList)
        for item in conflicts.entries:
            yield item
        if not conflicts.entries or conflicts.result_set is None:
            return
        after = conflicts.result_set.last


def _text_in(path: Path) -> str:
    from smartfeeds.cli.reading import read_bytes
    from smartfeeds.formats.xml import MAX_PAYLOAD_BYTES

    data = read_bytes(path, MAX_PAYLOAD_BYTES + 1)
    if len(data) > MAX_PAYLOAD_BYTES:
        raise ConfigError(f"{name_of(path)} is longer than {MAX_PAYLOAD_BYTES} bytes; write a shorter text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{name_of(path)} is not a text in UTF-8") from None


async def _resolve(
    service: "FeedService",
    node: str,
    item: str,
    keep: str,
    settle: tuple[str, ...],
    combined: "CombinedText | None",
    by: str | None,
) -> "ResolvedItem":
    from smartfeeds.features.conflicts.requests import ResolveConflicts, ResolvedItem
    from smartfeeds.service.answers import ask

    request = ResolveConflicts(
        act_as(service, by), service.policy.domain, node, item, keep, settle or None, combined=combined
    )
    return await ask(service.handle, request, ResolvedItem)


def _as_json(node: str, conflicted: "ConflictedItem") -> dict[str, Any]:
    return {
        "node": node,
        "item": conflicted.item.id,
        "sync_id": conflicted.version.sync_id,
        "versions": [
            _version(tag, version, wins=place == 0) for place, (tag, version) in enumerate(conflicted.versions)
        ],
    }


def _version(tag: str, version: "Version", *, wins: bool) -> dict[str, Any]:
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
    from smartfeeds.formats.atom import read_meta

    return one_line(read_meta(payload).body)[:_LONGEST_TITLE]


def _print_item(item: dict[str, Any], *, wide: bool) -> None:
    """Print an item with a line per version."""
    versions = item["versions"]
    print_out(f"{item['node']}: {item['item']}, {counted(len(versions), 'version')}")
    rows = [
        {
            "what": "wins" if version["wins"] else "conflict",
            "tag": version["tag"],
            "when": version["when"] or "-",
            "by": version["by"] or "-",
            "title": "(deleted)" if version["deleted"] else version["title"] or "(no title)",
        }
        for version in versions
    ]
    print_columns(rows, list(rows[0]), cut=("title",), wide=wide, heading=False, indent=2)
