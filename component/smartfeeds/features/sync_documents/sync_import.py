"""Imports documents with sync data into nodes. Each version is merged with the local item (FeedSync 3.3; FS-022).

A transaction merges a few items, so a document may have any length. A refused item changes nothing and stops no other
item (A-52). A second import of the same document changes nothing (A-59).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from smartfeeds.core.jid import Jid
from smartfeeds.errors import FeedError
from smartfeeds.formats.feed_document import NO_DOCUMENT, FeedDocument, ImportedItem
from smartfeeds.service.context import Context, feed_locked
from smartfeeds.service.importing import ImportCounts, ensure_feed, import_items
from smartfeeds.service.merging import IncomingItem, MergeResult, merge_items
from smartfeeds.service.placing import is_shown, put_place, update_place
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.sync.arriving import names_of, read_arrived, read_plain
from smartfeeds.sync.merging import MergeReport, Outcome
from smartfeeds.sync.places import Place
from smartfeeds.sync.sharing import Sharing, format_bound, is_out_of_sync
from smartfeeds.sync.trees import ROOT

if TYPE_CHECKING:
    from smartfeeds.service.feeds import FeedService

# Items and bytes that one transaction merges. The writes of other callers run between two transactions.
CHUNK = 64
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PlainOutline:
    """An outline without sync data: its item, and the indices of the outline above it and of the sibling before it."""

    item: ImportedItem
    parent: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentItem:
    """An item of a document: its index, counted from 0, its bytes, and whether it has sync data. `outline` is set for
    an outline without sync data, which has a place in the document."""

    index: int
    raw: bytes
    synced: bool
    outline: PlainOutline | None = None


@dataclass(slots=True)
class ImportReport(MergeReport):
    """The effects of an import; `plain` are the items without sync data."""

    plain: ImportCounts = field(default_factory=ImportCounts)

    @property
    def changed(self) -> bool:
        """Whether the import changed anything."""
        plain = self.plain
        merged = self.outcomes.total() - self.outcomes[Outcome.UNCHANGED]
        return bool(merged + plain.added + plain.changed + plain.deleted)

    @property
    def taken(self) -> int:
        """The number of items of the document that are in the node now, changed or not."""
        plain = self.plain
        return self.outcomes.total() + plain.added + plain.changed + plain.deleted + plain.unchanged


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The target of an import: the node, which is created if it is missing, the publisher, and the document's metadata.

    With `own`, histories may have changes of this service that its database does not have (after a restore from a
    backup); otherwise such an item is refused. `lenient` accepts SSE dates in other zones. `base` resolves relative
    links in items without sync data. Items with sync data stay unchanged.
    """

    node: str
    actor: Jid
    feed: FeedDocument = NO_DOCUMENT
    own: bool = False
    lenient: bool = False
    base: str = ""


_Content = IncomingItem | ImportedItem | PlainOutline
_Result = MergeResult | ImportCounts


async def merge_document(
    service: "FeedService",
    target: ImportTarget,
    items: Iterable[DocumentItem],
    merge: ImportReport,
    on_progress: Callable[[int], None] = lambda _count: None,
) -> None:
    """Merges the items of a document into a node, in their order, and records the results in `merge`.

    This function checks neither rights nor quotas: it is for operators. `on_progress` gets the number of items done
    since the last call. Raises FeedError if the node cannot be created or is no feed.
    """
    merge.note(await ensure_feed(service, target.node, target.actor, target.feed))
    sync_ids: dict[int, str] = {}
    for chunk in _chunks(items):
        # Read before the transaction, in which other writes wait.
        contents: list[tuple[int, _Content]] = []
        for item in chunk:
            try:
                contents.append((item.index, _read(item, target)))
            except FeedError as error:
                merge.refuse(item.index, error.text or error.condition.value)
        work = partial(_bring, target=target, items=contents, sync_ids=sync_ids)
        for (index, _), result in zip(contents, await service.write(work), strict=True):
            _count(merge, index, result)
        on_progress(len(chunk))


