"""Reads sx:sync in an entry, item or outline into a version (FeedSync 2.4 to 2.6, SSE 2.3 to 5.2).

An item whose sync data violates its dialect is rejected as a whole, with the reason. Markup that neither dialect
defines is preserved in place (FS-012).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, cast

from lxml import etree

from smartfeeds.core.text import escape
from smartfeeds.errors import Condition, FeedError
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
    read_number,
)
from smartfeeds.sync.merging import Dialect, in_order
from smartfeeds.sync.record import (
    MAX_CONFLICTS,
    MAX_HISTORY,
    NO_MARKUP,
    Flag,
    ForeignMarkup,
    HistoryRecord,
    Version,
    check_name,
)

# Levels of conflicts within conflicts that are flattened; deeper nesting is rejected.
MAX_NESTING = 1
_CACHED_CHARACTERS = 1_024  # of the attributes of a record

_NAMESPACES = tuple(namespace.encode() for namespace in SYNC_NAMESPACES)
_FEEDSYNC_NAMES = frozenset({"sequence", "when", "by"})  # attributes of a history record
_SSE_NAMES = frozenset({"when", "by"})
_CONFLICT_NAMES = frozenset({"version", "when", "by"})
_BLANK = " \t\r\n"
_BLANKS = re.compile(rb">(?:[ \t\n]|&#xD;)+<")


class SyncItem(NamedTuple):
    """An item with sync data, as read. `namespace` is that of its markup; `notes` are for users.

    `nested` says whether the markup has conflicts within conflicts. The version has all of them in one list (FS-063).
    """

    version: Version
    dialect: Dialect
    namespace: str
    notes: tuple[str, ...] = ()
    nested: bool = False


def read_item(item: Element, *, lenient: bool = False, payload: bool = True, depth: int = 0) -> SyncItem | None:
    """Reads the sync data of an entry, item or outline. Returns None if it has none (FS-022, FS-024, SSE-016).

    With `payload` the version includes its content, and the function removes sx:sync from `item`. Without `payload` the
    content is only checked. `lenient` accepts dates of SSE in zones other than GMT. `depth` is the number of items
    around this one. Raises FeedError(INVALID_PAYLOAD).
    """
    syncs = syncs_of(item)
    if not syncs:
        return None
    sync_item = _read_sync(syncs[0], lenient=lenient, payload=payload, depth=depth)
    if len(syncs) > 1:
        note = (
            f"{sync_item.version.sync_id}: the item has sync data of two dialects; that of {sync_item.dialect.name} "
            "applies"
        )
        sync_item = sync_item._replace(notes=(*sync_item.notes, note))
    if payload:
        replace_by_text(syncs[0], "")
        sync_item = sync_item._replace(version=_with_payload(sync_item.version, item))
    return sync_item


def read_stored(stored: bytes, payload: Payload) -> SyncItem:
    """Returns the item with this payload whose sync data is stored beside it. Raises FeedError."""
    item = _read_sync(parse_stored(stored))
    return item._replace(version=item.version._replace(payload=payload))


def read_rest(head: SyncItem, item: Element, *, lenient: bool = False) -> Version:
    """Returns the whole version of an item that was read without its payload. Removes sx:sync from `item`.

    Raises FeedError(INVALID_PAYLOAD) for content that cannot be stored.
    """
    if head.version.conflicts:
        whole = read_item(item, lenient=lenient)
        assert whole is not None  # `head` has its sync data
        return whole.version
    replace_by_text(syncs_of(item)[0], "")
    return _with_payload(head.version, item)


def syncs_of(item: Element) -> list[Element]:
    """Returns the sx:sync elements of an item. If both vocabularies are present, FeedSync comes first and applies
    (A-87).
    """
    # One search in any namespace is faster than one search per namespace.
    syncs = [node for node in item.iterchildren("{*}sync") if node.tag in SYNCS]
    return sorted(syncs, key=lambda node: node.tag != SYNC) if len(syncs) > 1 else syncs


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


def _read_sync(sync: Element, *, lenient: bool = False, payload: bool = True, depth: int = 0) -> SyncItem:
    """Reads sync data. The version has no content."""
    namespace, history_tag, conflicts_tag = _tags(sync.tag)
    attributes = _attributes(sync)
    # In the older namespaces only the attributes show the dialect.
    if namespace == FEEDSYNC_NS or ("updates" in attributes and "version" not in attributes):
        syntax = FEEDSYNC_LEXIS
    else:
        syntax = LENIENT_SSE_LEXIS if lenient else SSE_LEXIS
    dialect = syntax.dialect
    is_feedsync = dialect is FEEDSYNC
    histories: list[Element] = []
    containers: list[Element] = []
    foreign: list[Element] = []
    lists = {history_tag: histories, conflicts_tag: containers}
    for node in sync:
        lists.get(node.tag, foreign).append(node)
    sync_id = attributes.get("id")
    if sync_id is None:
        raise invalid("the id of sx:sync is missing")
    check_name(sync_id, "an item", Condition.INVALID_PAYLOAD)
    if not histories:
        raise invalid("sx:sync has no sx:history")
    counter = read_number(attributes.get(dialect.counter), dialect.counter)
    notes: list[str] = []
    conflicts: list[Version] = []
    nested = False
    if is_feedsync:
        _check_count(histories, MAX_HISTORY, "history records")
        history = [_record(node, syntax) for node in histories]
        if containers:
            conflicts, nested = _item_conflicts(
                containers, sync_id, notes, lenient=lenient, payload=payload, depth=depth
            )
    else:
        history = _sse_history(histories, counter, syntax, namespace)
        if len(histories) > 1:
            notes.append(f"{sync_id}: sx:sync has more than one sx:history; the first applies")
        conflicts = _listed_conflicts(containers, sync_id, syntax, namespace, notes)
    version = Version(
        sync_id,
        counter,
        tuple(history),
        deleted=syntax.flag(attributes.get("deleted"), "deleted"),
        noconflicts=syntax.flag(attributes.get("noconflicts"), "noconflicts") if is_feedsync else Flag.ABSENT,
        conflict=Flag.ABSENT if is_feedsync else syntax.flag(attributes.get("conflict"), "conflict"),
        # Versions without payload may look equal, so they are counted only.
        conflicts=in_order(conflicts) if payload else tuple(conflicts),
        extra=_foreign_markup(attributes, dialect.names, foreign),
    )
    return SyncItem(version, dialect, namespace, tuple(notes), nested)


@lru_cache(16)
def _tags(tag: str) -> tuple[str, str, str]:
    """Returns the namespace of an sx:sync, and the tags of sx:history and sx:conflicts in it."""
    start = tag[: tag.index("}") + 1]
    return start[1:-1], f"{start}history", f"{start}conflicts"


def _attributes(node: Element) -> dict[str, str]:
    return cast("dict[str, str]", dict(node.items()))


def _item_conflicts(
    containers: list[Element], sync_id: str, notes: list[str], *, lenient: bool, payload: bool, depth: int
) -> tuple[list[Version], bool]:
    """Reads the items in sx:conflicts, and beside them those in their own sx:conflicts (FS-039, FS-040, FS-063).

    Returns also whether there were such items.
    """
    versions: list[Version] = []
    nested = False
    for node in (node for container in containers for node in container.iterchildren(etree.Element)):
        if depth > MAX_NESTING:
            raise invalid(f"conflicts are nested deeper than {MAX_NESTING + 1} levels")
        if not _is_item(node):
            notes.append(f"{sync_id}: sx:conflicts has an element that is no item; it was ignored")
            continue
        item = read_item(node, lenient=lenient, payload=payload, depth=depth + 1)
        if item is None or item.dialect is not FEEDSYNC:
            raise invalid("an item in sx:conflicts has no FeedSync data")
        if item.version.sync_id != sync_id:
            raise invalid("the id of an item in sx:conflicts differs from the item's id")
        versions += [item.version._replace(conflicts=()), *item.version.conflicts]
        nested = nested or bool(item.version.conflicts)
        notes += item.notes
        _check_count(versions, MAX_CONFLICTS, "conflicts")
    return versions, nested


def _sse_history(histories: list[Element], counter: int, syntax: DialectSyntax, namespace: str) -> list[HistoryRecord]:
    """Reads the first sx:history and the sx:update elements in it. Record k has the number `counter - k`."""
    tag = f"{{{namespace}}}update"
    # The limit counts the sx:history too.
    updates = list(islice(histories[0].iterchildren(tag), MAX_HISTORY))
    _check_count(updates, MAX_HISTORY - 1, "sx:update records")
    return [
        _record(histories[0], syntax, counter, tag),
        *(_record(node, syntax, counter - k) for k, node in enumerate(updates, start=1)),
    ]


def _listed_conflicts(
    containers: list[Element], sync_id: str, syntax: DialectSyntax, namespace: str, notes: list[str]
) -> list[Version]:
    """Reads the conflict lists of SSE (5.2). An invalid conflict is ignored; the item remains valid (SSE-047)."""
    versions: list[Version] = []
    for container in containers:
        nodes = list(islice(container.iterchildren(f"{{{namespace}}}conflict"), MAX_CONFLICTS + 1))
        _check_count(nodes, MAX_CONFLICTS, "conflicts")
        if not nodes:
            notes.append(f"{sync_id}: sx:conflicts is empty; it was ignored")
        for node in nodes:
            try:
                counter = read_number(node.get("version"), "the version of a conflict")
                record = _record_of(node, syntax, counter, _CONFLICT_NAMES)
            except FeedError as error:
                notes.append(f"{sync_id}: a conflict was ignored: {error.text}")
                continue
            versions.append(Version(sync_id, counter, (record,), _content(node)))
    return versions


def _check_count(items: Sized, limit: int, what: str) -> None:
    if len(items) > limit:
        raise invalid(f"the item has more than {limit} {what}")


def _record(node: Element, syntax: DialectSyntax, sequence: int | None = None, own_tag: str = "") -> HistoryRecord:
    """Reads one record. `sequence` is that of SSE, which does not write it; children with `own_tag` are not foreign."""
    names = _FEEDSYNC_NAMES if sequence is None else _SSE_NAMES
    record = _record_of(node, syntax, sequence, names)
    if len(node):
        children = tuple(canonical(child) for child in node.iterchildren(etree.Element) if child.tag != own_tag)
        if children:
            record = record._replace(extra=record.extra._replace(children=children))
    return record


def _record_of(node: Element, syntax: DialectSyntax, sequence: int | None, names: frozenset[str]) -> HistoryRecord:
    """Returns the record in the attributes of an element, of which the dialect defines `names`."""
    attributes = cast("tuple[tuple[str, str], ...]", tuple(node.items()))
    # Foreign attributes may have any length and number. In the cache they could fill the memory.
    is_short = sum(len(name) + len(value) for name, value in attributes) <= _CACHED_CHARACTERS
    return (_known_record if is_short else _read_record)(attributes, syntax, sequence, names)


def _read_record(
    attributes: tuple[tuple[str, str], ...], syntax: DialectSyntax, sequence: int | None, names: frozenset[str]
) -> HistoryRecord:
    """Returns the record with these attributes, of which the dialect defines `names`."""
    values = dict(attributes)
    if sequence is None:
        sequence = read_number(values.get("sequence"), "sequence")
    when = values.get("when")
    when_us, by = syntax.time(when, "when"), syntax.endpoint(values.get("by"))
    if when_us is None and not by:
        raise invalid("a history record has neither when nor by")
    # FeedSync times are written in one form. SSE times are preserved as received.
    is_ours = when_us is None or syntax.dialect is FEEDSYNC or when == syntax.write_time(when_us)
    return HistoryRecord(sequence, when_us, by, "" if is_ours else when or "", _foreign_markup(values, names))


# Versions of one item share most records, and are read after each other. A look-up takes a fifth of the time of reading
# the attributes.
_known_record = lru_cache(1_024)(_read_record)


def _foreign_markup(
    attributes: Mapping[str, str], names: frozenset[str], children: Iterable[Element] = ()
) -> ForeignMarkup:
    """Returns the attributes whose names the dialect does not define, and the canonical bytes of `children`."""
    if names.issuperset(attributes) and not children:
        return NO_MARKUP
    foreign = sorted((name, value) for name, value in attributes.items() if name not in names)
    # The tag of a comment is no text.
    return ForeignMarkup(tuple(foreign), tuple(canonical(child) for child in children if isinstance(child.tag, str)))


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
    return version._replace(payload=Payload.of(item))


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
