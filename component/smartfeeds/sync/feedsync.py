"""FeedSync 1.0.2: merging (section 3.3), creation (3.1), update and deletion (3.2), resolution (3.4).

Numbers in comments are the steps of the specification.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, count

from smartfeeds.errors import Condition, FeedError
from smartfeeds.sync.erasure import CONTENT, erased_mark, erases, restored_markup
from smartfeeds.sync.merging import Dialect, in_order
from smartfeeds.sync.record import (
    MAX_HISTORY,
    MAX_NUMBER,
    Edit,
    Flag,
    HistoryRecord,
    Version,
    highest,
    next_counter,
    rank,
)

# A local change cleans up a history above this length. A merge never does, because one version would
# have two histories then, and services would never agree on it. MAX_HISTORY is ten times as much,
# for the records that merges add: an item whose history stays above it after a clean-up can no longer be changed.
CLEAN_ABOVE = 100


def is_subsumed(record: HistoryRecord, history: Iterable[HistoryRecord]) -> bool:
    """Returns whether a history has a record that subsumes this one (3.3 note 2)."""
    subject = _subject(record)
    # Histories are short and the newest records come first, so an index is not worth its time.
    return any(other.sequence >= record.sequence and _subject(other) == subject for other in history)


def known_sequences(history: Iterable[HistoryRecord]) -> dict[object, int]:
    """Returns the highest sequence of each subject of a history: an endpoint, or a record without endpoint. A history
    subsumes all records up to it.
    """
    known: dict[object, int] = {}
    for record in history:
        subject = _subject(record)
        if known.get(subject, 0) < record.sequence:
            known[subject] = record.sequence
    return known


def _subject(record: HistoryRecord) -> object:
    """Returns the endpoint of a record (1.a). A record without endpoint is subsumed by an equal one only (2.a)."""
    return record.by or (record.when_us, record.sequence)


def _survivors(versions: Sequence[Version]) -> list[Version]:
    """Returns the versions that no other version subsumes (steps 6 to 8).

    The specification compares one side with the other, then the other with the rest. Comparing all with all has the
    same result for every history that the steps can produce, and does not depend on which side is local (FS-068). Twins
    are versions that subsume each other. They are settled first: the twin with the higher rank remains and decides
    alone (A-43).
    """
    histories = [known_sequences(version.history) for version in versions]

    # Note 1: a version is subsumed if its topmost record is.
    def below(one: int, other: int) -> bool:
        top = versions[one].top
        return histories[other].get(_subject(top), 0) >= top.sequence or erases(versions[other], versions[one])

    remaining: list[int] = []
    for at in sorted(range(len(versions)), key=lambda at: versions[at].key, reverse=True):
        twin = next((n for n, other in enumerate(remaining) if below(at, other) and below(other, at)), None)
        if twin is None:
            remaining.append(at)
        elif rank(versions[at]) > rank(versions[remaining[twin]]):
            remaining[twin] = at
    survivors = [
        versions[at] for at in sorted(remaining) if not any(below(at, other) for other in remaining if other != at)
    ]
    # Forged histories can subsume each other in a circle.
    return survivors or [highest(versions)]


def _survivors_of_two(one: Version, other: Version) -> list[Version]:
    """Does the work of `_survivors` for two versions, the most frequent case, in half the time.

    Merges of the same versions in different orders use both, and tests/property/test_merge.py compares the results.
    """
    below = is_subsumed(one.top, other.history) or erases(other, one)
    above = is_subsumed(other.top, one.history) or erases(one, other)
    if below and above:
        return [one if rank(one) >= rank(other) else other]
    if below or above:
        return [other if below else one]
    return [one, other]


def clean_history(history: Sequence[HistoryRecord]) -> tuple[HistoryRecord, ...]:
    """Returns the record with the highest sequence of each endpoint, records without endpoint (FS-054), and the topmost
    record.

    FeedSync 3.2 allows this clean-up.
    """
    highest = known_sequences(history)
    records: list[HistoryRecord] = []
    endpoints: set[str] = set()
    for place, stamp in enumerate(history):
        newest = stamp.by not in endpoints and stamp.sequence == highest.get(stamp.by)
        # Without the record of an erasure the erased content could come back (`sync.erasure`).
        if place == 0 or not stamp.by or newest or erased_mark(stamp) == CONTENT:
            records.append(stamp)
        if newest:
            endpoints.add(stamp.by)
    return tuple(records)


class FeedSync(Dialect):
    """FeedSync: conflicts are whole versions, and a history records what a version has seen."""

    name = "FeedSync"
    counter = "updates"
    names = frozenset({"id", "updates", "deleted", "noconflicts"})

    def __reduce__(self) -> str:
        return "FEEDSYNC"

    def join(self, local: Version, incoming: Version) -> tuple[Version, tuple[str, ...]]:
        """Applies section 3.3 from step 2."""
        # 2 to 4: the item and its conflicts on both sides, each without its own conflicts
        parts = [
            part._replace(conflicts=()) if part.conflicts else part
            for side in (local, incoming)
            for part in side.versions
        ]
        survivors = _survivors_of_two(*parts) if len(parts) == 2 else _survivors(list(dict.fromkeys(parts)))
        # 5, 7.c, 7.d: the winner
        winner = highest(survivors)
        notes: tuple[str, ...] = ()
        if len({part.noconflicts.on for part in parts}) > 1:
            notes = (
                f"{winner.sync_id}: versions differ in noconflicts, which never changes; the winner's value applies",
            )
        # 10
        if winner.noconflicts.on or len(survivors) == 1:
            return winner, notes
        # 9, 11
        return winner._replace(conflicts=in_order(survivor for survivor in survivors if survivor is not winner)), notes

    def create(
        self, sync_id: str, payload: bytes, edit: Edit, *, deleted: bool = False, noconflicts: bool = False
    ) -> Version:
        """Creates an item (3.1). `noconflicts` can only be set at creation (FS-032)."""
        flag = Flag.TRUE if noconflicts else Flag.ABSENT
        return super().create(sync_id, payload, edit, deleted=deleted)._replace(noconflicts=flag)

    def update(
        self,
        version: Version,
        edit: Edit,
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
        resolved: Sequence[Version] = (),
        noconflicts: bool | None = None,
    ) -> Version:
        """Changes an item (3.2). A tombstone remains one unless `deleted` is False (A-49). The endpoint's own conflicts
        are merged. The histories of the resolved versions are added (3.4, FS-069 to FS-073).

        Raises FeedError(NOT_ALLOWED) for a `noconflicts` other than that of the item.
        """
        if noconflicts is not None and noconflicts != version.noconflicts.on:
            raise FeedError(Condition.NOT_ALLOWED, "noconflicts can only be set when an item is created")
        by = _branch(edit.by, version, resolved) if edit.shared and edit.by else edit.by
        # 1, 2, 3
        counter = next_counter(version)
        stamp = HistoryRecord(_next_sequence(version, counter, by), edit.when_us, by)
        # 4: conflicts of this endpoint itself, which it has seen now
        own = [conflict for conflict in version.conflicts if by and conflict.top.by == by]
        # 5, 6
        flag = version.deleted if deleted is None else (Flag.TRUE if deleted else Flag.FALSE)
        edited_version = version._replace(
            counter=counter,
            history=(stamp, *version.history),
            payload=version.payload if payload is None else payload,
            deleted=flag,
            extra=version.extra if flag.on else restored_markup(version.extra),
        )
        return _tidied(_absorbed(edited_version, [*own, *(conflict for conflict in resolved if conflict not in own)]))


def _branch(by: str, version: Version, resolved: Sequence[Version]) -> str:
    """Returns the endpoint of an edit by one of several people who share a name.

    They cannot see each other's lost versions. A later record of the same endpoint would subsume such a version, and
    step 4 would resolve it. So the edit uses the first name of a series that no unresolved conflict has: the shared
    name, then its numbered branches `by/@2`, `by/@3` and so on. An address never begins with @, so a branch is nobody's
    own endpoint. An item has at most one branch per conflict, and branches of resolved conflicts are used again.
    """
    conflict_endpoints = {conflict.top.by for conflict in version.conflicts if conflict not in resolved}
    names = chain([by], (f"{by}%2F@{number}" for number in count(2)))
    return next(name for name in names if name not in conflict_endpoints)


def _next_sequence(version: Version, counter: int, by: str) -> int:
    """Returns the counter, or the endpoint's highest sequence plus one if that is greater (3.2 step 2, A-60).

    Records in conflicts count too: a conflict with a later record of the endpoint would subsume the new version.
    """
    highest = max((stamp.sequence for stamp in version.records if by and stamp.by == by), default=0)
    if highest >= MAX_NUMBER:
        raise FeedError(Condition.NOT_ALLOWED, f"the endpoint {by} has no sequence number left for this item")
    return max(counter, highest + 1)


def _absorbed(version: Version, conflicts: Sequence[Version]) -> Version:
    """Removes conflicts from the list and adds their histories below the topmost record (3.4 note 4).

    A record is added unless a record of the item subsumes it. The order is from the bottom, so that the newest record
    ends on top (A-42).
    """
    if not conflicts:
        return version
    history = list(version.history)
    known = known_sequences(history)
    for conflict in conflicts:
        for stamp in reversed(conflict.history):
            if known.get(_subject(stamp), 0) < stamp.sequence:
                history.insert(1, stamp)
                known[_subject(stamp)] = stamp.sequence
    remaining = tuple(conflict for conflict in version.conflicts if conflict not in conflicts)
    return version._replace(history=tuple(history), conflicts=remaining)


def _tidied(version: Version) -> Version:
    """Cleans up a long history, which is optional. Raises FeedError(NOT_ALLOWED) if it remains too long."""
    if len(version.history) > CLEAN_ABOVE:
        version = version._replace(history=clean_history(version.history))
    if len(version.history) > MAX_HISTORY:
        raise FeedError(
            Condition.NOT_ALLOWED,
            f"the item's history would have {len(version.history)} records; the limit is {MAX_HISTORY}",
        )
    return version


FEEDSYNC = FeedSync()
