"""Counts of filtered views that are remembered, so that a count costs what has changed since the last one.

Counting a filtered view costs as much as the view has items. Polls, searches and pushes ask for the same counts again
and again, so all reading connections share one memory of them. Writing transactions do not use it: what they see may
be rolled back.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from smartfeeds.core.model import AUDIENCE_CHANGE, Edge, NodeKind
from smartfeeds.core.view import View
from smartfeeds.store.rows import NodeRow

REMEMBERED = 1_024  # counts; a view may hold some kilobytes of text


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of a feed: the place of its newest change, how many items it has, the creation of the newest one, and
    its configuration. The configuration belongs to it because publishers that are shown count as authors."""

    newest: Edge
    total: int
    last_created_us: int
    configuration: int


def moment_of(row: NodeRow) -> Moment | None:
    """The state of a feed, or None where its filter index is behind, and for nodes of other kinds: their items can
    disappear without a trace."""
    if row.stale or row.node.kind is not NodeKind.FEED:
        return None
    node = row.node
    newest = Edge(row.indexed_us, row.indexed_no)
    return Moment(newest, node.total, node.last_created_us, node.audience // AUDIENCE_CHANGE)


class Counts:
    """The counts of the views that were asked for last, each with the moment of its feed. Threads may share it."""

    __slots__ = ("_known", "_lock", "_remembered")

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._known: OrderedDict[tuple[int, View], tuple[Moment, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, node_no: int, view: View) -> tuple[Moment, int] | None:
        """The last count of a view, and when it was right."""
        with self._lock:
            known = self._known.get((node_no, view))
            if known is not None:
                self._known.move_to_end((node_no, view))
            return known

    def put(self, node_no: int, view: View, moment: Moment, count: int) -> None:
        """Remembers a count; the one that was not used for longest is forgotten where there are too many."""
        with self._lock:
            self._known[node_no, view] = moment, count
            self._known.move_to_end((node_no, view))
            if len(self._known) > self._remembered:
                self._known.popitem(last=False)
