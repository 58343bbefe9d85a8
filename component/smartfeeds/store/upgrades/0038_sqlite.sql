-- From schema 0037 to schema 0038: replies of people without an account, and indexes of sources. Programs of schema 0037 work with it.

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

-- All sources of a host, whatever the scheme and the case (features.polling.rows).
CREATE INDEX source_place ON source (replace(lower(url), 'https://', 'http://'));

CREATE INDEX source_first_place ON source (replace(lower(first_url), 'https://', 'http://'));
