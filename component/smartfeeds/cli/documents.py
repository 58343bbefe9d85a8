"""`smartfeeds import` and `smartfeeds export`: documents into nodes, and back."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from smartfeeds.cli.common import (
    Exit,
    config_option,
    err,
    json_option,
    out,
    print_json,
    progress_bar,
    read_settings,
    run_async,
)
from smartfeeds.cli.offline import actor_of, open_offline
from smartfeeds.cli.reading import DOCUMENT, name_of, read_file
from smartfeeds.cli.writing import check_report, end, report, tell, write_out, writing_options
from smartfeeds.core.model import Edge, Item, Slice
from smartfeeds.core.options import text_of
from smartfeeds.core.text import one_line
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.core.view import CREATED, Order, View
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.items import Document
from smartfeeds.formats.writers import WRITERS, Job
from smartfeeds.service.context import Context, IndexBehindError, Located, locate
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.importing import Imported, import_document
from smartfeeds.store.base import ReadTx

T = TypeVar("T")
CHUNK = 256
_SHOWN = 20


@click.command("import")
@click.argument("file", type=DOCUMENT)
@click.option("--node", required=True, help="The node to fill. It is made where it is missing.")
@click.option(
    "--owner",
    help="The bare JID that publishes, and owns a new node. Default: the first of pubsub.admins, else the component.",
)
@click.option("--base", default="", help="The address the document came from, for relative links in it.")
@config_option
@json_option
def import_command(file: Path, node: str, owner: str | None, base: str, config: Path | None, *, as_json: bool) -> None:
    """Bring the items of FILE (Atom, RSS, ActivityStreams, JSON Feed or OPML; - for standard input) into a node.

    Ids and dates are kept. What is there already and has not changed stays as it is, so an import can be repeated.
    What was skipped is told with the reason.
    """
    document = read_file(file, base)
    owner = owner or next(iter(read_settings(config).pubsub.admins), None)
    done = run_async(_import(config, node, document, owner))
    if as_json:
        print_json(_as_json(document, done))
    else:
        _tell(file, node, document, done)
        if owner is None and done.added + done.changed:
            err.print("note: the component is named as the publisher: name somebody with --owner, or in pubsub.admins")
    if document.items and len(done.skipped) == len(document.items):
        click.get_current_context().exit(Exit.FAILED)


async def _import(config: Path | None, node: str, document: Document, owner: str | None) -> Imported:
    async with open_offline(config, must_exist=False) as service:
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


def _as_json(document: Document, done: Imported) -> dict[str, object]:
    return {
        "format": document.format,
        "title": document.title,
        "added": done.added,
        "changed": done.changed,
        "deleted": done.deleted,
        "unchanged": done.unchanged,
        "skipped": [{"item": item, "reason": reason} for item, reason in _skipped(document, done)],
        "warnings": [*document.warnings, *(f"{i.id}: {warning}" for i in document.items for warning in i.warnings)],
    }


def _tell(file: Path, node: str, document: Document, done: Imported) -> None:
    out.print(
        f"{name_of(Path(file.name))} ({document.format}) into {node}: {done.added} added, {done.changed} changed, "
        f"{done.deleted} deleted, {done.unchanged} unchanged.",
        markup=False,
    )
    skipped = _skipped(document, done)
    for item, reason in skipped[:_SHOWN]:
        err.print(one_line(f"skipped {item}: {reason}"), markup=False)
    if len(skipped) > _SHOWN:
        err.print(f"skipped {len(skipped) - _SHOWN} more; --json lists all of them")
    for warning in document.warnings:
        err.print(one_line(f"note: {warning}"), markup=False)


@click.command("export")
@click.option("--node", required=True, help="The node, or a view of it such as 'comments?author=alice'.")
@writing_options
@config_option
def export_command(
    node: str, form: str, output: Path | None, config: Path | None, *, strict: bool, as_json: bool
) -> None:
    """Write a node as a document: all its items, with their ids and dates.

    In Atom they come oldest first, deleted ones marked, and an import gives the same node again. What another format
    cannot carry is told on standard error.
    """
    check_report(output, as_json=as_json)
    job, count = run_async(_export(config, node, form, output))
    if as_json and output is not None:
        report(form, job, count, output)
    else:
        tell(form, job, count, output)
    end(job, strict=strict)


async def _export(config: Path | None, name: str, form: str, output: Path | None) -> tuple[Job, int]:
    async with open_offline(config) as service:
        located = await service.read(lambda tx, _context: locate(tx, name))
        view = located.view if located.view.smart else CREATED
        with progress_bar() as progress:
            task = progress.add_task(f"{name} to {WRITERS[form].name}", total=None)
            exported = _Exported(service, located, view, asyncio.get_running_loop())
            items = exported.items(lambda done, total: progress.update(task, completed=done, total=total))
            job = Job(_head(service, located), items, time.time_ns() // 1000, keys=True)
            await asyncio.to_thread(write_out, form, job, output)
        return job, exported.count


def _head(service: FeedService, located: Located) -> FeedHead:
    node = located.node
    address = xmpp_uri(service.policy.domain, node.name)
    return FeedHead(
        id=address,
        title=text_of(node.kind, node.options, "title") or node.name,
        updated_us=max(node.last_modified_us, 0),
        self_link=address,
        subtitle=text_of(node.kind, node.options, "description"),
    )


@dataclass(slots=True)
class _Exported:
    """The items of a view for a writer in another thread, `count` of which were taken. A slice is held at a time, each
    read by itself, so that neither memory nor a running service feels how many there are."""

    service: FeedService
    located: Located
    view: View
    loop: asyncio.AbstractEventLoop
    count: int = 0

    def items(self, on_progress: Callable[[int, int], None]) -> Iterator[Item]:
        """All of them. Raises StoreError."""
        total = self._read(lambda tx, _context: tx.count(self.located.node.node_no, self.view))
        last: Item | None = None
        while chunk := self._read(partial(_slice, located=self.located, view=self.view, last=last)):
            yield from chunk
            last = chunk[-1]
            self.count += len(chunk)
            on_progress(self.count, max(total, self.count))

    def _read(self, work: Callable[[ReadTx, Context], T]) -> T:
        return asyncio.run_coroutine_threadsafe(self.service.read(work), self.loop).result()


def _slice(tx: ReadTx, _context: Context, *, located: Located, view: View, last: Item | None) -> list[Item]:
    if view.filtered and not tx.index_current(located.node.node_no):
        raise IndexBehindError(located.node.node_no)
    after = None
    if last is not None:
        after = Edge(last.created_us if view.order is Order.CREATED else last.modified_us, last.item_no)
    return tx.slice(located.node.node_no, Slice(view, CHUNK, after))
