"""Every consumer of a feed has marks and failures of its own.

The marks that exist belong to the XMPP notifications. The positions of outgoing mirrors become marks; such a position
is a key and the number of an item, and other items may have the same key, so that the mark begins before the key: the
mirror sends its last item once more, which changes nothing there.
"""

from smartfeeds.store.migrations import run_script

revision = "0010"
down_revision = "0009"

_SCRIPT = """
ALTER TABLE mark RENAME TO former_mark;
CREATE TABLE mark (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    ord TEXT NOT NULL CHECK (ord IN ('modified', 'created')),
    consumer TEXT NOT NULL,
    key_us INTEGER NOT NULL,
    cursor TEXT NOT NULL,
    PRIMARY KEY (node_no, ord, consumer)
) STRICT, WITHOUT ROWID;
INSERT INTO mark (node_no, ord, consumer, key_us, cursor)
SELECT node_no, ord, 'push', key_us, cursor FROM former_mark;
DROP TABLE former_mark;
CREATE TABLE failure (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    consumer TEXT NOT NULL,
    failures INTEGER NOT NULL CHECK (failures > 0),
    since_us INTEGER NOT NULL,
    next_us INTEGER,
    error TEXT NOT NULL,
    PRIMARY KEY (node_no, consumer)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO mark (node_no, ord, consumer, key_us, cursor)
SELECT n.node_no, 'modified', 'mirror:' || json_extract(m.settings, '$.address'), p.key_us - 1, ''
FROM (SELECT name, CAST(json_extract(state, '$.out.position') AS INTEGER) AS key_us FROM mirror) p
JOIN mirror m ON m.name = p.name
JOIN node n ON n.state = 'live' AND n.name = json_extract(m.settings, '$.node')
WHERE json_extract(m.state, '$.out.position') <> '';
UPDATE mirror
SET state = json_set(state, '$.out.position', '', '$.out.failure', '', '$.out.failed_us', NULL)
WHERE json_extract(state, '$.out.position') IS NOT NULL;
"""


def upgrade() -> None:
    run_script(_SCRIPT)
