"""Every item of a feed has its sync data beside its payload; what has conflicts is found by an index."""

from smartfeeds.store.migrations import run_script

revision = "0006"
down_revision = "0005"

_SCRIPT = """
ALTER TABLE item ADD COLUMN sync_id TEXT NOT NULL DEFAULT '';
ALTER TABLE item ADD COLUMN conflicts INTEGER NOT NULL DEFAULT 0 CHECK (conflicts >= 0);
ALTER TABLE item ADD COLUMN sync BLOB NOT NULL DEFAULT x'';
CREATE UNIQUE INDEX item_sync ON item (node_no, sync_id) WHERE sync_id <> '';
CREATE INDEX item_conflicts ON item (node_no, item_no) WHERE conflicts > 0;
"""


def upgrade() -> None:
    run_script(_SCRIPT)
