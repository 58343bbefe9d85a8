"""Nodes that are kept in step with a feed elsewhere."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE mirror (
            name TEXT NOT NULL PRIMARY KEY,
            configured INTEGER NOT NULL CHECK (configured IN (0, 1)),
            settings TEXT NOT NULL,
            state TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
    """)
