"""The rows that a transaction has read before its works ask for them.

A write may rely on it because the nodes are locked, a read because it sees one snapshot. What the works of a
transaction change is removed here.
"""

from collections.abc import Sequence

from smartfeeds.core.model import Affiliation, Item
from smartfeeds.core.view import Order
from smartfeeds.store.engine import AheadRows
from smartfeeds.store.rows import read_affiliation, to_items

Key = tuple[int, str]  # node_no and a JID, an id or a sync id
GroupKey = tuple[int, Order, int]  # node_no and a key in an order


class LookedAhead:
    """The affiliations, items and groups by their keys. A missing key was not looked up, or has changed since."""

    __slots__ = (
        "absent_names",
        "affiliations",
        "blocks_version",
        "by_id",
        "by_sync",
        "groups",
        "is_filled",
        "unsubscribed",
        "unused_names",
        "wildcards",
    )

    def __init__(self) -> None:
        self.affiliations: dict[Key, Affiliation] = {}
        self.absent_names: frozenset[str] = frozenset()  # names without a node
        self.unused_names: set[str] = set()  # those of `ReadTx.is_unused`
        self.unsubscribed: set[Key] = set()  # bare JIDs without a subscription to a node
        self.wildcards: dict[int, bool] = {}  # whether the filter index of a node has ANYTHING for some items
        self.blocks_version: int | None = None  # that of `ReadTx.blocks_version`; None if it was not read
        self.by_id: dict[Key, Item | None] = {}  # None for an item that does not exist
        self.by_sync: dict[Key, Item | None] = {}  # as `by_id`, of the items with a `sync_id`
        self.is_filled = False  # whether there is something to forget: most transactions of SQLite read nothing ahead
        self.groups: dict[GroupKey, tuple[list[tuple[int, str]], int]] = {}  # items, and how many were asked for

    def clear(self) -> None:
        """Forgets everything, at the end of the transaction."""
        self.is_filled = False
        self.absent_names = frozenset()
        self.blocks_version = None
        for entries in (
            *(self.affiliations, self.wildcards, self.by_id, self.by_sync, self.groups),
            *(self.unused_names, self.unsubscribed),
        ):
            entries.clear()

    def fill(self, rows: AheadRows) -> None:
        """Stores what was read."""
        self.is_filled = True
        self.absent_names = frozenset(rows.absent_names)
        self.blocks_version = rows.blocks_version
        self.affiliations = dict.fromkeys(rows.jids, Affiliation.NONE)
        self.affiliations |= {(node_no, jid): read_affiliation(value) for node_no, jid, value in rows.affiliations}
        self.unused_names = set(rows.unused_names)
        self.unsubscribed = set(rows.unsubscribed)
        self.wildcards = dict(rows.wildcards)
        self.by_id = dict.fromkeys(rows.ids)
        self.by_sync = dict.fromkeys(rows.ids)
        for row, item in zip(rows.by_id, to_items(row[1:] for row in rows.by_id), strict=True):
            self.by_id[row[0], item.id] = item
        for row, item in zip(rows.by_sync, to_items(row[1:] for row in rows.by_sync), strict=True):
            self.by_sync[row[0], item.sync_id] = item
        for (node_no, order, key_us, limit), group in rows.groups:
            self.note_group((node_no, order, key_us), group, limit)

    def items(self, node_no: int, item_ids: Sequence[str]) -> list[Item] | None:
        """Returns the existing items with these ids, None if they were not all looked up."""
        try:
            items = [self.by_id[node_no, item_id] for item_id in item_ids]
        except KeyError:
            return None
        return [item for item in items if item is not None]

    def group(self, key: GroupKey, limit: int) -> list[tuple[int, str]] | None:
        """Returns the first items with a key as `ReadTx.group`, None if they were not read."""
        group, most = self.groups.get(key, ([], 0))
        # A group with fewer items than were asked for is complete.
        return group[:limit] if limit <= most or len(group) < most else None

    def note_group(self, key: GroupKey, group: list[tuple[int, str]], limit: int) -> None:
        """Stores the items with a key, of which at most `limit` were read."""
        if limit > self.groups.get(key, ([], 0))[1]:
            self.is_filled = True
            self.groups[key] = group, limit
