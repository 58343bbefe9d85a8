"""Plain copies of shared items: items that came without sync data, by an import or from a source.

The record of such a change has the attribute `copied` in the namespace of Smart Feeds: it stands for a change that was
made elsewhere. Its value is the counter of the version that was copied, 0 if the document had no sync data. When the
item comes with its sync data, the copy becomes that item: its own records would make it another item, or a conflict of
two versions that say the same. Changes that people made to the copy are changes of that item,
erasures too.

Services that do not know the attribute preserve it as foreign markup (FeedSync 2.4) and see an ordinary change.
"""

from collections.abc import Callable
from typing import NamedTuple

from smartfeeds.errors import FeedError
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sync.feedsync import is_subsumed
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.merging import Dialect, merge
from smartfeeds.sync.record import COPIED, NO_MARKUP, HistoryRecord, Version, highest


class CopyOrigin(NamedTuple):
    """The version that a document has of an item, as far as it says: its sync id, its counter and its newest change."""

    sync_id: str = ""
    counter: int = 0
    top: HistoryRecord | None = None


def origin_of(payload: bytes) -> CopyOrigin:
    """Returns the origin of an item of a document, from its sync data if they are valid."""
    if b"sync" not in payload:
        return CopyOrigin()
    try:
        sync_item = read_item(parse_stored(payload), lenient=True, payload=False)
    except FeedError:
        return CopyOrigin()
    if sync_item is None:
        return CopyOrigin()
    version = sync_item.version
    return CopyOrigin(version.sync_id, version.counter, version.top)


def knows(version: Version, origin: CopyOrigin) -> bool:
    """Returns whether an item has already met the version of a document."""
    return origin.top is not None and is_subsumed(origin.top, version.history)


def as_copy(version: Version, origin: CopyOrigin) -> Version:
    """Returns the version with the mark on its newest change."""
    top = version.top
    extra = top.extra._replace(attributes=(*top.extra.attributes, (COPIED, str(origin.counter))))
    return version._replace(history=(top._replace(extra=extra), *version.history[1:]))


def copied_counter(record: HistoryRecord) -> int | None:
    """Returns the value of the mark, or None for a record without it."""
    if record.extra is NO_MARKUP:
        return None
    text = next((value for name, value in record.extra.attributes if name == COPIED), None)
    return None if text is None else int(text) if text.isascii() and text.isdigit() else 0


def is_unbound_copy(version: Version, is_own: Callable[[str], bool]) -> bool:
    """Returns whether an item came here from documents without sync data, or from a service where it did, and has never
    met its shared version.
    """
    counters = [copied_counter(record) for record in version.history]
    others = [record for record in version.records if copied_counter(record) is None and not is_own(record.by)]
    return 0 in counters and not any(counters) and not others


def settle_copy(dialect: Dialect, local: Version, incoming: Version, is_own: Callable[[str], bool]) -> Version | None:
    """Returns the item if one of two versions is a plain copy of the other, or None if an ordinary merge must decide.

    `is_own` returns whether an endpoint is one of this service.
    """
    if _is_copy_of(incoming, local):
        # Of two copies all services keep the same one. A change of this service that it does not know may be forged.
        both = _is_copy_of(local, incoming) and not is_own(incoming.top.by)
        return highest((local, incoming)) if both else local
    marks = [copied_counter(record) for record in local.history]
    newest = next((place for place, mark in enumerate(marks) if mark is not None), None)
    if newest is None or local.conflicts or is_subsumed(incoming.top, local.history):
        return None
    # A version that was made from a copy alone knows its records: an ordinary merge compares them.
    if any(is_own(record.by) for record in incoming.records) or copied_counter(incoming.history[-1]) is not None:
        return None
    if is_subsumed(local.history[newest], incoming.history):
        return None
    below = [record for record in local.history[newest:] if copied_counter(record) is None]
    edits = local.history[:newest]
    if all(is_own(record.by) for record in below):
        # A later copy may have replaced changes that people made here; they stay in the history.
        edits = local.history[: max((place + 1 for place, mark in enumerate(marks) if mark is None), default=0)]
    elif not all(is_subsumed(record, incoming.history) for record in below):
        return None
    if not edits:
        # Also an older version than that of the copy: the others have no later one with its history yet.
        return incoming
    # Only this service may give its changes other numbers.
    own = all(is_own(record.by) for record in edits)
    return _on_top(dialect, local, incoming, edits, local.history[newest]) if own else None


def _is_copy_of(version: Version, other: Version) -> bool:
    """Whether a version is a plain copy of a version of an item, `other` is that item, and neither was made from the
    other one.
    """
    below = [record for record in version.history if copied_counter(record) is None]
    return (
        copied_counter(version.top) is not None
        and not version.conflicts
        and all(is_subsumed(record, other.history) for record in below)
        and not is_subsumed(version.top, other.history)
        and not is_subsumed(other.top, version.history)
    )


def _on_top(
    dialect: Dialect, local: Version, incoming: Version, edits: tuple[HistoryRecord, ...], copy: HistoryRecord
) -> Version:
    """Returns the item after changes of a copy, as if they had been made to the version that was copied.

    This is a conflict if the item was changed elsewhere since. Without sync data of the copied version, the time of the
    copy says which version it was.
    """
    counter, copied_us = copied_counter(copy), copy.when_us or 0

    def is_base(record: HistoryRecord) -> bool:
        return record.sequence <= counter if counter else (record.when_us or 0) <= copied_us

    last = len(incoming.history) - 1
    base = next((place for place, record in enumerate(incoming.history) if is_base(record)), last)
    below = incoming.history[base:]
    first = incoming.counter if base == 0 else below[0].sequence
    rebased = [edit._replace(sequence=first + len(edits) - place) for place, edit in enumerate(edits)]
    version = incoming._replace(
        counter=first + len(edits),
        history=(*rebased, *below),
        payload=local.payload,
        deleted=local.deleted,
        extra=local.extra,
        conflicts=() if base else incoming.conflicts,
    )
    return merge(dialect, version, incoming).version
