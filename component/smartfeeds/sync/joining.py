"""Two feeds merged item by item: an index of ids in memory, the items themselves in a spool (FeedSync 3.3, SSE 3.1).

What only one side has, what both have alike, and what has seen all that the other side has, passes as the bytes that it
came in. Only versions that conflict are read whole; memory holds two items and the index, however long the feeds are.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from smartfeeds.core.model import MAX_ID_BYTES, Item
from smartfeeds.core.text import to_nss
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.payload import payload_of
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.rss_writer import write_rss_item
from smartfeeds.formats.xml import Element, canonical, parse_stored
from smartfeeds.sync.arriving import as_entry
from smartfeeds.sync.documents import FeedReader, Form, Kind, Piece
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import SyncItem, read_item, read_rest
from smartfeeds.sync.merging import Dialect, Outcome, Told, difference, merge, newer_of
from smartfeeds.sync.record import Edit, Version
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_item

# What FeedSync and SSE say of one item has nothing in common that could be compared.
OTHER_DIALECT = "{} is kept in the other dialect here: histories do not mix"
_DIALECTS: tuple[Dialect, ...] = (FEEDSYNC, SSE)


class Spool(Protocol):
    """Where items wait: bytes are appended, and read again at their place."""

    def append(self, data: bytes) -> int:
        """Keeps the bytes and says where they begin."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at a place."""


@dataclass(slots=True)
class Report(Told):
    """What a merge did to the incoming feed's items; `created` counts plain items that got sync data."""

    conflicts: int = 0
    created: int = 0
    plain: int = 0


LOCAL, INCOMING = "local", "incoming"


class Joiner:
    """Merges two feeds: all of the local one, `end_local`, all of the incoming one, then `results`.

    Items without sync data stay in the local feed and are not taken from the incoming one (FS-022). With `edit` those
    of the local feed get sync data of their own, as made by that edit. A refused item of the local feed stays as it
    is; nothing is lost by being faulty.
    """

    def __init__(self, spool: Spool, form: Form, edit: Edit | None = None, *, lenient: bool = False) -> None:
        self.report = Report()
        self._spool, self._form, self._edit, self._lenient = spool, form, edit, lenient
        # One entry a record: where its bytes are, its dialect, and how many conflicts a comparison left it with.
        self._offsets, self._sizes = array("q"), array("l")
        self._dialects, self._conflicts = array("b"), array("b")
        self._records: dict[str, int] = {}
        self._plain: list[tuple[int, int]] = []
        self._namespaces: dict[Dialect, str] = {}

    def add_local(self, piece: Piece) -> None:
        """An item of the local feed."""
        if piece.found is not None:
            if self._take(piece, piece.found, LOCAL) is None:
                self._record(piece.raw)
            return
        if piece.kind is Kind.REFUSED:
            self.report.refuse(piece.index, piece.reason, LOCAL)
        at = self._record(piece.raw)
        if piece.kind is Kind.PLAIN and self._edit is not None:
            self._plain.append((at, piece.index))

    def end_local(self) -> None:
        """After the last item of the local feed."""
        dialect = next(iter(self._namespaces), FEEDSYNC)
        for at, index in self._plain:
            assert self._edit is not None
            self._create(at, index, dialect, self._edit)

    def add_incoming(self, piece: Piece, form: Form) -> None:
        """An item of the incoming feed, which is of that form."""
        if piece.kind is Kind.REFUSED:
            self.report.refuse(piece.index, piece.reason, INCOMING)
        elif piece.found is None:
            self.report.plain += 1
        else:
            outcome = self._take(piece, piece.found, INCOMING, form)
            if outcome is not None:
                self.report.outcomes[outcome] += 1

    def _take(self, piece: Piece, found: SyncItem, document: str, form: Form | None = None) -> Outcome | None:
        """Adds or merges an item; None where it is refused. `form` is that of an incoming item."""
        if found.notes:
            self.report.note(found.notes)
        try:
            raw = piece.raw if form in (None, self._form) else self._translated(piece.raw)
            namespace = self._namespaces.setdefault(found.dialect, found.namespace)
            if found.nested or (form is not None and namespace != found.namespace):
                raw = self._in_our_words(raw, namespace)
            return self._merge(raw, found)
        except FeedError as error:
            self.report.refuse(piece.index, error.text, document)
            return None

    def _merge(self, raw: bytes, found: SyncItem) -> Outcome:
        """Items of one id are one item, also within a feed (A-53)."""
        at = self._records.get(found.version.sync_id)
        if at is None:
            self._records[found.version.sync_id] = self._record(raw, found.dialect)
            return Outcome.ADDED
        if _DIALECTS[self._dialects[at]] is not found.dialect:
            raise FeedError(Condition.INVALID_PAYLOAD, OTHER_DIALECT.format(found.version.sync_id))
        local = self._raw(at)
        if local == raw:
            return Outcome.UNCHANGED
        item = parse_stored(local)
        here = self._read(item, payload=False)
        newer = newer_of(found.dialect, here.version, found.version)
        if newer is None:
            return self._compare(at, (here, item), (found, parse_stored(raw)))
        if newer is found.version:
            self._replace(at, raw)
        return difference(here.version, newer)

    def _compare(self, at: int, *sides: tuple[SyncItem, Element]) -> Outcome:
        """The merge of two versions with all that is in them."""
        local, incoming = (read_rest(found, item, lenient=self._lenient) for found, item in sides)
        dialect = sides[0][0].dialect
        merged = merge(dialect, local, incoming)
        self.report.note(merged.notes)
        if merged.outcome is not Outcome.UNCHANGED:
            self._replace(at, write_item(merged.version, dialect, self._namespaces[dialect]))
        self.report.conflicts += len(merged.version.conflicts) - self._conflicts[at]
        self._conflicts[at] = len(merged.version.conflicts)
        return merged.outcome

    def _read(self, item: Element, *, payload: bool = True) -> SyncItem:
        """An item that was found to have sync data before."""
        found = read_item(item, lenient=self._lenient, payload=payload)
        assert found is not None
        return found

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
        """Sync data for an item that has none; its id is that of the item, so that others find it under the same."""
        item = parse_stored(self._raw(at))
        payload = canonical(item)
        sync_id = _made_id(item, payload)
        if sync_id in self._records:
            self.report.note([f"item {index + 1} got no sync data: another item has its id"])
            return
        version = dialect.create(sync_id, payload, edit)
        self._replace(at, write_item(version, dialect, self._namespaces.get(dialect, "")))
        self._dialects[at] = _DIALECTS.index(dialect)
        self._records[sync_id] = at
        self.report.created += 1

    def _translated(self, raw: bytes) -> bytes:
        """The item in the form of the local feed (FS-002), its conflicts too."""
        found = self._read(parse_stored(raw))
        convert = _to_rss if self._form is Form.RSS else as_entry
        return write_item(_with_payloads(found.version, convert), found.dialect, found.namespace)

    def _in_our_words(self, raw: bytes, namespace: str) -> bytes:
        """An item in the namespace that this feed uses for its dialect (A-70), its conflicts in one list (A-54)."""
        found = self._read(parse_stored(raw))
        return write_item(found.version, found.dialect, namespace)

    def results(self) -> Iterator[bytes]:
        """The items of the merged feed: those of the local one in its order, then what is new."""
        return map(self._raw, range(len(self._offsets)))


