"""Items in SQL: pages as index range scans, counts, and the standing of items in views.

Every order is (key, item_no), so equal keys have one order too (SF-107, A-07), and an edge is compared by both.
"""

from collections.abc import Sequence
from functools import lru_cache

from smartfeeds.core.model import ALL_NUMBERS, Edge, IndexState, Item, KeyRange, Slice
from smartfeeds.core.view import SMART, Filters, Order, View, ViewStanding
from smartfeeds.store.engine import Direction, Engine, Row
from smartfeeds.store.rows import DELETED, KEYS, NodeRow, placeholders, prefixed, to_brief_items, to_items
from smartfeeds.store.scan import SCAN_ITEMS, SCAN_LEAST, SCAN_SHARE, Scan
from smartfeeds.store.sql_filters import ItemQuery, all_items, filtered_items
from smartfeeds.store.sql_nodes import NodeReads
from smartfeeds.store.sql_tables import ITEM_BRIEF, ITEM_ROW, ITEM_WITHOUT_SYNC
from smartfeeds.store.versions import WILDCARD, matching_states, with_version

# Reading words takes as long as the payload is large. A step of the index is bounded by bytes as well as by items: a
# step of 50 takes one item of the greatest size, whose 7,000 words take 5 ms, and all other writes wait for it.
INDEX_ITEM_BYTES = 1_024
# The same for the steps of a scan, which compete with other reads: one of 200 items takes two items of 60 KB, 14 ms for
# HTML.
SCAN_ITEM_BYTES = 512
SELECT_ITEM = f"SELECT {ITEM_ROW} FROM item WHERE node_no = ? AND"
_LIVE = f"change < {DELETED}"
_FETCHED = 500  # items of a scan in one statement, which has a parameter for each
_END_ITEMS = 2  # of a group that is read with a page: nearly every key has one item


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
        self._reads_ends = db.is_far  # whether a page also reads what its cursors count (`_rows_and_ends`)
        # The scans that are complete in this snapshot, by their node and the filters of their view.
        self._scans: dict[tuple[int, Filters], Scan] = {}

    def forget(self) -> None:
        super().forget()
        self._scans.clear()

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
        statement = f"SELECT {ITEM_ROW} FROM item WHERE node_no = ? AND id IN ({placeholders(item_ids)})"
        return to_items(self.db.rows(statement, (node_no, *item_ids)))

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

        `Item.left` marks items that have left a filtered view (`core.view.ViewStanding`); a view that hides tombstones
        has none of them. For an unfiltered view the cost grows with the result, not with the feed.
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
        brief = page.brief and not page.view.sync
        query = _ordered(ITEM_BRIEF if brief else _columns(page.view), key, tuple(conditions), page.newest)
        if self._reads_ends:
            keys = _ordered(f"{key}, item_no", key, tuple(conditions), page.newest)
            rows = self._rows_and_ends(node_no, page.view.order, query, keys, params)
        else:
            rows = self.db.rows(query, params)
        if page.newest:
            rows.reverse()
        return to_brief_items(rows) if brief else to_items(rows)

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
        scan = self._scans.get((node_no, page.view.filters))
        if scan is not None:
            return self._scanned_page(node_no, page.view, scan.page(page))
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
            # The cursors of a page count the items with its first and its last key. With a round trip of its own: to
            # read them together, as `_rows_and_ends` does, would run the query of the filters twice.
            ends = {getattr(item, KEYS[page.view.order]) for item in (items[0], items[-1])}
            groups = self.db.rows_of([_group_of(node_no, page.view.order, key_us, _END_ITEMS) for key_us in ends])
            for key_us, group in zip(ends, groups, strict=True):
                self._ahead.note_group(
                    (node_no, page.view.order, key_us), [(row[0], row[1]) for row in group], _END_ITEMS
                )
        return [
            item if row[0] or item.deleted else item._replace(left=True) for row, item in zip(rows, items, strict=True)
        ]

    def _scanned_page(self, node_no: int, view: View, numbers: list[int]) -> list[Item]:
        """Returns the items of a page that a scan has found, as `_filtered_slice`."""
        scan = self._scans[node_no, view.filters]
        items: dict[int, Item] = {}
        for start in range(0, len(numbers), _FETCHED):
            some = numbers[start : start + _FETCHED]
            statement = f"SELECT {_columns(view)} FROM item WHERE node_no = ? AND item_no IN ({placeholders(some)})"
            items.update((item.item_no, item) for item in to_items(self.db.rows(statement, (node_no, *some))))
        return [
            item if item.deleted or scan.states(number) & 1 else item._replace(left=True)
            for number, item in ((number, items[number]) for number in numbers)
        ]

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        """Returns the number of items in a view, or of those up to an edge. O(1) for an unfiltered view and no edge."""
        if view.filtered and (scan := self._scans.get((node_no, view.filters))) is not None:
            return scan.count(view, before)
        row = self._row(node_no)
        if row is None:
            return 0
        if not view.filtered and before is None:
            return row.node.live if view.hides_tombstones else row.node.total
        query = self._query(row, view, None, before)
        # These conditions name columns of the item, so the rows of the index alone cannot be counted.
        whole = row.index is not IndexState.CURRENT or view.hides_tombstones
        return self.number(f"SELECT count(*) FROM {query.text if whole else query.rows}", query.params)

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        """Returns (item_no, id) of the first `limit` items with this ordering key, before filters, by item_no."""
        group = self._ahead.group((node_no, order, key_us), limit)
        if group is not None:
            return group
        return [(row[0], row[1]) for row in self.db.rows(*_group_of(node_no, order, key_us, limit))]

    def standings(self, node_no: int, item: Item, views: Sequence[View]) -> list[ViewStanding]:
        """Returns the standing of a stored item in each of these views. The cost grows with the number of the item's
        versions.
        """
        row = self._row(node_no)
        if row is None:
            return [ViewStanding.ABSENT] * len(views)
        states: dict[bytes, int] = {}
        indexed = (item.modified_us, item.item_no) <= (row.indexed_us, row.indexed_no)
        if indexed and any(view.filtered for view in views):
            states = self._states_of(node_no, [item.item_no]).get(item.item_no, {})
        documents: dict[int, str] = {}
        if indexed and any(view.query for view in views):
            documents = self.db.documents([item.item_no]).get(item.item_no, {})
        publishers = row.node.options.shows_publisher
        standings = []
        for view in views:
            scan = self._scans.get((node_no, view.filters))
            if scan is not None:
                bits = scan.states(item.item_no)
            else:
                bits = matching_states(node_no, view, states, documents, publishers=publishers)
            standings.append(_standing(view, item, bits))
        return standings

    def is_scanned(self, node_no: int, view: View) -> bool:
        """Returns whether a scan has found the items of a filtered view in this snapshot, so that it needs no index."""
        return (node_no, view.filters) in self._scans

    def scan_is_shorter(self, node_no: int) -> bool:
        """Returns whether reading all items of a node takes much less time than making the rest of its filter index."""
        row = self._row(node_no)
        if row is None or row.index is IndexState.CURRENT or not SCAN_LEAST < row.node.total <= SCAN_ITEMS:
            return False
        behind = max(SCAN_LEAST, row.node.total // SCAN_SHARE)
        statement = "SELECT 1 FROM item WHERE node_no = ? AND (modified_us, item_no) > (?, ?) LIMIT 1 OFFSET ?"
        return self.db.row(statement, (node_no, row.indexed_us, row.indexed_no, behind)) is not None

    def scan_on(self, scan: Scan, limit: int) -> bool | None:
        """Judges the next items of a scan, up to `limit`, of which a large one counts as several (`SCAN_ITEM_BYTES`).
        Returns whether all items of the node in this snapshot are judged, so that filtered reads need no index; None if
        the scan cannot be used: items were added in the part that it has read, or were removed, or the node shows its
        publishers since, or no longer.
        """
        node_no = scan.node_no
        row = self._row(node_no)
        if row is None or row.index is IndexState.CURRENT:
            return True
        if row.node.last_modified_us < scan.seen_us:
            return False  # another connection has continued the scan in a newer snapshot
        scan.seen_us = row.node.last_modified_us
        publishers = row.node.options.shows_publisher
        if not scan.judged:
            scan.publishers = publishers
        items, more = self._next_items(node_no, scan.end, min(limit, scan.reach), limit * SCAN_ITEM_BYTES)
        if items:
            scan.add(items, self._histories(row, scan, items))
        if more:
            scan.reach = len(items) * 5 // 4 + 1
            return False
        # The scan agrees with this snapshot: a publisher is a facet only if it is shown, and an item that was added
        # before the end of the scan, or removed, changes the number.
        if scan.publishers is not publishers or scan.judged != row.node.total:
            return None
        self._scans[node_no, scan.view.filters] = scan
        return True

    def _histories(self, row: NodeRow, scan: Scan, items: Sequence[Item]) -> dict[int, int]:
        """Returns the states that match the filters of a scan, for the items whose past versions the index has."""
        node_no = row.node.node_no
        index_end = row.indexed_us, row.indexed_no
        histories: dict[int, int] = {}
        indexed = {item.item_no: item for item in items if (item.modified_us, item.item_no) <= index_end}
        others = {item.item_no: item for item in items if item.item_no not in indexed}
        # Of an item that the index has read, the present version is one of the states: bit 0 alone is no history.
        for part, least in ((indexed, 1), (others, 0)):
            if not part:
                continue
            rows = self.db.rows(
                f"SELECT DISTINCT item_no FROM facet WHERE node_no = ? AND item_no IN ({placeholders(part)})"
                " AND (states > ? OR facet = ?)",
                (node_no, *part, least, WILDCARD),
            )
            numbers = [number for (number,) in rows]
            if not numbers:
                continue
            states_of, documents_of = self._states_of(node_no, numbers), self.db.documents(numbers)
            for number in numbers:
                states, documents, item = states_of[number], documents_of.get(number, {}), part[number]
                if not least:
                    version = scan.version(item, words=True)
                    states, changed = with_version(node_no, version, states, documents, {})
                    texts = {key: f" {' '.join(tokens)} " for key, tokens in changed.items() if tokens}
                    unchanged = {key: text for key, text in documents.items() if key not in changed}
                    documents = {**unchanged, **texts}
                histories[number] = matching_states(
                    node_no, scan.view, states, documents, publishers=row.node.options.shows_publisher
                )
        return histories

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
        if row.index is not IndexState.CURRENT and view.order is Order.MODIFIED:
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
        if row.index is not IndexState.CURRENT:
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
        end = Edge(row.indexed_us, row.indexed_no)
        return self._next_items(row.node.node_no, end, limit, limit * INDEX_ITEM_BYTES)

    def _next_items(self, node_no: int, after: Edge, limit: int, limit_bytes: int) -> tuple[list[Item], bool]:
        """Returns the items after an edge, oldest change first, and whether more items follow them. They end with the
        item that reaches one of the limits.
        """
        items = self.slice(node_no, Slice(SMART, limit, after=after))
        done = size_bytes = 0
        while done < len(items) and size_bytes < limit_bytes:
            size_bytes += len(items[done].payload)
            done += 1
        return items[:done], len(items) == limit or done < len(items)


def _standing(view: View, item: Item, states: int) -> ViewStanding:
    """Returns the standing of an item in a view, from the states that match the view."""
    if view.hides_tombstones and (item.deleted or not states & 1):
        return ViewStanding.ABSENT
    if states & 1 or (states and item.deleted):
        return ViewStanding.PRESENT
    return ViewStanding.LEFT if states else ViewStanding.ABSENT


@lru_cache(256)
def _ordered(columns: str, key: str, conditions: tuple[str, ...], newest: bool) -> str:
    """Returns the query for the items that match one of these conditions, of which no two match the same item."""
    selects = [f"SELECT {columns} FROM item WHERE {condition}" for condition in conditions]
    union = selects[0] if len(selects) == 1 else f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS pieces"
    return union + _tail(key, "item_no", newest=newest)


def _tail(key: str, number: str, *, newest: bool) -> str:
    direction = "DESC" if newest else "ASC"
    return f" ORDER BY {key} {direction}, {number} {direction} LIMIT ? OFFSET ?"
