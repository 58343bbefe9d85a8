"""The batch that was last sent to each consumer that must repeat it unchanged after a crash."""

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE batch (
            node_no INTEGER NOT NULL REFERENCES node (node_no),
            consumer TEXT NOT NULL,
            end_us INTEGER NOT NULL,
            joined INTEGER NOT NULL CHECK (joined IN (0, 1)),
            PRIMARY KEY (node_no, consumer)
        ) STRICT, WITHOUT ROWID
        """
    )
