"""Entries of sources that have an item: their ids, links and digests."""

from smartfeeds.store.migrations import run_script

revision = "0030"
down_revision = "0029"

_TABLES = """
CREATE TABLE source_entry (
    entry_no INTEGER PRIMARY KEY AUTOINCREMENT,
    source_no INTEGER NOT NULL REFERENCES source (source_no) ON DELETE CASCADE,
    identity TEXT NOT NULL,
    link TEXT NOT NULL,
    item_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    presence INTEGER NOT NULL CHECK (presence IN (0, 1, 2))
) STRICT;

CREATE INDEX source_entry_identity ON source_entry (source_no, identity);

CREATE INDEX source_entry_link ON source_entry (source_no, link) WHERE link <> '';
"""


def upgrade() -> None:
    run_script(_TABLES)
