"""Merging a version that came from elsewhere with the one that is here; what a dialect has to say to that.

The result depends on the versions alone, never on which of them is here: endpoints that exchange in any order end
with the same (FS-068, SSE-037).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from smartfeeds.errors import Condition, FeedError
from smartfeeds.sync.record import MAX_CONFLICTS, Edit, Version, rank

MAX_TOLD = 1_000


class Outcome(Enum):
    """What a merge did to the item that is here; all but UNCHANGED are a modification (A-59, A-157)."""

    ADDED = "added"
    UPDATED = "updated"
    CONFLICT = "conflict"
    UNCHANGED = "unchanged"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged item. `outcome` is CONFLICT where it has a conflict that it had not. `notes` are for people."""

    version: Version
    outcome: Outcome
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """An item that takes no part: its place, counted from 0, why, and its document where there are several."""

    index: int
    reason: str
    document: str = ""


@dataclass(slots=True)
class Told:
    """What became of the items of a document, for people. `outcomes` counts those with sync data, `refused` all that
    were refused; there is an end to `reasons` and `notes`."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    refused: int = 0
    reasons: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, index: int, reason: str, document: str = "") -> None:
        """An item that takes no part."""
        self.refused += 1
        if len(self.reasons) < MAX_TOLD:
            self.reasons.append(Refused(index, reason, document))

    def note(self, texts: Iterable[str]) -> None:
        """Something to know."""
        self.notes += list(texts)[: MAX_TOLD - len(self.notes)]


class Dialect(ABC):
    """What FeedSync and SSE differ in: which version conflicts, what becomes of it, and how an item is edited."""

    name: str
    # The attribute that counts changes, which tells the dialects apart.
    counter: str

    @abstractmethod
    def join(self, local: Version, incoming: Version) -> tuple[Version, tuple[str, ...]]:
        """The merged version of two that have the same id, and notes."""

    @abstractmethod
    def create(self, sync_id: str, payload: bytes, edit: Edit, *, deleted: bool = False) -> Version:
        """A new item (FS-041 to FS-044, SSE-031). Raises FeedError(BAD_REQUEST) for an id that is none."""

    @abstractmethod
    def update(
        self, version: Version, edit: Edit, payload: bytes | None = None, *, deleted: bool | None = None
    ) -> Version:
        """The item after a change made here; without `payload` it keeps its content.

        `deleted` makes it a tombstone, or live again; what None means is the dialect's.
        Raises FeedError(NOT_ALLOWED) where the counter has no next value.
        """

    @abstractmethod
    def resolve(
        self,
        version: Version,
        edit: Edit,
        resolved: Iterable[Version],
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
    ) -> Version:
        """The item after somebody decided on `resolved`, some of its conflicts.

        Raises FeedError(ITEM_NOT_FOUND) for what is none of its conflicts.
        """


def merge(dialect: Dialect, local: Version | None, incoming: Version) -> Merged:
    """The item that is here after `incoming` came; `local` is None where there is none yet.

    Raises FeedError(POLICY_VIOLATION) where there would be more conflicts than MAX_CONFLICTS: the item stays.
    """
    # FeedSync 3.3 step 1: what is not known is added as it is, conflicts and tombstone included.
    if local is None:
        return Merged(incoming, Outcome.ADDED)
    if local == incoming:
        return Merged(local, Outcome.UNCHANGED)
    if local.sync_id != incoming.sync_id:
        raise FeedError(Condition.INTERNAL, "versions of different items do not merge")
    version, notes = dialect.join(local, incoming)
    if len(version.conflicts) > MAX_CONFLICTS:
        raise FeedError(Condition.POLICY_VIOLATION, f"the item would have more than {MAX_CONFLICTS} conflicts")
    outcome = difference(local, version)
    return Merged(local if outcome is Outcome.UNCHANGED else version, outcome, notes)


def newer_of(dialect: Dialect, local: Version, incoming: Version) -> Version | None:
    """Which of two versions the merge comes to as it is; None where their content has a say, or people are told.

    It looks at counters, histories and marks alone, so that versions may come without their payload.
    """
    if local.key == incoming.key or local.conflicts or incoming.conflicts:
        return None
    version, notes = dialect.join(local, incoming)
    if version.conflicts or notes:
        return None
    return local if version.key == local.key else incoming


def difference(before: Version, after: Version) -> Outcome:
    """What became of an item that was there; the order of its conflicts means nothing (FS-063)."""
    if before == after:
        return Outcome.UNCHANGED
    former, present = set(before.conflicts), set(after.conflicts)
    if present - former or after.conflict.on > before.conflict.on:
        return Outcome.CONFLICT
    same = former == present and replace(before, conflicts=()) == replace(after, conflicts=())
    return Outcome.UNCHANGED if same else Outcome.UPDATED


def in_order(versions: Iterable[Version]) -> tuple[Version, ...]:
    """Conflicts as they are written: the highest first. Their order means nothing, so it is always the same."""
    found = list(versions)
    return tuple(found) if len(found) < 2 else tuple(sorted(set(found), key=rank, reverse=True))


def check_resolved(version: Version, resolved: Iterable[Version]) -> list[Version]:
    """The conflicts that were decided on. Raises FeedError(ITEM_NOT_FOUND) for what is none of the item's."""
    found = list(resolved)
    if any(one not in version.conflicts for one in found):
        raise FeedError(Condition.ITEM_NOT_FOUND, "the item has no such conflict: read it again and decide anew")
    return found