def _chunks(items: Iterable[DocumentItem]) -> Iterator[list[DocumentItem]]:
    """Yields the items in chunks of at most CHUNK items and, unless one item is larger, CHUNK_BYTES bytes."""
    chunk: list[DocumentItem] = []
    size_bytes = 0
    for item in items:
        if chunk and (len(chunk) == CHUNK or size_bytes + len(item.raw) > CHUNK_BYTES):
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(item)
        size_bytes += len(item.raw)
    if chunk:
        yield chunk


def _read(item: DocumentItem, target: ImportTarget) -> _Content:
    if item.outline is not None:
        return item.outline
    if not item.synced:
        return read_plain(item.raw, target.base)
    return IncomingItem(*read_arrived(item.raw, lenient=target.lenient), names_of(item.raw, target.base))


def _bring(
    tx: WriteTx,
    context: Context,
    target: ImportTarget,
    items: Sequence[tuple[int, _Content]],
    sync_ids: dict[int, str],
) -> list[_Result]:
    """Merges or imports items, one after the other, and returns the result of each. `sync_ids` has the sync ids of the
    items of the document that are in the node, by index."""
    # Before the first read of an item: another process could change it between that read and its merge.
    feed_locked(tx, target.node)
    results: list[_Result] = []
    for index, item in items:
        if isinstance(item, IncomingItem):
            results += merge_items(tx, context, target.node, target.actor.bare_text, [item], own=target.own)
            sync_ids[index] = item.sync_item.version.sync_id
            continue
        plain = item.item if isinstance(item, PlainOutline) else item
        try:
            counts = import_items(tx, context, target.node, target.actor, [plain])
        except FeedError as error:
            results.append(MergeResult(plain.id, reason=error.text or error.condition.value))
            continue
        if isinstance(item, PlainOutline):
            counts = _place(tx, context, target, index, item, sync_ids, counts)
        results.append(counts)
    return results


def _place(
    tx: WriteTx,
    context: Context,
    target: ImportTarget,
    index: int,
    outline: PlainOutline,
    sync_ids: dict[int, str],
    counts: ImportCounts,
) -> ImportCounts:
    """Gives an item its place in the outline, if no outline here shows it: people here may have moved the others.
    Returns the counts of its import after that."""
    node = feed_locked(tx, target.node)
    item = tx.item(node.node_no, outline.item.id)
    if item is None or item.deleted:
        return counts
    sync_ids[index] = item.sync_id or item.id
    if is_shown(tx, context, node, item):
        return counts
    parent, after = (ROOT if at is None else sync_ids.get(at, ROOT) for at in (outline.parent, outline.after))
    if not counts.unchanged:
        put_place(tx, context, node, item, Place(parent, after))
        return counts
    update_place(tx, context, node, item, Place(parent, after), target.actor.bare_text)
    return ImportCounts(changed=1)


def _count(merge: ImportReport, index: int, result: _Result) -> None:
    if isinstance(result, MergeResult):
        merge.note(result.notes)
        if result.outcome is None:
            merge.refuse(index, f"{result.sync_id}: {result.reason}")
        else:
            merge.outcomes[result.outcome] += 1
    elif result.skipped:
        merge.refuse(index, f"{result.skipped[0][0]}: {result.skipped[0][1]}")
    else:
        merge.plain += result


def lacks(tx: ReadTx, _context: Context, name: str, sharing: Sharing) -> bool:
    """Returns whether a partial feed begins after the last change of the node. Items are missing then (FS-079).

    The opposite does not prove that nothing is missing, because nodes store no position per document.
    """
    if sharing.since is None:
        return False
    node = tx.node(name)
    if node is None or node.last_modified_us < 0:
        return True
    return is_out_of_sync(format_bound(node.last_modified_us), sharing.since)
