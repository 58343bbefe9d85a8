-- The schema for SQLite. A new database is made from this file; an older one is brought here by the scripts in upgrades/
-- (tests/store/test_migrate.py compares the two).

-- The version of the schema, in one row. The name is that of a former library, which version 0.1.0 knows
-- (store/migrate.py).
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

-- The oldest schema whose programs can work with this database, in one row (store/migrate.py).
CREATE TABLE compatibility (
    oldest TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Counts of the whole service that would otherwise have to be counted; `nodes@DOMAIN`, `subscriptions@DOMAIN`
-- and `contacts@DOMAIN` are what the JIDs of a domain have, `nodes of JID` and `subscriptions of JID` what a bare JID has.
-- A count is the sum of its rows, of which one may be negative: each connection to PostgreSQL changes a slot of its own.
CREATE TABLE tally (
    name TEXT NOT NULL,
    slot INTEGER NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (name, slot)
) STRICT, WITHOUT ROWID;

-- The rows that a sweep adds up.
CREATE INDEX tally_scattered ON tally (name, slot) WHERE slot <> 0;

INSERT INTO tally (name, slot, value) VALUES ('nodes', 0, 0), ('listed', 0, 0);

-- total, live and subscribed are kept, never counted. The filter index knows every item whose (modified_us, item_no)
-- is at or below (indexed_us, indexed_no); stale says that there may be items above. listed: core.attachments.is_listed.
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
    stale INTEGER NOT NULL CHECK (stale IN (0, 1)),
    listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX node_name ON node (name) WHERE state = 'live';

CREATE INDEX node_listed ON node (listed, name) WHERE state = 'live';

-- The nodes by their last change, for the river and the list of feeds.
CREATE INDEX node_changed ON node (listed, last_modified_us, name) WHERE state = 'live';

CREATE INDEX node_creator ON node (creator) WHERE state = 'live';

CREATE INDEX node_deleted ON node (node_no) WHERE state = 'deleted';

-- The nodes whose items expire.
CREATE INDEX node_expiring ON node (node_no)
WHERE state = 'live' AND kind = 'generic' AND instr(options, '"item_expire"') > 0;

CREATE INDEX node_stale ON node (indexed_us, node_no) WHERE stale = 1;

-- change: 0 new, 1 edited, 2 deleted. sync_id is empty where the item is shared under its id. Payloads live in the rowid
-- table; the indexes carry what pages skip by.
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
    payload BLOB NOT NULL,
    sync_id TEXT NOT NULL DEFAULT '',
    conflicts INTEGER NOT NULL DEFAULT 0 CHECK (conflicts >= 0),
    sync BLOB NOT NULL DEFAULT x'',
    checksum INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX item_id ON item (node_no, id);

CREATE INDEX item_modified ON item (node_no, modified_us, item_no, change);

CREATE INDEX item_created ON item (node_no, created_us, item_no, change);

CREATE INDEX item_live ON item (node_no, modified_us, item_no) WHERE change < 2;

-- The items of all nodes, for the river.
CREATE INDEX item_changed ON item (modified_us, item_no, node_no, change) WHERE change < 2;

CREATE UNIQUE INDEX item_sync ON item (node_no, sync_id) WHERE sync_id <> '';

CREATE INDEX item_conflicts ON item (node_no, item_no) WHERE conflicts > 0;

-- hidden: the name of a live node that is not listed, for those whom their affiliation lets read it, else NULL.
CREATE TABLE affiliation (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    jid TEXT NOT NULL,
    affiliation TEXT NOT NULL CHECK (affiliation IN ('owner', 'publisher', 'publish-only', 'member', 'outcast')),
    hidden TEXT,
    PRIMARY KEY (node_no, jid)
) STRICT, WITHOUT ROWID;

CREATE INDEX affiliation_hidden ON affiliation (jid, hidden) WHERE hidden IS NOT NULL;

CREATE INDEX affiliation_jid ON affiliation (jid, affiliation, node_no);

CREATE INDEX affiliation_held ON affiliation (node_no, affiliation, jid);

CREATE INDEX affiliation_node ON affiliation (jid, node_no);

-- expires_us: the end of the lease, which is the option `expire` too (core.suboptions); 0 for the value `presence`.
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
    options TEXT NOT NULL,
    expires_us INTEGER
) STRICT;

