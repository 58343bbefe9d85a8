"""Find the nodes whose items expire, and store the new addresses of deleted nodes."""

from smartfeeds.store.migrations import run_script

revision = "0016"
down_revision = "0015"

# The data of a delete event was the name of the node, which no reader used. Now it is the new address.
_SCRIPT = """
CREATE INDEX node_expiring ON node (node_no)
WHERE state = 'live' AND kind = 'generic' AND instr(options, '"item_expire"') > 0;
CREATE TABLE redirect (
    name TEXT NOT NULL PRIMARY KEY,
    uri TEXT NOT NULL,
    creator TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX redirect_creator ON redirect (creator);
UPDATE event SET data = '' WHERE kind = 'delete';
"""


def upgrade() -> None:
    run_script(_SCRIPT)
