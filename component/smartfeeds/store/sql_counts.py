"""A cache of counts of filtered views. With it a count costs what has changed since the last count.

Without the cache, counting a filtered view costs as much as the view has items. Polls, searches and pushes request the
same counts repeatedly, so all reading connections share one cache. Writing transactions do not use it, because their
state may be rolled back.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock

from smartfeeds.core.model import AUDIENCE_CHANGE, Edge, IndexState
from smartfeeds.core.view import Order, View
from smartfeeds.store.engine import Engine
from smartfeeds.store.rows import DELETED, NodeRow
from smartfeeds.store.sql_items import ItemReads

# The most that counting a filtered view may cost, about 100 ms. An item takes 14 steps with one filter, 100 with two,
# and up to 400 if few of the items match both.
COUNT_STEPS = 5_000_000
REMEMBERED = 1_024  # counts; a view may hold some kilobytes of text


@dataclass(frozen=True, slots=True)
class FeedMoment:
    """A state of a feed: its newest change, number of items, newest creation date, and configuration.

    A count is valid for one moment, which is read from the database. So changes by other processes invalidate it, too.
    The configuration matters because publishers count as authors if they are shown.
    """

    newest: Edge
    total: int
    last_created_us: int
    configuration: int


def moment_of(row: NodeRow) -> FeedMoment | None:
    """Returns the state of a feed. None if its filter index is behind or was never made."""
    if row.index is not IndexState.CURRENT:
        return None
    node = row.node
    newest = Edge(row.indexed_us, row.indexed_no)
    return FeedMoment(newest, node.total, node.last_created_us, node.audience // AUDIENCE_CHANGE)


class Counts:
    """Recent counts of views, each with the moment of its feed. The cache may be shared by threads."""

    __slots__ = ("_known", "_lock")

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, View], tuple[FeedMoment, int]] = OrderedDict()
        # Several steps on one entry, in the threads of all reading connections. It is held for dictionary calls only.
        self._lock = Lock()

    def get(self, node_no: int, view: View) -> tuple[FeedMoment, int] | None:
        """Returns the last count of a view and its moment."""
        with self._lock:
            entry = self._known.get((node_no, view))
            if entry is not None:
                self._known.move_to_end((node_no, view))
            return entry

    def put(self, node_no: int, view: View, moment: FeedMoment, count: int) -> None:
        """Stores a count and drops the least recently used one if there are too many.

        A count of a newer moment is kept, because the snapshots of two connections end in any order.
        """
        with self._lock:
            entry = self._known.get((node_no, view))
            if entry is None or entry[0].newest <= moment.newest:
                self._known[node_no, view] = moment, count
            self._known.move_to_end((node_no, view))
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


class CountReads(ItemReads):
    """The part of ReadTx that counts within a bound. `counts` is the cache, or None."""

    def __init__(self, db: Engine, counts: Counts | None = None) -> None:
        super().__init__(db)
        self._counts = counts

    def bounded_count(self, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        """Returns `count`, or None if counting would take more than a bounded amount of work.

        Counts of whole views are cached: the next count costs what has changed since.
        """
        if before is not None:
            # An unfiltered view needs the bound too: if it hides tombstones, all items of the feed are examined.
            return self.db.within(COUNT_STEPS, lambda: self.count(node_no, view, before=before))
        row = self._row(node_no)
        if row is None or not view.filtered:
            return self.count(node_no, view)
        # Order and sync data do not affect the set of items, so such views share a count.
        view = replace(view, order=Order.MODIFIED, sync=False)
        moment = moment_of(row) if self._counts is not None else None
        if self._counts is None or moment is None:
            return self.db.within(COUNT_STEPS, lambda: self.count(node_no, view))
        known = self._counts.get(node_no, view)
        if known is not None and known[0] == moment:
            return known[1]
        count = self.db.within(COUNT_STEPS, lambda: self._count_on(row, view, moment, known))
        if count is not None:
            self._counts.put(node_no, view, moment, count)
        return count

    def _count_on(self, row: NodeRow, view: View, moment: FeedMoment, known: tuple[FeedMoment, int] | None) -> int:
        """Returns the count of a view from its last count, if only new items were added since; else count again.

        An item that was in a view stays in it (`core.view.ViewStanding`). An edit may add an item, and the index does
        not show whether the item was in the view before the edit.
        """
        node_no = row.node.node_no
        if known is None or known[0].configuration != moment.configuration or known[0].newest > moment.newest:
            return self.count(node_no, view)
        then, count = known
        growth = moment.total - then.total
        changes = self.db.row(
            "SELECT count(*), min(created_us) FROM (SELECT created_us FROM item WHERE node_no = ?"
            " AND (modified_us, item_no) > (?, ?) ORDER BY modified_us, item_no LIMIT ?) AS changed",
            (node_no, then.newest.key_us, then.newest.item_no, max(growth, 0) + 1),
        )
        if changes is None or changes[0] != growth or (growth and changes[1] <= then.last_created_us):
            return self.count(node_no, view)
        query = self._query(row, view, then.newest, None)
        more = self.db.row(f"SELECT count(*) FROM {query.text}", query.params)
        return count + (int(more[0]) if more else 0)

    def published_after(self, publisher: str, item_no: int, limit: int) -> tuple[int, int, int | None]:
        """Returns how many of the next `limit` items behind a number are live items of a publisher, how many items were
        read, and the number behind which the next items begin, None at the end.
        """
        row = self.db.row(
            f"SELECT count(CASE WHEN publisher = ? AND change < {DELETED} THEN 1 END), count(*), max(item_no) FROM"
            " (SELECT item_no, publisher, change FROM item WHERE item_no > ? ORDER BY item_no LIMIT ?) AS part",
            (publisher, item_no, limit),
        )
        assert row is not None  # a count always has a row
        return int(row[0]), int(row[1]), int(row[2]) if row[1] == limit else None
