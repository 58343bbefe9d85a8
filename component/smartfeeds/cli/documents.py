"""`smartfeeds import` and `smartfeeds export`: documents into nodes, and back."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.cli.fetching import FileOrAddress, fetch
from smartfeeds.cli.offline import actor_of, named_or_admin, open_offline
from smartfeeds.cli.reading import base_option, name_of, named, read_file
from smartfeeds.cli.sync_documents import SyncImport, failed, import_synced, write_shared
from smartfeeds.cli.sync_documents import as_json as merge_report
from smartfeeds.cli.sync_documents import tell as tell_merge
from smartfeeds.cli.writing import check_report, end, report, tell, write_out, write_pieces, writing_options
from smartfeeds.console import Exit, err, out, print_json, progress_bar, run_async
from smartfeeds.core.model import Edge, Item, Slice
from smartfeeds.core.text import counted, one_line
from smartfeeds.core.times import parse_time
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.core.view import CREATED, Order, View
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.documents import document_bytes, read_document
from smartfeeds.formats.feed_details import load_details
from smartfeeds.formats.items import Document
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.writers import WRITERS, Job
from smartfeeds.net.fetch import shown
from smartfeeds.service.context import Context, Located, locate
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.importing import Imported, import_document
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.service.syncing import shown as show
from smartfeeds.store.base import OpenMode, ReadTx
from smartfeeds.sync.markup import without_sync
from smartfeeds.sync.sharing import NOT_SAID, Window

T = TypeVar("T")


class _Time(click.ParamType[int]):
    """Microseconds from a date-time with a zone, or from Unix seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The microseconds; ends the command where the text is no time."""
        time_us = parse_time(str(value))
        if time_us is None:
            self.fail(f"{value!r} is not a time such as 2026-01-02T10:00:00Z", param, ctx)
        return time_us


TIME = _Time()
CHUNK = 256
_SHOWN = 20


@click.command("import")
@click.argument("source", type=FileOrAddress(), metavar="FILE|URL")
@click.option("--node", required=True, help="The node to fill. It is made where it is missing.")
@click.option(
    "--owner",
    help="The bare JID that publishes, and owns a new node. Default: the first of pubsub.admins, else the component.",
)
@base_option
@click.option("--sync", is_flag=True, help="Merge items that have sync data (FeedSync or SSE, in Atom or RSS 2.0).")
@click.option(
    "--own-edits",
    "--own",
    "own",
    is_flag=True,
    help="With --sync: believe changes made here that are lost here (a restored backup).",
)
@click.option("--lenient", is_flag=True, help="With --sync: read dates of SSE in other zones than GMT.")
@click.option("--allow-private", is_flag=True, help="Also ask addresses of private networks and of this machine.")
@config_option
@json_option
def import_command(
    source: Path | str,
    node: str,
    owner: str | None,
    base: str,
    config: Path | None,
    *,
    sync: bool,
    own: bool,
    lenient: bool,
    allow_private: bool,
    as_json: bool,
) -> None:
    """Bring the items of FILE (Atom, RSS, ActivityStreams, JSON Feed or OPML; - for standard input) into a node.

    Ids and dates are kept. What is there already and has not changed stays as it is, so an import can be repeated.
    What was skipped is told with the reason.

    With --sync each version is merged with what is here: winners, histories and conflicts are as everywhere else where
    these versions met. Items without sync data are brought in as without --sync.
    """
    if (own or lenient) and not sync:
        raise click.UsageError("--own-edits and --lenient are for --sync")
    owner = named_or_admin(config, owner)
    if sync:
        found = run_async(
            import_synced(SyncImport(source, node, owner, base, config, own=own, lenient=lenient, web=allow_private))
        )
        if as_json:
            print_json(merge_report(found))
        else:
            tell_merge(found, node)
            _tell_owner(owner, new=found.merge.changed)
        _fail(failed=failed(found))
        return
    name, document = _read(source, base, allow_private=allow_private)
    done = run_async(_import(config, node, document, owner))
    if as_json:
        print_json(_as_json(document, done))
    else:
        _tell(name, node, document, done)
        _tell_owner(owner, new=bool(done.added + done.changed))
    _fail(failed=_is_useless(document, done))


def _is_useless(document: Document, done: Imported) -> bool:
    """Whether nothing of it could be used; a feed that has no items yet says something of itself."""
    if document.items:
        return len(done.skipped) == len(document.items)
    return bool(document.skipped) or not (document.channel or document.id or document.title or document.link)


def _read(source: Path | str, base: str, *, allow_private: bool) -> tuple[str, Document]:
    """The document, and what to call it."""
    if isinstance(source, Path):
        return name_of(Path(source.name)), read_file(source, base)
    fetched = run_async(fetch(source, allow_private=allow_private))
    with named(shown(source)):
        return shown(source), read_document(document_bytes(fetched.body, fetched.charset), base or fetched.url)


def _tell_owner(owner: str | None, *, new: bool) -> None:
    if owner is None and new:
        err.print("note: the component is named as the publisher: name somebody with --owner, or in pubsub.admins")


def _fail(*, failed: bool) -> None:
    if failed:
        click.get_current_context().exit(Exit.FAILED)


async def _import(config: Path | None, node: str, document: Document, owner: str | None) -> Imported:
    async with open_offline(config, OpenMode.CREATE) as service:
        with progress_bar() as progress:
            task = progress.add_task(f"{document.format} into {node}", total=len(document.items))
            return await import_document(
                service,
                node,
                document,
                actor_of(service, owner),
                on_progress=lambda count: progress.advance(task, count),
            )


def _skipped(document: Document, done: Imported) -> list[tuple[str, str]]:
    return [(f"item {skipped.index + 1}", skipped.reason) for skipped in document.skipped] + list(done.skipped)


def _warnings(document: Document, done: Imported) -> list[str]:
    shared = sum(without_sync(item.payload) != item.payload for item in document.items)
    note = f"the sync data of {counted(shared, 'item')} was left out: --sync merges it"
    return [*document.warnings, *done.notes, *([note] if shared else [])]


def _as_json(document: Document, done: Imported) -> dict[str, object]:
    return {
        "format": document.format,
        "title": document.title,
        "added": done.added,
        "changed": done.changed,
        "deleted": done.deleted,
        "unchanged": done.unchanged,
        "skipped": [{"item": item, "reason": reason} for item, reason in _skipped(document, done)],
        "warnings": [
            *_warnings(document, done),
            *(f"{item.id}: {warning}" for item in document.items for warning in item.warnings),
        ],
    }


def _tell(name: str, node: str, document: Document, done: Imported) -> None:
    out.print(
        f"{name} ({document.format}) into {node}: {done.added} added, {done.changed} changed, "
        f"{done.deleted} deleted, {done.unchanged} unchanged.",
        markup=False,
    )
    skipped = _skipped(document, done)
    for item, reason in skipped[:_SHOWN]:
        err.print(one_line(f"skipped {item}: {reason}"), markup=False)
    if len(skipped) > _SHOWN:
        err.print(f"skipped {len(skipped) - _SHOWN} more; --json lists all of them")
    for warning in _warnings(document, done):
        err.print(one_line(f"note: {warning}"), markup=False)


@click.command("export")
@click.option("--node", required=True, help="The node, or a view of it such as 'comments?author=alice'.")
@click.option("--sync", is_flag=True, help="Write sync data too, histories and conflicts (FeedSync). For atom alone.")
@click.option("--since", type=TIME, help="With --sync: only what changed since then, such as 2026-01-02T10:00:00Z.")
@click.option("--complete", help="With --since: the address of the complete feed, for readers who lack older changes.")
@writing_options
@config_option
def export_command(
    node: str,
    form: str,
    output: Path | None,
    since: int | None,
    complete: str | None,
    config: Path | None,
    *,
    sync: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Write a node as a document: all its items, with their ids and dates.

    In Atom they come oldest first, deleted ones marked, and an import gives the same node again. What another format
    cannot carry is told on standard error. With --sync `import --sync` elsewhere gives the same versions.
    """
    check_report(output, as_json=as_json)
    _check_sync(form, since, complete, sync=sync)
    job, count = run_async(_export(config, node, form, output, Part(sync, since, complete or "")))
    if as_json and output is not None:
        report(form, job, count, output)
    else:
        tell(form, job, count, output)
    end(job, strict=strict)


