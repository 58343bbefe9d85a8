"""`smartfeeds import --sync` and `smartfeeds export --sync`: documents with histories and conflicts.

An import first reads the document into a spool, because items are merged oldest first, and the head of a feed may end
behind them. `sync_import` then merges them.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.cli.fetching import allowed_networks, fetch
from smartfeeds.cli.offline import actor_of, open_offline
from smartfeeds.cli.reading import FileSpool, OpenSource, file_spool, named, open_bytes, open_source, whole_document
from smartfeeds.console import print_err, print_lines, print_out
from smartfeeds.core.model import Item
from smartfeeds.errors import FeedError
from smartfeeds.features.sync_documents.sync_import import (
    DocumentItem,
    ImportReport,
    ImportTarget,
    PlainOutline,
    lacks,
    merge_document,
)
from smartfeeds.formats import atom
from smartfeeds.formats.additions import id_mark
from smartfeeds.formats.atom_feed import write_feed
from smartfeeds.formats.atom_reader import ATOM
from smartfeeds.formats.document_format import FeedExport, report_channel
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.feed_document import NO_DOCUMENT, FeedDocument, FormatLoss
from smartfeeds.formats.feed_reader import document_bytes, read_lines_by_index
from smartfeeds.formats.opml import write_outline
from smartfeeds.formats.opml_items import outline_of_entry
from smartfeeds.formats.plain_entry import ENTRY_START
from smartfeeds.formats.xml import MAX_PAYLOAD_BYTES, parse_payload, parse_stored
from smartfeeds.net.fetch import display_url
from smartfeeds.store.base import OpenMode
from smartfeeds.sync.arriving import is_deletion_alone, read_plain
from smartfeeds.sync.document_reader import DocumentPiece, FeedFormat, FeedReader, PieceKind
from smartfeeds.sync.document_writer import SharedOutline
from smartfeeds.sync.markup import without_sync
from smartfeeds.sync.merging import Outcome, RejectedItem
from smartfeeds.sync.sharing import NO_SHARING, Sharing
from smartfeeds.sync.sharing_markup import write_sharing
from smartfeeds.sync.sync_outline import neighbours_of, pieces_of, read_sync_outline

_EARLIEST_US = -(2**62)  # items without a date come before all others
_ROW = 5  # numbers of an item in `SyncDocument`


@dataclass(slots=True)
class SyncDocument:
    """A document as read: the places of its items in the spool, in the order of their first change, and its head.

    `fault` says why reading stopped before the end. The items before the fault are imported.
    """

    name: str
    form: FeedFormat = FeedFormat.ATOM
    feed: FeedDocument = NO_DOCUMENT
    next_page: str = ""
    sharing: Sharing = NO_SHARING
    fault: str = ""
    count: int = 0
    merge: ImportReport = field(default_factory=ImportReport)
    # Five numbers for each item: time, index, offset and size in the spool, and whether it has sync data. An array,
    # because a list of tuples would need five times the memory for a document of a million items.
    _rows: "array[int]" = field(default_factory=lambda: array("q"))
    outlines: list[DocumentItem] = field(default_factory=list)

    def add(self, spool: FileSpool, piece: DocumentPiece, *, synced: bool, time_us: int | None) -> None:
        """Put an item into the spool. An item without a date has the date of the item before it."""
        if time_us is None:
            time_us = self._rows[-_ROW] if self._rows else _EARLIEST_US
        self._rows.extend((time_us, piece.index, spool.append(piece.raw), len(piece.raw), synced))

    def items(self, spool: FileSpool) -> Iterator[DocumentItem]:
        """Yield the items oldest first, so that the feed receives them in the order of their creation. Outlines have
        the order of the document: each refers to those before it.
        """
        yield from self.outlines
        for row in sorted(range(0, len(self._rows), _ROW), key=self._rows.__getitem__):
            _, index, offset, size, synced = self._rows[row : row + _ROW]
            yield DocumentItem(index, spool.read(offset, size), bool(synced))


async def import_synced(
    file: Path | str,
    node: str,
    owner: str | None,
    base: str,
    config: Path | None,
    *,
    own: bool,
    lenient: bool,
    allow_private: bool,
) -> SyncDocument:
    """Merge a document into a node. Raises DocumentError if nothing of it can be read, FeedError, FetchError."""
    from smartfeeds.terminal import progress_bar

    with file_spool() as spool:
        if isinstance(file, str):
            fetched = await fetch(file, allowed_networks(config, allow_private=allow_private))
            base = base or fetched.url
            source = open_bytes(document_bytes(fetched.body, fetched.charset), display_url(file))
        else:
            source = open_source(file)
        with source as opened:
            document = _scan(opened, spool, base, lenient=lenient)
        async with open_offline(config, OpenMode.CREATE) as service:
            if document.sharing.is_partial:
                behind = await service.read(partial(lacks, name=node, sharing=document.sharing))
                document.merge.note([_partial(document.sharing, behind=behind)])
            target = ImportTarget(node, actor_of(service, owner), document.feed, own, lenient, base)
            with progress_bar() as progress:
                task = progress.add_task(f"{document.form.value} into {node}", total=document.count)
                await merge_document(
                    service, target, document.items(spool), document.merge, lambda count: progress.advance(task, count)
                )
    return document


def _scan(source: OpenSource, spool: FileSpool, base: str, *, lenient: bool) -> SyncDocument:
    """Read a document into the spool, up to its end or its first fault. Raises DocumentError if there is no item before
    it.
    """
    document = SyncDocument(source.name, source.form)
    if source.form is FeedFormat.OPML:
        with named(source.name):
            _read_outlines(document, whole_document(source), base, lenient=lenient)
        return document
    reader = FeedReader(lenient=lenient)
    with named(source.name):
        try:
            for piece in reader.read(source.chunks):
                document.count += 1
                _add_piece(document, spool, piece, base)
        except FeedError as error:
            if not document.count:
                raise
            document.fault = error.text or error.condition.value
            return document
        _read_head(document, reader, base)
    return document


def _read_outlines(document: SyncDocument, data: bytes, base: str, *, lenient: bool) -> None:
    """Read an outline. Outlines without sync data become items at the same place, too. Raises FeedError."""
    outlines = read_sync_outline(data, lenient=lenient)
    items = read_lines_by_index(outlines.document, len(data), base)
    neighbours = neighbours_of(outlines)
    for piece in pieces_of(outlines):
        document.count += 1
        index, outline = piece.index, None
        if piece.kind is PieceKind.REFUSED and not is_deletion_alone(piece.raw):
            document.merge.refuse(index, piece.reason)
            continue
        if piece.sync_item is None:
            if index not in items:
                document.merge.refuse(index, "the outline has no text, address or id")
                continue
            outline = PlainOutline(items[index], *neighbours[index])
        document.outlines.append(DocumentItem(index, piece.raw, outline is None, outline))
    head = replace(outlines.document, outlines=(), warnings=())
    document.feed = read_document(b"".join(write_outline(head)), base)
    document.sharing = outlines.sharing
    document.merge.note(outlines.notes)


def _add_piece(document: SyncDocument, spool: FileSpool, piece: DocumentPiece, base: str) -> None:
    if piece.sync_item is not None:
        times_us = [stamp.when_us for stamp in piece.sync_item.version.history if stamp.when_us is not None]
        document.add(spool, piece, synced=True, time_us=min(times_us, default=None))
        return
    # An export without sync data marks a deleted item but has no history for it. Such an item is imported as a
    # deletion.
    is_mark = piece.kind is PieceKind.REFUSED and len(piece.raw) <= MAX_PAYLOAD_BYTES and is_deletion_alone(piece.raw)
    if piece.kind is PieceKind.REFUSED and not is_mark:
        document.merge.refuse(piece.index, piece.reason)
        return
    try:
        document.add(spool, piece, synced=False, time_us=read_plain(piece.raw, base).made_us)
    except FeedError as error:
        document.merge.refuse(piece.index, error.text or error.condition.value)


def _read_head(document: SyncDocument, reader: FeedReader, base: str) -> None:
    """Read the head of the feed, which is complete at the end of the document."""
    head = reader.head() + reader.tail()
    document.feed = read_document(head, base)
    document.merge.note(document.feed.warnings)
    document.form, document.sharing = reader.form, reader.sharing
    links = parse_payload(head).iter(atom.LINK)
    document.next_page = next((link.get("href", "") for link in links if link.get("rel") == "next"), "")
    document.merge.note(reader.notes)
    document.merge.note(
        f"the feed aggregates {feed.link} {feed.title}".rstrip() for feed in document.sharing.aggregated
    )
    if document.next_page:
        document.merge.note(
            [f"the document is one page of a feed, and only this page was read; the next page is {document.next_page}"]
        )


def _partial(sharing: Sharing, *, behind: bool) -> str:
    """Return a note for users. No address in it is opened automatically (FS-021, FS-079)."""
    link = sharing.complete_link
    where = f"the complete feed is at {link}" if link else "ask its publisher for the complete feed"
    text = f"the document is a partial feed with changes since {sharing.since}; {where}"
    if not behind:
        return text
    return f"{text}. Older changes may be missing here, so import the complete feed too"


def merge_report(document: SyncDocument) -> dict[str, object]:
    """Return the result of an import as JSON."""
    merge = document.merge
    return {
        "format": document.form.value,
        "title": document.feed.title,
        **{outcome.value: merge.outcomes[outcome] for outcome in Outcome},
        "without_sync": merge.plain.counts(),
        "refused": merge.refused,
        "reasons": [{"item": item.index + 1, "reason": item.reason} for item in _in_order(merge)],
        "notes": merge.notes,
        "fault": document.fault,
    }


def _in_order(merge: ImportReport) -> list[RejectedItem]:
    return sorted(merge.reasons, key=lambda item: item.index)


def print_result(document: SyncDocument, node: str) -> None:
    """Print the result of an import."""
    merge = document.merge
    parts = [", ".join(f"{merge.outcomes[outcome]} {outcome.value}" for outcome in Outcome)]
    changes = merge.plain.counts()
    if any(changes.values()):
        counts = ", ".join(f"{count} {what}" for what, count in changes.items() if count)
        parts.append(f"without sync data {counts}")
    if merge.refused:
        parts.append(f"{merge.refused} refused")
    print_out(f"{document.name} ({document.form.value}, merged) into {node}: {'; '.join(parts)}.")
    reasons = [f"refused item {item.index + 1}: {item.reason}" for item in _in_order(merge)]
    for lines in (reasons, [f"note: {text}" for text in merge.notes]):
        print_lines(lines)
    if document.fault:
        print_err(f"{document.fault}: nothing after item {document.count} was read")


def failed(document: SyncDocument) -> bool:
    """Return whether the document was not read to its end, or nothing in it could be used."""
    return bool(document.fault) or bool(document.merge.refused and not document.merge.taken)


def write_shared(job: FeedExport, sharing: Sharing) -> Iterator[bytes]:
    """Yield an Atom feed with the sync data of each entry (FeedSync 1.4, 2.2). `job.items` must include sync data."""
    report_channel(job, ATOM.channel_parts - {"authors"})
    start, end = write_feed(job.head, (), whole=False)
    yield start
    if sharing != NO_SHARING:
        yield write_sharing(sharing) + b"\n"
    for item in _entries(job):
        yield _entry(item) + b"\n"
    yield end


def write_shared_outline(job: FeedExport, sharing: Sharing) -> Iterator[bytes]:
    """Yield an outline with the sync data of each item (SSE 2), as `write_shared` does."""
    report_channel(job, FORMATS["opml"].channel_parts)
    yield SharedOutline(job.head, sharing).whole(_outlines(job))


def _entries(job: FeedExport) -> Iterator[Item]:
    for item in job.items:
        if item.payload.startswith(ENTRY_START) or parse_stored(item.payload).tag == atom.ENTRY:
            yield item
        else:
            job.losses.append(FormatLoss(item.id, "the item, which is not an Atom entry and cannot be shared"))


def _outlines(job: FeedExport) -> Iterator[Item]:
    """Yield the items, and report the data of each that an outline cannot represent."""
    for item in _entries(job):
        if not item.deleted:
            outline_of_entry(read_entry(item._replace(payload=without_sync(item.payload))), job.losses)
        yield item


def _entry(item: Item) -> bytes:
    """Return an entry. Its item id is added if it differs from its sync id (A-154)."""
    if not item.sync_id:
        return item.payload
    return atom.with_child(item.payload, id_mark(item.id))
