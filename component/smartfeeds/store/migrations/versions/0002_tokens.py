"""Bearer tokens for HTTP."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE token (
            token_id TEXT NOT NULL PRIMARY KEY,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            jid TEXT NOT NULL,
            scope TEXT NOT NULL CHECK (scope IN ('read', 'publish', 'admin')),
            feed TEXT NOT NULL,
            label TEXT NOT NULL,
            created_us INTEGER NOT NULL,
            expires_us INTEGER
        ) STRICT, WITHOUT ROWID
        """
    )
