"""The first schema. The rowid tables and what each column is for: see `store/sqlite.sql`."""

from smartfeeds.store.migrations import run_script

revision = "0001"
down_revision = None

_SCRIPT = """
CREATE TABLE tally (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL CHECK (value >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO tally (name, value) VALUES ('nodes', 0);
CREATE TABLE node (
    node_no INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('feed', 'generic')),
    state TEXT NOT NULL CHECK (state IN ('live', 'deleted')),
    creator TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    options TEXT NOT NULL,
    total INTEGER NOT NULL CHECK (total >= 0),
    live INTEGER NOT NULL CHECK (live BETWEEN 0 AND total),
    last_modified_us INTEGER NOT NULL,
    last_created_us INTEGER NOT NULL,
    audience INTEGER NOT NULL,
    subscribed INTEGER NOT NULL CHECK (subscribed >= 0),
    indexed_us INTEGER NOT NULL,
    indexed_no INTEGER NOT NULL,
    stale INTEGER NOT NULL CHECK (stale IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX node_name ON node (name) WHERE state = 'live';
CREATE INDEX node_creator ON node (creator) WHERE state = 'live';
CREATE INDEX node_deleted ON node (node_no) WHERE state = 'deleted';
CREATE INDEX node_stale ON node (indexed_us, node_no) WHERE stale = 1;
CREATE TABLE item (
    item_no INTEGER PRIMARY KEY AUTOINCREMENT,
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    id TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    modified_us INTEGER NOT NULL,
    change INTEGER NOT NULL CHECK (change BETWEEN 0 AND 2),
    revision INTEGER NOT NULL,
    notify INTEGER NOT NULL CHECK (notify IN (0, 1)),
    total INTEGER NOT NULL,
    live INTEGER NOT NULL,
    publisher TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX item_id ON item (node_no, id);
CREATE INDEX item_modified ON item (node_no, modified_us, item_no, change);
CREATE INDEX item_created ON item (node_no, created_us, item_no, change);
CREATE INDEX item_live ON item (node_no, modified_us, item_no) WHERE change < 2;
CREATE TABLE affiliation (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    jid TEXT NOT NULL,
    affiliation TEXT NOT NULL CHECK (affiliation IN ('owner', 'publisher', 'publish-only', 'member', 'outcast')),
    PRIMARY KEY (node_no, jid)
) STRICT, WITHOUT ROWID;
CREATE INDEX affiliation_jid ON affiliation (jid, node_no);
CREATE TABLE subscription (
    sub_no INTEGER PRIMARY KEY AUTOINCREMENT,
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    jid TEXT NOT NULL,
    bare TEXT NOT NULL,
    view TEXT NOT NULL,
    node_text TEXT NOT NULL,
    service TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('subscribed', 'pending', 'none')),
    since_us INTEGER NOT NULL,
    since_created_us INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    options TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX subscription_jid ON subscription (node_no, jid, view);
CREATE INDEX subscription_no ON subscription (node_no, sub_no);
CREATE INDEX subscription_view ON subscription (node_no, view) WHERE state = 'subscribed';
CREATE INDEX subscription_bare ON subscription (bare, sub_no);
CREATE TABLE event (
    event_no INTEGER PRIMARY KEY AUTOINCREMENT,
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    at_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    recipient TEXT NOT NULL
) STRICT;
CREATE INDEX event_node ON event (node_no, at_us, event_no);
CREATE TABLE mark (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    ord TEXT NOT NULL CHECK (ord IN ('modified', 'created')),
    key_us INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    PRIMARY KEY (node_no, ord)
) STRICT, WITHOUT ROWID;
CREATE TABLE facet (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    facet BLOB NOT NULL,
    modified_us INTEGER NOT NULL,
    item_no INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    PRIMARY KEY (node_no, facet, modified_us, item_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX facet_created ON facet (node_no, facet, created_us, item_no);
CREATE INDEX facet_item ON facet (node_no, item_no);
CREATE VIRTUAL TABLE word USING fts5 (tokens, tokenize = 'ascii', detail = 'none', columnsize = 0);
"""


def upgrade() -> None:
    run_script(_SCRIPT)
