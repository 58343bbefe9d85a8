"""Items in SQL: pages as index range scans, counts, and the filter index of views.

Every order is (key, item_no), so equal keys have one order too (SF-107, A-07), and an edge is compared by both. The
feed is its own change log (SF-007): the filter index is brought forward in modified order from the items themselves.

A tombstone has lost its content (SF-013): of its facets only its publisher (an author, where the node shows it) is
left, and it has no words; so it shows in unfiltered Smart views, in `kind=deleted`, and in views of its publisher.
"""

from dataclasses import dataclass, field

from smartfeeds.core.model import ALL_NUMBERS, Edge, Item, Part, Slice
from smartfeeds.core.options import shows_publisher
from smartfeeds.core.view import Order, View, item_facets
from smartfeeds.errors import StoreError
from smartfeeds.store.base import NO_LIMIT, Indexer
from smartfeeds.store.engine import Engine
from smartfeeds.store.rows import (
    CHANGES,
    DELETED,
    ITEM,
    ITEM_WITHOUT_SYNC,
    KEYS,
    NodeRow,
    change_no,
    digest,
    prefixed,
    to_items,
)
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites, with_counts

_LIVE = f"change < {DELETED}"
_INDEX_CHUNK = 500


@dataclass(slots=True)
class _Query:
    """The rest of a SELECT: what stands behind FROM, and its parameters in order."""

    source: str
    key: str
    number: str
    where: list[str] = field(default_factory=list)
    params: list[object] = field(default_factory=list)

    def add(self, condition: str, *params: object) -> None:
        self.where.append(condition)
        self.params.extend(params)

    @property
    def text(self) -> str:
        return f"{self.source} WHERE {' AND '.join(self.where)}"


def _pieces(key: str, after: Edge | None, before: Edge | None) -> list[tuple[str, list[int]]]:
    """The range between two edges as disjoint conditions, ascending, that an index on (key, item_no) answers.

    SQLite uses only the key of a row value whose second column is the rowid; so the items that share an edge's key
    are pieces of their own, and a page costs the same however many items have one key.
    """
    if after and before and (after.key_us, after.item_no) >= (before.key_us, before.item_no):
        return []
    if after and before and after.key_us == before.key_us:
        same = f"{key} = ? AND item_no > ? AND item_no <= ?"
        return [(same, [after.key_us, after.item_no, before.item_no])]
    inner: list[str] = []
    params: list[int] = []
    pieces: list[tuple[str, list[int]]] = []
    if after:
        pieces.append((f"{key} = ? AND item_no > ?", [after.key_us, after.item_no]))
        inner.append(f"{key} > ?")
        params.append(after.key_us)
    if before:
        inner.append(f"{key} < ?")
        params.append(before.key_us)
    pieces.append((" AND ".join(inner), params))
    if before:
        pieces.append((f"{key} = ? AND item_no <= ?", [before.key_us, before.item_no]))
    return pieces


def _earlier(one: Edge | None, other: Edge) -> Edge:
    return other if one is None or (other.key_us, other.item_no) < (one.key_us, one.item_no) else one


def _columns(view: View) -> str:
    return ITEM if view.sync else ITEM_WITHOUT_SYNC


def _marks(count: int) -> str:
    return ", ".join("?" * count)


