"""The filter index remembers the versions that items have had; it is made anew from the items that there are.

Of the versions that items had before, nothing is known: an item that left a view before the upgrade is not shown there.
"""

from smartfeeds.store.migrations import run_script

revision = "0008"
down_revision = "0007"

_SCRIPT = """
DROP TABLE facet;
CREATE TABLE facet (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    facet BLOB NOT NULL,
    modified_us INTEGER NOT NULL,
    item_no INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    states INTEGER NOT NULL CHECK (states > 0),
    PRIMARY KEY (node_no, facet, modified_us, item_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX facet_created ON facet (node_no, facet, created_us, item_no);
CREATE INDEX facet_item ON facet (node_no, item_no, states);
DROP TABLE word;
CREATE VIRTUAL TABLE word USING fts5 (tokens, tokenize = 'ascii', detail = 'none', columnsize = 0);
-- -2^63: before every item.
UPDATE node SET indexed_us = -9223372036854775808, indexed_no = 0, stale = (total > 0);
"""


def upgrade() -> None:
    run_script(_SCRIPT)
