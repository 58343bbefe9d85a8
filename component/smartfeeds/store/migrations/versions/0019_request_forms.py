"""The number of forms that ask owners about requests to subscribe, for each requester of a node."""

from smartfeeds.store.migrations import run_script

revision = "0019"
down_revision = "0018"

_SCRIPT = """
CREATE TABLE request_form (
    node_no INTEGER NOT NULL REFERENCES node (node_no),
    whom TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    forms INTEGER NOT NULL CHECK (forms > 0),
    PRIMARY KEY (node_no, whom)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_form_since ON request_form (since_us);
"""


def upgrade() -> None:
    run_script(_SCRIPT)
