-- From schema 0001, which is that of version 0.1.0, to schema 0037. Version 0.1.0 had no PostgreSQL.

-- Attachment nodes and closed nodes are not listed.
ALTER TABLE node ADD COLUMN listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1));

UPDATE node SET listed = 0
WHERE json_extract(options, '$.access_model[0]') = 'whitelist' OR name GLOB 'urn:xmpp:pubsub-attachments:*';

CREATE INDEX node_listed ON node (listed, name) WHERE state = 'live';

CREATE INDEX node_changed ON node (listed, last_modified_us, name) WHERE state = 'live';

CREATE INDEX node_expiring ON node (node_no)
WHERE state = 'live' AND kind = 'generic' AND instr(options, '"item_expire"') > 0;

-- The filter index of 0.1.0 lacks past versions and languages, and has publishers that are not shown. The service builds the
-- index again in the background: -2^63 is before every item. The past versions of the items are unknown, so an item that left
-- a view before the upgrade is not shown there as a tombstone.
UPDATE node SET indexed_us = -9223372036854775808, indexed_no = 0, stale = (total > 0);

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

-- Items of 0.1.0 have no sync data.
ALTER TABLE item ADD COLUMN sync_id TEXT NOT NULL DEFAULT '';

ALTER TABLE item ADD COLUMN conflicts INTEGER NOT NULL DEFAULT 0 CHECK (conflicts >= 0);

ALTER TABLE item ADD COLUMN sync BLOB NOT NULL DEFAULT x'';

-- An item that is damaged already gets the checksum of its damaged content. `smartfeeds doctor` reports it if its payload is
-- not well-formed XML. The texts are read as bytes, because a text that is not UTF-8 must not end the upgrade.
-- item_checksum is a function of store/migrate.py.
ALTER TABLE item ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

UPDATE item SET checksum =
    item_checksum(payload, sync, CAST(id AS BLOB), CAST(publisher AS BLOB), CAST(sync_id AS BLOB));

CREATE INDEX item_changed ON item (modified_us, item_no, node_no, change) WHERE change < 2;

CREATE UNIQUE INDEX item_sync ON item (node_no, sync_id) WHERE sync_id <> '';

CREATE INDEX item_conflicts ON item (node_no, item_no) WHERE conflicts > 0;

ALTER TABLE affiliation ADD COLUMN hidden TEXT;

UPDATE affiliation SET hidden = n.name FROM node n
WHERE n.node_no = affiliation.node_no AND n.state = 'live' AND n.listed = 0
AND affiliation.affiliation IN ('owner', 'publisher', 'member');

DROP INDEX affiliation_jid;

CREATE INDEX affiliation_hidden ON affiliation (jid, hidden) WHERE hidden IS NOT NULL;

CREATE INDEX affiliation_jid ON affiliation (jid, affiliation, node_no);

CREATE INDEX affiliation_held ON affiliation (node_no, affiliation, jid);

CREATE INDEX affiliation_node ON affiliation (jid, node_no);

ALTER TABLE subscription ADD COLUMN expires_us INTEGER;

CREATE INDEX subscription_subscriber ON subscription (node_no, jid) WHERE state = 'subscribed';

CREATE INDEX subscription_pending ON subscription (node_no, sub_no) WHERE state = 'pending';

CREATE INDEX subscription_lease ON subscription (expires_us) WHERE expires_us IS NOT NULL;

-- Removed items of generic nodes were events. Now they are tombstones, and no program reads the events. The data of the event
-- of a deleted node was the name of the node, which no program read. Now it is the new address.
DELETE FROM event WHERE kind = 'retract';

UPDATE event SET data = '' WHERE kind = 'delete';

-- The marks of 0.1.0 belong to the notifications over XMPP.
ALTER TABLE mark RENAME TO former_mark;

CREATE TABLE mark (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    ord TEXT NOT NULL CHECK (ord IN ('modified', 'created')),
    consumer TEXT NOT NULL,
    key_us INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    behind INTEGER NOT NULL DEFAULT 0 CHECK (behind IN (0, 1)),
    PRIMARY KEY (node_no, ord, consumer)
) STRICT, WITHOUT ROWID;

INSERT INTO mark (node_no, ord, consumer, key_us, cursor, behind)
SELECT node_no, ord, 'push', key_us, cursor, CASE ord
WHEN 'modified' THEN EXISTS (SELECT 1 FROM item i WHERE i.node_no = m.node_no AND i.modified_us > m.key_us)
ELSE EXISTS (SELECT 1 FROM item i WHERE i.node_no = m.node_no AND i.created_us > m.key_us) END
FROM former_mark m;

