"""Files of feeds in SQL (`core.feed_files`). The store itself notes which items refer to them."""

from collections.abc import Collection

from smartfeeds.core.feed_files import FeedFile
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.sql_tables import FILE


def files_bytes(tx: ReadTx, owner: str) -> int:
    """Returns the size of all files of a bare JID, in bytes. The cost grows with their number."""
    return tx.number("SELECT coalesce(sum(size_bytes), 0) FROM file WHERE owner = ?", (owner,))


def unused(tx: ReadTx, before_us: int, limit: int) -> list[FeedFile]:
    """Returns files to which no item has referred since a time before this one, longest unused first."""
    rows = tx.db.rows(f"{FILE.select} WHERE unused_us < ? ORDER BY unused_us LIMIT ?", (before_us, limit))
    return [FeedFile(*row) for row in rows]


def known_digests(tx: ReadTx, digests: Collection[str]) -> set[str]:
    """Returns those of the digests that files of feeds have. One look-up for each."""
    exists = "SELECT 1 FROM file WHERE digest = ? LIMIT 1"
    return {digest for digest in digests if tx.db.row(exists, (digest,))}


def put(tx: WriteTx, file: FeedFile) -> None:
    """Stores a file, or replaces the one with its id."""
    tx.change(FILE.replace, file)


def remove(tx: WriteTx, file: FeedFile) -> None:
    """Removes the row of a file. Items that refer to it stay."""
    tx.change(FILE.delete, (file.node_no, file.file_id))


def owned(tx: ReadTx, jid: str) -> list[FeedFile]:
    """Returns the files of a bare JID."""
    return [FeedFile(*row) for row in tx.db.rows(f"{FILE.select} WHERE owner = ?", (jid,))]


def is_used(tx: ReadTx, file: FeedFile) -> bool:
    """Returns whether an item refers to a file."""
    statement = "SELECT EXISTS (SELECT 1 FROM file_use WHERE node_no = ? AND file_id = ?)"
    return bool(tx.number(statement, (file.node_no, file.file_id)))


def set_owner(tx: WriteTx, file: FeedFile, owner: str) -> None:
    """Replaces the owner of a file."""
    statement = "UPDATE file SET owner = ? WHERE node_no = ? AND file_id = ?"
    tx.change(statement, (owner, file.node_no, file.file_id))
