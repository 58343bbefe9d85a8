"""Merges two feeds item by item, with an index of ids in memory and the items in a spool (FeedSync 3.3, SSE 3.1).

An item on one side only, an item equal on both sides, and an item that has seen the other version are copied as bytes.
Only versions that conflict are read completely. The memory holds two items and the index, however long the feeds are.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.text import to_nss
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.xml import Element, canonical, parse_stored
from smartfeeds.sync.arriving import as_entry
from smartfeeds.sync.document_reader import DocumentPiece, FeedFormat, FeedReader, PieceKind
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.item_forms import to_rss, with_payloads
from smartfeeds.sync.markup import SyncItem, read_item, read_rest
from smartfeeds.sync.merging import Dialect, MergeReport, Outcome, difference, merge, newer_of
from smartfeeds.sync.record import Edit
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_item

# Histories of FeedSync and SSE cannot be compared.
OTHER_DIALECT = "{} has its history in the other dialect (FeedSync or SSE) here; the two cannot be merged"
_DIALECTS: tuple[Dialect, ...] = (FEEDSYNC, SSE)


class Spool(Protocol):
    """Temporary storage for items: bytes are appended and later read at their offset."""

    def append(self, data: bytes) -> int:
        """Stores the bytes and returns their offset."""

    def read(self, offset: int, size: int) -> bytes:
        """Returns the bytes at an offset."""


@dataclass(slots=True)
class JoinReport(MergeReport):
    """The effects of a merge on the items of the incoming feed. `created` counts local items that received sync data,
    `plain` incoming items without sync data.
    """

    conflicts: int = 0
    created: int = 0
    plain: int = 0


LOCAL, INCOMING = "local", "incoming"


class Joiner:
    """Merges two feeds. Add all items of the local feed, call `end_local`, add all items of the incoming feed, read
    `results`.

    Items without sync data remain in the local feed and are ignored in the incoming feed (FS-022). With `edit`, those
    of the local feed receive sync data, as if created by that edit. An invalid item of the local feed is copied
    unchanged, so that a merge never loses data.
    """

    def __init__(self, spool: Spool, form: FeedFormat, edit: Edit | None = None, *, lenient: bool = False) -> None:
        self.report = JoinReport()
        self._spool, self._form, self._edit, self._lenient = spool, form, edit, lenient
        # One entry per record: offset and size in the spool, dialect, and the number of conflicts after a comparison.
        # Arrays take a fraction of the memory of objects.
        self._offsets, self._sizes = array("q"), array("l")
        self._dialects, self._conflicts = array("b"), array("b")  # up to 127, and MAX_CONFLICTS is 100
        self._records: dict[str, int] = {}
        self._plain: list[tuple[int, int]] = []
        self._namespaces: dict[Dialect, str] = {}

    def add_local(self, piece: DocumentPiece) -> None:
        """Adds an item of the local feed."""
        if piece.sync_item is not None and self._take(piece, piece.sync_item, LOCAL, self._form) is not None:
            return
        if piece.kind is PieceKind.REFUSED:
            self.report.refuse(piece.index, piece.reason, LOCAL)
        at = self._record(piece.raw)
        if piece.kind is PieceKind.PLAIN and self._edit is not None:
            self._plain.append((at, piece.index))

    def end_local(self) -> None:
        """Calls this after the last item of the local feed."""
        dialect = next(iter(self._namespaces), FEEDSYNC)
        for at, index in self._plain:
            assert self._edit is not None  # `_plain` is filled with an edit only
            self._create(at, index, dialect, self._edit)

    def add_incoming(self, piece: DocumentPiece, form: FeedFormat) -> None:
        """Adds an item of the incoming feed, which has the format `form`."""
        if piece.kind is PieceKind.REFUSED:
            self.report.refuse(piece.index, piece.reason, INCOMING)
        elif piece.sync_item is None:
            self.report.plain += 1
        else:
            outcome = self._take(piece, piece.sync_item, INCOMING, form)
            if outcome is not None:
                self.report.outcomes[outcome] += 1

    def _take(self, piece: DocumentPiece, item: SyncItem, document: str, form: FeedFormat) -> Outcome | None:
        """Adds or merges an item of a document in the format `form`. Returns None if the item is refused."""
        if item.notes:
            self.report.note(item.notes)
        raw = piece.raw
        namespace = self._namespaces.get(item.dialect, item.namespace)
        is_foreign = document is INCOMING and namespace != item.namespace
        try:
            if item.nested or is_foreign or form is not self._form:
                raw = self._rewritten(raw, namespace, form)
            self._namespaces[item.dialect] = namespace
            return self._merge(raw, item)
        except FeedError as error:
            self.report.refuse(piece.index, error.text, document)
            return None

    def _rewritten(self, raw: bytes, namespace: str, form: FeedFormat) -> bytes:
        """Returns an item in the format of the local feed (FS-002) and in the namespace that this feed uses for its
        dialect (A-70), with its conflicts in one list (A-54).
        """
        item = self._read(parse_stored(raw))
        version = item.version
        if form is not self._form:
            version = with_payloads(version, to_rss if self._form is FeedFormat.RSS else as_entry)
        return write_item(version, item.dialect, namespace)

    def _merge(self, raw: bytes, incoming: SyncItem) -> Outcome:
        """Merges an item by its id. Items with one id are one item, also within a feed (A-53)."""
        at = self._records.get(incoming.version.sync_id)
        if at is None:
            self._records[incoming.version.sync_id] = self._record(raw, incoming.dialect)
            return Outcome.ADDED
        if _DIALECTS[self._dialects[at]] is not incoming.dialect:
            raise FeedError(Condition.INVALID_PAYLOAD, OTHER_DIALECT.format(incoming.version.sync_id))
        local = self._raw(at)
        if local == raw:  # most items of two feeds that are merged again
            return Outcome.UNCHANGED
        item = parse_stored(local)
        stored = self._read(item, payload=False)
        newer = newer_of(incoming.dialect, stored.version, incoming.version)
        if newer is None:
            return self._compare(at, (stored, item), (incoming, parse_stored(raw)))
        if newer is incoming.version:
            self._replace(at, raw)
        return difference(stored.version, newer)

    def _compare(self, at: int, *sides: tuple[SyncItem, Element]) -> Outcome:
        """Merges two versions with their content."""
        local, incoming = (read_rest(head, item, lenient=self._lenient) for head, item in sides)
        dialect = sides[0][0].dialect
        result = merge(dialect, local, incoming)
        self.report.note(result.notes)
        if result.outcome is not Outcome.UNCHANGED:
            self._replace(at, write_item(result.version, dialect, self._namespaces[dialect]))
        self.report.conflicts += len(result.version.conflicts) - self._conflicts[at]
        self._conflicts[at] = len(result.version.conflicts)
        return result.outcome

    def _read(self, item: Element, *, payload: bool = True) -> SyncItem:
        """Reads an item that is known to have sync data."""
        sync_item = read_item(item, lenient=self._lenient, payload=payload)
        assert sync_item is not None
        return sync_item

    def _record(self, raw: bytes, dialect: Dialect = FEEDSYNC) -> int:
        self._offsets.append(self._spool.append(raw))
        self._sizes.append(len(raw))
        self._dialects.append(_DIALECTS.index(dialect))
        self._conflicts.append(0)
        return len(self._offsets) - 1

    def _replace(self, at: int, raw: bytes) -> None:
        self._offsets[at], self._sizes[at] = self._spool.append(raw), len(raw)

    def _raw(self, at: int) -> bytes:
        return self._spool.read(self._offsets[at], self._sizes[at])

    def _create(self, at: int, index: int, dialect: Dialect, edit: Edit) -> None:
        """Creates sync data for an item without it. The sync id comes from the item's id, so that all services choose
        the same.
        """
        item = parse_stored(self._raw(at))
        payload = canonical(item)
        sync_id = _made_id(item, payload)
        if sync_id in self._records:
            self.report.note([f"item {index + 1} received no sync data, because another item has its id"])
            return
        version = dialect.create(sync_id, payload, edit)
        self._replace(at, write_item(version, dialect, self._namespaces.get(dialect, "")))
        self._dialects[at] = _DIALECTS.index(dialect)
        self._records[sync_id] = at
        self.report.created += 1

    def results(self) -> Iterator[bytes]:
        """Returns the items of the merged feed: local items in their order, then new items."""
        return map(self._raw, range(len(self._offsets)))


def _made_id(item: Element, payload: bytes) -> str:
    """Returns a sync id made of the item's own id, else of its content."""
    names = {atom.ID: 0, "guid": 1, "link": 2}
    texts = {names[name]: string_of(node).strip() for node in item if (name := rss_name(node) or node.tag) in names}
    text = next((texts[rank] for rank in sorted(texts) if texts[rank]), "")
    sync_id = to_nss(text)
    if not text or len(sync_id) > MAX_ID_BYTES:
        return "sha256:" + hashlib.sha256(text.encode() or payload).hexdigest()
    return sync_id


def read_feed(
    chunks: Iterable[bytes], add: Callable[[DocumentPiece, FeedFormat], None], *, lenient: bool = False
) -> FeedReader:
    """Reads a feed to its end and passes its items to `add`. Raises FeedError."""
    reader = FeedReader(lenient=lenient)
    for piece in reader.read(chunks):
        add(piece, reader.form)
    return reader


def write_feed(reader: FeedReader, items: Iterable[bytes], other: FeedReader) -> Iterator[bytes]:
    """Yields a feed with the head of `reader` and the later date of the two feeds."""
    reader.bring_forward(other.updated_us)
    yield reader.head()
    for item in items:
        if item:
            yield reader.line(item)
    yield reader.tail()
