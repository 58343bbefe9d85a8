"""`smartfeeds import` and `smartfeeds export`: documents to nodes, and nodes to documents."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from smartfeeds.cli.common import config_option, json_option, name_of, node_argument, private_option
from smartfeeds.cli.fetching import allowed_networks, fetch, file_or_address
from smartfeeds.cli.offline import actor_of, named_or_admin, run_offline
from smartfeeds.cli.reading import base_option, named, read_file
from smartfeeds.cli.writing import check_report, finish, write_out, writing_options
from smartfeeds.console import exit_failed_if, print_err, print_json, print_lines, print_out, run_async
from smartfeeds.core.model import Edge, Item, Slice
from smartfeeds.core.text import counted
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.core.view import CREATED, Order, View
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.net.fetch import display_url

if TYPE_CHECKING:
    from smartfeeds.formats.atom_feed import FeedHead
    from smartfeeds.formats.feed_document import FeedDocument, FormatLoss
    from smartfeeds.service.context import Context, LocatedNode
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.importing import ImportCounts
    from smartfeeds.service.steps import IndexFirst
    from smartfeeds.store.base import ReadTx

T = TypeVar("T")


CHUNK = 256  # items of one transaction: a long read would let the WAL file of a running service grow


@click.command("import")
@click.argument("source", type=file_or_address, metavar="FILE|URL")
@node_argument()
@click.option(
    "--owner",
    help="The bare JID that publishes and owns a new node. Default: the first of pubsub.admins, else the component.",
)
@base_option
@private_option
@config_option
@json_option
def import_command(
    source: Path | str,
    node: str,
    owner: str | None,
    base: str,
    config: Path | None,
    *,
    allow_private: bool,
    as_json: bool,
) -> None:
    """Import the items of FILE (Atom, RSS, ActivityStreams, JSON Feed or OPML; - for standard input) into NODE.

    NODE is created if it does not exist. Ids and dates are preserved. Items that have not changed are skipped, so an
    import can be repeated. Standard error lists skipped items with the reasons.
    """
    from smartfeeds.store.base import OpenMode

    owner = named_or_admin(config, owner)
    name, document = _read(source, base, config, allow_private=allow_private)
    result = run_offline(config, partial(_import, node=node, document=document, owner=owner), OpenMode.CREATE)
    if as_json:
        print_json(_as_json(document, result))
    else:
        _print_result(name, node, document, result)
        hint_owner(owner, new=bool(result.added + result.changed))
    exit_failed_if(_is_useless(document, result))


def _is_useless(document: "FeedDocument", result: "ImportCounts") -> bool:
    """Return whether nothing in the document could be used. A feed without items still has a title or an id."""
    if document.items:
        return len(result.skipped) == len(document.items)
    return bool(document.skipped) or not (document.channel or document.id or document.title or document.link)


def _read(source: Path | str, base: str, config: Path | None, *, allow_private: bool) -> "tuple[str, FeedDocument]":
    """Return the document and its name for messages."""
    from smartfeeds.app.formats import read_document

    if isinstance(source, Path):
        return name_of(Path(source.name)), read_file(source, base)
    fetched = run_async(fetch(source, allowed_networks(config, allow_private=allow_private)))
    with named(display_url(source)):
        return display_url(source), read_document(fetched.body, base or fetched.url, fetched.charset)


def hint_owner(owner: str | None, *, new: bool) -> None:
    """Print a note if the component is the publisher of new items because nobody else was named."""
    if owner is None and new:
        print_err("note: the publisher is the component; name another with --owner or in pubsub.admins")


async def _import(service: "FeedService", node: str, document: "FeedDocument", owner: str | None) -> "ImportCounts":
    from smartfeeds.service.importing import import_document, index_import
    from smartfeeds.terminal import progress_bar

    with progress_bar() as progress:
        task = progress.add_task(f"{document.format} into {node}", total=len(document.items))
        actor = actor_of(service, owner)
        result = await import_document(
            service, node, document, actor, on_progress=lambda count: progress.advance(task, count)
        )
        await index_import(service, node)
        return result


def _skipped(document: "FeedDocument", result: "ImportCounts") -> list[tuple[str, str]]:
    return [(f"item {skipped.index + 1}", skipped.reason) for skipped in document.skipped] + list(result.skipped)


def _warnings(document: "FeedDocument", result: "ImportCounts") -> list[str]:
    from smartfeeds.sync.markup import without_sync

    shared = sum(without_sync(item.payload) != item.payload for item in document.items)
    note = f"the sync data of {counted(shared, 'item')} was ignored; --sync merges it"
    return [*document.warnings, *result.notes, *([note] if shared else [])]


def _as_json(document: "FeedDocument", result: "ImportCounts") -> dict[str, object]:
    return {
        "format": document.format,
        "title": document.title,
        **result.counts(),
        "skipped": [{"item": item, "reason": reason} for item, reason in _skipped(document, result)],
        "warnings": [
            *_warnings(document, result),
            *(f"{item.id}: {warning}" for item in document.items for warning in item.warnings),
        ],
    }


def _print_result(name: str, node: str, document: "FeedDocument", result: "ImportCounts") -> None:
    counts = ", ".join(f"{count} {what}" for what, count in result.counts().items())
    print_out(f"{name} ({document.format}) into {node}: {counts}.")
    print_lines([f"skipped {item}: {reason}" for item, reason in _skipped(document, result)], "skipped {} more")
    for warning in _warnings(document, result):
        print_err(f"note: {warning}")


@click.command("export")
@node_argument()
@writing_options
@config_option
def export_command(
    node: str, form: str, output: Path | None, config: Path | None, *, strict: bool, as_json: bool
) -> None:
    """Export all items of NODE as a document, with their ids and dates.

    NODE may be a view, such as 'comments?author=alice'. An Atom document has the items oldest first, with marks for
    deleted items; importing it gives the same node. Standard error lists data that another format cannot represent.
    """
    check_report(output, as_json=as_json)
    job, count = export(config, partial(_export, name=node, form=form, output=output))
    finish(form, job, count, output, strict=strict, as_json=as_json)


Exported = tuple[FeedExport, int]


def export(config: Path | None, work: "Callable[[FeedService], Coroutine[None, None, Exported]]") -> Exported:
    """Export from the store of the configuration."""
    from smartfeeds.store.base import OpenMode

    # Expired items are removed first, and a filtered view may have to update the filter index: both are writes.
    return run_offline(config, work, OpenMode.WRITE)


async def _export(service: "FeedService", *, name: str, form: str, output: Path | None) -> Exported:
    from smartfeeds.app.formats import FORMATS

    located = await locate_view(service, name)
    view = located.view if located.view.smart else CREATED
    plan = ExportPlan(located, replace(view, sync=False), f"{name} to {FORMATS[form].name}")
    return await export_view(service, plan, lambda job: write_out(form, job, output))


async def locate_view(service: "FeedService", name: str) -> "LocatedNode":
    """Return the node or view that is to be exported. Raises FeedError."""
    return await service.read(partial(_located, name=name))


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The items that are to be exported: those of a view that come after an edge. `what` is the text of the progress
    bar."""

    located: "LocatedNode"
    view: View
    what: str
    after: Edge | None = None


