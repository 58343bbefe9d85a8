"""Store purges that have begun, so that they continue after a restart."""

from smartfeeds.store.migrations import run_script

revision = "0014"
down_revision = "0013"

_SCRIPT = """
CREATE TABLE purge (
    node_no INTEGER NOT NULL PRIMARY KEY REFERENCES node (node_no),
    up_to_us INTEGER NOT NULL,
    actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""


def upgrade() -> None:
    run_script(_SCRIPT)
