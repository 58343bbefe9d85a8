"""New versions of items in SQL, and the filter index.

The feed is its own change log (SF-007): the filter index is brought forward in modified order from the items
themselves.

The index remembers the versions that an item has had, because a view must show that an item has left it
(`store.versions`).
"""

from collections.abc import Sequence
from zlib import crc32

from smartfeeds.core.feed_files import MARK
from smartfeeds.core.model import NO_LIMIT, IndexState, Item
from smartfeeds.core.view import ANYTHING, NO_TRAITS, Traits, version_traits
from smartfeeds.errors import StoreError
from smartfeeds.store.engine import Engine, Row
from smartfeeds.store.index_tokens import index_tokens
from smartfeeds.store.indexer import ReadAhead
from smartfeeds.store.rows import NOWHERE, NodeRow, checksum, digest, item_texts, item_values
from smartfeeds.store.sql_files import FileWrites, refers
from smartfeeds.store.sql_items import INDEX_ITEM_BYTES, SELECT_ITEM, ItemReads
from smartfeeds.store.sql_tables import FACET, ITEM
from smartfeeds.store.versions import with_version

# A version that is replaced before the index has read it is read by the write that replaces it. A longer one counts as
# ANYTHING instead: reading 60 KB of HTML takes 20 ms, and somebody who edits such an item again and again would take
# most of the time of the writing connection.
REPLACED_BYTES = 8_192
_INDEX_CHUNK = 500  # items that a step of `index_node` has in memory, and the parameters of its statements

# The tokens of versions, by item_no and number.
Documents = dict[tuple[int, int], frozenset[str]]


