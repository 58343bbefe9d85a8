"""Enclosures that are loaded in advance, the items that name them, and the log of arrivals."""

from smartfeeds.store.migrations import run_script

revision = "0032"
down_revision = "0031"

_TABLES = """
CREATE TABLE enclosure (
    enclosure_no INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL UNIQUE,
    host TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    media_type TEXT NOT NULL,
    length_bytes INTEGER,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'arrived', 'given-up')),
    reason TEXT NOT NULL,
    dated_us INTEGER NOT NULL,
    since_us INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    tried_us INTEGER NOT NULL,
    asked_us INTEGER,
    total_bytes INTEGER,
    etag TEXT NOT NULL,
    modified TEXT NOT NULL,
    condition TEXT NOT NULL,
    partial_bytes INTEGER NOT NULL,
    night_us INTEGER NOT NULL,
    night_bytes INTEGER NOT NULL
) STRICT;

CREATE INDEX enclosure_queue ON enclosure (condition = '', dated_us) WHERE state = 'waiting';

CREATE INDEX enclosure_asked ON enclosure (asked_us) WHERE asked_us IS NOT NULL;

CREATE INDEX enclosure_arrived ON enclosure (dated_us, length_bytes) WHERE state = 'arrived';

CREATE TABLE enclosure_use (
    enclosure_no INTEGER NOT NULL REFERENCES enclosure (enclosure_no) ON DELETE CASCADE,
    source_no INTEGER NOT NULL REFERENCES source (source_no) ON DELETE CASCADE,
    item_id TEXT NOT NULL,
    node TEXT NOT NULL,
    dated_us INTEGER NOT NULL,
    PRIMARY KEY (enclosure_no, source_no, item_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX enclosure_use_source ON enclosure_use (source_no, dated_us);

CREATE INDEX enclosure_use_node ON enclosure_use (node);

CREATE TABLE arrival (
    arrival_no INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us INTEGER NOT NULL,
    node TEXT NOT NULL,
    item_id TEXT NOT NULL,
    url TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    seconds REAL NOT NULL,
    reason TEXT NOT NULL
) STRICT;

CREATE INDEX arrival_at ON arrival (at_us);
"""


def upgrade() -> None:
    run_script(_TABLES)
