"""Counts of the nodes and subscriptions of each bare JID, which quotas depend on."""

from smartfeeds.store.migrations import run_script

revision = "0037"
down_revision = "0036"

_SCRIPT = """
INSERT INTO tally (name, slot, value)
SELECT 'nodes of ' || creator, 0, count(*) FROM node WHERE state = 'live' GROUP BY creator;

INSERT INTO tally (name, slot, value)
SELECT 'subscriptions of ' || bare, 0, count(*) FROM subscription GROUP BY bare;
"""


def upgrade() -> None:
    run_script(_SCRIPT, postgres=_SCRIPT)
