"""Files of feeds, and the items that refer to them."""

from smartfeeds.store.migrations import run_script

revision = "0024"
down_revision = "0023"

_TABLES = """
CREATE TABLE file (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    file_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    owner TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    unused_us INTEGER,
    PRIMARY KEY (node_no, file_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_digest ON file (digest);

CREATE INDEX file_owner ON file (owner, size_bytes);

CREATE INDEX file_unused ON file (unused_us) WHERE unused_us IS NOT NULL;

CREATE TABLE file_use (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    item_no INTEGER NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (node_no, item_no, file_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_use_file ON file_use (node_no, file_id);
"""


def upgrade() -> None:
    run_script(_TABLES)
