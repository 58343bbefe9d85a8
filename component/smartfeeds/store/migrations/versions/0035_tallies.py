"""Counts of the service as sums of rows, so that no writing connection waits for another.

In PostgreSQL the index of marks loses the key, so that marks which move change no index. Payloads that are stored from
now on stay in their rows.
"""

from smartfeeds.store.migrations import run_script

revision = "0035"
down_revision = "0034"

_SQLITE = """
CREATE TEMP TABLE former_tally AS SELECT name, value FROM tally;

DROP TABLE tally;

CREATE TABLE tally (
    name TEXT NOT NULL,
    slot INTEGER NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (name, slot)
) STRICT, WITHOUT ROWID;

INSERT INTO tally (name, slot, value) SELECT name, 0, value FROM former_tally;

DROP TABLE former_tally;
"""

_POSTGRES = """
ALTER TABLE tally ADD COLUMN slot BIGINT NOT NULL DEFAULT 0;

ALTER TABLE tally ALTER COLUMN slot DROP DEFAULT, DROP CONSTRAINT tally_value_check,
    DROP CONSTRAINT tally_pkey, ADD PRIMARY KEY (name, slot);

DROP INDEX mark_behind;

CREATE INDEX mark_behind ON mark (behind, node_no, ord);

ALTER TABLE item ALTER payload SET STORAGE MAIN, ALTER sync SET STORAGE MAIN;

DO $$ BEGIN ALTER TABLE item ALTER payload SET COMPRESSION lz4; EXCEPTION WHEN feature_not_supported THEN NULL; END $$;
"""


def upgrade() -> None:
    run_script(_SQLITE, postgres=_POSTGRES)
