"""The place of an item in an ordered outline, stored with its version (SSE 3.2, SSE-028; A-79).

A feed is a flat list (SF-008), but a move in an outline is a change of the item. The parent and the sibling before it
are therefore attributes of its sx:sync: they travel with the version that won, and unknown attributes survive in every
service on the way (FS-012).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from smartfeeds.formats.opml import MAX_LEVELS, OPML_NS
from smartfeeds.sync.record import Version
from smartfeeds.sync.trees import ROOT, Tree, break_cycles

_PARENT, _AFTER = f"{{{OPML_NS}}}parent", f"{{{OPML_NS}}}after"


class Place(NamedTuple):
    """The sync ids of the parent and of the sibling before an item; `ROOT` if there is none."""

    parent: str = ROOT
    after: str = ROOT


def place_of(version: Version) -> Place | None:
    """Returns the place of an item that came from an outline, else None."""
    attributes = dict(version.extra.attributes)
    if _PARENT not in attributes and _AFTER not in attributes:
        return None
    return Place(attributes.get(_PARENT, ROOT), attributes.get(_AFTER, ROOT))


def with_place(version: Version, place: Place | None) -> Version:
    """Returns the version at this place, or without a place."""
    attributes = [pair for pair in version.extra.attributes if pair[0] not in (_PARENT, _AFTER)]
    if place is not None:
        attributes += [(_PARENT, place.parent), (_AFTER, place.after)]
    return version._replace(extra=version.extra._replace(attributes=tuple(sorted(attributes))))


def places_in(tree: Tree) -> Mapping[str, Place]:
    """Returns the place of each item of a tree."""
    return {
        key: Place(parent, before)
        for parent, ids in tree.items()
        for before, key in zip((ROOT, *ids), ids, strict=False)
    }


def tree_of(places: Iterable[tuple[str, Place | None]]) -> dict[str, list[str]]:
    """Returns the tree of items that are given in the order of their last change.

    Each item goes directly behind the sibling that it followed. An item without a place, or whose sibling is missing,
    comes last among the children of its parent.
    """
    known = dict(places)
    parents = {key: place.parent if place and place.parent in known else ROOT for key, place in known.items()}
    break_cycles(parents)
    _limit_depth(parents)
    followers: dict[str, dict[str, str]] = {}  # parent -> item -> the item behind it
    last: dict[str, str] = {}
    for key, place in known.items():
        parent = parents[key]
        following = followers.setdefault(parent, {})
        before = last.get(parent, ROOT)
        if place is not None and place.parent == parent and (place.after == ROOT or place.after in following):
            before = place.after
        following[key] = following.get(before, ROOT)
        following[before] = key
        if following[key] == ROOT:
            last[parent] = key
    return {parent: _chain(following) for parent, following in followers.items()}


def _chain(following: Mapping[str, str]) -> list[str]:
    order = []
    at = following[ROOT]
    while at != ROOT:
        order.append(at)
        at = following[at]
    return order


def _limit_depth(parents: dict[str, str]) -> None:
    """Moves items that are too deep for an outline to the root, so that a feed can always be written."""
    levels = {ROOT: 0}
    for start in list(parents):
        path, at = [], start
        while at not in levels:
            path.append(at)
            at = parents[at]
        for key in reversed(path):
            level = levels[parents[key]] + 1
            if level > MAX_LEVELS:
                parents[key], level = ROOT, 1
            levels[key] = level
