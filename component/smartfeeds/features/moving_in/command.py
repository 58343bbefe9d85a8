"""`smartfeeds import --from`: moves the nodes of another service here.

The command `import` of the kernel gets these options (`Feature.extends`). A reader for each service yields nodes
(`moved`), and `moving` stores them one by one. A node that is refused stops no other node.
"""

import importlib
import os
from dataclasses import dataclass
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from smartfeeds.cli.common import load_settings
from smartfeeds.cli.fetching import file_or_address
from smartfeeds.cli.offline import actor_of, named_or_admin, run_offline
from smartfeeds.cli.reading import file_spool
from smartfeeds.console import exit_failed_if, print_err, print_json, print_lines, print_out
from smartfeeds.core.model import NodeKind
from smartfeeds.core.text import counted, one_line
from smartfeeds.errors import SmartfeedsError
from smartfeeds.lists import print_rows
from smartfeeds.store.base import OpenMode
from smartfeeds.system import now_us

if TYPE_CHECKING:
    from smartfeeds.features.moving_in.moved import MovedProblem, MovedReader
    from smartfeeds.features.moving_in.moving import NodeReport
    from smartfeeds.service.feeds import FeedService

# service -> the module and the function that reads its data; imported when it is used.
READERS: Final = {
    "ejabberd": ("ejabberd_sql", "read_ejabberd"),
    "prosody": ("prosody_sql", "read_prosody"),
    "sat-pubsub": ("sat_pubsub", "read_sat_pubsub"),
}
_HELP: Final = """

With --from, move the nodes of another service here, from its data in SOURCE: items with ids, dates and publishers,
options, affiliations and subscriptions. Subscribers are not notified of the items. The import can be repeated. Without
NODE all nodes are moved."""
_FORMER_NODES: Final = f"{__name__}.nodes"
_FROM: Final = (
    click.Option(["--from", "origin"], type=click.Choice(sorted(READERS)), help="The service whose data SOURCE is."),
    click.Option(["--host"], default="", help="With --from: the JID of the component there. Default: component.jid."),
    click.Option(
        ["--kind"],
        type=click.Choice([kind.value for kind in NodeKind]),
        help="With --from: the kind of new nodes. Default: a feed if all items are Atom entries, else generic.",
    ),
    click.Option(["--mirror"], is_flag=True, help="With --from: remove here what SOURCE does not have, in its nodes."),
    click.Option(["--dry-run"], is_flag=True, help="With --from: print what the import would do, and write nothing."),
)
# Options of the import of a document, which mean nothing for data of a service.
_DOCUMENT_ONLY: Final = ("sync", "own", "lenient", "base", "allow_private")


def with_from(command: click.Command) -> click.Command:
    """Return the command `import` with the option `--from` and those that go with it."""
    read_document = command.callback
    assert read_document is not None  # click leaves it open; the command of the kernel has a function

    def run(
        source: Path | str,
        nodes: tuple[str, ...],
        origin: str | None,
        host: str,
        kind: str | None,
        *,
        mirror: bool,
        dry_run: bool,
        **others: Any,
    ) -> object:
        if origin is None:
            if host or kind or mirror or dry_run:
                raise click.UsageError("--host, --kind, --mirror and --dry-run require --from")
            return read_document(source=document_source(source), node=single_node(nodes), **others)
        if any(others.get(name) for name in _DOCUMENT_ONLY):
            raise click.UsageError(
                "--from does not work with --sync, --own-edits, --lenient, --base or --allow-private"
            )
        arguments = Move(str(source), origin, host, nodes, others["owner"], kind, mirror=mirror, dry_run=dry_run)
        move(arguments, others["config"], as_json=others["as_json"])
        return None

    own: dict[str, click.Parameter] = {
        "source": click.Argument(["source"], type=import_source, metavar="FILE|URL|SOURCE"),
        "node": click.Argument(["nodes"], nargs=-1, metavar="[NODE]...", callback=_with_former),
        "former_node": click.Option(
            ["--node", "former_nodes"],
            multiple=True,
            hidden=True,
            expose_value=False,
            is_eager=True,
            callback=_keep_former,
        ),
    }
    params = [own.get(param.name or "", param) for param in command.params]
    # The library dedents the whole text, in which this paragraph has no indentation.
    text = f"{cleandoc(command.help or '')}{_HELP}"
    return click.Command(command.name, callback=run, params=[*params, *_FROM], help=text)


