"""Counts of the nodes and subscriptions of each bare JID, which quotas depend on.

There are as many rows as bare JIDs, so the sweep needs an index of those that it adds up.
"""

from smartfeeds.store.migrations import run_script

revision = "0037"
down_revision = "0036"

_SCRIPT = """
CREATE INDEX tally_scattered ON tally (name, slot) WHERE slot <> 0;

INSERT INTO tally (name, slot, value)
SELECT 'nodes of ' || creator, 0, count(*) FROM node WHERE state = 'live' GROUP BY creator;

INSERT INTO tally (name, slot, value)
SELECT 'subscriptions of ' || bare, 0, count(*) FROM subscription GROUP BY bare;
"""


def upgrade() -> None:
    run_script(_SCRIPT, postgres=_SCRIPT)