class ItemReads(NodeReads):
    """The part of ReadTx that is about items."""

    def item(self, node_no: int, item_id: str) -> Item | None:
        found = self._db.row(f"SELECT {ITEM} FROM item WHERE node_no = ? AND id = ?", (node_no, item_id))
        return to_items((found,))[0] if found else None

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        # Two looks into indexes; the condition on sync_id lets the partial one serve.
        one = f"SELECT {ITEM} FROM item WHERE node_no = ? AND"
        found = self._db.row(
            f"{one} sync_id = ? AND sync_id <> '' UNION ALL {one} id = ? AND sync_id = '' LIMIT 1",
            (node_no, sync_id, node_no, sync_id),
        )
        return to_items((found,))[0] if found else None

    def conflicted(self, node_no: int, part: Part[int] = ALL_NUMBERS) -> list[Item]:
        statement = f"SELECT {ITEM} FROM item WHERE node_no = ? AND conflicts > 0"
        return to_items(self._part(statement, (node_no,), "item_no", part))

    def conflict_count(self, node_no: int) -> int:
        found = self._db.row("SELECT count(*) FROM item WHERE node_no = ? AND conflicts > 0", (node_no,))
        return int(found[0]) if found else 0

    def slice(self, node_no: int, wanted: Slice) -> list[Item]:
        if wanted.view.filtered:
            return self._filtered_slice(node_no, wanted)
        key = KEYS[wanted.view.order]
        hidden = f" AND {_LIVE}" if wanted.view.hides_tombstones else ""
        columns = _columns(wanted.view)
        selects: list[str] = []
        params: list[object] = []
        for condition, values in _pieces(key, wanted.after, wanted.before):
            both = f" AND {condition}" if condition else ""
            selects.append(f"SELECT {columns} FROM item WHERE node_no = ?{hidden}{both}")
            params += (node_no, *values)
        if not selects:
            return []
        union = selects[0] if len(selects) == 1 else f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS pieces"
        rows = self._db.rows(union + _tail(key, "item_no", wanted), (*params, wanted.limit, wanted.offset))
        if wanted.newest:
            rows.reverse()
        return to_items(rows)

    def _filtered_slice(self, node_no: int, wanted: Slice) -> list[Item]:
        row = self._row(node_no)
        if row is None:
            return []
        query = self._query(row, wanted.view, wanted.after, wanted.before)
        rows = self._db.rows(
            f"SELECT {prefixed(_columns(wanted.view), 'i')} FROM {query.text}{_tail(query.key, query.number, wanted)}",
            (*query.params, wanted.limit, wanted.offset),
        )
        if wanted.newest:
            rows.reverse()
        return to_items(rows)

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        row = self._row(node_no)
        if row is None:
            return 0
        if not view.filtered and before is None:
            return row.node.live if view.hides_tombstones else row.node.total
        query = self._query(row, view, None, before)
        found = self._db.row(f"SELECT count(*) FROM {query.text}", query.params)
        return int(found[0]) if found else 0

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        rows = self._db.rows(
            f"SELECT item_no, id FROM item WHERE node_no = ? AND {KEYS[order]} = ? ORDER BY item_no LIMIT ?",
            (node_no, key_us, limit),
        )
        return [(row[0], row[1]) for row in rows]

    def _query(self, row: NodeRow, view: View, after: Edge | None, before: Edge | None) -> _Query:
        """The items of a view between two edges. Only what the filter index knows as it is now can match a filter."""
        node_no = row.node.node_no
        indexed = bool(view.facets or view.query)
        known = Edge(row.indexed_us, row.indexed_no)
        if indexed and row.stale and view.order is Order.MODIFIED:
            before = _earlier(before, known)
        facets = sorted(view.facets, key=len)
        query = self._by_facet(node_no, facets[0], view, after, before) if facets else None
        if query is None:
            key = f"i.{KEYS[view.order]}"
            query = _Query("item i", key, "i.item_no")
            query.add("i.node_no = ?", node_no)
            _between(query, key, "i.item_no", after, before)
        if indexed and row.stale:
            query.add("(i.modified_us, i.item_no) <= (?, ?)", known.key_us, known.item_no)
        for alternatives in facets[1:]:
            query.add(
                "EXISTS (SELECT 1 FROM facet x WHERE x.node_no = ? AND x.facet IN"
                f" ({_marks(len(alternatives))}) AND x.modified_us = i.modified_us AND x.item_no = i.item_no)",
                node_no,
                *map(digest, sorted(alternatives)),
            )
        if view.query:
            condition, params = self._db.having_words(node_no, view.query)
            query.add(condition, *params)
        if view.kinds:
            query.add(f"i.change IN ({', '.join(sorted(str(CHANGES[kind]) for kind in view.kinds))})")
        if view.hides_tombstones:
            query.add(f"i.{_LIVE}")
        return query

    @staticmethod
    def _by_facet(
        node_no: int, alternatives: frozenset[str], view: View, after: Edge | None, before: Edge | None
    ) -> _Query:
        """A query that walks the facet index in the order of the view: one value streams, several are merged first."""
        one = len(alternatives) == 1
        values = "= ?" if one else f"IN ({_marks(len(alternatives))})"
        inner = _Query("facet", KEYS[view.order], "item_no")
        inner.add("node_no = ?", node_no)
        inner.add(f"facet {values}", *map(digest, sorted(alternatives)))
        _between(inner, inner.key, inner.number, after, before)
        found = f"SELECT {'' if one else 'DISTINCT '}modified_us, created_us, item_no FROM {inner.text}"
        query = _Query(f"({found}) f CROSS JOIN item i", f"f.{inner.key}", "f.item_no", params=inner.params)
        query.add("i.item_no = f.item_no AND i.modified_us = f.modified_us")
        return query


def _between(query: _Query, key: str, number: str, after: Edge | None, before: Edge | None) -> None:
    if after:
        query.add(f"({key}, {number}) > (?, ?)", after.key_us, after.item_no)
    if before:
        query.add(f"({key}, {number}) <= (?, ?)", before.key_us, before.item_no)


def _tail(key: str, number: str, wanted: Slice) -> str:
    direction = "DESC" if wanted.newest else "ASC"
    return f" ORDER BY {key} {direction}, {number} {direction} LIMIT ? OFFSET ?"


