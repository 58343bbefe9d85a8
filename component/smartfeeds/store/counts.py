"""Counts of filtered views that are remembered until the node changes.

A count costs as much as the view has items. Polls and searches ask for the same one again and again, so every reading
connection uses one memory of counts. Writing transactions use none: what they see may be rolled back.
"""

from collections import OrderedDict
from threading import Lock

from smartfeeds.core.view import View

REMEMBERED = 1_024  # counts; a view may hold some kilobytes of text
Version = tuple[int, ...]


class Counts:
    """The counts of the views that were asked for last, each with the version of its node. Safe to use by threads."""

    __slots__ = ("_known", "_lock", "_remembered")

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._known: OrderedDict[tuple[int, View], tuple[Version, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, node_no: int, view: View, version: Version) -> int | None:
        """The count of a view at this version of its node, or None."""
        with self._lock:
            known = self._known.get((node_no, view))
            if known is None or known[0] != version:
                return None
            self._known.move_to_end((node_no, view))
            return known[1]

    def put(self, node_no: int, view: View, version: Version, count: int) -> None:
        """Remembers a count; the one that was not used for longest is forgotten where there are too many."""
        with self._lock:
            self._known[node_no, view] = version, count
            self._known.move_to_end((node_no, view))
            if len(self._known) > self._remembered:
                self._known.popitem(last=False)