class ItemWrites(FileWrites, ItemReads):
    """The part of WriteTx that is about items and the filter index."""

    def __init__(self, db: Engine, indexer: ReadAhead) -> None:
        super().__init__(db)
        self._indexer = indexer
        self._reads_ends = False  # few writes read pages

    def _stored_item(self, node_no: int, item_no: int) -> Item:
        """Returns the stored version of an item. Most callers of `put_item` have read it just before."""
        if self._last_item is not None and self._last_item[0] == node_no and self._last_item[1].item_no == item_no:
            return self._last_item[1]
        item = self._item(node_no, f"{SELECT_ITEM} item_no = ?", (node_no, item_no))
        if item is None:
            raise StoreError(f"node {node_no} has no item number {item_no}")
        return item

    def put_item(self, node_no: int, item: Item, keys: tuple[int, int] | None = None) -> Item:
        """Stores an item: a new item if item_no is 0 (returned with its number), else a new version of the item.

        `keys` are stored as by `set_keys`. The filter index keeps every replaced version of an item, even if it had not
        read that version yet.
        """
        row = self._edit(node_no)
        old: Item | None = None
        live = int(not item.deleted)
        if item.left or item.damaged:
            item = item._replace(left=False, damaged=False)  # derived from an item that was read, and now a new version
        if item.item_no:
            old = self._replace(row, item)
            live -= int(not old.deleted)
        else:
            item = Item(self.db.add(ITEM, (*item_values(item), node_no)), *item[1:])
        node = row.node
        modified_us, created_us = keys or (node.last_modified_us, node.last_created_us)
        row.node = node._replace(
            total=node.total + (old is None),
            live=node.live + live,
            last_modified_us=modified_us,
            last_created_us=created_us,
        )
        # Nearly all new items refer to no file.
        if old is not None or MARK in item.payload or (item.sync and MARK in item.sync):
            self._note_files(node_no, old, item)
        self._unindex_from(row, item)
        # What was looked up ahead and has changed is looked up again.
        ahead = self._ahead
        ahead.groups.clear()  # all of them: the item joins the group of its new key, and leaves that of its former one
        ahead.by_id.pop((node_no, item.id), None)
        ahead.by_sync.pop((node_no, item.sync_id), None)
        if old is not None:
            ahead.by_sync.pop((node_no, old.sync_id), None)
        self._published.add(node_no)
        return item

    def add_items(self, node_no: int, items: Sequence[Item]) -> None:
        """Stores new items in one statement, for imports. No stored item may have their ids or sync ids."""
        if any(map(refers, items)):
            for item in items:
                self.put_item(node_no, item)
            return
        row = self._edit(node_no)
        self._ahead.clear()
        self.db.add_many(ITEM, [(*item_values(item), node_no) for item in items])
        live = row.node.live + sum(not item.deleted for item in items)
        row.node = row.node._replace(total=row.node.total + len(items), live=live)
        for item in items:
            self._unindex_from(row, item)
        self._published.add(node_no)

    def rename_item(self, node_no: int, item_no: int, item_id: str, sync_id: str) -> None:
        """Replaces the ids of an item. Cursors that name the former id degrade to their time (SF-108)."""
        self._edit(node_no)
        self._ahead.clear()
        former_id, publisher, former_sync_id, check = self._texts(item_no)
        # The payload is not read again: if it is damaged, the new checksum must show it, too.
        texts = (item_texts(former_id, publisher, former_sync_id), item_texts(item_id, publisher, sync_id))
        check ^= crc32(texts[0]) ^ crc32(texts[1])
        values = (item_id, sync_id, check, item_no)
        self.db.run("UPDATE item SET id = ?, sync_id = ?, checksum = ? WHERE item_no = ?", values)
        self._last_item = None

    def replace_content(self, item_no: int, payload: bytes, sync: bytes) -> None:
        """Replaces the content of a tombstone without a new key."""
        self._ahead.clear()
        *texts, _ = self._texts(item_no)
        values = (payload, sync, checksum(payload, sync, item_texts(*texts)), item_no)
        self.change("UPDATE item SET payload = ?, sync = ?, checksum = ? WHERE item_no = ?", values)
        self._last_item = None

    def _texts(self, item_no: int) -> Row:
        row = self.db.row("SELECT id, publisher, sync_id, checksum FROM item WHERE item_no = ?", (item_no,))
        assert row is not None  # the caller has read the item in this transaction
        return row

    def forget_versions(self, node_no: int, item: Item) -> None:
        """Replaces what the filter index knows of an item by a version that matches every filter.

        The index must not remember the person, but followers of every view must receive the change.
        """
        self.changes += 1
        self._ahead.wildcards.pop(node_no, None)
        self.db.run("DELETE FROM facet WHERE node_no = ? AND item_no = ?", (node_no, item.item_no))
        self.db.drop_documents([item.item_no])
        self.db.put_documents({(item.item_no, 0): index_tokens(node_no, ANYTHING, {})})
        values = [
            (node_no, digest(name), item.modified_us, item.item_no, item.created_us, 1) for name in ANYTHING.facets
        ]
        self.db.run_many(FACET.insert, values)

    def _replace(self, row: NodeRow, item: Item) -> Item:
        """Stores a new version of an item. Returns the replaced one.

        The filter index reads the replaced version first if it has not done so yet: afterwards nothing would show that
        the item has left a view.
        """
        node_no = row.node.node_no
        old = self._stored_item(node_no, item.item_no)
        if (old.modified_us, old.item_no) > (row.indexed_us, row.indexed_no):
            readable = len(old.payload) <= REPLACED_BYTES or self._indexer.is_ready(old.payload)
            self._index_versions(node_no, [(old, self._version(old) if readable else ANYTHING)])
        self.db.run(ITEM.update, (*item_values(item), item.item_no))
        self._last_item = None
        return old

    @staticmethod
    def _unindex_from(row: NodeRow, item: Item) -> None:
        if row.indexed_no < 0:  # UNREAD, without a call for each publish
            return
        row.stale = True
        # An import has the dates of its source, and sync data may change under the former key: such an item lies in the
        # part that the index has read, which therefore ends before it now.
        if (item.modified_us, item.item_no) <= (row.indexed_us, row.indexed_no):
            row.indexed_us, row.indexed_no = item.modified_us, item.item_no - 1

    def index_some(self, limit: int, *, skip_locked: bool = True) -> int:
        """Adds up to `limit` items to the filter index, oldest change first. Returns their number; 0 means up to date.

        An item above 1 KiB counts as several, because reading it takes as long as reading several. Nodes in which other
        processes write at this moment are left out, unless `skip_locked` is false.
        """
        done = 0
        while done < limit:
            self.settle()
            node_no = self._stalest(self.db.skip_locked if skip_locked else self.db.for_update)
            if node_no is None:
                break
            done += self._index(node_no, limit - done)
        return done

    def begin_index(self, node_no: int) -> bool:
        """Makes the filter index of a node follow its items from now on. Returns whether it did not do so before."""
        row = self._row(node_no)
        if row is None or row.index is not IndexState.UNREAD:
            return False
        row = self._edit(node_no)
        row.indexed_us, row.indexed_no = NOWHERE
        row.stale = row.node.total > 0
        return True

    def index_node(self, node_no: int, limit: int = NO_LIMIT) -> int:
        """Adds up to `limit` items of a node to its filter index, oldest change first. Returns their number.

        `slice`, `count` and `standings` of filtered views require an index that is up to date.
        """
        done = 0
        self.begin_index(node_no)
        while done < limit and self.index_state(node_no) is not IndexState.CURRENT:
            done += self._index(node_no, min(_INDEX_CHUNK, limit - done))
        return done

    def _index(self, node_no: int, limit: int) -> int:
        """Adds the next items of a node to the filter index and returns their number. A large item counts as several
        (`INDEX_ITEM_BYTES`). If the number is below `limit`, the index is up to date.
        """
        row = self._edit(node_no)
        items, more = self._next_unindexed(row, limit)
        self._index_versions(node_no, [(item, self._version(item)) for item in items])
        if items:
            row.indexed_us, row.indexed_no = items[-1].modified_us, items[-1].item_no
        row.stale = more
        return max(len(items), sum([len(item.payload) for item in items]) // INDEX_ITEM_BYTES)

    def _version(self, item: Item) -> Traits:
        content = NO_TRAITS if item.deleted else self._indexer(item.payload)
        return version_traits(content, item.publisher, deleted=item.deleted, revision=item.revision)

    def _index_versions(self, node_no: int, versions: Sequence[tuple[Item, Traits]]) -> None:
        """Makes these versions the present versions of their items in the filter index. The former present versions
        become past ones. No item occurs twice.

        The number of statements does not depend on the number of items, and the rows of the table `facet` are written
        in the order of its primary key: neighbouring rows then share a page of the database.
        """
        if not versions:
            return
        self._ahead.wildcards.pop(node_no, None)
        states_of = self._states_of(node_no, [item.item_no for item, _version in versions])
        documents_of = self.db.documents(list(states_of)) if states_of else {}
        digests: dict[str, bytes] = {}  # most items of a feed share their facets
        rows: list[Row] = []
        changes: Documents = {}
        for item, version in versions:
            item_no = item.item_no
            states, changed = with_version(
                node_no, version, states_of.get(item_no, {}), documents_of.get(item_no, {}), digests
            )
            for key, bits in states.items():
                rows.append((node_no, key, item.modified_us, item_no, item.created_us, bits))
            for number, text in changed.items():
                changes[item_no, number] = text
        if states_of:
            self.db.run_many(
                "DELETE FROM facet WHERE node_no = ? AND item_no = ?", [(node_no, item_no) for item_no in states_of]
            )
        rows.sort()
        self.db.run_many(FACET.insert, rows)
        self.db.put_documents(changes)
