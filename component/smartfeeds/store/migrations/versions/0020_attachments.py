"""Take attachment nodes out of the lists of nodes, and remove what older versions stored for removed items."""

from smartfeeds.store.migrations import run_script

revision = "0020"
down_revision = "0019"

# Removed items of generic nodes were events. Now they are tombstones, and no reader knows the events.
_SCRIPT = """
UPDATE tally SET value = value - (
    SELECT count(*) FROM node
    WHERE state = 'live' AND listed = 1 AND name GLOB 'urn:xmpp:pubsub-attachments:*'
) WHERE name = 'listed';
UPDATE affiliation SET hidden = (SELECT n.name FROM node n WHERE n.node_no = affiliation.node_no)
WHERE affiliation IN ('member', 'owner', 'publisher') AND node_no IN (
    SELECT node_no FROM node WHERE state = 'live' AND listed = 1 AND name GLOB 'urn:xmpp:pubsub-attachments:*'
);
UPDATE node SET listed = 0 WHERE name GLOB 'urn:xmpp:pubsub-attachments:*';
DELETE FROM event WHERE kind = 'retract';
"""


def upgrade() -> None:
    run_script(_SCRIPT)
