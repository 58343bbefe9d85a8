"""Two feeds merged item by item: an index of ids in memory, the items themselves in a spool (FeedSync 3.3, SSE 3.1).

What only one side has, and what both have alike, passes as the bytes that it came in. Only items that differ are
read again and merged, so that memory holds one item and the index, however long the feeds are.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from smartfeeds.core.model import MAX_ID_BYTES, Item
from smartfeeds.core.text import to_nss
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.documents import read_document
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.rss_writer import write_rss
from smartfeeds.formats.xml import Element, canonical, parse_stored
from smartfeeds.sync.documents import FeedReader, Form, Kind, Piece
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.markup import parse_item, read_item, write_item
from smartfeeds.sync.merging import Dialect, Outcome, difference, merge
from smartfeeds.sync.record import Edit, Version

MAX_NOTES = 1_000
# What FeedSync and SSE say of one item has nothing in common that could be compared.
OTHER_DIALECT = "{} is kept in the other dialect here: histories do not mix"
_NONE = -1


class Spool(Protocol):
    """Where items wait: bytes are appended, and read again at their place."""

    def append(self, data: bytes) -> int:
        """Keeps the bytes and says where they begin."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at a place."""


@dataclass(slots=True)
class MemorySpool:
    """A spool for documents that fit into memory anyway."""

    kept: bytearray = field(default_factory=bytearray)

    def append(self, data: bytes) -> int:
        """See Spool."""
        self.kept += data
        return len(self.kept) - len(data)

    def read(self, offset: int, size: int) -> bytes:
        """See Spool."""
        return bytes(self.kept[offset : offset + size])


@dataclass(frozen=True, slots=True)
class Refused:
    """An item that takes no part: the document it is in, its place counted from 0, and why."""

    document: str
    index: int
    reason: str


