"""The places of items in ordered feeds and outlines: merging two trees, and breaking cycles (SSE 3.2, 4.4.2).

A tree maps the id of a parent to the ids of its children in order; the root is the empty id. What an item's place is
depends on the side whose version of the item won; its siblings' order on both sides decides the rest.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from heapq import merge

ROOT = ""
Tree = Mapping[str, list[str]]


class Side(Enum):
    """Where the winning version of an item came from; BOTH where the versions are the same."""

    LOCAL = "local"
    INCOMING = "incoming"
    BOTH = "both"

    __hash__ = object.__hash__


def parents_of(tree: Tree) -> dict[str, str]:
    """The parent of each item."""
    return {child: parent for parent, children in tree.items() for child in children}


def merge_trees(local: Tree, incoming: Tree, won: Callable[[str], Side]) -> tuple[dict[str, list[str]], list[str]]:
    """The merged tree, and the items that were moved to the root because they had come to be below themselves.

    The result is the same whichever side is local. `won` is asked for items that both sides have. A side may lack
    items (a partial feed); an item whose parent is on neither side goes to the root.
    """
    here, there = parents_of(local), parents_of(incoming)
    parents = {one: _parent(one, here, there, won) for one in (*here, *(one for one in there if one not in here))}
    parents = {one: parent if parent in parents else ROOT for one, parent in parents.items()}
    repaired = break_cycles(parents)
    children: dict[str, set[str]] = {}
    for one, parent in parents.items():
        children.setdefault(parent, set()).add(one)
    cut = set(repaired)
    merged: dict[str, list[str]] = {}
    for parent, ids in children.items():
        sides = [[one for one in tree.get(parent, ()) if one in ids and one not in cut] for tree in (local, incoming)]
        order = _siblings(sides[0], sides[1], won)
        # what was cut out of a cycle stands at the end, and so does what has lost its parent.
        merged[parent] = order + sorted(ids.difference(order))
    return merged, repaired


def _parent(one: str, here: Mapping[str, str], there: Mapping[str, str], won: Callable[[str], Side]) -> str:
    """SSE-030: the winner stays with its parent, wherever that goes."""
    if one not in there:
        return here[one]
    if one not in here:
        return there[one]
    side = won(one)
    if side is Side.BOTH:
        # The same version in two places: one side repaired a cycle, or did not say that it moved the item.
        return min(here[one], there[one])
    return here[one] if side is Side.LOCAL else there[one]


def break_cycles(parents: dict[str, str]) -> list[str]:
    """4.4.2: moves to the root what meets itself on the way up, lowest ids first (SSE-043). Changes `parents`.

    Whoever is moved breaks its circle, so of each circle it is the lowest id; returned in ascending order.
    """
    seen: dict[str, str] = {ROOT: ROOT}  # item -> the item that the walk began with
    repaired = []
    for start in parents:
        at = start
        while at not in seen:
            seen[at] = start
            at = parents.get(at, ROOT)
        if at != ROOT and seen[at] == start:
            circle = [at]
            while (at := parents[at]) != circle[0]:
                circle.append(at)
            repaired.append(min(circle))
    for one in repaired:
        parents[one] = ROOT
    return sorted(repaired)


def _siblings(local: list[str], incoming: list[str], won: Callable[[str], Side]) -> list[str]:
    """The children of one parent in order (SSE-029, A-79).

    What stands in the same order on both sides is the backbone. Everything else was moved or added: it goes behind the
    sibling that it followed on its own side, and what two sides put behind the same one stands there by ascending id,
    as far as the order on each side lets it.
    """
    if local == incoming:
        return local
    backbone = _backbone(local, incoming, won)
    fixed = set(backbone)
    both = set(local) & set(incoming)
    runs: dict[str, list[list[str]]] = {}
    for side, own, other in ((Side.LOCAL, local, incoming), (Side.INCOMING, incoming, local)):
        run: list[str] = []
        runs.setdefault(ROOT, []).append(run)
        for one in own:
            if one in fixed:
                run = []
                runs.setdefault(one, []).append(run)
            elif one not in both or won(one) is side or (won(one) is Side.BOTH and own <= other):
                run.append(one)
    order = list(merge(*runs[ROOT]))
    for one in backbone:
        order += [one, *merge(*runs[one])]
    return order


def _backbone(local: list[str], incoming: list[str], won: Callable[[str], Side]) -> list[str]:
    """The items of both sides that were not moved: those of equal version, and others as far as the order agrees.

    Where even items of equal version stand in another order, the lower of the two lists counts.
    """
    both = set(local) & set(incoming)
    orders = [[one for one in side if one in both] for side in (local, incoming)]
    if orders[0] == orders[1]:
        return orders[0]
    same = {one for one in both if won(one) is Side.BOTH}
    equal = [[one for one in order if one in same] for order in orders]
    if equal[0] != equal[1]:
        return min(equal)
    kept = set(same)
    places = [{one: at for at, one in enumerate(order)} for order in orders]
    taken = [[at[one] for one in equal[0]] for at in places]
    for one in sorted(both - same):
        slots = [bisect_left(used, at[one]) for used, at in zip(taken, places, strict=True)]
        names = [
            order[used[slot - 1]] if slot else ROOT for order, used, slot in zip(orders, taken, slots, strict=True)
        ]
        if names[0] == names[1]:
            kept.add(one)
            for used, at, slot in zip(taken, places, slots, strict=True):
                used.insert(slot, at[one])
    return [one for one in orders[0] if one in kept]


def walk(tree: Tree) -> Iterator[tuple[int, str]]:
    """Every item with its level, counted from 0, in document order."""
    waiting = [(0, one) for one in reversed(tree.get(ROOT, ()))]
    while waiting:
        level, one = waiting.pop()
        yield level, one
        waiting += [(level + 1, child) for child in reversed(tree.get(one, ()))]
