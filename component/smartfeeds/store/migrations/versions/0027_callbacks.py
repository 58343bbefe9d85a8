"""Registrations of callbacks for the changes of a feed."""

from smartfeeds.store.migrations import run_script

revision = "0027"
down_revision = "0026"

_TABLE = """
CREATE TABLE callback (
    callback_no INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('hub', 'cloud')),
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    url TEXT NOT NULL,
    topic TEXT NOT NULL,
    node_no INTEGER NOT NULL,
    host TEXT NOT NULL,
    reader TEXT NOT NULL,
    token_id TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    settings TEXT NOT NULL,
    question TEXT NOT NULL,
    due_us INTEGER,
    tried_us INTEGER,
    result TEXT NOT NULL,
    UNIQUE (kind, url, topic)
) STRICT;

CREATE INDEX callback_node ON callback (node_no, kind);

CREATE INDEX callback_host ON callback (kind, host);

CREATE INDEX callback_due ON callback (kind, due_us) WHERE due_us IS NOT NULL;

CREATE INDEX callback_end ON callback (expires_us);
"""


def upgrade() -> None:
    run_script(_TABLE)
