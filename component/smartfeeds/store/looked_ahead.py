"""Affiliations and items that a writing transaction has read before its works ask for them.

They are valid because their nodes are locked. What the works of the transaction change is changed here too.
"""

from smartfeeds.core.model import Affiliation, Item
from smartfeeds.store.engine import AheadRows
from smartfeeds.store.rows import to_items

Key = tuple[int, str]  # node_no and a JID, an id or a sync id


class LookedAhead:
    """The affiliations and items by their keys; None for an item that does not exist."""

    __slots__ = ("_by_id", "_by_sync", "affiliations")

    def __init__(self) -> None:
        self.affiliations: dict[Key, Affiliation] = {}
        self._by_id: dict[Key, Item | None] = {}
        self._by_sync: dict[Key, Item | None] = {}

    def clear(self) -> None:
        """Forgets everything, at the end of the transaction."""
        self.affiliations.clear()
        self._by_id.clear()
        self._by_sync.clear()

    def fill(self, rows: AheadRows) -> None:
        """Stores what was read."""
        self.affiliations = dict.fromkeys(rows.jids, Affiliation.NONE)
        self.affiliations |= {(node_no, jid): Affiliation(value) for node_no, jid, value in rows.affiliations}
        self._by_id = dict.fromkeys(rows.ids)
        self._by_sync = dict.fromkeys(rows.ids)
        for row, item in zip(rows.by_id, to_items(row[1:] for row in rows.by_id), strict=True):
            self._by_id[row[0], item.id] = item
        for row, item in zip(rows.by_sync, to_items(row[1:] for row in rows.by_sync), strict=True):
            self._by_sync[row[0], item.sync_id] = item

    def item(self, node_no: int, item_id: str) -> Item | None:
        """Returns the item with an id, None if it does not exist. Raises KeyError if it was not looked up."""
        return self._by_id[node_no, item_id]

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        """Returns the item with a sync id as `ReadTx.item_of_sync`. Raises KeyError if it was not looked up."""
        item = self._by_sync[node_no, sync_id]
        if item is None:
            item = self._by_id[node_no, sync_id]
            item = item if item is not None and not item.sync_id else None
        return item

    def note_item(self, node_no: int, old: Item | None, item: Item) -> None:
        """Stores a new version of an item."""
        if not self._by_id:
            return
        self._by_id[node_no, item.id] = item
        if old is not None and old.sync_id and old.sync_id != item.sync_id:
            self._by_sync[node_no, old.sync_id] = None
        if item.sync_id:
            self._by_sync[node_no, item.sync_id] = item
