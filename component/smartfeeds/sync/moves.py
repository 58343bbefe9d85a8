"""Moves of items in an outline by local users (SSE 3.2, SSE-028): where an item goes, and which items that changes.

Mostly the moved item alone changes. A place names the sibling before an item, so an item that names the moved one may
need another place, too: without it, the outline would differ from what the user has seen, here and on every service.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.opml import MAX_LEVELS
from smartfeeds.sync.places import Place, places_in, tree_of
from smartfeeds.sync.trees import ROOT, Tree, parents_of, walk


class MoveStep(Enum):
    """A move by one step, as outliners have it."""

    UP = "up"
    DOWN = "down"
    INDENT = "indent"
    OUTDENT = "outdent"


class OutlineRow(NamedTuple):
    """An item of an outline: its sync id, its keys in both orders, its place if it has one."""

    sync_id: str
    created_us: int
    modified_us: int
    place: Place | None
    deleted: bool = False

    @property
    def order_us(self) -> int:
        """The time at which the item came to its place."""
        return self.created_us if self.place is None else self.modified_us


@dataclass(frozen=True, slots=True)
class FeedOutline:
    """The outline that the items of a feed make, deleted items included."""

    rows: Mapping[str, OutlineRow]
    tree: Tree

    @classmethod
    def of(cls, rows: Sequence[OutlineRow]) -> "FeedOutline":
        """The outline of some items."""
        order = sorted(rows, key=lambda row: row.order_us)
        return cls({row.sync_id: row for row in rows}, tree_of((row.sync_id, row.place) for row in order))

    def live(self, parent: str = ROOT) -> list[str]:
        """Returns the children of an item that are not deleted."""
        return [key for key in self.tree.get(parent, ()) if not self.rows[key].deleted]

    def walk_live(self, parent: str = ROOT, level: int = 0) -> Iterator[tuple[int, str]]:
        """Yields the items with their levels, without those that are deleted and what is in them."""
        stack = [(level, key) for key in reversed(self.live(parent))]
        while stack:
            at, key = stack.pop()
            yield at, key
            stack += [(at + 1, child) for child in reversed(self.live(key))]

    def step(self, sync_id: str, step: MoveStep) -> tuple[str, str]:
        """Returns the parent and the sibling before an item after a step. Raises FeedError(CONFLICT) if it cannot move
        that way."""
        parent = parents_of(self.tree)[sync_id]
        siblings = self.live(parent)
        at = siblings.index(sync_id)
        if step is MoveStep.UP and at:
            return parent, siblings[at - 2] if at > 1 else ROOT
        if step is MoveStep.DOWN and at + 1 < len(siblings):
            return parent, siblings[at + 1]
        if step is MoveStep.INDENT and at:
            below = self.live(siblings[at - 1])
            return siblings[at - 1], below[-1] if below else ROOT
        if step is MoveStep.OUTDENT and parent != ROOT:
            return parents_of(self.tree)[parent], parent
        raise FeedError(Condition.CONFLICT, f"the item cannot move {_WAYS[step]}: {_ENDS[step]}")

    def move(self, sync_id: str, parent: str, after: str) -> dict[str, Place]:
        """Returns the places that change if an item moves, in the order in which they must be stored; none if the item
        is there already.

        Raises FeedError(CONFLICT) for a place in itself, behind an item elsewhere, or on too many levels.
        """
        tree = self._moved(sync_id, parent, after)
        if tree == self.tree:
            return {}
        order = sorted(self.rows.values(), key=lambda row: row.order_us)
        places = places_in(tree)
        changed = {sync_id}
        # Each round adds an item to `changed`. The loop ends when all items are in it at the latest: their places alone
        # make the tree.
        while True:
            # In the order of the document each item comes behind those that its place names.
            updates = {key: places[key] for _, key in walk(tree) if key in changed}
            rest = ((row.sync_id, row.place) for row in order if row.sync_id not in changed)
            result = tree_of((*rest, *updates.items()))
            if result == tree:
                return updates
            changed |= _misplaced(tree, result, changed)

    def _moved(self, sync_id: str, parent: str, after: str) -> dict[str, list[str]]:
        parents = parents_of(self.tree)
        if sync_id in _above(parent, parents):
            raise FeedError(Condition.CONFLICT, "the item cannot move into itself")
        if after != ROOT and (after == sync_id or parents.get(after) != parent):
            raise FeedError(Condition.CONFLICT, "the item to move behind has another parent")
        tree = {holder: [key for key in ids if key != sync_id] for holder, ids in self.tree.items()}
        siblings = tree.setdefault(parent, [])
        siblings.insert(siblings.index(after) + 1 if after != ROOT else 0, sync_id)
        height = max(level for level, _ in self.walk_below(sync_id)) + 1
        if len(_above(parent, parents)) + height > MAX_LEVELS:
            raise FeedError(Condition.CONFLICT, f"an outline has at most {MAX_LEVELS} levels")
        return {holder: ids for holder, ids in tree.items() if ids}

    def walk_below(self, sync_id: str) -> Iterator[tuple[int, str]]:
        """Yields an item, at level 0, and everything in it, also what is deleted."""
        stack = [(0, sync_id)]
        while stack:
            level, key = stack.pop()
            yield level, key
            stack += [(level + 1, child) for child in self.tree.get(key, ())]


_WAYS = {MoveStep.UP: "up", MoveStep.DOWN: "down", MoveStep.INDENT: "to the right", MoveStep.OUTDENT: "to the left"}
_ENDS = {
    MoveStep.UP: "it is the first one here",
    MoveStep.DOWN: "it is the last one here",
    MoveStep.INDENT: "no item is before it that could have it",
    MoveStep.OUTDENT: "it is not in another item",
}


def _above(key: str, parents: Mapping[str, str]) -> Collection[str]:
    """Returns an item and its ancestors, without the root."""
    path = []
    while key != ROOT:
        path.append(key)
        key = parents[key]
    return path


def _misplaced(tree: Tree, result: Tree, changed: Collection[str]) -> set[str]:
    """Returns items that must change, too, because `result` has them under another parent or in another order than
    `tree`: as few as possible, and none of `changed`.
    """
    misplaced: set[str] = set()
    for parent, ids in tree.items():
        now = result.get(parent, [])
        present = set(now)
        expected = [key for key in ids if key in present and key not in changed]
        misplaced |= {key for key in ids if key not in present} - set(changed)
        places = {key: at for at, key in enumerate(expected)}
        order = [places[key] for key in now if key in places]
        stable = _longest_ascent(order)
        misplaced |= {key for key in expected if places[key] not in stable}
    return misplaced


def _longest_ascent(numbers: Sequence[int]) -> set[int]:
    """Returns the longest ascending subsequence of different numbers (patience sorting)."""
    ends: list[int] = []  # of the best subsequence of each length
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    ascent: set[int] = set()
    at_number = ends[-1] if ends else None
    while at_number is not None:
        ascent.add(at_number)
        at_number = before[at_number]
    return ascent
