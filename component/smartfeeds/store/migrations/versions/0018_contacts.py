"""The contacts of the service, which are subscribed to its presence."""

from smartfeeds.store.migrations import run_script

revision = "0018"
down_revision = "0017"

_SCRIPT = """
CREATE TABLE contact (
    address TEXT NOT NULL,
    jid TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'granted', 'refused')),
    PRIMARY KEY (address, jid)
) STRICT, WITHOUT ROWID;

CREATE INDEX contact_jid ON contact (jid);
"""


def upgrade() -> None:
    run_script(_SCRIPT)