@dataclass(slots=True)
class Report:
    """What a merge did. `outcomes` counts the items of the incoming feed; `created` plain items that got sync data."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    conflicts: int = 0
    created: int = 0
    plain: int = 0
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, texts: Iterable[str]) -> None:
        """For people; there is an end to what they are told."""
        self.notes += list(texts)[: MAX_NOTES - len(self.notes)]

    def refuse(self, document: str, index: int, reason: str) -> None:
        """The same for items that are refused."""
        if len(self.refused) < MAX_NOTES:
            self.refused.append(Refused(document, index, reason))


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
        self._first: dict[str, int] = {}
        self._refused: set[int] = set()
        # One entry a record: its bytes, its place in its document, how it is written; the next record of the same id,
        # and, at the first of an id, the last.
        self._offsets, self._sizes, self._indices = array("q"), array("l"), array("l")
        self._next, self._last = array("l"), array("l")
        self._styles = array("b")
        self._known_styles: list[tuple[Dialect | None, str]] = [(None, "")]
        self._namespaces: dict[str, str] = {}
        self._local_count = 0
        self._local_dialect: Dialect | None = None

    def add_local(self, piece: Piece) -> None:
        """An item of the local feed."""
        self.report.note(piece.notes)
        if piece.kind is Kind.REFUSED:
            self.report.refuse(LOCAL, piece.index, piece.reason)
        if piece.kind is Kind.SYNCED:
            self._local_dialect = self._local_dialect or piece.dialect
            self._link(piece)
        else:
            at = self._record(piece)
            if piece.kind is Kind.REFUSED:
                self._refused.add(at)

    def end_local(self) -> None:
        """After the last item of the local feed."""
        if self._edit is not None:
            dialect = self._local_dialect or FEEDSYNC
            for at in range(len(self._offsets)):
                if self._styles[at] == 0 and at not in self._refused:
                    self._create(at, dialect, self._edit)
        self._local_count = len(self._offsets)

    def add_incoming(self, piece: Piece, form: Form) -> None:
        """An item of the incoming feed, which is of that form."""
        self.report.note(piece.notes)
        if piece.kind is Kind.REFUSED:
            self.report.refuse(INCOMING, piece.index, piece.reason)
        elif piece.kind is Kind.PLAIN:
            self.report.plain += 1
        else:
            try:
                self._link(piece if form is self._form else self._translated(piece, form))
            except FeedError as error:
                self.report.refuse(INCOMING, piece.index, error.text)

    def _record(self, piece: Piece) -> int:
        style = (piece.dialect, piece.namespace)
        if style not in self._known_styles:
            self._known_styles.append(style)
        self._offsets.append(self._spool.append(piece.raw))
        self._sizes.append(len(piece.raw))
        self._next.append(_NONE)
        self._last.append(_NONE)
        self._styles.append(self._known_styles.index(style))
        self._indices.append(piece.index)
        if piece.dialect is not None:
            self._namespaces.setdefault(piece.dialect.name, piece.namespace)
        return len(self._offsets) - 1

    def _link(self, piece: Piece) -> None:
        """Puts a record behind the others of its id (A-53)."""
        first = self._first.get(piece.sync_id)
        if first is not None and self._known_styles[self._styles[first]][0] is not piece.dialect:
            raise FeedError(Condition.INVALID_PAYLOAD, OTHER_DIALECT.format(piece.sync_id))
        at = self._record(piece)
        if first is None:
            self._first[piece.sync_id] = at
            self._last[at] = at
        else:
            self._next[self._last[first]] = at
            self._last[first] = at

    def _create(self, at: int, dialect: Dialect, edit: Edit) -> None:
        """Sync data for an item that has none; its id is that of the item, so that others find it under the same."""
        item = parse_stored(self._raw(at))
        payload = canonical(item)
        sync_id = _made_id(item, payload)
        if sync_id in self._first:
            self.report.note([f"item {self._indices[at] + 1} got no sync data: another item has its id"])
            return
        version = dialect.create(sync_id, payload, edit)
        namespace = self._namespaces.get(dialect.name, "")
        raw = write_item(version, dialect, namespace)
        self._offsets[at], self._sizes[at] = self._spool.append(raw), len(raw)
        style = (dialect, namespace)
        if style not in self._known_styles:
            self._known_styles.append(style)
        self._styles[at] = self._known_styles.index(style)
        self._first[sync_id] = self._last[at] = at
        self.report.created += 1

    def _translated(self, piece: Piece, form: Form) -> Piece:
        """The item in the form of the local feed (FS-002), its conflicts too."""
        found = parse_item(piece.raw, lenient=self._lenient)
        assert found is not None
        convert = _to_atom if form is Form.RSS else _to_rss
        version = _with_payloads(found.version, convert)
        return replace(piece, raw=write_item(version, found.dialect, found.namespace))

    def _raw(self, at: int) -> bytes:
        return self._spool.read(self._offsets[at], self._sizes[at])

    def results(self) -> Iterator[bytes]:
        """The items of the merged feed: those of the local one in its order, then what is new."""
        for at in range(len(self._offsets)):
            if self._last[at] != _NONE:
                yield self._merged(at)
            elif self._styles[at] == 0:
                yield self._raw(at)
        self.report.refused.sort(key=lambda one: (one.document == INCOMING, one.index))

    def _merged(self, first: int) -> bytes:
        """What is written for the records of one id: those that are refused, as they are, and the merged item."""
        chain = [first]
        while (following := self._next[chain[-1]]) != _NONE:
            chain.append(following)
        raws = [self._raw(at) for at in chain]
        if all(raw == raws[0] for raw in raws):
            return self._alike(chain, raws[0])
        return self._joined(chain, raws)

    def _alike(self, chain: list[int], raw: bytes) -> bytes:
        """One version, however often it is there."""
        is_local = chain[0] < self._local_count
        if self._checked(chain[0], raw, payload=False) is None:
            return raw if is_local else b""
        if chain[-1] >= self._local_count:
            self.report.outcomes[Outcome.UNCHANGED if is_local else Outcome.ADDED] += 1
        return raw if is_local else self._in_our_words(raw, chain[0])

    def _joined(self, chain: list[int], raws: list[bytes]) -> bytes:
        """The merge of several versions of one item."""
        dialect = self._known_styles[self._styles[chain[0]]][0]
        assert dialect is not None
        faulty: list[bytes] = []
        start: tuple[int, bytes, Version] | None = None
        version: Version | None = None
        for at, raw in zip(chain, raws, strict=True):
            found = self._checked(at, raw)
            if found is None:
                faulty += [raw] if at < self._local_count else []
                continue
            start = start or (at, raw, found)
            version = self._joined_one(dialect, version, found, at)
        if start is None or version is None:
            return b"\n".join(faulty)
        at, raw, first = start
        is_local = at < self._local_count
        outcome = difference(first, version)
        if chain[-1] >= self._local_count:
            self.report.outcomes[outcome if is_local else Outcome.ADDED] += 1
        self.report.conflicts += len(version.conflicts)
        if outcome is not Outcome.UNCHANGED:
            raw = write_item(version, dialect, self._namespaces.get(dialect.name, ""))
        elif not is_local:
            raw = self._in_our_words(raw, at)
        return b"\n".join([*faulty, raw])

    def _joined_one(self, dialect: Dialect, version: Version | None, found: Version, at: int) -> Version:
        try:
            merged = merge(dialect, version, found)
        except FeedError as error:
            assert version is not None
            self._refuse(at, error.text)
            return version
        self.report.note(merged.notes)
        return merged.version

    def _checked(self, at: int, raw: bytes, *, payload: bool = True) -> Version | None:
        """The version in a record, or None where it is refused."""
        try:
            found = read_item(parse_stored(raw), lenient=self._lenient, payload=payload)
        except FeedError as error:
            self._refuse(at, error.text)
            return None
        assert found is not None
        self.report.note(found.notes)
        return found.version

    def _refuse(self, at: int, reason: str) -> None:
        self.report.refuse(LOCAL if at < self._local_count else INCOMING, self._indices[at], reason)

    def _in_our_words(self, raw: bytes, at: int) -> bytes:
        """A new item, in the namespace that this feed uses for its dialect (A-70)."""
        dialect, namespace = self._known_styles[self._styles[at]]
        assert dialect is not None
        ours = self._namespaces.get(dialect.name, namespace)
        if ours == namespace:
            return raw
        found = parse_item(raw, lenient=self._lenient)
        assert found is not None
        return write_item(found.version, dialect, ours)


def _with_payloads(version: Version, convert: Callable[[bytes, int], bytes]) -> Version:
    """The same version in another format. What SSE keeps in its conflicts is anybody's, and stays as it is."""
    conflicts = tuple(
        replace(one, payload=convert(one.payload, one.top.when_us or 0))
        if one.payload.endswith((b"</item>", b"entry>"))
        else one
        for one in version.conflicts
    )
    return replace(version, payload=convert(version.payload, version.top.when_us or 0), conflicts=conflicts)


