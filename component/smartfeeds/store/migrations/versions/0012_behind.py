"""Marks say whether they are behind, so that the look for undelivered items reads no other marks."""

from smartfeeds.store.migrations import run_script

revision = "0012"
down_revision = "0011"

_SCRIPT = """
ALTER TABLE mark ADD COLUMN behind INTEGER NOT NULL DEFAULT 0 CHECK (behind IN (0, 1));
UPDATE mark SET behind = 1 WHERE CASE ord
WHEN 'modified' THEN EXISTS (SELECT 1 FROM item i WHERE i.node_no = mark.node_no AND i.modified_us > mark.key_us)
ELSE EXISTS (SELECT 1 FROM item i WHERE i.node_no = mark.node_no AND i.created_us > mark.key_us) END;
CREATE INDEX mark_behind ON mark (behind, node_no, ord, key_us);
"""


def upgrade() -> None:
    run_script(_SCRIPT)
