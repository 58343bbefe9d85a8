"""Counts of filtered views that are remembered, so that a count costs what has changed since the last one.

Counting a filtered view costs as much as the view has items. Polls, searches and pushes ask for the same counts again
and again, so all reading connections share one memory of them. Writing transactions do not use it: what they see may
be rolled back.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock

from smartfeeds.core.model import AUDIENCE_CHANGE, Edge, NodeKind
from smartfeeds.core.view import Order, View
from smartfeeds.store.engine import Engine
from smartfeeds.store.rows import NodeRow
from smartfeeds.store.sql_items import ItemReads

# What counting a filtered view may cost, about 100 ms: 14 steps an item with one filter, 100 with two, up to 400 where
# few of the items match both.
COUNT_STEPS = 5_000_000
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
        """Remembers a count and forgets the least recently used one if there are too many.

        The count of a newer moment stays: the snapshots of two connections end in any order.
        """
        with self._lock:
            known = self._known.get((node_no, view))
            if known is None or known[0].newest <= moment.newest:
                self._known[node_no, view] = moment, count
            self._known.move_to_end((node_no, view))
            if len(self._known) > self._remembered:
                self._known.popitem(last=False)


class CountReads(ItemReads):
    """The part of ReadTx that counts within a bound. `counts` are those that are known, None where none are used."""

    def __init__(self, db: Engine, counts: Counts | None = None) -> None:
        super().__init__(db)
        self._counts = counts

    def bounded_count(self, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        if before is not None:
            # Also without filters: the items of a view that hides tombstones are counted among all of the feed.
            return self._db.within(COUNT_STEPS, lambda: self.count(node_no, view, before=before))
        row = self._row(node_no)
        if row is None or not view.filtered:
            return self.count(node_no, view)
        # The order and the sync data do not change which items a view has.
        view = replace(view, order=Order.MODIFIED, sync=False)
        moment = moment_of(row) if self._counts is not None else None
        if self._counts is None or moment is None:
            return self._db.within(COUNT_STEPS, lambda: self.count(node_no, view))
        known = self._counts.get(node_no, view)
        if known is not None and known[0] == moment:
            return known[1]
        count = self._db.within(COUNT_STEPS, lambda: self._count_on(row, view, moment, known))
        if count is not None:
            self._counts.put(node_no, view, moment, count)
        return count

    def _count_on(self, row: NodeRow, view: View, moment: Moment, known: tuple[Moment, int] | None) -> int:
        """The count of a view, by what has come since it was known, where that is nothing but new items.

        An item stays in a view that contained it once (`core.view.Standing`), but an edit may bring it there, and
        nothing says whether it was there before.
        """
        node_no = row.node.node_no
        if known is None or known[0].configuration != moment.configuration or known[0].newest > moment.newest:
            return self.count(node_no, view)
        then, count = known
        added = moment.total - then.total
        found = self._db.row(
            "SELECT count(*), min(created_us) FROM (SELECT created_us FROM item WHERE node_no = ?"
            " AND (modified_us, item_no) > (?, ?) ORDER BY modified_us, item_no LIMIT ?) AS changed",
            (node_no, then.newest.key_us, then.newest.item_no, max(added, 0) + 1),
        )
        if found is None or found[0] != added or (added and found[1] <= then.last_created_us):
            return self.count(node_no, view)
        query = self._query(row, view, then.newest, None, ordered=False)
        more = self._db.row(f"SELECT count(*) FROM {query.text}", query.params)
        return count + (int(more[0]) if more else 0)
