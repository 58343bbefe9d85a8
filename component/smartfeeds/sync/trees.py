"""The places of items in ordered feeds and outlines: merging two trees, and breaking cycles (SSE 3.2, 4.4.2).

A tree maps the id of a parent to the ids of its children in order. The root has the empty id. The side whose version of
an item won decides its parent; the order of siblings on both sides decides the rest.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from heapq import merge

ROOT = ""
Tree = Mapping[str, list[str]]


class WinnerSide(Enum):
    """The side that the winning version of an item came from; BOTH if the versions are equal."""

    LOCAL = "local"
    INCOMING = "incoming"
    BOTH = "both"


def parents_of(tree: Tree) -> dict[str, str]:
    """Returns the parent of each item."""
    return {child: parent for parent, children in tree.items() for child in children}


def merge_trees(
    local: Tree, incoming: Tree, won: Callable[[str], WinnerSide]
) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the merged tree, and the items that were moved to the root because they were among their own descendants.

    The result is the same whichever side is local. `won` is called for items on both sides. A side may lack items (a
    partial feed). An item whose parent is on neither side moves to the root.
    """
    here, there = parents_of(local), parents_of(incoming)
    parents = {key: _parent(key, here, there, won) for key in here | there}
    parents = {key: parent if parent in parents else ROOT for key, parent in parents.items()}
    repaired = break_cycles(parents)
    children: dict[str, set[str]] = {}
    for key, parent in parents.items():
        children.setdefault(parent, set()).add(key)
    cut = set(repaired)
    merged_tree: dict[str, list[str]] = {}
    for parent, ids in children.items():
        sides = [[key for key in tree.get(parent, ()) if key in ids and key not in cut] for tree in (local, incoming)]
        order = _siblings(sides[0], sides[1], won)
        # items that were cut out of a cycle or lost their parent come last.
        merged_tree[parent] = order + sorted(ids.difference(order))
    return merged_tree, repaired


def _parent(key: str, here: Mapping[str, str], there: Mapping[str, str], won: Callable[[str], WinnerSide]) -> str:
    """Returns the parent of an item: the winner remains with its parent, wherever that moves (SSE-030)."""
    if key not in there:
        return here[key]
    if key not in here:
        return there[key]
    side = won(key)
    if side is WinnerSide.BOTH:
        # Equal versions in two places: one side repaired a cycle, or moved the item without counting the change.
        return min(here[key], there[key])
    return here[key] if side is WinnerSide.LOCAL else there[key]


def break_cycles(parents: dict[str, str]) -> list[str]:
    """Moves items that are their own ancestor to the root (4.4.2, SSE-043). Changes `parents`.

    Of each cycle only the item with the lowest id moves, which breaks the cycle. Returns the moved ids in ascending
    order.
    """
    walk_starts: dict[str, str] = {ROOT: ROOT}  # item -> the item that the walk began with
    repaired = []
    for start in parents:
        at = start
        while at not in walk_starts:
            walk_starts[at] = start
            at = parents.get(at, ROOT)
        if at != ROOT and walk_starts[at] == start:
            circle = [at]
            while (at := parents[at]) != circle[0]:
                circle.append(at)
            repaired.append(min(circle))
    for key in repaired:
        parents[key] = ROOT
    return sorted(repaired)


def _siblings(local: list[str], incoming: list[str], won: Callable[[str], WinnerSide]) -> list[str]:
    """Returns the children of one parent in order (SSE-029, A-79).

    Items in the same order on both sides form the backbone. Every other item was moved or added: it follows the sibling
    that it followed on its own side. Items of both sides that follow the same sibling are ordered by ascending id, as
    far as the order on each side permits.
    """
    if local == incoming:
        return local
    backbone = _backbone(local, incoming, won)
    fixed = set(backbone)
    both = set(local) & set(incoming)
    runs: dict[str, list[list[str]]] = {}
    for side, own, other in ((WinnerSide.LOCAL, local, incoming), (WinnerSide.INCOMING, incoming, local)):
        run: list[str] = []
        runs.setdefault(ROOT, []).append(run)
        for key in own:
            if key in fixed:
                run = []
                runs.setdefault(key, []).append(run)
            # Of an item that moved, the side that won says where it is. If the versions are equal, the lower list does:
            # both services choose the same, whichever of the lists is local.
            elif key not in both or won(key) is side or (won(key) is WinnerSide.BOTH and own <= other):
                run.append(key)
    order = list(merge(*runs[ROOT]))
    for key in backbone:
        order += [key, *merge(*runs[key])]
    return order


def _backbone(local: list[str], incoming: list[str], won: Callable[[str], WinnerSide]) -> list[str]:
    """Returns the items on both sides that were not moved: those with equal versions, and others whose order agrees.

    If even items with equal versions are in another order, the lower of the two lists applies.
    """
    both = set(local) & set(incoming)
    orders = [[key for key in side if key in both] for side in (local, incoming)]
    if orders[0] == orders[1]:
        return orders[0]
    same = {key for key in both if won(key) is WinnerSide.BOTH}
    equal = [[key for key in order if key in same] for order in orders]
    if equal[0] != equal[1]:
        return min(equal)
    # Another item has not moved if it follows the same fixed item on both sides. Each item that becomes fixed decides
    # about later ones, so both services must ask in the same order: by ascending id.
    fixed = set(same)
    places = [{key: at for at, key in enumerate(order)} for order in orders]
    slots_in_use = [[at[key] for key in equal[0]] for at in places]
    for key in sorted(both - same):
        slots = [bisect_left(used, at[key]) for used, at in zip(slots_in_use, places, strict=True)]
        names = [
            order[used[slot - 1]] if slot else ROOT
            for order, used, slot in zip(orders, slots_in_use, slots, strict=True)
        ]
        if names[0] == names[1]:
            fixed.add(key)
            for used, at, slot in zip(slots_in_use, places, slots, strict=True):
                used.insert(slot, at[key])
    return [key for key in orders[0] if key in fixed]


def walk(tree: Tree) -> Iterator[tuple[int, str]]:
    """Yields every item with its level, counted from 0, in document order."""
    stack = [(0, key) for key in reversed(tree.get(ROOT, ()))]
    while stack:
        level, key = stack.pop()
        yield level, key
        stack += [(level + 1, child) for child in reversed(tree.get(key, ()))]
