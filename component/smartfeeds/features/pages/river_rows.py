"""The nodes by their last change, and the newest items of many nodes, for the river of all feeds."""

from collections.abc import Iterator
from operator import attrgetter

from smartfeeds.core.model import Edge, Item, Node
from smartfeeds.features.pages.river import NodePlace
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import DELETED, prefixed, to_items
from smartfeeds.store.sql_nodes import NOT_EXCLUDED, NodeReads
from smartfeeds.store.sql_tables import ITEM_WITHOUT_SYNC, NODE_COLUMNS

_PLACE = attrgetter("last_modified_us", "name")
_BEFORE = " AND (n.last_modified_us, n.name) < (?, ?)"
_NEWEST_FIRST = " ORDER BY n.last_modified_us DESC, n.name DESC LIMIT ?"
_UP_TO = " AND (modified_us, item_no) <= (?, ?)"
_NODES = f"SELECT {prefixed(NODE_COLUMNS, 'n')} FROM"
_LIVE = f"{_NODES} node n WHERE n.state = 'live' AND n.listed = ?"
_HIDDEN = (
    f"{_NODES} affiliation a JOIN node n ON n.node_no = a.node_no AND n.state = 'live'"
    " WHERE a.jid = ? AND a.hidden IS NOT NULL"
)


class RiverReads(NodeReads):
    """The part of ReadTx that is about the river."""

    def changed_nodes(self, jid: str | None, limit: int, before: NodePlace | None = None) -> list[Node]:
        """Returns the nodes that lists show to a bare JID (`listed_nodes`), or all live nodes for None, by last change,
        the newest first, and by name where the times are equal. `before` is the place of the last node before them.

        The cost grows with the result, with the nodes in between that exclude the JID, and with the hidden nodes that
        the JID may read.
        """
        self.settle()
        nodes = [node for sql, params in self._changed(jid, before) for node in self._nodes(sql, params, limit)]
        return sorted(nodes, key=_PLACE, reverse=True)[:limit]

    @staticmethod
    def _changed(jid: str | None, before: NodePlace | None) -> Iterator[tuple[str, Row]]:
        """The statements whose rows together are the nodes, with their parameters except the limit."""
        bound, place = ("", ()) if before is None else (_BEFORE, tuple(before))
        if jid is None:
            yield from ((f"{_LIVE}{bound}{_NEWEST_FIRST}", (listed, *place)) for listed in (0, 1))
        else:
            yield f"{_LIVE}{bound} AND {NOT_EXCLUDED}{_NEWEST_FIRST}", (1, *place, jid)
            yield f"{_HIDDEN}{bound}{_NEWEST_FIRST}", (jid, *place)

    def changed_items(self, limit: int, before: Edge | None = None) -> list[tuple[Edge, int]]:
        """Returns the edges right behind the items of all nodes that are not deleted, the newest first, each with the
        number of its node, which may be closed or deleted. `before` is that of a `Slice`. The cost grows with the
        result.
        """
        bound, params = ("", ()) if before is None else (_UP_TO, (before.key_us, before.item_no))
        rows = self.db.rows(
            f"SELECT modified_us, item_no, node_no FROM item WHERE change < {DELETED}{bound}"
            " ORDER BY modified_us DESC, item_no DESC LIMIT ?",
            (*params, limit),
        )
        return [(Edge(key_us, item_no), node_no) for key_us, item_no, node_no in rows]

    def item_by_no(self, item_no: int) -> Item:
        """Returns the item with this number, which exists, without sync data."""
        return to_items(self.db.rows(f"SELECT {ITEM_WITHOUT_SYNC} FROM item WHERE item_no = ?", (item_no,)))[0]