async def export_view(service: "FeedService", plan: ExportPlan, write: Callable[[FeedExport], None]) -> Exported:
    """Write items as a document, and return the document and the number of its items. `write` runs in a thread."""
    from smartfeeds.terminal import progress_bar

    with progress_bar() as progress:
        task = progress.add_task(plan.what, total=None)
        exported = _Exported(service, plan, asyncio.get_running_loop())
        items = exported.items(lambda done, total: progress.update(task, completed=done, total=total))
        job = FeedExport(_head(service, plan.located), items, time.time_ns() // 1000, keys=True)
        await asyncio.to_thread(write, job)
    job.losses += exported.losses
    return job, exported.count


def _located(tx: "ReadTx", context: "Context", name: str) -> "LocatedNode":
    from smartfeeds.service.context import check_expired, locate

    located = locate(tx, name)
    check_expired(tx, context, located.node)
    return located


def _head(service: "FeedService", located: "LocatedNode") -> "FeedHead":
    from smartfeeds.formats.atom_feed import FeedHead
    from smartfeeds.formats.feed_details import load_details

    node = located.node
    address = xmpp_uri(service.policy.domain, node.name)
    details = load_details(node.options.details)
    return FeedHead(
        link=details.link,
        language=node.options.language,
        channel=details.channel,
        id=address,
        title=node.options.title or node.name,
        updated_us=max(node.last_modified_us, 0),
        self_link=address,
        entry_prefix=f"{address};item=",
        subtitle=node.options.description,
    )


_DAMAGED = "the whole item: it is damaged in the database"


@dataclass(slots=True)
class _Exported:
    """The items of a view for a writer in another thread. `count` is the number of items read, and `losses` are the
    damaged ones, which are left out.

    Each slice is read in a transaction of its own, so that memory stays small and a running service is not delayed.
    """

    service: "FeedService"
    plan: ExportPlan
    loop: asyncio.AbstractEventLoop
    count: int = 0
    losses: "list[FormatLoss]" = field(default_factory=list)

    def items(self, on_progress: Callable[[int, int], None]) -> Iterator[Item]:
        """Yield all items. Raises StoreError."""
        from smartfeeds.formats.feed_document import FormatLoss

        located, view, after = self.plan.located, self.plan.view, self.plan.after
        total = self._read(lambda tx, _context: tx.count(located.node.node_no, view))
        while chunk := self._read(partial(_slice, located=located, view=view, after=after)):
            yield from (item for item in chunk if not item.damaged)
            self.losses += [FormatLoss(item.id, _DAMAGED) for item in chunk if item.damaged]
            last = chunk[-1]
            after = Edge(last.created_us if view.order is Order.CREATED else last.modified_us, last.item_no)
            self.count += len(chunk)
            on_progress(self.count, max(total, self.count))

    def _read(self, work: "Callable[[ReadTx, Context], T | IndexFirst]") -> T:
        return asyncio.run_coroutine_threadsafe(self.service.read(work), self.loop).result()


def _slice(
    tx: "ReadTx", context: "Context", *, located: "LocatedNode", view: View, after: Edge | None
) -> "list[Item] | IndexFirst":
    from smartfeeds.service.steps import index_first
    from smartfeeds.service.syncing import item_in_view

    node = located.node
    if (behind := index_first(tx, node, view)) is not None:
        return behind
    return [item_in_view(context, node, view, item) for item in tx.slice(node.node_no, Slice(view, CHUNK, after))]