DROP TABLE former_mark;

CREATE INDEX mark_behind ON mark (behind, node_no, ord, key_us);

DROP TABLE tally;

CREATE TABLE tally (
    name TEXT NOT NULL,
    slot INTEGER NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (name, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX tally_scattered ON tally (name, slot) WHERE slot <> 0;

INSERT INTO tally (name, slot, value)
SELECT 'nodes', 0, count(*) FROM node WHERE state = 'live' UNION ALL
SELECT 'listed', 0, count(*) FROM node WHERE state = 'live' AND listed = 1 UNION ALL
SELECT 'nodes of ' || creator, 0, count(*) FROM node WHERE state = 'live' GROUP BY creator UNION ALL
SELECT 'nodes@' || substr(creator, instr(creator, '@') + 1), 0, count(*) FROM node WHERE state = 'live' GROUP BY 1
UNION ALL
SELECT 'subscriptions of ' || bare, 0, count(*) FROM subscription GROUP BY bare UNION ALL
SELECT 'subscriptions@' || substr(bare, instr(bare, '@') + 1), 0, count(*) FROM subscription GROUP BY 1;

-- The tables that 0.1.0 lacks.

CREATE TABLE compatibility (
    oldest TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE purge (
    node_no INTEGER NOT NULL PRIMARY KEY REFERENCES node (node_no),
    up_to_us INTEGER NOT NULL,
    actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE failure (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    consumer TEXT NOT NULL,
    failures INTEGER NOT NULL CHECK (failures > 0),
    since_us INTEGER NOT NULL,
    next_us INTEGER,
    error TEXT NOT NULL,
    PRIMARY KEY (node_no, consumer)
) STRICT, WITHOUT ROWID;

CREATE TABLE batch (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    consumer TEXT NOT NULL,
    end_us INTEGER NOT NULL,
    joined INTEGER NOT NULL CHECK (joined IN (0, 1)),
    PRIMARY KEY (node_no, consumer)
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    token_id TEXT NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    jid TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'publish', 'admin')),
    feed TEXT NOT NULL,
    label TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX token_jid ON token (jid, created_us);

CREATE TABLE session (
    session_id TEXT NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    jid TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'publish', 'admin')),
    feed TEXT NOT NULL,
    token_id TEXT NOT NULL,
    label TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    seen_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    limit_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX session_jid ON session (jid, seen_us);

CREATE INDEX session_token ON session (token_id);

CREATE INDEX session_end ON session (expires_us);

CREATE TABLE contact (
    address TEXT NOT NULL,
    jid TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'granted', 'refused')),
    PRIMARY KEY (address, jid)
) STRICT, WITHOUT ROWID;

CREATE INDEX contact_jid ON contact (jid);

CREATE TABLE request_form (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    whom TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    forms INTEGER NOT NULL CHECK (forms > 0),
    PRIMARY KEY (node_no, whom)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_form_since ON request_form (since_us);

CREATE TABLE mirror (
    name TEXT NOT NULL PRIMARY KEY,
    configured INTEGER NOT NULL CHECK (configured IN (0, 1)),
    settings TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE redirect (
    name TEXT NOT NULL PRIMARY KEY,
    uri TEXT NOT NULL,
    creator TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX redirect_creator ON redirect (creator);

CREATE TABLE document (
    reader TEXT NOT NULL,
    url TEXT NOT NULL,
    source_url TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (reader, url)
) STRICT;

CREATE TABLE chat (
    jid TEXT NOT NULL PRIMARY KEY,
    room INTEGER NOT NULL CHECK (room IN (0, 1)),
    settings TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX chat_room ON chat (jid) WHERE room = 1;

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

CREATE TABLE source_entry (
    entry_no INTEGER PRIMARY KEY AUTOINCREMENT,
    source_no INTEGER NOT NULL REFERENCES source (source_no) ON DELETE CASCADE,
    identity TEXT NOT NULL,
    link TEXT NOT NULL,
    item_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    presence INTEGER NOT NULL CHECK (presence IN (0, 1, 2))
) STRICT;

CREATE INDEX source_entry_identity ON source_entry (source_no, identity);

CREATE INDEX source_entry_link ON source_entry (source_no, link) WHERE link <> '';

CREATE TABLE source_host (
    host TEXT NOT NULL PRIMARY KEY,
    until_us INTEGER NOT NULL,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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