def _with_payloads(version: Version, convert: Callable[[Version], bytes]) -> Version:
    """The same version in another format. What SSE keeps in its conflicts is anybody's, and stays as it is."""
    conflicts = tuple(
        replace(one, payload=convert(one)) if one.payload.endswith((b"</item>", b"entry>")) else one
        for one in version.conflicts
    )
    return replace(version, payload=convert(version), conflicts=conflicts)


def _to_rss(version: Version) -> bytes:
    """RSS wants a date: that of the entry, else that of its last change."""
    payload, when_us = version.payload, version.top.when_us or 0
    root = payload_of(payload).root
    item_id = (root.findtext(atom.ID) or "").strip()
    dates = [parse_datetime((root.findtext(tag) or "").strip()) for tag in (atom.PUBLISHED, atom.UPDATED)]
    time_us = next((found for found in dates if found is not None), when_us)
    return write_rss_item(Item(1, item_id, time_us, time_us, payload, "", deleted=False))


def _made_id(item: Element, payload: bytes) -> str:
    """A sync id of an item's own id, else of its content."""
    names = {atom.ID: 0, "guid": 1, "link": 2}
    found = {names[name]: string_of(node).strip() for node in item if (name := rss_name(node) or node.tag) in names}
    text = next((found[rank] for rank in sorted(found) if found[rank]), "")
    made = to_nss(text)
    if not text or len(made) > MAX_ID_BYTES:
        return "sha256:" + hashlib.sha256(text.encode() or payload).hexdigest()
    return made


def read_feed(chunks: Iterable[bytes], add: Callable[[Piece, Form], None], *, lenient: bool = False) -> FeedReader:
    """Reads a feed to its end for a Joiner. Raises FeedError."""
    reader = FeedReader(lenient=lenient)
    for piece in reader.read(chunks):
        add(piece, reader.form)
    return reader


def write_feed(reader: FeedReader, items: Iterable[bytes], other: FeedReader) -> Iterator[bytes]:
    """A feed with the head of the one that was read, and the later date of it and the other one."""
    reader.bring_forward(other.updated_us)
    yield reader.head()
    for item in items:
        if item:
            yield reader.line(item)
    yield reader.tail()