def _keep_former(ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> None:
    """Keep the nodes of the option --node, the former way to name them (`cli.common.node_argument`)."""
    ctx.meta[_FORMER_NODES] = values


def _with_former(ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    former: tuple[str, ...] = ctx.meta.pop(_FORMER_NODES, ())
    return values + former


def import_source(text: str) -> Path | str:
    """Return the path of a document, or another source as a text. Raises BadParameter for a missing file."""
    if "://" in text or os.path.isdir(text):  # noqa: PTH112 - is_dir raises for a folder that may not be read
        return text
    return file_or_address(text)


def document_source(source: Path | str) -> Path | str:
    """Return the source of a document. Raises BadParameter for a folder or a database, which only `--from` reads."""
    if isinstance(source, Path):
        return source
    try:
        document = file_or_address(source)
    except click.BadParameter as error:
        raise click.UsageError(f"{error.message} Folders and databases require --from.") from None
    return document


def single_node(nodes: tuple[str, ...]) -> str:
    """Return the node for the import of a document. Raises UsageError unless there is exactly one."""
    if len(nodes) != 1:
        raise click.UsageError("Missing argument 'NODE'." if not nodes else "a document is imported into one NODE")
    return nodes[0]


@dataclass(frozen=True, slots=True)
class Move:
    """The arguments of an import with `--from`."""

    source: str
    origin: str
    host: str
    nodes: tuple[str, ...]
    owner: str | None
    kind: str | None
    mirror: bool
    dry_run: bool


def move(arguments: Move, config: Path | None, *, as_json: bool) -> None:
    """Move the nodes, and print what was done or would be done. Ends the command as failed if a node was refused."""
    from smartfeeds.features.moving_in.moved import MovedProblem, UnreadableNode

    owner = named_or_admin(config, arguments.owner)
    host = arguments.host or load_settings(config).component.jid
    reports: list[NodeReport] = []
    problems: list[MovedProblem] = []
    show = _print_as_json if as_json else _print_reports
    try:
        run_offline(config, partial(_run, arguments, host, owner, reports, problems), OpenMode.CREATE)
    except SmartfeedsError:
        if reports:
            show(arguments, reports, problems)  # these nodes have moved
        raise
    missing = sorted(set(arguments.nodes) - {report.node for report in reports})
    problems += [MovedProblem(f"node {name}", f"{host} has no such node") for name in missing]
    show(arguments, reports, problems)
    unreadable = [problem for problem in problems if isinstance(problem, UnreadableNode)]
    exit_failed_if(missing or unreadable or not reports or any(report.outcome == "refused" for report in reports))


async def _run(
    arguments: Move,
    host: str,
    owner: str | None,
    reports: "list[NodeReport]",
    problems: "list[MovedProblem]",
    service: "FeedService",
) -> None:
    """Move the nodes, and add what was done to `reports` and `problems`."""
    from smartfeeds.features.moving_in.moved import MovedProblem
    from smartfeeds.features.moving_in.moving import MoveSettings, move_node
    from smartfeeds.terminal import progress_bar

    settings = MoveSettings(
        str(actor_of(service, owner)),
        NodeKind(arguments.kind) if arguments.kind else None,
        mirror=arguments.mirror,
        dry_run=arguments.dry_run,
    )
    with progress_bar() as progress:
        # One bar for all nodes: a service may have thousands.
        task = progress.add_task("", total=None)
        for part in _reader(arguments.origin)(arguments.source, host):
            if isinstance(part, MovedProblem):
                problems.append(part)
            elif not arguments.nodes or part.name in arguments.nodes:
                progress.update(task, description=one_line(part.name))
                with file_spool() as spool:
                    report = await move_node(
                        service, part, settings, spool, now_us(), on_progress=partial(progress.advance, task)
                    )
                reports.append(report)
        progress.update(task, total=progress.tasks[task].completed)


def _reader(origin: str) -> "MovedReader":
    module, function = READERS[origin]
    return cast("MovedReader", getattr(importlib.import_module(f"{__package__}.{module}"), function))


def _row(report: "NodeReport") -> dict[str, Any]:
    return {
        "node": report.node,
        "outcome": report.outcome,
        "kind": report.kind,
        **report.counts.counts(),
        "skipped": len(report.counts.skipped),
        "affiliations": report.affiliations,
        "subscriptions": report.subscriptions,
        "ended": report.ended,
    }


def _print_as_json(arguments: Move, reports: "list[NodeReport]", problems: "list[MovedProblem]") -> None:
    value = {
        "from": arguments.origin,
        "dry_run": arguments.dry_run,
        "nodes": [
            {
                **_row(report),
                "skipped": [{"item": item, "reason": reason} for item, reason in report.counts.skipped],
                "problems": [problem._asdict() for problem in report.problems],
            }
            for report in reports
        ],
        "problems": [problem._asdict() for problem in problems],
    }
    print_json(value)


def _print_reports(arguments: Move, reports: "list[NodeReport]", problems: "list[MovedProblem]") -> None:
    # The columns that are nearly always 0 or the same are in the JSON.
    brief = ("node", "outcome", "kind", "added", "skipped", "affiliations", "subscriptions")
    print_rows([_row(report) for report in reports], as_json=False, empty="there are no nodes to move", brief=brief)
    lines = [f"{problem.subject}: {problem.reason}" for problem in problems]
    for report in reports:
        lines += [f"{report.node}: skipped {item}: {reason}" for item, reason in report.counts.skipped]
        lines += [f"{report.node}: {problem.subject}: {problem.reason}" for problem in report.problems]
    print_lines(lines)
    what = "would be moved; nothing was written" if arguments.dry_run else "moved"
    done = sum(report.outcome != "refused" for report in reports)
    print_out(f"{counted(done, 'node')} {what}.")
    if any(report.subscriptions for report in reports) and not arguments.dry_run:
        print_err("note: subscribers receive what is published from now on")
