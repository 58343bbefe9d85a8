"""Nodes in SQL: look-ups, lists, and the counts that each node row keeps.

Within a group commit a node's row is read once, changed in memory and written back once, so that many publishes to one
feed cost one update of its row. `settle` writes the rows back; `forget` drops them after the commit or a rollback.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from smartfeeds.core.access import READERS, Access
from smartfeeds.core.attachment_names import is_listed
from smartfeeds.core.consumers import HELD
from smartfeeds.core.model import AUDIENCE_CHANGE, Affiliation, IndexState, Item, K, KeyRange, Node, NodeState
from smartfeeds.core.options import FormFields, NodeKind, NodeOptions
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import Order
from smartfeeds.errors import StoreError
from smartfeeds.store.engine import Engine, Row
from smartfeeds.store.looked_ahead import LookedAhead
from smartfeeds.store.rows import (
    KEYS,
    UNREAD,
    NodeRow,
    to_listed_node,
    to_node_row,
    undamaged,
    write_options,
)
from smartfeeds.store.sql_tables import (
    AFFILIATION,
    NODE,
    NODE_ROW,
    Table,
    without_index,
)
from smartfeeds.store.sql_tallies import NODES_BY, QUOTAS, TallyReads, TallyWrites

T = TypeVar("T")

_BY_NAME = f"SELECT {NODE_ROW} FROM node WHERE state = 'live' AND name = ?"
_READERS = ", ".join(sorted(f"'{affiliation.value}'" for affiliation in READERS))
# Names of tallies: of all live nodes, and of those that strangers may know of.
_NODES, LISTED = "nodes", "listed"


def item_above(order: Order) -> str:
    """Returns the condition that the feed of a row of `mark` has items above the mark in this order."""
    return f"EXISTS (SELECT 1 FROM item i WHERE i.node_no = mark.node_no AND i.{KEYS[order]} > mark.key_us)"


# The marks of held events never are behind: their number is that of the absent subscribers, and the return of a
# subscriber starts their delivery. The look for consumers that are behind would read all of them again and again.
_IS_NOT_HELD = f"substr(consumer, 1, {len(HELD) + 1}) <> '{HELD}:'"
# Marks that are behind already are not written again: a publish to a feed with many slow consumers changes no row of
# theirs, and needs no lock of them.
FALL_BEHIND = (
    f"UPDATE mark SET behind = 1 WHERE behind = 0 AND node_no = ? AND {_IS_NOT_HELD}"
    f" AND CASE ord WHEN 'modified' THEN {item_above(Order.MODIFIED)} ELSE {item_above(Order.CREATED)} END"
)
BY_NO = f"SELECT {NODE_ROW} FROM node WHERE node_no = ?"


class NodeReads(TallyReads):
    """The part of ReadTx that is about nodes. A row is read once in a transaction."""

    _lock = ""  # the end of a statement that reads a node
    # The node and the item that were read last: a new version of an item is mostly stored just after its look-up.
    _last_item: tuple[int, Item] | None = None
    _is_writing = False

    def __init__(self, db: Engine) -> None:
        super().__init__(db)
        # Rows of nodes by number, and the live ones by name too. Both end with the transaction, so no change by another
        # process makes them wrong: a read has one snapshot, and a write has locked them.
        self._cache: dict[int, NodeRow] = {}
        self._names: dict[str, NodeRow] = {}
        self._ahead = LookedAhead()
        self._last_item = None
        # What bare JIDs may do on nodes, by number and JID, with the audience number of the node that it was found at
        # (`service.context.access_of`).
        self.accesses: dict[tuple[int, str], tuple[int, Access]] = {}
        # What all users with an affiliation may do on nodes, by number, without what depends on the user.
        self.shared_accesses: dict[tuple[int, Affiliation], Access] = {}
        # The bare JIDs that may use the service (`service.context.check_admitted`).
        self.admitted: set[str] = set()
        # The nodes and orders that are known to have a mark of pushes (`service.subscription_states.start_pushing`).
        self.pushed: set[tuple[int, Order]] = set()

    def deleted_nodes(self) -> list[int]:
        """Returns the numbers of the deleted nodes whose rows are not removed yet."""
        return [row[0] for row in self.db.rows("SELECT node_no FROM node WHERE state = 'deleted' ORDER BY node_no")]

    def look_ahead(self, touches: Sequence[Touch]) -> None:
        """Reads what the works of a batch will look up, in few round trips. The works then find it in memory."""
        rows = self.db.look_ahead(touches, writing=self._is_writing) if touches else None
        if rows is not None:
            for row in rows.nodes:
                self._remember(row)
            self._ahead.fill(rows)
            self.sums.update(rows.sums)

    def forget(self) -> None:
        """Drops all rows in memory, after the end of the transaction."""
        self._cache.clear()
        self._names.clear()
        if self._ahead.is_filled:
            self._ahead.clear()
        self._ahead.blocks_version = None  # `ReadTx.blocks_version` sets it, but not `is_filled`
        for known in (self.accesses, self.shared_accesses, self.admitted, self.pushed, self.sums):
            known.clear()
        self._last_item = None

    def settle(self) -> None:
        """Writes the changes in memory to the database. Reading transactions have none."""

    def _row(self, node_no: int) -> NodeRow | None:
        row = self._cache.get(node_no)
        return row if row is not None else self._remember(self.db.row(BY_NO + self._lock, (node_no,)))

    def _row_named(self, name: str) -> NodeRow | None:
        if name in self._ahead.absent_names:
            return None
        return self._remember(self.db.row(_BY_NAME + self._lock, (name,)))

    def _remember(self, values: tuple[object, ...] | None) -> NodeRow | None:
        if values is None:
            return None
        row = to_node_row(values)
        # A row that is known may have changes that are not written yet.
        known = self._cache.setdefault(row.node.node_no, row)
        if known.node.state is NodeState.LIVE:
            self._names[known.node.name] = known
        return known

    def node(self, name: str) -> Node | None:
        """Returns the live node with exactly this name."""
        row = self._names.get(name) or self._row_named(name)
        return row.node if row else None

    def node_no(self, name: str) -> int | None:
        """Returns the number of the live node with exactly this name, also if the rest of its row is damaged."""
        row = self.db.row("SELECT node_no FROM node WHERE state = 'live' AND name = ?", (name,))
        return row[0] if row else None

    def node_by_no(self, node_no: int) -> Node | None:
        """Returns the node with this number, including deleted nodes."""
        row = self._row(node_no)
        return row.node if row else None

    def nodes_by_no(self, node_nos: Collection[int]) -> dict[int, Node]:
        """Returns the nodes with these numbers, including deleted nodes and without damaged ones, in one round
        trip.
        """
        unread = [node_no for node_no in node_nos if node_no not in self._cache]
        for rows in self.db.rows_of([(BY_NO + self._lock, (node_no,)) for node_no in unread]) if unread else ():
            undamaged(NODE, self._remember, rows)
        return {node_no: self._cache[node_no].node for node_no in node_nos if node_no in self._cache}

    def node_count(self) -> int:
        """Returns the number of live nodes."""
        return self.sum_tally(_NODES)

    def is_unused(self, name: str) -> bool:
        """Returns whether the name was looked up ahead, and no node has it or is named like a view of it, and there is
        no redirect from it.
        """
        return name in self._ahead.unused_names

    def created_by(self, creator: str) -> int:
        """Returns the number of live nodes that this bare JID created. O(1)."""
        return self.sum_once(NODES_BY.of + creator)

    def created_in(self, domain: str) -> int:
        """Returns the number of live nodes that bare JIDs of this domain created. O(1)."""
        return self.sum_once(NODES_BY.of_domain + domain)

    def subscription_count(self, node_no: int) -> int:
        """Returns the number of subscriptions of a node in state subscribed. O(1)."""
        row = self._row(node_no)
        return row.subscribed if row else 0

    def index_state(self, node_no: int) -> IndexState:
        """Returns the state of the filter index of a node. Filtered views need `WriteTx.index_node` first if it is not
        current.
        """
        row = self._row(node_no)
        return IndexState.CURRENT if row is None else row.index

    def _nodes(self, statement: str, params: Row, limit: int) -> list[Node]:
        """The nodes of a statement that selects their columns, as `_values` reads them."""
        return self.values(NODE, to_listed_node, statement, params, limit)

    def values(self, table: Table, convert: Callable[[Row], T], statement: str, params: Row, limit: int) -> list[T]:
        """The first values of a statement that ends with LIMIT. Other rows take the place of damaged ones, because a
        short list is the last one for its readers.
        """
        size = limit
        while True:
            rows = self.db.rows(statement, (*params, size))
            values = undamaged(table, convert, rows)
            if len(values) >= limit or len(rows) < size:
                return values
            size += limit - len(values)

    def number(self, sql: str, params: Sequence[object] = ()) -> int:
        """Returns the number that a query selects, 0 if it selects no row."""
        row = self.db.row(sql, params)
        return int(row[0]) if row else 0

    def part(self, statement: str, params: Row, key: str, part: KeyRange[K]) -> list[Row]:
        """The rows of a list within a range of keys. The statement must end with its conditions."""
        for sign, bound in ((">", part.after), ("<", part.before)):
            if bound is not None:
                statement, params = f"{statement} AND {key} {sign} ?", (*params, bound)
        statement += f" ORDER BY {key} {'DESC' if part.newest else 'ASC'} LIMIT ? OFFSET ?"
        rows = self.db.rows(statement, (*params, part.limit, part.offset))
        return rows[::-1] if part.newest else rows


class NodeWrites(TallyWrites, NodeReads):
    """The part of WriteTx that is about nodes."""

    _is_writing = True

    def __init__(self, db: Engine) -> None:
        super().__init__(db)
        self._lock = db.for_update  # each node that a writing transaction reads is locked until its end
        self._dirty: set[int] = set()
        self._published: set[int] = set()  # nodes with new versions of items, whose marks may be behind now
        # Whether a consumer at a key may be behind, by node, order and key (`PushWrites._may_be_behind`).
        self._above: dict[tuple[int, Order, int], bool] = {}

    def settle(self) -> None:
        if self._dirty:
            self._settle_nodes()
        # After the rows of nodes: other processes wait for a row of a tally as short as possible.
        self._settle_tallies()

    def _settle_nodes(self) -> None:
        # Both in the order of the locks (PG-039).
        if self._published:
            self.db.run_many(FALL_BEHIND, [(node_no,) for node_no in sorted(self._published)])
            self._published.clear()
            self._above.clear()
        self.db.run_many(
            "UPDATE node SET total = ?, live = ?, last_modified_us = ?, last_created_us = ?, audience = ?,"
            " subscribed = ?, indexed_us = ?, indexed_no = ?, stale = ? WHERE node_no = ?",
            [self._columns(self._cache[node_no]) for node_no in sorted(self._dirty)],
        )
        self._dirty.clear()

    def change(self, sql: str, params: Sequence[object]) -> None:
        """Runs a statement that changes rows."""
        self.changes += 1
        self.db.run(sql, params)

    @staticmethod
    def _columns(row: NodeRow) -> tuple[int, ...]:
        node = row.node
        keys = (node.last_modified_us, node.last_created_us, node.audience)
        index = (row.subscribed, row.indexed_us, row.indexed_no, int(row.stale))
        return (node.total, node.live, *keys, *index, node.node_no)

    def forget(self) -> None:
        super().forget()
        for known in (self._dirty, self._published, self._above, self._differences):
            known.clear()

    def _edit(self, node_no: int) -> NodeRow:
        """The row of a node that is about to change. Raises StoreError if there is no such node."""
        self.changes += 1
        row = self._cache.get(node_no) or self._row(node_no)  # most nodes are known: no call for each publish
        if row is None:
            raise StoreError(f"there is no node number {node_no}")
        self._dirty.add(node_no)
        return row

    def _more_audience(self, node_no: int, by: int = AUDIENCE_CHANGE) -> NodeRow:
        row = self._edit(node_no)
        row.node = row.node._replace(audience=row.node.audience + by)
        return row

    def mark_pages_changed(self, node_no: int) -> None:
        """Marks all pages of a node as changed, because they show more than its items: what features add to them."""
        self._more_audience(node_no)

    def lock(self, name: str) -> Node | None:
        """Returns `node` and locks it until this transaction ends."""
        row = self._names.get(name) or self._row_named(name)
        return row.node if row else None

    def lock_no(self, node_no: int) -> Node | None:
        """Returns `node_by_no` and locks it until this transaction ends."""
        return self.node_by_no(node_no)

    def reserve_name(self, name: str) -> None:
        """Makes other transactions that reserve this name wait until this one ends.

        Two processes that create nodes whose names begin alike would otherwise not see each other's node.
        """
        self.db.lock_text(name)

    def lock_quotas(self, jid: str) -> None:
        """Makes other transactions that count what this bare JID has wait until this one ends (PG-044).

        Two processes that add something for it would otherwise not see each other's row.
        """
        self.db.lock_text(QUOTAS + jid)

    def add_node(self, node: Node, owner: str = "") -> Node:
        """Stores a new node, with a bare JID as its owner, and returns it with its number. The caller must have checked
        that the name is free.
        """
        self.changes += 1
        listed = is_listed(node)
        options = write_options(node.options.stored)
        audience = node.audience + AUDIENCE_CHANGE if owner else node.audience
        keys = (node.last_modified_us, node.last_created_us, audience)
        values = (
            node.name,
            node.kind.value,
            node.creator,
            node.created_us,
            options,
            "live",
            0,
            0,
            *keys,
            0,
            *UNREAD,
            0,
        )
        node_no = self.db.add(NODE, (*values, int(listed)))
        self._count_node(node, 1, listed=listed)
        if owner:
            self.db.insert(AFFILIATION, (node_no, owner, "owner", None if listed else node.name))
        node = node._replace(node_no=node_no, state=NodeState.LIVE, total=0, live=0, audience=audience)
        self._remember_new(NodeRow(node, 0, *UNREAD, stale=False))
        return node

    def _remember_new(self, row: NodeRow) -> None:
        """Stores the row of a node in memory that has a new name."""
        name = row.node.name
        self._cache[row.node.node_no] = self._names[name] = row
        unused = self._ahead.unused_names
        if unused:
            # It may be named like a view of any of them.
            unused.clear() if "?" in name or "%" in name else unused.discard(name)

    def set_options(self, node_no: int, options: FormFields) -> None:
        """Replaces the options of a node. Its audience number increases, and lists of nodes change accordingly."""
        row = self._more_audience(node_no)
        before, node = row.node, row.node._replace(options=NodeOptions(row.node.kind, options))
        row.node = node
        listed = is_listed(node)
        self.db.run(
            "UPDATE node SET options = ?, listed = ? WHERE node_no = ?", (write_options(options), int(listed), node_no)
        )
        was_listed = is_listed(before)
        if listed != was_listed and node.state is NodeState.LIVE:
            self.add_tallies([LISTED], listed - was_listed)
            self.db.run(
                f"UPDATE affiliation SET hidden = ? WHERE node_no = ? AND affiliation IN ({_READERS})",
                (None if listed else node.name, node_no),
            )

    def rename_node(self, node_no: int, name: str, creator: str) -> None:
        """Gives a live node without affiliations another name, which the caller has checked to be free, and creator."""
        row = self._more_audience(node_no)
        before, node = row.node, row.node._replace(name=name, creator=creator)
        row.node = node
        self._names.pop(before.name, None)
        self._remember_new(row)
        listed = is_listed(node)
        self.db.run(
            "UPDATE node SET name = ?, creator = ?, listed = ? WHERE node_no = ?",
            (name, creator, int(listed), node_no),
        )
        self._count_node(before, -1, listed=is_listed(before))
        self._count_node(node, 1, listed=listed)

    def set_creator(self, node_no: int, creator: str) -> None:
        """Replaces the creator of a node, who counts the node against a quota."""
        row = self._edit(node_no)
        if row.node.state is NodeState.LIVE:
            self.add_tallies(NODES_BY.names_of(row.node.creator), -1)
            self.add_tallies(NODES_BY.names_of(creator), 1)
        row.node = row.node._replace(creator=creator)
        self.db.run("UPDATE node SET creator = ? WHERE node_no = ?", (creator, node_no))

    def set_kind(self, node_no: int, kind: NodeKind) -> None:
        """Changes the kind of a node that has never held an item. The options that it stores stay as they are."""
        row = self._more_audience(node_no)
        row.node = row.node._replace(kind=kind, options=NodeOptions(kind, row.node.options.stored))
        self.db.run("UPDATE node SET kind = ? WHERE node_no = ?", (kind.value, node_no))

    def _count_node(self, node: Node, by: int, *, listed: bool) -> None:
        """Changes the counts of live nodes by 1 for a node that appears, by -1 for a node that disappears."""
        names = (_NODES, *NODES_BY.names_of(node.creator))
        self.add_tallies((*names, LISTED) if listed else names, by)

    def set_keys(self, node_no: int, last_modified_us: int, last_created_us: int) -> None:
        """Stores the greatest ordering keys that were assigned."""
        row = self._edit(node_no)
        row.node = row.node._replace(last_modified_us=last_modified_us, last_created_us=last_created_us)

    def retire_node(self, node_no: int) -> None:
        """Frees the name and marks the node as deleted. Its rows remain until `reap`."""
        row = self._edit(node_no)
        if row.node.state is NodeState.DELETED:
            return
        self._names.pop(row.node.name, None)
        row.node = row.node._replace(state=NodeState.DELETED)
        self.db.run("UPDATE node SET state = 'deleted' WHERE node_no = ?", (node_no,))
        # The index of `hidden` does not begin with the node, and would be read as a whole.
        is_hidden = f"{without_index('hidden')} IS NOT NULL"
        self.db.run(f"UPDATE affiliation SET hidden = NULL WHERE node_no = ? AND {is_hidden}", (node_no,))
        self._count_node(row.node, -1, listed=is_listed(row.node))
