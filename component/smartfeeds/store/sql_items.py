"""Items in SQL: pages as index range scans, counts, and the standing of items in views.

Every order is (key, item_no), so equal keys have one order too (SF-107, A-07), and an edge is compared by both.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import or_

from smartfeeds.core.model import ALL_NUMBERS, Edge, Item, KeyRange, Slice
from smartfeeds.core.view import ANYTHING, SMART, Order, Standing, Traits, View
from smartfeeds.store.engine import Direction, Engine, Row
from smartfeeds.store.rows import DELETED, KEYS, NodeRow, digest, prefixed, to_items
from smartfeeds.store.sql_filters import ItemQuery, all_items, filtered_items
from smartfeeds.store.sql_nodes import NodeReads
from smartfeeds.store.sql_tables import ITEM_ROW, ITEM_WITHOUT_SYNC
from smartfeeds.store.tokens import index_tokens

# Reading words takes as long as the payload is large. A step of the index is bounded by bytes as well as by items: a
# step of 50 takes one item of the greatest size, whose 7,000 words take 5 ms, and all other writes wait for it.
INDEX_ITEM_BYTES = 1_024
SELECT_ITEM = f"SELECT {ITEM_ROW} FROM item WHERE node_no = ? AND"
_LIVE = f"change < {DELETED}"
_END_ITEMS = 2  # of a group that is read with a page: nearly every key has one item
(WILDCARD,) = map(digest, ANYTHING.facets)


def _earlier(one: Edge | None, other: Edge) -> Edge:
    return other if one is None or (other.key_us, other.item_no) < (one.key_us, one.item_no) else one


def _group_of(node_no: int, order: Order, key_us: int, limit: int) -> tuple[str, Row]:
    return (
        f"SELECT item_no, id FROM item WHERE node_no = ? AND {KEYS[order]} = ? ORDER BY item_no LIMIT ?",
        (node_no, key_us, limit),
    )


def _columns(view: View) -> str:
    return ITEM_ROW if view.sync else ITEM_WITHOUT_SYNC


class ItemReads(NodeReads):
    """The part of ReadTx that is about items."""

    def __init__(self, db: Engine) -> None:
        super().__init__(db)
        self._reads_ends = db.is_far

    def item(self, node_no: int, item_id: str) -> Item | None:
        """Returns the item with this id, including tombstones."""
        try:
            item = self._ahead.by_id[node_no, item_id]
        except KeyError:
            return self._item(node_no, f"{SELECT_ITEM} id = ?", (node_no, item_id))
        self._last_item = (node_no, item) if item else None
        return item

    def items(self, node_no: int, item_ids: Sequence[str]) -> list[Item]:
        """Returns the existing items with these ids, including tombstones, in no particular order."""
        if not item_ids:
            return []
        items = self._ahead.items(node_no, item_ids)
        if items is not None:
            return items
        marks = ", ".join("?" * len(item_ids))
        rows = self.db.rows(f"SELECT {ITEM_ROW} FROM item WHERE node_no = ? AND id IN ({marks})", (node_no, *item_ids))
        return to_items(rows)

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        """Returns the item with this sync id, which is its `sync_id`, else its id."""
        try:
            item = self._ahead.by_sync[node_no, sync_id]
            if item is None:
                item = self._ahead.by_id[node_no, sync_id]
                item = item if item is not None and not item.sync_id else None
        except KeyError:
            return self._item_of_sync(node_no, sync_id)
        self._last_item = (node_no, item) if item else None
        return item

    def _item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        # Two look-ups in indexes. The condition sync_id <> '' makes the partial index usable.
        statement = (
            f"{SELECT_ITEM} sync_id = ? AND sync_id <> '' UNION ALL {SELECT_ITEM} id = ? AND sync_id = '' LIMIT 1"
        )
        return self._item(node_no, statement, (node_no, sync_id, node_no, sync_id))

    def _item(self, node_no: int, statement: str, params: Row) -> Item | None:
        """Returns the item of a node that a statement selects."""
        row = self.db.row(statement, params)
        item = to_items((row,))[0] if row else None
        self._last_item = (node_no, item) if item else None
        return item

    def conflicted(self, node_no: int, part: KeyRange[int] = ALL_NUMBERS) -> list[Item]:
        """Returns the items with conflicts, by item_no. The cost grows with the result."""
        statement = f"SELECT {ITEM_ROW} FROM item WHERE node_no = ? AND conflicts > 0"
        return to_items(self.part(statement, (node_no,), "item_no", part))

    def conflict_count(self, node_no: int) -> int:
        """Returns the number of items with conflicts. The cost grows with this number."""
        return self.number("SELECT count(*) FROM item WHERE node_no = ? AND conflicts > 0", (node_no,))

    def slice(self, node_no: int, page: Slice) -> list[Item]:
        """Returns items of a view, ascending, with sync data only if the view shows it.

        `Item.left` marks items that have left a filtered view (`core.view.Standing`); a view that hides tombstones has
        none of them. For an unfiltered view the cost grows with the result, not with the feed.
        """
        if page.view.filtered:
            return self._filtered_slice(node_no, page)
        key = KEYS[page.view.order]
        hidden = f" AND {_LIVE}" if page.view.hides_tombstones else ""
        conditions: list[str] = []
        params: list[object] = []
        for condition, values in self.db.ranges(key, page.after, page.before):
            both = f" AND {condition}" if condition else ""
            conditions.append(f"node_no = ?{hidden}{both}")
            params += (node_no, *values)
        if not conditions:
            return []
        params = [*params, page.limit, page.offset]
        query = _ordered(ITEM_ROW if page.view.sync else ITEM_WITHOUT_SYNC, key, tuple(conditions), page.newest)
        if self._reads_ends:
            keys = _ordered(f"{key}, item_no", key, tuple(conditions), page.newest)
            rows = self._rows_and_ends(node_no, page.view.order, query, keys, params)
        else:
            rows = self.db.rows(query, params)
        if page.newest:
            rows.reverse()
        return to_items(rows)

    def _rows_and_ends(self, node_no: int, order: Order, query: str, keys: str, params: Sequence[object]) -> list[Row]:
        """Returns the rows of a page. The items with the first or the last of its keys are read in the same round trip,
        because the cursors of a page count them (`group`).
        """
        key = KEYS[order]
        ends = (
            f"WITH page AS ({keys}) SELECT ends.key_us, g.item_no, g.id"
            f" FROM (SELECT min({key}) AS key_us FROM page UNION ALL SELECT max({key}) FROM page) AS ends"
            f" CROSS JOIN LATERAL (SELECT item_no, id FROM item WHERE node_no = ? AND {key} = ends.key_us"
            f" ORDER BY item_no LIMIT {_END_ITEMS}) AS g"
        )
        rows, groups = self.db.rows_of([(query, params), (ends, (*params, node_no))])
        by_key: dict[int, dict[int, str]] = {}
        for key_us, item_no, item_id in groups:
            by_key.setdefault(key_us, {})[item_no] = item_id
        for key_us, group in by_key.items():
            self._ahead.note_group((node_no, order, key_us), list(group.items()), _END_ITEMS)
        return rows

    def _filtered_slice(self, node_no: int, page: Slice) -> list[Item]:
        row = self._row(node_no)
        if row is None:
            return []
        query = self._query(row, page.view, page.after, page.before, "DESC" if page.newest else "ASC")
        rows = self.db.rows(
            f"SELECT {query.present.text}, {prefixed(_columns(page.view), 'i')}"
            f" FROM {query.text}{_tail(query.key, query.number, newest=page.newest)}",
            (*query.present.params, *query.params, page.limit, page.offset),
        )
        if page.newest:
            rows.reverse()
        items = to_items([row[1:] for row in rows])
        if self._reads_ends and items:
            # The cursors of a page count the items with its first and its last key.
            ends = {getattr(item, KEYS[page.view.order]) for item in (items[0], items[-1])}
            groups = self.db.rows_of([_group_of(node_no, page.view.order, key_us, _END_ITEMS) for key_us in ends])
            for key_us, group in zip(ends, groups, strict=True):
                self._ahead.note_group(
                    (node_no, page.view.order, key_us), [(row[0], row[1]) for row in group], _END_ITEMS
                )
        return [
            item if row[0] or item.deleted else item._replace(left=True) for row, item in zip(rows, items, strict=True)
        ]

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        """Returns the number of items in a view, or of those up to an edge. O(1) for an unfiltered view and no edge."""
        row = self._row(node_no)
        if row is None:
            return 0
        if not view.filtered and before is None:
            return row.node.live if view.hides_tombstones else row.node.total
        query = self._query(row, view, None, before)
        whole = row.stale or view.hides_tombstones
        return self.number(f"SELECT count(*) FROM {query.text if whole else query.rows}", query.params)

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        """Returns (item_no, id) of the first `limit` items with this ordering key, before filters, by item_no."""
        group = self._ahead.group((node_no, order, key_us), limit)
        if group is not None:
            return group
        return [(row[0], row[1]) for row in self.db.rows(*_group_of(node_no, order, key_us, limit))]

    def standings(self, node_no: int, item: Item, views: Sequence[View]) -> list[Standing]:
        """Returns the standing of a stored item in each of these views. The cost grows with the number of the item's
        versions.
        """
        row = self._row(node_no)
        if row is None:
            return [Standing.ABSENT] * len(views)
        states: dict[bytes, int] = {}
        indexed = (item.modified_us, item.item_no) <= (row.indexed_us, row.indexed_no)
        if indexed and any(view.filtered for view in views):
            states = self._states_of(node_no, [item.item_no]).get(item.item_no, {})
        documents: dict[int, str] = {}
        if indexed and any(view.query for view in views):
            documents = self.db.documents([item.item_no]).get(item.item_no, {})
        publishers = row.node.options.shows_publisher
        every = states.get(WILDCARD, 0)

        def matching(view: View) -> int:
            """Returns the states that match all filters."""
            bits = -1
            for alternatives in view.facets(publishers=publishers):
                bits &= every | reduce(or_, (states.get(digest(facet), 0) for facet in alternatives))
            if view.query and bits:
                terms = [f" {token} " for token in index_tokens(node_no, Traits(words=view.query), {})]
                present = max(documents, default=0)
                matches = (number for number, text in documents.items() if all(term in text for term in terms))
                bits &= every | sum(1 << present - number for number in matches)
            return bits

        return [_standing(view, item, matching(view)) for view in views]

    def _states_of(self, node_no: int, item_nos: Sequence[int]) -> dict[int, dict[bytes, int]]:
        """Returns the facets of items, each with the states that have it. Items that the index has never read are left
        out.
        """
        states_of: dict[int, dict[bytes, int]] = {}
        for item_no, facet, states in self.db.facets(node_no, item_nos):
            states_of.setdefault(item_no, {})[facet] = states
        return states_of

    def _query(
        self, row: NodeRow, view: View, after: Edge | None, before: Edge | None, direction: Direction = ""
    ) -> ItemQuery:
        """Returns a query for the items of a view between two edges; `direction` as in `filtered_items`.

        Only items whose present version is in the filter index can match a filter.
        """
        node_no = row.node.node_no
        if not view.filtered:
            query = all_items(node_no, view.order, after, before)
            if view.hides_tombstones:
                query.add(f"i.{_LIVE}")
            return query
        index_end = Edge(row.indexed_us, row.indexed_no)
        if row.stale and view.order is Order.MODIFIED:
            before = _earlier(before, index_end)
        publishers = row.node.options.shows_publisher
        wildcard = self._ahead.wildcards.get(node_no)
        if wildcard is None:
            statement = "SELECT 1 FROM facet WHERE node_no = ? AND facet = ? LIMIT 1"
            wildcard = self.db.row(statement, (node_no, WILDCARD)) is not None
        query = filtered_items(
            self.db,
            node_no,
            view,
            after,
            before,
            publishers=publishers,
            wildcard=wildcard,
            direction=direction,
        )
        if row.stale:
            query.add("(i.modified_us, i.item_no) <= (?, ?)", index_end.key_us, index_end.item_no)
        if view.hides_tombstones:
            query.add(f"i.{_LIVE} AND {query.present.text}", *query.present.params)
        return query

    def unindexed(self, limit: int) -> list[bytes]:
        """Returns the payloads that `WriteTx.index_some` reads next with this limit."""
        node_no = self._stalest()
        row = None if node_no is None else self._row(node_no)
        if row is None:
            return []
        return [item.payload for item in self._next_unindexed(row, limit)[0] if not item.deleted]

    def _stalest(self, lock: str = "") -> int | None:
        """Returns the node whose filter index is furthest behind, or None if no index is behind."""
        stalest = "SELECT node_no FROM node WHERE stale = 1 AND state = 'live' ORDER BY indexed_us, node_no LIMIT 1"
        row = self.db.row(stalest + lock)
        return None if row is None else int(row[0])

    def _next_unindexed(self, row: NodeRow, limit: int) -> tuple[list[Item], bool]:
        """Returns the items that are added to the filter index next, and whether more items follow them. A large item
        counts as several (`INDEX_ITEM_BYTES`).
        """
        edge = Edge(row.indexed_us, row.indexed_no)
        items = self.slice(row.node.node_no, Slice(SMART, limit, after=edge))
        done = size_bytes = 0
        while done < len(items) and size_bytes < limit * INDEX_ITEM_BYTES:
            size_bytes += len(items[done].payload)
            done += 1
        return items[:done], len(items) == limit or done < len(items)


def _standing(view: View, item: Item, states: int) -> Standing:
    """Returns the standing of an item in a view, from the states that match the view."""
    if view.hides_tombstones and (item.deleted or not states & 1):
        return Standing.ABSENT
    if states & 1 or (states and item.deleted):
        return Standing.PRESENT
    return Standing.LEFT if states else Standing.ABSENT


@lru_cache(256)
def _ordered(columns: str, key: str, conditions: tuple[str, ...], newest: bool) -> str:
    """Returns the query for the items that match one of these conditions, of which no two match the same item."""
    selects = [f"SELECT {columns} FROM item WHERE {condition}" for condition in conditions]
    union = selects[0] if len(selects) == 1 else f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS pieces"
    return union + _tail(key, "item_no", newest=newest)


def _tail(key: str, number: str, *, newest: bool) -> str:
    direction = "DESC" if newest else "ASC"
    return f" ORDER BY {key} {direction}, {number} {direction} LIMIT ? OFFSET ?"