class ItemWrites(NodeWrites, ItemReads):
    """The part of WriteTx that is about items and the filter index."""

    def __init__(self, db: Engine, indexer: Indexer) -> None:
        super().__init__(db)
        self._indexer = indexer

    def put_item(self, node_no: int, item: Item) -> Item:
        row = self._edit(node_no)
        change = change_no(item)
        added = int(change != DELETED)
        if item.item_no:
            added -= self._replace(node_no, item, change)
            stored = item
            row.node = with_counts(row.node, row.node.total, row.node.live + added)
        else:
            stored = self._insert(node_no, item, change)
            row.node = with_counts(row.node, row.node.total + 1, row.node.live + added)
        self._unindex_from(row, stored)
        return stored

    def _insert(self, node_no: int, item: Item, change: int) -> Item:
        item_no = self._db.insert(
            "INSERT INTO item (node_no, id, created_us, modified_us, change, revision, notify, total, live, publisher,"
            " payload, sync_id, conflicts, sync) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                node_no,
                item.id,
                item.created_us,
                item.modified_us,
                change,
                item.revision,
                int(item.notify),
                item.total,
                item.live,
                item.publisher,
                item.payload,
                item.sync_id,
                item.conflicts,
                item.sync,
            ),
            "item_no",
        )
        return item._replace(item_no=item_no)

    def _replace(self, node_no: int, item: Item, change: int) -> int:
        """Stores the new state of an item; 1 where it was live before."""
        found = self._db.row("SELECT change FROM item WHERE item_no = ? AND node_no = ?", (item.item_no, node_no))
        if found is None:
            raise StoreError(f"node {node_no} has no item number {item.item_no}")
        self._db.run(
            "UPDATE item SET id = ?, created_us = ?, modified_us = ?, change = ?, revision = ?, notify = ?,"
            " total = ?, live = ?, publisher = ?, payload = ?, sync_id = ?, conflicts = ?, sync = ? WHERE item_no = ?",
            (
                item.id,
                item.created_us,
                item.modified_us,
                change,
                item.revision,
                int(item.notify),
                item.total,
                item.live,
                item.publisher,
                item.payload,
                item.sync_id,
                item.conflicts,
                item.sync,
                item.item_no,
            ),
        )
        return int(found[0] != DELETED)

    @staticmethod
    def _unindex_from(row: NodeRow, item: Item) -> None:
        row.stale = True
        if (item.modified_us, item.item_no) <= (row.indexed_us, row.indexed_no):
            row.indexed_us, row.indexed_no = item.modified_us, item.item_no - 1

    def remove_item(self, node_no: int, item_no: int) -> None:
        row = self._edit(node_no)
        found = self._db.row("SELECT change FROM item WHERE item_no = ? AND node_no = ?", (item_no, node_no))
        if found is None:
            return
        self._db.run("DELETE FROM facet WHERE node_no = ? AND item_no = ?", (node_no, item_no))
        self._db.drop_words([item_no])
        self._db.run("DELETE FROM item WHERE item_no = ?", (item_no,))
        row.node = with_counts(row.node, row.node.total - 1, row.node.live - int(found[0] != DELETED))

    def index_some(self, limit: int) -> int:
        done = 0
        while done < limit:
            self.settle()
            found = self._db.row(
                "SELECT node_no FROM node WHERE stale = 1 AND state = 'live' ORDER BY indexed_us, node_no LIMIT 1"
                + self._db.for_update
            )
            if found is None:
                break
            done += self._index(found[0], limit - done)
        return done

    def index_node(self, node_no: int, limit: int = NO_LIMIT) -> int:
        done = 0
        while done < limit and not self.index_current(node_no):
            done += self._index(node_no, min(_INDEX_CHUNK, limit - done))
        return done

    def _index(self, node_no: int, limit: int) -> int:
        """Takes the next items of a node into the filter index; how many. Fewer than `limit`: it is up to date."""
        row = self._edit(node_no)
        found = self.slice(node_no, Slice(_EVERYTHING, limit, after=Edge(row.indexed_us, row.indexed_no)))
        shown = shows_publisher(row.node.kind, row.node.options)
        for item in found:
            self._index_item(node_no, item, item.publisher if shown else "")
        if found:
            row.indexed_us, row.indexed_no = found[-1].modified_us, found[-1].item_no
        row.stale = len(found) == limit
        return len(found)

    def _index_item(self, node_no: int, item: Item, publisher: str) -> None:
        if item.deleted:
            facets, words = item_facets(frozenset(), frozenset(), frozenset(), publisher), frozenset[str]()
        else:
            facets, words = self._indexer(item.payload, publisher)
        self._db.run("DELETE FROM facet WHERE node_no = ? AND item_no = ?", (node_no, item.item_no))
        self._db.run_many(
            "INSERT INTO facet (node_no, facet, modified_us, item_no, created_us) VALUES (?, ?, ?, ?, ?)",
            [
                (node_no, found, item.modified_us, item.item_no, item.created_us)
                for found in sorted(map(digest, facets))
            ],
        )
        self._db.set_words(node_no, item.item_no, words)


_EVERYTHING = View(smart=True)
