"""The marks of an erasure in sync data: how an erased version wins, and how a person's records lose their name.

FeedSync and SSE have no word for either, so both are attributes in the namespace of Smart Feeds. Services that do not
know them preserve them as foreign markup (FeedSync 2.4) and see an ordinary deletion.

- `erased="true"` on sx:sync, and on the record of the change that erased the content. A version whose history has this
  record subsumes every version whose history lacks it, whatever its counter.
- `erased="by"` on a record whose endpoint is now the service alone. It stands for the record with the same number and
  time by a person at that service.
"""

from collections.abc import Callable
from typing import Final

from smartfeeds.formats.atom import OWN_NS
from smartfeeds.sync.record import COPIED, MAX_NUMBER, Edit, Flag, ForeignMarkup, HistoryRecord, Version

ERASED: Final = f"{{{OWN_NS}}}erased"
CONTENT, AUTHOR = "true", "by"  # the values of the mark

# More records than this are of no use: the mark alone decides, and the item must stay far below its limit of bytes.
_MAX_RECORDS: Final = 100
_BETWEEN: Final = "%2F"  # between the service and the person in an endpoint


def erased_mark(record: HistoryRecord) -> str:
    """Returns CONTENT, AUTHOR, or an empty text for a record without mark."""
    return next((value for name, value in record.extra.attributes if name == ERASED), "")


def is_erased(version: Version) -> bool:
    """Returns whether the content of a version was erased, and nothing was published since."""
    return version.deleted.on and (ERASED, CONTENT) in version.extra.attributes


def has_marks(version: Version) -> bool:
    """Returns whether a version, or one of its conflicts, has a mark of an erasure."""
    return any(part.extra.attributes and is_erased(part) for part in version.versions) or any(
        record.extra.attributes and erased_mark(record) for record in version.records
    )


def erases(version: Version, subject: Version) -> bool:
    """Returns whether `version` knows an erasure of the item that `subject` was made without."""
    for place, record in enumerate(version.history):
        if not record.extra.attributes and (place or not version.extra.attributes):
            continue
        # Services on the way may drop the mark of a record, or that of sx:sync.
        is_erasure = erased_mark(record) == CONTENT or (place == 0 and is_erased(version))
        if is_erasure and not any(
            other.by == record.by and other.sequence >= record.sequence for other in subject.history if record.by
        ):
            return True
    return False


def without_erased(local: Version, incoming: Version) -> Version | None:
    """Returns what remains of an incoming version after the erasures that the local version knows, None if nothing
    remains.
    """
    parts = [part for part in incoming.versions if not erases(local, part)]
    if len(parts) == len(incoming.versions):
        return incoming
    if not parts:
        return None
    winner = max(parts, key=lambda part: part.key)
    return winner._replace(conflicts=tuple(part for part in parts if part is not winner))


def share_marks(one: Version, other: Version) -> tuple[Version, Version]:
    """Returns two versions of an item. A record without its author in one of them has no author in the other either."""
    marked = [
        record
        for version in (one, other)
        for record in version.records
        if record.extra.attributes and erased_mark(record) == AUTHOR
    ]
    if not marked:
        return one, other
    known = {(record.sequence, record.when_us): record for record in marked}

    def nameless(record: HistoryRecord) -> HistoryRecord:
        mark = known.get((record.sequence, record.when_us))
        return mark if mark is not None and record.by.startswith(f"{mark.by}{_BETWEEN}") else record

    return _renamed(one, nameless), _renamed(other, nameless)


def without_author(version: Version, is_person: Callable[[str], bool], service: str) -> Version:
    """Returns a version in which the endpoints of a person are those of the services where the person edited.

    `is_person` says whether an endpoint belongs to the person. `service` is the endpoint of this service, for endpoints
    that name no service.
    """

    def nameless(record: HistoryRecord) -> HistoryRecord:
        if not (record.by and is_person(record.by)):
            return record
        place = record.by.partition(_BETWEEN)[0]
        by = service if place == record.by or is_person(place) else place
        return _marked(record._replace(by=by), AUTHOR)

    return _renamed(version, nameless)


def erased_version(version: Version, edit: Edit, payload: bytes) -> Version:
    """Returns the version that erases an item: `payload` is what remains of the content. It has no conflicts.

    Its counter is above all others, so that services that do not know the mark choose it, too.
    """
    counter = min(MAX_NUMBER, max(part.counter for part in version.versions) + 1)
    highest = max((record.sequence for record in version.records if record.by == edit.by), default=0)
    sequence = min(MAX_NUMBER, max(counter, highest + 1))
    stamp = _marked(HistoryRecord(sequence, edit.when_us, edit.by), CONTENT)
    # Foreign markup of the former content may hold anything.
    return Version(
        version.sync_id,
        counter,
        (stamp, *version.history[: _MAX_RECORDS - 1]),
        payload,
        deleted=Flag.TRUE,
        noconflicts=version.noconflicts,
        extra=ForeignMarkup(((ERASED, CONTENT),)),
    )


def restored_markup(extra: ForeignMarkup) -> ForeignMarkup:
    """Returns the foreign markup of a version that is published again after an erasure: without the mark."""
    if not extra.attributes:
        return extra
    return extra._replace(attributes=tuple(pair for pair in extra.attributes if pair[0] != ERASED))


def _marked(record: HistoryRecord, value: str) -> HistoryRecord:
    """Returns the record with the mark alone: other markup may hold anything. A number says nothing of a person."""
    marks = [(name, text) for name, text in record.extra.attributes if name == COPIED and text.isdecimal()]
    return record._replace(written="", extra=ForeignMarkup(((ERASED, value), *marks)))


def _renamed(version: Version, change: Callable[[HistoryRecord], HistoryRecord]) -> Version:
    def renamed(part: Version) -> Version:
        history = tuple(map(change, part.history))
        return part if history == part.history else part._replace(history=history)

    whole = version.each(renamed)
    return version if whole == version else whole
