"""Subscriptions of sources at hubs and clouds of other servers."""

from smartfeeds.store.migrations import run_script

revision = "0031"
down_revision = "0030"

_TABLES = """
CREATE TABLE source_push (
    push_no INTEGER PRIMARY KEY AUTOINCREMENT,
    source_no INTEGER NOT NULL,
    token TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('planned', 'asked', 'active', 'refused', 'leaving', 'ended')),
    due_us INTEGER,
    created_us INTEGER NOT NULL,
    since_us INTEGER NOT NULL,
    reason TEXT NOT NULL,
    host TEXT NOT NULL,
    url TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;

CREATE INDEX source_push_source ON source_push (source_no);

CREATE INDEX source_push_due ON source_push (due_us, host) WHERE due_us IS NOT NULL;

CREATE INDEX source_push_url ON source_push (url);
"""


def upgrade() -> None:
    run_script(_TABLES)
