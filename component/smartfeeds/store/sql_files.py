"""Files of feeds in SQL, and which items refer to them (`core.feed_files`)."""

from smartfeeds.core.feed_files import MARK, FeedFile, file_ids
from smartfeeds.core.model import Item
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites
from smartfeeds.store.sql_tables import FILE, FILE_USE


class FileReads(NodeReads):
    """The part of ReadTx for files of feeds."""

    def file(self, node_no: int, file_id: str) -> FeedFile | None:
        """Returns the file of a feed with this id."""
        row = self.db.row(f"{FILE.select} WHERE node_no = ? AND file_id = ?", (node_no, file_id))
        return FeedFile(*row) if row else None


class FileWrites(NodeWrites, FileReads):
    """The part of WriteTx for files of feeds."""

    def _note_files(self, node_no: int, old: Item | None, item: Item) -> None:
        """Stores to which files a new version of an item refers: in its payload and in those of its conflicts."""
        if old is not None and refers(old):
            self.db.run(FILE_USE.delete, (node_no, item.item_no))
            unused = (
                "UPDATE file SET unused_us = ? WHERE node_no = ? AND file_id = ? AND NOT EXISTS"
                " (SELECT 1 FROM file_use u WHERE u.node_no = file.node_no AND u.file_id = file.file_id)"
            )
            self.db.run_many(unused, [(item.modified_us, node_no, file_id) for file_id in _references(old)])
        if refers(item):
            own = [file_id for file_id in _references(item) if self.file(node_no, file_id) is not None]
            self.db.run_many(FILE_USE.insert, [(node_no, item.item_no, file_id) for file_id in own])
            used = "UPDATE file SET unused_us = NULL WHERE node_no = ? AND file_id = ?"
            self.db.run_many(used, [(node_no, file_id) for file_id in own])


def refers(item: Item) -> bool:
    """Returns whether an item refers to files."""
    return MARK in item.payload or MARK in (item.sync or b"")


def _references(item: Item) -> list[str]:
    return sorted(file_ids(item.payload) | file_ids(item.sync or b""))
