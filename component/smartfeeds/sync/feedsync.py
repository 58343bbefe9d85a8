"""FeedSync 1.0.2: merging (section 3.3), creation (3.1), update and deletion (3.2), resolution (3.4).

The numbers in comments are the steps of the document.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

from smartfeeds.errors import Condition, FeedError
from smartfeeds.sync.merging import Dialect, check_resolved, in_order
from smartfeeds.sync.record import (
    MAX_HISTORY,
    MAX_NUMBER,
    Edit,
    Flag,
    Stamp,
    Version,
    check_name,
    highest,
    next_counter,
    rank,
)

# Histories beyond this length are cleaned up when the item is changed here, and only then.
CLEAN_ABOVE = 100


def is_subsumed(record: Stamp, other: Stamp) -> bool:
    """3.3 note 2: whether one record of a history is subsumed by another."""
    # 1.a: the same endpoint, and at least as late in its own sequence.
    if record.by:
        return record.by == other.by and other.sequence >= record.sequence
    # 2.a: without endpoints only the very same record.
    return not other.by and other.when_us == record.when_us and other.sequence == record.sequence


@dataclass(slots=True)
class _Known:
    """What a history subsumes: the same as asking `is_subsumed` of each record, at the cost of one look."""

    sequences: dict[str, int] = field(default_factory=dict)
    nameless: set[tuple[int | None, int]] = field(default_factory=set)

    def add(self, record: Stamp) -> None:
        if record.by:
            self.sequences[record.by] = max(record.sequence, self.sequences.get(record.by, 0))
        else:
            self.nameless.add((record.when_us, record.sequence))

    def subsumes(self, record: Stamp) -> bool:
        if record.by:
            return self.sequences.get(record.by, 0) >= record.sequence
        return (record.when_us, record.sequence) in self.nameless


def _known(history: Iterable[Stamp]) -> _Known:
    known = _Known()
    for stamp in history:
        known.add(stamp)
    return known


def _survivors(versions: Sequence[Version]) -> list[Version]:
    """Steps 6 to 8: the versions that no other subsumes.

    The steps take one side against the other and then the other against the rest. To compare all with all comes to
    the same for what the steps can make, and does not depend on which side is local (FS-068). Twins, which subsume
    each other, are settled first: the one of higher rank stays, and alone decides on others (A-43).
    """
    known = [_known(version.history) for version in versions]

    # Note 1: a version is subsumed when its topmost record is.
    def below(one: int, other: int) -> bool:
        return known[other].subsumes(versions[one].top)

    settled: list[int] = []
    for at in sorted(range(len(versions)), key=lambda at: versions[at].key, reverse=True):
        twin = next((n for n, other in enumerate(settled) if below(at, other) and below(other, at)), None)
        if twin is None:
            settled.append(at)
        elif rank(versions[at]) > rank(versions[settled[twin]]):
            settled[twin] = at
    kept = [versions[at] for at in sorted(settled) if not any(below(at, other) for other in settled if other != at)]
    # Histories that were made up can subsume each other in a circle.
    return kept or [highest(versions)]


def _is_seen(version: Version, other: Version) -> bool:
    """Note 1: a version is subsumed when its topmost record is."""
    return any(is_subsumed(version.top, record) for record in other.history)


def _survivors_of_two(one: Version, other: Version) -> list[Version]:
    """The same for two, as most merges have: without an index of their histories."""
    below, above = _is_seen(one, other), _is_seen(other, one)
    if below and above:
        return [one if rank(one) >= rank(other) else other]
    if below or above:
        return [other if below else one]
    return [one, other]


def clean_history(history: Sequence[Stamp]) -> tuple[Stamp, ...]:
    """3.2: of each endpoint the record of the highest sequence; records without one stay (FS-054), and the topmost."""
    highest = _known(history).sequences
    kept: list[Stamp] = []
    seen: set[str] = set()
    for place, stamp in enumerate(history):
        newest = stamp.by not in seen and stamp.sequence == highest.get(stamp.by)
        if place == 0 or not stamp.by or newest:
            kept.append(stamp)
        if newest:
            seen.add(stamp.by)
    return tuple(kept)


class FeedSync(Dialect):
    """FeedSync: whole versions are kept as conflicts, and a history says what a version has seen."""

    name = "FeedSync"
    counter = "updates"

    def join(self, local: Version, incoming: Version) -> tuple[Version, tuple[str, ...]]:
        """3.3 from step 2 on."""
        # 2 to 4: the item and its conflicts on either side, each without conflicts of its own.
        parts = [
            replace(one, conflicts=()) if one.conflicts else one
            for side in (local, incoming)
            for one in (side, *side.conflicts)
        ]
        kept = _survivors_of_two(*parts) if len(parts) == 2 else _survivors(list(dict.fromkeys(parts)))
        # 5, 7.c, 7.d: the winner.
        winner = highest(kept)
        notes: tuple[str, ...] = ()
        if any(one.noconflicts.on != winner.noconflicts.on for one in parts):
            notes = (f"{winner.sync_id}: versions differ in noconflicts, which must never change; the winner's counts",)
        # 10
        if winner.noconflicts.on or len(kept) == 1:
            return winner, notes
        # 9, 11
        return replace(winner, conflicts=in_order(one for one in kept if one is not winner)), notes

    def create(
        self, sync_id: str, payload: bytes, edit: Edit, *, deleted: bool = False, noconflicts: bool = False
    ) -> Version:
        """3.1: `noconflicts` is said now or never (FS-032)."""
        check_name(sync_id, "an item")
        return Version(
            sync_id,
            1,
            (Stamp(1, edit.when_us, edit.by),),
            payload,
            deleted=Flag.TRUE if deleted else Flag.ABSENT,
            noconflicts=Flag.TRUE if noconflicts else Flag.ABSENT,
        )

    def update(
        self,
        version: Version,
        edit: Edit,
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
        noconflicts: bool | None = None,
    ) -> Version:
        """3.2: a tombstone stays one unless `deleted` is False (A-49); the endpoint's own conflicts are merged in.

        Raises FeedError(NOT_ALLOWED) for a `noconflicts` that the item was not made with.
        """
        if noconflicts is not None and noconflicts != version.noconflicts.on:
            raise FeedError(Condition.NOT_ALLOWED, "noconflicts is set when an item is made, and never after")
        return _edited(version, edit, (), payload, deleted)

    def resolve(
        self,
        version: Version,
        edit: Edit,
        resolved: Iterable[Version],
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
    ) -> Version:
        """3.4: an update, and the histories of what was decided on become part of the item's (FS-069 to FS-073)."""
        return _edited(version, edit, check_resolved(version, resolved), payload, deleted)


