"""The options of `import` and `export` for sync data: `--sync` and those that go with it.

The kernel has both commands without sync data. These functions wrap their callbacks, and pass everything else on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from smartfeeds.app.formats import FORMATS
from smartfeeds.cli.import_export import Exported, ExportPlan, export, export_view, hint_owner, locate_view
from smartfeeds.cli.offline import named_or_admin
from smartfeeds.cli.writing import check_report, finish, write_pieces
from smartfeeds.console import exit_failed_if, print_json, run_async
from smartfeeds.core.model import Edge
from smartfeeds.core.options import SSE
from smartfeeds.core.times import parse_time
from smartfeeds.core.view import CREATED, Order
from smartfeeds.features.sync_documents.sync_documents import write_shared, write_shared_outline
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.links import is_uri
from smartfeeds.sync.sharing import FeedWindow, Sharing

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

# The formats with sync data.
_SHARED: Final[Mapping[str, Callable[[FeedExport, Sharing], Iterator[bytes]]]] = {
    "atom": write_shared,
    "opml": write_shared_outline,
}
_IMPORT_HELP: Final = """

    With --sync every version is merged with the version here: winners, histories and conflicts are the same wherever
    these versions meet. Items without sync data are imported as without --sync. The outlines of OPML keep their
    folders and their order.
"""
_EXPORT_HELP: Final = (
    " With --sync, `import --sync` elsewhere gives the same versions. OPML with --sync has the folders and the order "
    "of the outline."
)


def _time_us(text: str) -> int:
    """Return microseconds since the epoch, from a date-time with a zone or from Unix seconds. Raises BadParameter."""
    value_us = parse_time(text)
    if value_us is None:
        raise click.BadParameter(f"{text!r} is not a time such as 2026-01-02T10:00:00Z")
    return value_us


_IMPORT: Final = (
    click.Option(
        ["--sync"], is_flag=True, help="Merge items that have sync data (FeedSync or SSE; Atom, RSS 2.0 or OPML)."
    ),
    click.Option(
        ["--own-edits", "--own", "own"],
        is_flag=True,
        help="With --sync: accept changes by this service that its database lacks (after a restored backup).",
    ),
    click.Option(["--lenient"], is_flag=True, help="With --sync: accept SSE dates in time zones other than GMT."),
)
_EXPORT: Final = (
    click.Option(
        ["--sync"],
        is_flag=True,
        help="Include sync data: histories and conflicts. Requires --to atom or opml.",
    ),
    click.Option(
        ["--since"],
        type=_time_us,
        metavar="TIME",
        help="With --sync: only changes since this time, such as 2026-01-02T10:00:00Z.",
    ),
    click.Option(
        ["--complete"],
        help="With --since: the address of the complete feed, for readers without older changes.",
    ),
)


def with_sync_import(command: click.Command) -> click.Command:
    """Return the command `import` with the option `--sync` and those that go with it."""
    import_plain = command.callback
    assert import_plain is not None  # click leaves it open; the command of the kernel has a function

    def run(*, sync: bool, own: bool, lenient: bool, **others: Any) -> None:
        if (own or lenient) and not sync:
            raise click.UsageError("--own-edits and --lenient require --sync")
        if sync:
            _import_synced(own=own, lenient=lenient, **others)
        else:
            import_plain(**others)

    return _extended(command, run, "base", _IMPORT, f"{command.help}{_IMPORT_HELP}")


def with_sync_export(command: click.Command) -> click.Command:
    """Return the command `export` with the option `--sync` and those that go with it."""
    export_plain = command.callback
    assert export_plain is not None  # as above

    def run(*, sync: bool, since: int | None, complete: str | None, **others: Any) -> None:
        if since is not None and not sync:
            raise click.UsageError("--since requires --sync")
        if complete is not None and since is None:
            raise click.UsageError("--complete requires --since, because a complete feed does not refer to another")
        if sync:
            _export_synced(since=since, complete=complete, **others)
        else:
            export_plain(**others)

    return _extended(command, run, "node", _EXPORT, f"{(command.help or '').rstrip()}{_EXPORT_HELP}")


def _extended(
    command: click.Command,
    run: Callable[..., object],
    before: str,
    options: tuple[click.Option, ...],
    help_text: str,
) -> click.Command:
    """The command with these options behind the parameter `before`."""
    place = next(number for number, param in enumerate(command.params, 1) if param.name == before)
    params = [*command.params[:place], *options, *command.params[place:]]
    return click.Command(command.name, callback=run, params=params, help=help_text)


def _import_synced(
    source: Path | str,
    node: str,
    owner: str | None,
    base: str,
    config: Path | None,
    *,
    own: bool,
    lenient: bool,
    allow_private: bool,
    as_json: bool,
) -> None:
    from smartfeeds.features.sync_documents.sync_documents import failed, import_synced, merge_report, print_result

    owner = named_or_admin(config, owner)
    work = import_synced(source, node, owner, base, config, own=own, lenient=lenient, allow_private=allow_private)
    synced = run_async(work)
    if as_json:
        print_json(merge_report(synced))
    else:
        print_result(synced, node)
        hint_owner(owner, new=synced.merge.changed)
    exit_failed_if(failed(synced))


def _export_synced(
    node: str,
    form: str,
    output: Path | None,
    config: Path | None,
    *,
    since: int | None,
    complete: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    check_report(output, as_json=as_json)
    if complete is not None and (not is_uri(complete) or "#" in complete):
        raise click.UsageError(f"--complete must be an absolute address without a fragment, not {complete}")
    if form not in _SHARED:
        raise click.UsageError(
            f"--sync requires --to atom, or --to opml for outlines: {FORMATS[form].name} cannot carry entries "
            "unchanged, and one version would have two contents"
        )
    work = partial(_export, name=node, form=form, output=output, since_us=since, complete=complete or "")
    job, count = export(config, work)
    finish(form, job, count, output, strict=strict, as_json=as_json)


async def _export(
    service: "FeedService", *, name: str, form: str, output: Path | None, since_us: int | None, complete: str
) -> Exported:
    located = await locate_view(service, name)
    view = replace(located.view if located.view.smart else CREATED, sync=True)
    # Changes during the export are later than these bounds, so the next export has them.
    node = located.node
    is_sse = node.options.sync_dialect == SSE
    window, after = FeedWindow.of_all(node.created_us, node.last_modified_us, sse=is_sse), None
    if since_us is None:
        sharing = window.complete_sharing(sse=is_sse)
    else:
        view = replace(view, order=Order.MODIFIED)
        window = replace(window, since_us=min(since_us, window.until_us))
        # Before the items of exactly this time: `--since` includes them.
        sharing, after = window.sharing(complete, sse=is_sse), Edge(window.since_us, -1)
    plan = ExportPlan(located, view, f"{name} to {FORMATS[form].name}", after)
    return await export_view(service, plan, lambda job: write_pieces(_SHARED[form](job, sharing), output))