def _check_sync(form: str, since: int | None, complete: str | None, *, sync: bool) -> None:
    if since is not None and not sync:
        raise click.UsageError("--since is for --sync")
    if complete is not None and since is None:
        raise click.UsageError("--complete is for --since: a feed that is complete refers to no other")
    if complete is not None and (not is_uri(complete) or "#" in complete):
        raise click.UsageError("--complete is an absolute address without a fragment")
    if sync and form != "atom":
        name = WRITERS[form].name
        raise click.UsageError(
            f"--sync is for --to atom: an entry does not come back from {name} as it was, and would pass for the same "
            "version with another content"
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What of a node is exported: with sync data or without, and of these what changed since a time."""

    sync: bool = False
    since_us: int | None = None
    complete: str = ""


async def _export(config: Path | None, name: str, form: str, output: Path | None, part: Part) -> tuple[Job, int]:
    # A filtered view may have to bring the filter index forward first, which is a write.
    async with open_offline(config, OpenMode.WRITE) as service:
        located = await service.read(lambda tx, _context: locate(tx, name))
        view = located.view if located.view.smart else CREATED
        sharing, after = NOT_SAID, None
        if part.since_us is not None:
            view = replace(view, order=Order.MODIFIED)
            window = _window(located, part.since_us)
            sharing, after = window.sharing(part.complete), Edge(window.since_us, -1)
        with progress_bar() as progress:
            task = progress.add_task(f"{name} to {WRITERS[form].name}", total=None)
            exported = _Exported(service, located, replace(view, sync=part.sync), asyncio.get_running_loop(), after)
            items = exported.items(lambda done, total: progress.update(task, completed=done, total=total))
            job = Job(_head(service, located), items, time.time_ns() // 1000, keys=True)
            if part.sync:
                await asyncio.to_thread(write_pieces, write_shared(job, sharing), output)
            else:
                await asyncio.to_thread(write_out, form, job, output)
        return job, exported.count


def _window(located: Located, since_us: int) -> Window:
    """The bounds of a partial feed: what changes while it is written is later than these, and comes with the next."""
    until_us = max(located.node.last_modified_us, 0)
    return Window(min(since_us, until_us), until_us)


def _head(service: FeedService, located: Located) -> FeedHead:
    node = located.node
    address = xmpp_uri(service.policy.domain, node.name)
    details = load_details(node.options.details)
    return FeedHead(
        link=details.link,
        icon=details.channel.icon,
        hub=details.channel.hub,
        authors=details.channel.authors,
        language=node.options.language,
        channel=details.channel,
        id=address,
        title=node.options.title or node.name,
        updated_us=max(node.last_modified_us, 0),
        self_link=address,
        entry_prefix=f"{address};item=",
        subtitle=node.options.description,
    )


@dataclass(slots=True)
class _Exported:
    """The items of a view for a writer in another thread, `count` of which were taken. A slice is held at a time, each
    read by itself, so that neither memory nor a running service feels how many there are."""

    service: FeedService
    located: Located
    view: View
    loop: asyncio.AbstractEventLoop
    after: Edge | None = None
    count: int = 0

    def items(self, on_progress: Callable[[int, int], None]) -> Iterator[Item]:
        """All of them. Raises StoreError."""
        total = self._read(lambda tx, _context: tx.count(self.located.node.node_no, self.view))
        after = self.after
        while chunk := self._read(partial(_slice, located=self.located, view=self.view, after=after)):
            yield from chunk
            last = chunk[-1]
            after = Edge(last.created_us if self.view.order is Order.CREATED else last.modified_us, last.item_no)
            self.count += len(chunk)
            on_progress(self.count, max(total, self.count))

    def _read(self, work: Callable[[ReadTx, Context], T | IndexFirst]) -> T:
        return asyncio.run_coroutine_threadsafe(self.service.read(work), self.loop).result()


def _slice(
    tx: ReadTx, context: Context, *, located: Located, view: View, after: Edge | None
) -> list[Item] | IndexFirst:
    node = located.node
    if (behind := index_first(tx, node, view)) is not None:
        return behind
    return [show(context, node, view, item) for item in tx.slice(node.node_no, Slice(view, CHUNK, after))]