def _edited(
    version: Version, edit: Edit, resolved: Sequence[Version], payload: bytes | None, deleted: bool | None
) -> Version:
    """3.2, with the conflicts in `resolved` settled as 3.4 does."""
    by = _branch(edit.by, version, resolved) if edit.shared and edit.by else edit.by
    # 1, 2, 3
    counter = next_counter(version)
    stamp = Stamp(_next_sequence(version, counter, by), edit.when_us, by)
    # 4: what this endpoint itself had made and lost with it has been seen now.
    own = [one for one in version.conflicts if by and one.top.by == by]
    # 5, 6
    flag = version.deleted if deleted is None else (Flag.TRUE if deleted else Flag.FALSE)
    changed = replace(
        version,
        counter=counter,
        history=(stamp, *version.history),
        payload=version.payload if payload is None else payload,
        deleted=flag,
    )
    return _tidied(_absorbed(changed, [*own, *(one for one in resolved if one not in own)]))


def _branch(by: str, version: Version, resolved: Sequence[Version]) -> str:
    """The endpoint of an edit by one of several people who share a name and have not seen each other's lost versions.

    A later record of the same endpoint would subsume such a version, and step 4 would settle it. So the edit gets the
    first name of a series under which no conflict was made that stays: the shared name itself, then its numbered
    branches, `by/@2` and on. An address never begins with @, so that no branch is anybody's own endpoint. An item has
    at most one branch for each of its conflicts, and settled branches are used again.
    """
    taken = {one.top.by for one in version.conflicts if one not in resolved}
    names = chain([by], (f"{by}%2F@{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _next_sequence(version: Version, counter: int, by: str) -> int:
    """3.2 step 2: the counter, or one more than the endpoint's highest where that is not less (A-60).

    Conflicts count too: a conflict whose history has a later record of the endpoint would subsume the new version.
    """
    records = (stamp for one in (version, *version.conflicts) for stamp in one.history)
    highest = max((stamp.sequence for stamp in records if by and stamp.by == by), default=0)
    if highest >= MAX_NUMBER:
        raise FeedError(Condition.NOT_ALLOWED, f"the endpoint {by} changed the item too often: no sequence is left")
    return max(counter, highest + 1)


def _absorbed(version: Version, conflicts: Sequence[Version]) -> Version:
    """3.4 note 4: conflicts leave the list, and their histories go below the topmost record.

    A record is added once, unless some record of the item subsumes it; from the bottom up, so that the newest ends
    on top (A-42).
    """
    if not conflicts:
        return version
    history = list(version.history)
    known = _known(history)
    for conflict in conflicts:
        for stamp in reversed(conflict.history):
            if not known.subsumes(stamp):
                history.insert(1, stamp)
                known.add(stamp)
    left = tuple(one for one in version.conflicts if one not in conflicts)
    return replace(version, history=tuple(history), conflicts=left)


def _tidied(version: Version) -> Version:
    """The optional clean-up of long histories. Raises FeedError(NOT_ALLOWED) for what stays too long."""
    if len(version.history) > CLEAN_ABOVE:
        version = replace(version, history=clean_history(version.history))
    if len(version.history) > MAX_HISTORY:
        raise FeedError(Condition.NOT_ALLOWED, f"the item's history would have more than {MAX_HISTORY} records")
    return version


FEEDSYNC = FeedSync()