CREATE UNIQUE INDEX subscription_jid ON subscription (node_no, jid, view);

CREATE INDEX subscription_no ON subscription (node_no, sub_no);

CREATE INDEX subscription_view ON subscription (node_no, view) WHERE state = 'subscribed';

CREATE INDEX subscription_subscriber ON subscription (node_no, jid) WHERE state = 'subscribed';

CREATE INDEX subscription_pending ON subscription (node_no, sub_no) WHERE state = 'pending';

CREATE INDEX subscription_lease ON subscription (expires_us) WHERE expires_us IS NOT NULL;

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

-- Purges that have retracted some of the items up to up_to_us. They continue after a restart.
CREATE TABLE purge (
    node_no INTEGER NOT NULL PRIMARY KEY REFERENCES node (node_no),
    up_to_us INTEGER NOT NULL,
    actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How far each consumer of a feed has come in an order (core.consumers). behind: 1 if the feed has items above key_us; it
-- may remain 1 after such an item was removed. The index has key_us, because SQLite would otherwise prefer the primary key
-- when a publish looks for the marks of its feed that are not behind yet, and read all consumers of the feed.
CREATE TABLE mark (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    ord TEXT NOT NULL CHECK (ord IN ('modified', 'created')),
    consumer TEXT NOT NULL,
    key_us INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    behind INTEGER NOT NULL DEFAULT 0 CHECK (behind IN (0, 1)),
    PRIMARY KEY (node_no, ord, consumer)
) STRICT, WITHOUT ROWID;

CREATE INDEX mark_behind ON mark (behind, node_no, ord, key_us);

-- The consumers whose last delivery failed; next_us is NULL where the service has given up.
CREATE TABLE failure (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    consumer TEXT NOT NULL,
    failures INTEGER NOT NULL CHECK (failures > 0),
    since_us INTEGER NOT NULL,
    next_us INTEGER,
    error TEXT NOT NULL,
    PRIMARY KEY (node_no, consumer)
) STRICT, WITHOUT ROWID;

-- The batch that was last sent to a consumer, so that it can be repeated unchanged (core.consumers).
CREATE TABLE batch (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    consumer TEXT NOT NULL,
    end_us INTEGER NOT NULL,
    joined INTEGER NOT NULL CHECK (joined IN (0, 1)),
    PRIMARY KEY (node_no, consumer)
) STRICT, WITHOUT ROWID;

-- Bearer tokens for HTTP; digest is the SHA-256 of what its bearer knows, expires_us NULL where it never ends.
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

-- Sessions of browsers; digest is the SHA-256 of the secret in the cookie, token_id '' after a sign-in over XMPP
-- (features/accounts/session.py).
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

-- Bare JIDs that are subscribed to the presence of one of our addresses (core.presence).
CREATE TABLE contact (
    address TEXT NOT NULL,
    jid TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'granted', 'refused')),
    PRIMARY KEY (address, jid)
) STRICT, WITHOUT ROWID;

CREATE INDEX contact_jid ON contact (jid);

