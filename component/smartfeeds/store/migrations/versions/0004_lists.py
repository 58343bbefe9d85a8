"""Lists of subscribers and affiliations in pages: an index for the order of each."""

from smartfeeds.store.migrations import run_script

revision = "0004"
down_revision = "0003"

_SCRIPT = """
CREATE INDEX affiliation_held ON affiliation (node_no, affiliation, jid);
CREATE INDEX affiliation_node ON affiliation (jid, node_no);
CREATE INDEX subscription_subscriber ON subscription (node_no, jid) WHERE state = 'subscribed';
"""


def upgrade() -> None:
    run_script(_SCRIPT)
