"""The newest items of many nodes, for the river of all feeds."""

from smartfeeds.core.model import Edge, Item
from smartfeeds.store.base import ReadTx
from smartfeeds.store.rows import DELETED, to_items
from smartfeeds.store.sql_tables import ITEM_WITHOUT_SYNC

_UP_TO = " AND (modified_us, item_no) <= (?, ?)"


def changed_items(tx: ReadTx, limit: int, before: Edge | None = None) -> list[tuple[Edge, int]]:
    """Returns the edges right behind the items of all nodes that are not deleted, the newest first, each with the
    number of its node, which may be closed or deleted. `before` is that of a `Slice`. The cost grows with the
    result.
    """
    bound, params = ("", ()) if before is None else (_UP_TO, (before.key_us, before.item_no))
    rows = tx.db.rows(
        f"SELECT modified_us, item_no, node_no FROM item WHERE change < {DELETED}{bound}"
        " ORDER BY modified_us DESC, item_no DESC LIMIT ?",
        (*params, limit),
    )
    return [(Edge(key_us, item_no), node_no) for key_us, item_no, node_no in rows]


def item_by_no(tx: ReadTx, item_no: int) -> Item:
    """Returns the item with this number, which exists, without sync data."""
    return to_items(tx.db.rows(f"SELECT {ITEM_WITHOUT_SYNC} FROM item WHERE item_no = ?", (item_no,)))[0]
