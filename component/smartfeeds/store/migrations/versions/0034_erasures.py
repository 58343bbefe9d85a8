"""Erasures of the data of persons, and the lists of addresses that may or may not use the service."""

from smartfeeds.store.migrations import run_script

revision = "0034"
down_revision = "0033"

_TABLES = """
CREATE TABLE erasure (
    digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    jid TEXT NOT NULL,
    phase TEXT NOT NULL,
    place INTEGER NOT NULL,
    report TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    ended_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX erasure_open ON erasure (jid) WHERE jid <> '';

CREATE TABLE block (
    kind TEXT NOT NULL CHECK (kind IN ('deny', 'allow')),
    name TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE salt (
    salt BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
"""


def upgrade() -> None:
    run_script(_TABLES)
