"""Subscriptions have leases, and owners find the requests to subscribe that wait."""

from smartfeeds.store.migrations import run_script

revision = "0015"
down_revision = "0014"

_SCRIPT = """
ALTER TABLE subscription ADD COLUMN expires_us INTEGER;
CREATE INDEX subscription_pending ON subscription (node_no, sub_no) WHERE state = 'pending';
CREATE INDEX subscription_lease ON subscription (expires_us) WHERE expires_us IS NOT NULL;
"""


def upgrade() -> None:
    run_script(_SCRIPT)
