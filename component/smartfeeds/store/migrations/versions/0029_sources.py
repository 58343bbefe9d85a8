"""Feeds of other servers that fill nodes, and the pauses of their hosts."""

from smartfeeds.store.migrations import run_script

revision = "0029"
down_revision = "0027"

_TABLES = """
CREATE TABLE source (
    source_no INTEGER PRIMARY KEY AUTOINCREMENT,
    node TEXT NOT NULL,
    first_url TEXT NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    configured INTEGER NOT NULL CHECK (configured IN (0, 1)),
    owner TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('polled', 'waiting', 'slowed', 'stopped', 'paused')),
    reason TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    due_us INTEGER,
    polled_us INTEGER,
    good_us INTEGER,
    settings TEXT NOT NULL,
    progress TEXT NOT NULL,
    UNIQUE (node, first_url)
) STRICT;

CREATE INDEX source_due ON source (due_us, host) WHERE due_us IS NOT NULL;

CREATE INDEX source_url ON source (url);

CREATE INDEX source_owner ON source (owner) WHERE owner <> '';

CREATE TABLE source_host (
    host TEXT NOT NULL PRIMARY KEY,
    until_us INTEGER NOT NULL,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


def upgrade() -> None:
    run_script(_TABLES)