def _to_atom(payload: bytes, _when_us: int) -> bytes:
    document = read_document(b'<rss version="2.0"><channel>' + payload + b"</channel></rss>")
    if not document.items:
        raise FeedError(Condition.INVALID_PAYLOAD, "the item cannot be said in Atom")
    return document.items[0].payload


def _to_rss(payload: bytes, when_us: int) -> bytes:
    """RSS wants a date: that of the entry, else that of its last change."""
    root = parse_stored(payload)
    item_id = (root.findtext(atom.ID) or "").strip()
    dates = [parse_datetime((root.findtext(tag) or "").strip()) for tag in (atom.PUBLISHED, atom.UPDATED)]
    time_us = next((found for found in dates if found is not None), when_us)
    head = FeedHead(id="urn:x-smartfeeds:merge", title="", updated_us=time_us)
    item = Item(1, item_id, time_us, time_us, payload, "", deleted=False)
    written = parse_stored(write_rss(head, [item]).data)
    return canonical(next(node for node in written.iter() if rss_name(node) == "item"))


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
    """Reads a feed to its end for a Joiner, which checks the items itself. Raises FeedError."""
    reader = FeedReader(lenient=lenient, check=False)
    for chunk in chunks:
        for piece in reader.feed(chunk):
            add(piece, reader.form)
    for piece in reader.close():
        add(piece, reader.form)
    return reader


def write_feed(reader: FeedReader, items: Iterable[bytes]) -> Iterator[bytes]:
    """A feed with the head of the one that was read."""
    yield reader.head()
    for item in items:
        if item:
            yield reader.line(item)
    yield reader.tail()
