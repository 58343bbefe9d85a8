"""Reads sx:sync in an entry, item or outline into a version (FeedSync 2.4 to 2.6, SSE 2.3 to 5.2).

An item whose sync data violates its dialect is rejected as a whole, with the reason. Markup that neither dialect
defines is preserved in place (FS-012).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from lxml import etree

from smartfeeds.core.text import escape
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import ENTRY, FEEDSYNC_NS, SYNC, SYNC_NAMESPACES, SYNCS
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.rss_channel import rss_name
from smartfeeds.formats.xml import Element, canonical, parse_stored, replace_by_text
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.lexis import (
    FEEDSYNC_LEXIS,
    LENIENT_SSE_LEXIS,
    SSE_LEXIS,
    DialectSyntax,
    invalid,
    read_name,
    read_number,
)
from smartfeeds.sync.merging import Dialect, in_order
from smartfeeds.sync.record import MAX_CONFLICTS, MAX_HISTORY, NO_MARKUP, ForeignMarkup, HistoryRecord, Version

# Levels of conflicts within conflicts that are flattened; deeper nesting is rejected.
MAX_NESTING = 1

_NAMESPACES = tuple(namespace.encode() for namespace in SYNC_NAMESPACES)
_SYNC_NAMES = {
    FEEDSYNC.name: frozenset({"id", "updates", "deleted", "noconflicts"}),
    SSE_LEXIS.dialect.name: frozenset({"id", "version", "deleted", "conflict"}),
}
_STAMP_NAMES = frozenset({"sequence", "when", "by"})
_UPDATE_NAMES = frozenset({"when", "by"})
_CONFLICT_NAMES = frozenset({"version", "when", "by"})
_BLANK = " \t\r\n"
_BLANKS = re.compile(rb">(?:[ \t\n]|&#xD;)+<")


@dataclass(frozen=True, slots=True)
class SyncItem:
    """An item with sync data, as read. `namespace` is that of its markup; `notes` are for users.

    `nested` says whether the markup has conflicts within conflicts. The version has all of them in one list (FS-063).
    """

    version: Version
    dialect: Dialect
    namespace: str
    notes: tuple[str, ...] = ()
    nested: bool = False


def read_item(item: Element, *, lenient: bool = False, payload: bool = True) -> SyncItem | None:
    """Reads the sync data of an entry, item or outline. Returns None if it has none (FS-022, FS-024, SSE-016).

    With `payload` the version includes its content, and the function removes sx:sync from `item`. Without `payload` the
    content is only checked. `lenient` accepts dates of SSE in zones other than GMT. Raises FeedError(INVALID_PAYLOAD).
    """
    return _ItemReader(lenient, payload).item(item, 0)


def read_stored(stored: bytes, payload: Payload) -> SyncItem:
    """Returns the item with this payload whose sync data is stored beside it. Raises FeedError."""
    item = _ItemReader(lenient=False, payload=True).sync(parse_stored(stored), 0)
    return replace(item, version=replace(item.version, payload=payload))


def read_rest(head: SyncItem, item: Element, *, lenient: bool = False) -> Version:
    """Returns the whole version of an item that was read without its payload. Removes sx:sync from `item`.

    Raises FeedError(INVALID_PAYLOAD) for content that cannot be stored.
    """
    if head.version.conflicts:
        whole = read_item(item, lenient=lenient)
        assert whole is not None
        return whole.version
    replace_by_text(syncs_of(item)[0], "")
    return _with_payload(head.version, item)


def syncs_of(item: Element) -> list[Element]:
    """Returns the sx:sync elements of an item. If both vocabularies are present, FeedSync comes first and applies
    (A-87).
    """
    # One search in any namespace is faster than one search per namespace.
    found = [node for node in item.iterchildren("{*}sync") if node.tag in SYNCS]
    return sorted(found, key=lambda node: node.tag != SYNC) if len(found) > 1 else found


def items_within(item: Element) -> Iterator[Element]:
    """Yields the items in the conflicts of an item, and in their conflicts."""
    for sync in syncs_of(item)[:1]:
        namespace = sync.tag[1:].partition("}")[0]
        for conflicts in sync.iterchildren(f"{{{namespace}}}conflicts"):
            for child in conflicts.iterchildren(etree.Element):
                # SSE wraps each conflict in an element.
                for node in child.iterchildren(etree.Element) if child.tag == f"{{{namespace}}}conflict" else (child,):
                    if _is_item(node):
                        yield node
                        yield from items_within(node)


def _is_item(node: Element) -> bool:
    return node.tag == ENTRY or rss_name(node) == "item" or node.tag == "outline"


@dataclass(slots=True)
class _ItemReader:
    lenient: bool
    payload: bool
    nested: bool = False

    def item(self, item: Element, depth: int) -> SyncItem | None:
        syncs = syncs_of(item)
        if not syncs:
            return None
        found = self.sync(syncs[0], depth)
        if len(syncs) > 1:
            note = (
                f"{found.version.sync_id}: the item has sync data of two dialects; that of {found.dialect.name} applies"
            )
            found = replace(found, notes=(*found.notes, note))
        if self.payload:
            replace_by_text(syncs[0], "")
            found = replace(found, version=_with_payload(found.version, item))
        return found

    def sync(self, sync: Element, depth: int) -> SyncItem:
        """Reads sync data. The version has no content."""
        namespace = sync.tag[1:].partition("}")[0]
        lexis = self.lexis(sync, namespace)
        sync_id = read_id(sync)
        if lexis.dialect is FEEDSYNC:
            version, notes = self._feedsync(sync, sync_id, lexis, namespace, depth)
        else:
            version, notes = self._sse(sync, sync_id, lexis, namespace)
        return SyncItem(version, lexis.dialect, namespace, notes, self.nested)

    def lexis(self, sync: Element, namespace: str) -> DialectSyntax:
        """Returns the dialect of sync data. In the older namespaces only the attributes show it (A-83)."""
        if namespace == FEEDSYNC_NS or ("updates" in sync.attrib and "version" not in sync.attrib):
            return FEEDSYNC_LEXIS
        return LENIENT_SSE_LEXIS if self.lenient else SSE_LEXIS

    def _feedsync(
        self, sync: Element, sync_id: str, lexis: DialectSyntax, namespace: str, depth: int
    ) -> tuple[Version, tuple[str, ...]]:
        history, conflicts = f"{{{namespace}}}history", f"{{{namespace}}}conflicts"
        stamps: list[HistoryRecord] = []
        versions: list[Version] = []
        foreign: list[bytes] = []
        notes: tuple[str, ...] = ()
        for node in sync.iterchildren(etree.Element):
            if node.tag == history:
                if len(stamps) == MAX_HISTORY:
                    raise invalid(f"the item has more than {MAX_HISTORY} history records")
                stamps.append(_feedsync_stamp(node, lexis))
            elif node.tag == conflicts:
                notes += self._whole_conflicts(node, sync_id, depth, versions)
            else:
                foreign.append(canonical(node))
        if not stamps:
            raise invalid("sx:sync has no sx:history")
        attributes = _foreign_attributes(sync, _SYNC_NAMES[FEEDSYNC.name])
        version = Version(
            sync_id,
            read_number(sync.get("updates"), "updates"),
            tuple(stamps),
            deleted=lexis.flag(sync.get("deleted"), "deleted"),
            noconflicts=lexis.flag(sync.get("noconflicts"), "noconflicts"),
            conflicts=in_order(versions) if self.payload else tuple(versions),
            extra=ForeignMarkup(attributes, tuple(foreign)) if attributes or foreign else NO_MARKUP,
        )
        return version, notes

    def _whole_conflicts(
        self, container: Element, sync_id: str, depth: int, versions: list[Version]
    ) -> tuple[str, ...]:
        """Reads the items in sx:conflicts, and beside them those in their own sx:conflicts (FS-039, FS-040, FS-063)."""
        if depth > MAX_NESTING and len(container):
            raise invalid(f"conflicts are nested deeper than {MAX_NESTING + 1} levels")
        notes: tuple[str, ...] = ()
        for node in container.iterchildren(etree.Element):
            if not _is_item(node):
                notes += (f"{sync_id}: sx:conflicts has an element that is no item; it was ignored",)
                continue
            item = self.item(node, depth + 1)
            if item is None or item.dialect is not FEEDSYNC:
                raise invalid("an item in sx:conflicts has no FeedSync data")
            if item.version.sync_id != sync_id:
                raise invalid("the id of an item in sx:conflicts differs from the item's id")
            versions += [replace(item.version, conflicts=()), *item.version.conflicts]
            self.nested = self.nested or bool(item.version.conflicts)
            notes += item.notes
            if len(versions) > MAX_CONFLICTS:
                raise invalid(f"the item has more than {MAX_CONFLICTS} conflicts")
        return notes

    def _sse(
        self, sync: Element, sync_id: str, lexis: DialectSyntax, namespace: str
    ) -> tuple[Version, tuple[str, ...]]:
        history, conflicts = f"{{{namespace}}}history", f"{{{namespace}}}conflicts"
        update = f"{{{namespace}}}update"
        counter = read_number(sync.get("version"), "version")
        tops = list(sync.iterchildren(history))
        if not tops:
            raise invalid("sx:sync has no sx:history")
        top = tops[0]
        nodes = [top, *_limited(top.iterchildren(update), MAX_HISTORY - 1, "sx:update records")]
        notes: list[str] = []
        if len(tops) > 1:
            notes.append(f"{sync_id}: sx:sync has more than one sx:history; the first applies")
        versions = [
            conflict
            for container in sync.iterchildren(conflicts)
            for conflict in self._listed_conflicts(container, sync_id, lexis, namespace, notes)
        ]
        version = Version(
            sync_id,
            counter,
            tuple(
                _stamp(node, lexis, counter - k, _UPDATE_NAMES, {update} if k == 0 else set())
                for k, node in enumerate(nodes)
            ),
            deleted=lexis.flag(sync.get("deleted"), "deleted"),
            conflict=lexis.flag(sync.get("conflict"), "conflict"),
            conflicts=in_order(versions),
            extra=_extra(sync, _SYNC_NAMES[lexis.dialect.name], {history, conflicts}),
        )
        return version, tuple(notes)

    def _listed_conflicts(
        self, container: Element, sync_id: str, lexis: DialectSyntax, namespace: str, notes: list[str]
    ) -> Iterator[Version]:
        """Reads a conflict list of SSE (5.2). An invalid conflict is ignored; the item remains valid (SSE-047)."""
        nodes = _limited(container.iterchildren(f"{{{namespace}}}conflict"), MAX_CONFLICTS, "conflicts")
        if not nodes:
            notes.append(f"{sync_id}: sx:conflicts is empty; it was ignored")
        for node in nodes:
            try:
                counter = read_number(node.get("version"), "the version of a conflict")
                stamp = _stamp(node, lexis, counter, _CONFLICT_NAMES, None)
            except FeedError as error:
                notes.append(f"{sync_id}: a conflict was ignored: {error.text}")
                continue
            yield Version(sync_id, counter, (stamp,), _content(node))


def _limited(nodes: Iterator[Element], limit: int, what: str) -> list[Element]:
    items: list[Element] = []
    for node in nodes:
        if len(items) >= limit:
            raise invalid(f"the item has more than {limit} {what}")
        items.append(node)
    return items


def _feedsync_stamp(node: Element, lexis: DialectSyntax) -> HistoryRecord:
    if len(node.attrib) == 3 and not len(node):
        sequence, when, by = node.get("sequence"), node.get("when"), node.get("by")
        if sequence and when and by:
            return _full_stamp(sequence, when, by)
    return _stamp(node, lexis, read_number(node.get("sequence"), "sequence"), _STAMP_NAMES, set())


@lru_cache(8192)
def _full_stamp(sequence: str, when: str, by: str) -> HistoryRecord:
    """Returns a record with all three attributes, the usual case. Versions of one item share most records, hence the
    cache.
    """
    lexis = FEEDSYNC_LEXIS
    return HistoryRecord(read_number(sequence, "sequence"), lexis.time(when, "when"), lexis.endpoint(by))


def _stamp(
    node: Element, lexis: DialectSyntax, sequence: int, names: frozenset[str], children: set[str] | None
) -> HistoryRecord:
    """Reads one record. `children` are tags that are read elsewhere; None means all tags."""
    when: str | None = node.get("when")
    when_us, by = lexis.time(when, "when"), lexis.endpoint(node.get("by"))
    if when_us is None and not by:
        raise invalid("a history record has neither when nor by")
    # FeedSync times are written in one form. SSE times are preserved as received.
    as_written = when or ""
    if when_us is None or lexis.dialect is FEEDSYNC or as_written == lexis.write_time(when_us):
        as_written = ""
    extra = NO_MARKUP
    if len(node.attrib) > len(names & set(node.attrib)) or (children is not None and len(node)):
        extra = _extra(node, names, children)
    return HistoryRecord(sequence, when_us, by, as_written, extra)


def _foreign_attributes(node: Element, names: frozenset[str]) -> tuple[tuple[str, str], ...]:
    attributes = [(str(k), str(v)) for k, v in node.items() if k not in names]
    return tuple(sorted(attributes)) if attributes else ()


def _extra(node: Element, names: frozenset[str], children: set[str] | None) -> ForeignMarkup:
    """Returns the attributes and children that the dialect does not define."""
    attributes = _foreign_attributes(node, names)
    foreign = (
        ()
        if children is None
        else tuple(canonical(one) for one in node.iterchildren(etree.Element) if one.tag not in children)
    )
    return ForeignMarkup(attributes, foreign) if attributes or foreign else NO_MARKUP


def without_blanks(payload: bytes) -> Payload:
    """Returns a canonical payload without white space between the children of the item, the form that a version has."""
    if _BLANKS.search(payload) is None:
        return payload_of(payload)
    item = parse_stored(payload)
    _drop_blanks(item)
    return Payload.of(item)


def without_sync(payload: bytes) -> Payload:
    """Returns a canonical payload without sync data. Sync data is stored beside the payload, and two copies could
    differ.
    """
    if not any(namespace in payload for namespace in _NAMESPACES):
        return payload_of(payload)
    item = parse_stored(payload)
    syncs = syncs_of(item)
    for sync in syncs:
        replace_by_text(sync, "")
    return Payload.of(item) if syncs else payload_of(payload)


def _drop_blanks(item: Element) -> None:
    """Removes white space between the children of an item. It has no meaning, and programs write it differently."""
    if item.text is not None and not item.text.strip(_BLANK):
        item.text = None
    for child in item.iterchildren():
        if child.tail is not None and not child.tail.strip(_BLANK):
            child.tail = None


def _with_payload(version: Version, item: Element) -> Version:
    """Returns the version with the content of its item.

    `documents.FeedReader` has written into the item what it inherits from its feed, and likewise into each item in its
    conflicts. The surrounding stanza or winning version has no influence on the content.
    """
    _drop_blanks(item)
    return replace(version, payload=Payload.of(item))


def _content(node: Element) -> bytes:
    """Returns the content of an element as canonical bytes, without blank text."""
    parts = [_text(node.text)]
    for child in node.iterchildren(etree.Element):
        parts += [canonical(child), _text(child.tail)]
    return b"".join(parts)


def _text(text: str | None) -> bytes:
    return escape(text).encode() if text and text.strip(_BLANK) else b""


def is_whole(sync: Element) -> bool:
    """Returns whether sync data describes a version. A mark with `deleted` alone does not (A-18)."""
    return (
        "updates" in sync.attrib or "version" in sync.attrib or next(sync.iterchildren(etree.Element), None) is not None
    )


def read_id(sync: Element) -> str:
    """Returns the id of an item (FS-025, FS-028). Raises FeedError(INVALID_PAYLOAD)."""
    sync_id = sync.get("id")
    if sync_id is None:
        raise invalid("the id of sx:sync is missing")
    return read_name(sync_id, "an item")
