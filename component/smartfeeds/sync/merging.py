"""Merges an incoming version of an item with the local version, and defines what a dialect must provide.

The result depends on the two versions only, not on which is local: endpoints that exchange versions in any order end
with the same result (FS-068, SSE-037).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from smartfeeds.errors import Condition, FeedError
from smartfeeds.sync.erasure import has_marks, share_marks
from smartfeeds.sync.record import MAX_CONFLICTS, Edit, Flag, HistoryRecord, Version, check_name, rank

MAX_REPORTED = 1_000  # entries per list of a report; a hostile document could cause any number


class Outcome(Enum):
    """The effect of a merge on the local item. All values except UNCHANGED are a modification (A-59, A-157)."""

    ADDED = "added"
    UPDATED = "updated"
    CONFLICT = "conflict"
    UNCHANGED = "unchanged"


class MergedVersion(NamedTuple):
    """A merged item. `outcome` is CONFLICT if the merge added a conflict. `notes` are for users."""

    version: Version
    outcome: Outcome
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """An item that was rejected: its index, counted from 0, the reason, and its document if there are several."""

    index: int
    reason: str
    document: str = ""


@dataclass(slots=True)
class MergeReport:
    """The effects of a merge on the items of a document, for users. `outcomes` counts items with sync data, `refused`
    rejected items.

    The lists `reasons` and `notes` have at most `MAX_REPORTED` entries.
    """

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    refused: int = 0
    reasons: list[RejectedItem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, index: int, reason: str, document: str = "") -> None:
        """Records a rejected item."""
        self.refused += 1
        if len(self.reasons) < MAX_REPORTED:
            self.reasons.append(RejectedItem(index, reason, document))

    def note(self, texts: Iterable[str]) -> None:
        """Adds notes for users."""
        self.notes += list(texts)[: MAX_REPORTED - len(self.notes)]


class Dialect(ABC):
    """The differences of FeedSync and SSE: which versions conflict, what becomes of them, how items are edited."""

    name: str
    # The name of the attribute that counts changes. It also identifies the dialect.
    counter: str
    # The attributes of its sx:sync. Others are preserved (FS-012).
    names: frozenset[str]

    @abstractmethod
    def __reduce__(self) -> str:
        """The name of the only instance, which copies are, too: dialects are compared by identity."""

    @abstractmethod
    def join(self, local: Version, incoming: Version) -> tuple[Version, tuple[str, ...]]:
        """Returns the merged version of two versions with the same id, and notes."""

    def create(self, sync_id: str, payload: bytes, edit: Edit, *, deleted: bool = False) -> Version:
        """Returns a new item (FS-041 to FS-044, SSE-031). Raises FeedError(BAD_REQUEST) for an invalid id.

        Section 4.2 of SSE does not apply, because it is for changes (A-72).
        """
        check_name(sync_id, "an item")
        flag = Flag.TRUE if deleted else Flag.ABSENT
        return Version(sync_id, 1, (HistoryRecord(1, edit.when_us, edit.by),), payload, deleted=flag)

    @abstractmethod
    def update(
        self,
        version: Version,
        edit: Edit,
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
        resolved: Sequence[Version] = (),
    ) -> Version:
        """Returns the item after a local change. Without `payload` the content remains.

        `deleted` makes the item a tombstone or restores it; each dialect defines the meaning of None. `resolved` are
        conflicts of the item that the change decides. Raises FeedError(NOT_ALLOWED) if the counter has no next value.
        """

    def resolve(
        self,
        version: Version,
        edit: Edit,
        resolved: Iterable[Version],
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
    ) -> Version:
        """Returns the item after a user decided on `resolved`, some of its conflicts. A resolution is an update.

        Raises FeedError(ITEM_NOT_FOUND) if one of them is not a conflict of the item.
        """
        conflicts = list(resolved)
        if any(conflict not in version.conflicts for conflict in conflicts):
            raise FeedError(
                Condition.ITEM_NOT_FOUND, "the item no longer has this conflict; read it again and decide anew"
            )
        return self.update(version, edit, payload, deleted=deleted, resolved=conflicts)


def merge(dialect: Dialect, local: Version | None, incoming: Version) -> MergedVersion:
    """Returns the local item after a merge with `incoming`. `local` is None if there is no local item.

    Raises FeedError(POLICY_VIOLATION) if the item would have more than MAX_CONFLICTS conflicts; the item is unchanged
    then.
    """
    # FeedSync 3.3 step 1: an unknown item is added unchanged, with its conflicts, even if it is a tombstone.
    if local is None:
        return MergedVersion(incoming, Outcome.ADDED)
    if local == incoming:
        return MergedVersion(local, Outcome.UNCHANGED)
    if local.sync_id != incoming.sync_id:
        raise FeedError(Condition.INTERNAL, "versions of different items do not merge")
    version, notes = dialect.join(*share_marks(local, incoming))
    if len(version.conflicts) > MAX_CONFLICTS:
        raise FeedError(
            Condition.POLICY_VIOLATION,
            f"the item would have {len(version.conflicts)} conflicts; the limit is {MAX_CONFLICTS}; resolve some first",
        )
    outcome = difference(local, version)
    return MergedVersion(local if outcome is Outcome.UNCHANGED else version, outcome, notes)


def newer_of(dialect: Dialect, local: Version, incoming: Version) -> Version | None:
    """Returns the version that a merge yields unchanged, or None if the merge needs content or has notes.

    The function uses counters, histories and marks only, so the versions may lack their payloads.
    """
    # The authors of records may be erased on one side only (`share_marks`).
    marked = has_marks(local) or has_marks(incoming)
    if local.key == incoming.key or local.conflicts or incoming.conflicts or marked:
        return None
    version, notes = dialect.join(local, incoming)
    if version.conflicts or notes:
        return None
    return local if version == local else incoming


def difference(before: Version, after: Version) -> Outcome:
    """Returns what happened to an existing item. The order of conflicts is not significant (FS-063)."""
    if before == after:
        return Outcome.UNCHANGED
    former, present = set(before.conflicts), set(after.conflicts)
    if present - former or after.conflict.on > before.conflict.on:
        return Outcome.CONFLICT
    same = former == present and before._replace(conflicts=()) == after._replace(conflicts=())
    return Outcome.UNCHANGED if same else Outcome.UPDATED


def in_order(versions: Iterable[Version]) -> tuple[Version, ...]:
    """Returns conflicts in the order in which they are written, the highest rank first, so that bytes are equal."""
    conflicts = list(versions)
    return tuple(conflicts) if len(conflicts) < 2 else tuple(sorted(set(conflicts), key=rank, reverse=True))
