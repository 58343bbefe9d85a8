"""Lists of nodes without a look at those that are hidden; publishers are facets where they are shown alone."""

from smartfeeds.store.migrations import run_script

revision = "0003"
down_revision = "0002"

_SCRIPT = """
ALTER TABLE node ADD COLUMN listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1));
UPDATE node SET listed = 0 WHERE json_extract(options, '$.access_model[0]') = 'whitelist';
CREATE INDEX node_listed ON node (listed, name) WHERE state = 'live';
INSERT INTO tally (name, value) SELECT 'listed', count(*) FROM node WHERE state = 'live' AND listed = 1;
ALTER TABLE affiliation ADD COLUMN hidden TEXT;
UPDATE affiliation SET hidden = n.name FROM node n
WHERE n.node_no = affiliation.node_no AND n.state = 'live' AND n.listed = 0
AND affiliation.affiliation IN ('owner', 'publisher', 'member');
CREATE INDEX affiliation_hidden ON affiliation (jid, hidden) WHERE hidden IS NOT NULL;
DROP INDEX affiliation_jid;
CREATE INDEX affiliation_jid ON affiliation (jid, affiliation, node_no);
UPDATE node SET indexed_us = -9223372036854775808, indexed_no = 0, stale = 1
WHERE json_extract(options, '$.itemreply[0]') = 'none';
"""


def upgrade() -> None:
    run_script(_SCRIPT)
