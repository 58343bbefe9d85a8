"""OPML outlines with sync data: read completely, merged with order and tree, and written (SSE 3.2, 4.4.2).

Outlines without sync data are not merged. Those of the local document stay in place, those of the incoming document are
ignored. Their children count as children of the next outline above that has sync data (A-80).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import with_child
from smartfeeds.formats.opml import (
    MAX_LEVELS,
    Outline,
    OutlineDocument,
    alone,
    flattened,
    outline_bytes,
    read_outline,
    write_outline,
)
from smartfeeds.formats.xml import MAX_PAYLOAD_BYTES, parse_stored
from smartfeeds.sync.document_reader import DocumentPiece
from smartfeeds.sync.joining import INCOMING, LOCAL, OTHER_DIALECT, JoinReport
from smartfeeds.sync.markup import SyncItem, read_item
from smartfeeds.sync.merging import merge
from smartfeeds.sync.places import Place, place_of, places_in, with_place
from smartfeeds.sync.record import Flag
from smartfeeds.sync.sharing import NO_SHARING, Sharing
from smartfeeds.sync.sharing_markup import SHARINGS, read_sharing
from smartfeeds.sync.trees import ROOT, Tree, WinnerSide, merge_trees, parents_of, walk
from smartfeeds.sync.writing import write_item, write_sync

# Prefix of the keys of outlines without sync data. No sync id can contain this character.
_PLAIN = "\0"


@dataclass(slots=True)
class SyncOutline:
    """An outline document as read.

    `items` maps sync ids to items, `indices` to their positions in the document, counted from 0. `tree` has the items
    with sync data, `full` all outlines; `plain` has the bytes of outlines without sync data, under keys of their
    own. `refused` has (index, reason) pairs.
    """

    document: OutlineDocument
    items: dict[str, SyncItem] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    tree: dict[str, list[str]] = field(default_factory=dict)
    full: dict[str, list[str]] = field(default_factory=dict)
    plain: dict[str, bytes] = field(default_factory=dict)
    refused: list[tuple[int, str]] = field(default_factory=list)
    sharing: Sharing = NO_SHARING
    notes: list[str] = field(default_factory=list)


def read_sync_outline(data: bytes, *, lenient: bool = False) -> SyncOutline:
    """Reads an outline. Raises FeedError as `read_outline` does."""
    document = _read(data)
    outlines = SyncOutline(document, notes=list(document.warnings))
    sharings = [node for node in map(parse_stored, document.head_extensions) if node.tag in SHARINGS]
    outlines.sharing, notes = read_sharing(sharings[0] if sharings else None, lenient=lenient)
    outlines.notes += notes
    index = 0
    stack = [(outline, ROOT, ROOT) for outline in reversed(document.outlines)]
    while stack:
        outline, synced, holder = stack.pop()
        key = _add(outlines, outline, index, lenient=lenient)
        outlines.full.setdefault(holder, []).append(key)
        if not key.startswith(_PLAIN):
            outlines.tree.setdefault(synced, []).append(key)
            synced = key
        stack += [(child, synced, key) for child in reversed(outline.children)]
        index += 1
    return outlines


def _read(data: bytes) -> OutlineDocument:
    try:
        return read_outline(data, repair=False)
    except FeedError:
        with suppress(FeedError):
            document = read_outline(data)
            # Without sync data there is no version that a repair could change.
            if not any(outline.extensions for _level, outline in flattened(document.outlines)):
                return document
        raise


def _add(outlines: SyncOutline, outline: Outline, index: int, *, lenient: bool) -> str:
    """Reads one outline and returns its key."""
    childless = replace(outline, children=()) if outline.children else outline
    raw, line = alone(childless), outline_bytes(childless)
    plain = f"{_PLAIN}{index:08d}"
    if not outline.extensions:
        outlines.plain[plain] = line
        return plain
    try:
        if len(raw) > MAX_PAYLOAD_BYTES:
            raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the outline is larger than {MAX_PAYLOAD_BYTES} bytes")
        item = read_item(parse_stored(raw), lenient=lenient)
        if item is not None and item.version.sync_id in outlines.items:
            raise FeedError(Condition.INVALID_PAYLOAD, f"another outline has the same id, {item.version.sync_id}")
    except FeedError as error:
        outlines.refused.append((index, error.text))
        item = None
    if item is None:
        outlines.plain[plain] = line
        return plain
    outlines.items[item.version.sync_id] = item
    outlines.indices[item.version.sync_id] = index
    outlines.notes += item.notes
    return item.version.sync_id


def pieces_of(outlines: SyncOutline) -> Iterator[DocumentPiece]:
    """Yields the outlines as items of a feed, in document order. Each item with sync data has its place with it."""
    places = places_in(outlines.tree)
    reasons = dict(outlines.refused)
    for index, (_, key) in enumerate(walk(outlines.full)):
        item = outlines.items.get(key)
        if item is None:
            yield DocumentPiece(index, outlines.plain[key], reason=reasons.get(index, ""))
            continue
        item = item._replace(version=with_place(item.version, _place(outlines, item, places[key])))
        yield DocumentPiece(index, write_item(item.version, item.dialect, item.namespace), item)


def _place(outlines: SyncOutline, item: SyncItem, there: Place) -> Place:
    """Returns the place of an item. The document shows it at `there`.

    A part of an outline may lack the parent or the sibling of an item. The item then says where it is (`publishing`),
    unless somebody has moved it in the document since.
    """
    place = place_of(item.version)
    if place is None or not {place.parent, place.after} - {ROOT} - outlines.items.keys():
        return there
    return place if there.parent == (place.parent if place.parent in outlines.items else ROOT) else there


def neighbours_of(outlines: SyncOutline) -> list[tuple[int | None, int | None]]:
    """Returns the indices of the outline above each outline and of the sibling before it, in document order."""
    indices = {key: index for index, (_, key) in enumerate(walk(outlines.full))}
    places = places_in(outlines.full)
    return [(indices.get(places[key].parent), indices.get(places[key].after)) for key in indices]


def merge_outlines(local: SyncOutline, incoming: SyncOutline, report: JoinReport) -> SyncOutline:
    """Returns `local` with the merged versions, tree and order.

    Raises FeedError(INVALID_PAYLOAD) if the result is nested deeper than an outline may be.
    """
    for name, side in ((LOCAL, local), (INCOMING, incoming)):
        report.note(side.notes)
        for index, reason in side.refused:
            report.refuse(index, reason, name)
    report.plain += len(incoming.plain)
    result = replace(local, items=dict(local.items))
    sides: dict[str, WinnerSide] = {}
    for sync_id in incoming.items:
        sides[sync_id] = _merge_one(result, incoming, sync_id, report)
    sync_ids = result.items.keys()
    theirs = {parent: [sync_id for sync_id in ids if sync_id in sync_ids] for parent, ids in incoming.tree.items()}
    result.tree, repaired = merge_trees(local.tree, theirs, lambda one: sides.get(one, WinnerSide.LOCAL))
    for sync_id in repaired:
        report.note([f"{sync_id}: moved to the root, because it was among its own descendants"])
        item = result.items[sync_id]
        result.items[sync_id] = item._replace(version=item.version._replace(conflict=Flag.TRUE))
    result.full = _with_plain(local, result.tree)
    report.conflicts += sum(len(item.version.conflicts) for item in result.items.values())
    return result


def _merge_one(merged: SyncOutline, incoming: SyncOutline, sync_id: str, report: JoinReport) -> WinnerSide:
    """Merges one item and returns the side whose place applies."""
    local, item = merged.items.get(sync_id), incoming.items[sync_id]
    try:
        if local is not None and local.dialect is not item.dialect:
            raise FeedError(Condition.INVALID_PAYLOAD, OTHER_DIALECT.format(sync_id))
        result = merge(item.dialect, None if local is None else local.version, item.version)
    except FeedError as error:
        report.refuse(incoming.indices[sync_id], error.text, INCOMING)
        return WinnerSide.LOCAL
    report.outcomes[result.outcome] += 1
    report.note(result.notes)
    merged.items[sync_id] = (local or item)._replace(version=result.version)
    if local is None:
        return WinnerSide.INCOMING
    if local.version.key == item.version.key:
        return WinnerSide.BOTH
    return WinnerSide.INCOMING if result.version.key == item.version.key else WinnerSide.LOCAL


def _with_plain(local: SyncOutline, tree: Tree) -> dict[str, list[str]]:
    """Returns the merged tree with the local plain outlines in their places, and inside them the items that did not
    move.
    """
    before, after, holders = parents_of(local.tree), parents_of(tree), parents_of(local.full)
    inside: dict[str, list[str]] = {}
    container: dict[str, str] = {}
    for parent, ids in tree.items():
        for key in ids:
            container[key] = holders[key] if key in before and before[key] == after[key] else parent
            inside.setdefault(container[key], []).append(key)
    # A plain outline follows the same sibling as before, if that sibling remains.
    followers: dict[tuple[str, str], list[str]] = {}
    for holder, ids in local.full.items():
        last = ROOT
        for key in ids:
            is_plain = key.startswith(_PLAIN)
            if is_plain:
                followers.setdefault((holder, last), []).append(key)
            if is_plain or container.get(key) == holder:
                last = key
    full: dict[str, list[str]] = {}
    for holder in {*inside, *(holder for holder, _ in followers)}:
        stack = [*reversed(inside.get(holder, ())), *reversed(followers.get((holder, ROOT), ()))]
        order = full.setdefault(holder, [])
        while stack:
            key = stack.pop()
            order.append(key)
            stack += reversed(followers.get((holder, key), ()))
    return full


def write_sync_outline(outline: SyncOutline, sharing: bytes = b"") -> Iterator[bytes]:
    """The outline as OPML with this sx:sharing; that of the document itself is not published again (FS-014).

    Raises FeedError(INVALID_PAYLOAD) beyond MAX_LEVELS.
    """
    extensions = tuple(
        extension for extension in outline.document.head_extensions if parse_stored(extension).tag not in SHARINGS
    )
    extensions += (sharing,) if sharing else ()
    head, *tail = write_outline(replace(outline.document, outlines=(), head_extensions=extensions))
    namespaces: dict[str, str] = {}
    for item in outline.items.values():
        namespaces.setdefault(item.dialect.name, item.namespace)
    yield head
    for key in outline.full.get(ROOT, ()):
        yield _written(outline, key, namespaces, 1)
    yield from tail


def _written(outline: SyncOutline, key: str, namespaces: dict[str, str], level: int) -> bytes:
    if level > MAX_LEVELS:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the merged outline is nested deeper than {MAX_LEVELS} levels")
    children = b"".join(_written(outline, child, namespaces, level + 1) for child in outline.full.get(key, ()))
    if key.startswith(_PLAIN):
        raw = outline.plain[key].rstrip(b"\n")
        if raw.endswith(b"/>") and children:
            raw = raw.removesuffix(b"/>") + b"></outline>"
        return (with_child(raw, children) if children else raw) + b"\n"
    item = outline.items[key]
    sync = write_sync(item.version, item.dialect, namespaces[item.dialect.name])
    # Canonical form says that an outline has no namespace (`formats.xml`). In an OPML document no element has one.
    payload = item.version.payload.replace(b'<outline xmlns=""', b"<outline", 1)
    return with_child(payload, sync + (b"\n" + children if children else b"")) + b"\n"
