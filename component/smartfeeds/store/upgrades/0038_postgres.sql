-- From schema 0037 to schema 0038: replies of people without an account, and indexes of sources. Programs of schema 0037 work with it.

-- Replies of people without an account: they wait for approval, or were decided in the last days and have no texts any more.
-- reply_id is made of the token of the form, so a form gives one reply. The network address of the guest is not stored.
CREATE TABLE guest_reply (
    reply_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node_no BIGINT NOT NULL REFERENCES node (node_no),
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'approved', 'refused')),
    name TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    created_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL
);

CREATE INDEX guest_reply_node ON guest_reply (node_no, state, created_us, reply_id);

CREATE INDEX guest_reply_end ON guest_reply (expires_us);

-- All sources of a host, whatever the scheme and the case (features.polling.rows).
CREATE INDEX source_place ON source (replace(lower(url), 'https://', 'http://'));

CREATE INDEX source_first_place ON source (replace(lower(first_url), 'https://', 'http://'));
