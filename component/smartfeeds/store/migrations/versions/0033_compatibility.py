"""The oldest schema whose programs can work with the database."""

from smartfeeds.store.migrations import run_script

revision = "0033"
down_revision = "0032"

_TABLE = """
CREATE TABLE compatibility (
    oldest TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
"""


def upgrade() -> None:
    """Creates the table; `migrations.run` writes its row."""
    run_script(_TABLE)