-- Messages to the owners of a node about each subscriber, as forms to fill in or as notifications. `whom` is the kind of
-- the messages and a bare JID, or the domain of JIDs after "@". They are counted since the first message of the window
-- (service/subscription_states.py).
CREATE TABLE request_form (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    whom TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    forms INTEGER NOT NULL CHECK (forms > 0),
    PRIMARY KEY (node_no, whom)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_form_since ON request_form (since_us);

-- Nodes that are kept in step with a feed elsewhere; settings and state are JSON (core.mirror).
CREATE TABLE mirror (
    name TEXT NOT NULL PRIMARY KEY,
    configured INTEGER NOT NULL CHECK (configured IN (0, 1)),
    settings TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The new addresses of deleted nodes, by the names that they had; creator is the creator of the deleted node.
CREATE TABLE redirect (
    name TEXT NOT NULL PRIMARY KEY,
    uri TEXT NOT NULL,
    creator TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX redirect_creator ON redirect (creator);

-- Documents from the web that `reader` has processed. source_url, after redirects, gave etag and last_modified, which are
-- empty where it gave none; content is what "304 Not Modified" stands for.
CREATE TABLE document (
    reader TEXT NOT NULL,
    url TEXT NOT NULL,
    source_url TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (reader, url)
) STRICT;

-- The persons and rooms that use the chat bot; settings are JSON (core.chat).
CREATE TABLE chat (
    jid TEXT NOT NULL PRIMARY KEY,
    room INTEGER NOT NULL CHECK (room IN (0, 1)),
    settings TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX chat_room ON chat (jid) WHERE room = 1;

-- Registrations of callbacks for the changes of a feed; settings and question are JSON (core.callbacks). A row may outlive
-- its node, until the subscriber was told that the feed is gone. due_us: when the question is asked next.
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

-- Feeds of other servers that fill nodes (core.sources); settings and progress are JSON. The node may not exist yet.
-- due_us: when it is requested next, NULL if it is not.
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

-- All sources of a host, whatever the scheme and the case (features.polling.rows).
CREATE INDEX source_place ON source (replace(lower(url), 'https://', 'http://'));

CREATE INDEX source_first_place ON source (replace(lower(first_url), 'https://', 'http://'));

-- Entries of sources that have or had an item (core.source_entries): digests of their ids, their links, the item, and a
-- digest of their content. presence: 1 if a complete feed lacked it once, 2 if the feed has retracted it.
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

-- Hosts that refused requests of sources as too many: no request before until_us. count: refusals in a row that named no
-- time.
CREATE TABLE source_host (
    host TEXT NOT NULL PRIMARY KEY,
    until_us INTEGER NOT NULL,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Subscriptions of sources at hubs and clouds (core.source_push); details are JSON. token: the last segment of the
-- callback path. The source may be gone: a hub confirms the end of a subscription after that. url: the hub or cloud.
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

-- Enclosures of items that sources have brought (core.enclosures); the bytes are in prefetch.folder, under digest.
-- condition: the validator with which a partial file is continued. night_bytes were loaded in the window that opened at
-- night_us.
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

-- What became of loads of enclosures; reason is empty for files that have arrived.
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

-- Files of feeds; the bytes are in the folder beside the database, under digest (store/file_folder.py). unused_us: since when
-- no item of the feed refers to the file, NULL while one does.
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

-- The files to which the payload or a conflict of an item refers (core.feed_files).
CREATE TABLE file_use (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    item_no INTEGER NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (node_no, item_no, file_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_use_file ON file_use (node_no, file_id);

-- Erasures of the data of persons (core.erasures). digest: salted, of the JID; jid is empty after the end. report is JSON.
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

-- The addresses that may not use the service, and those that only may use it (core.blocklist).
CREATE TABLE block (
    kind TEXT NOT NULL CHECK (kind IN ('deny', 'allow')),
    name TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Replies of people without an account: they wait for approval, or were decided in the last days and have no texts any more.
-- reply_id is made of the token of the form, so a form gives one reply. The network address of the guest is not stored.
CREATE TABLE guest_reply (
    reply_id TEXT NOT NULL PRIMARY KEY,
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'approved', 'refused')),
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    target TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX guest_reply_node ON guest_reply (node_no, state, created_us, reply_id);

CREATE INDEX guest_reply_end ON guest_reply (expires_us);

-- The salt of digests of JIDs: one row, made by the first erasure.
CREATE TABLE salt (
    salt BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- One row for every property that a version of an item has had and a view can ask for, facet being the digest of its text
-- (core.view.facet). Bit n of states: the n-th version before the present one has it; bit 0 is the present version.
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

-- Full text: a document for each version, with its words and facets. rowid is item_no * 32 + the number of the version, the
-- present one being the last. Tokens are plain ASCII (store/sqlite_engine.py), so that FTS5 has nothing to decide.
CREATE VIRTUAL TABLE word USING fts5 (tokens, tokenize = 'ascii', detail = 'none', columnsize = 0);
