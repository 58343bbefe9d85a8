"""Sessions of browsers. A session ends with the token that its user signed in with."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE session (
            session_id TEXT NOT NULL PRIMARY KEY,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            jid TEXT NOT NULL,
            scope TEXT NOT NULL CHECK (scope IN ('read', 'publish', 'admin')),
            feed TEXT NOT NULL,
            token_id TEXT NOT NULL,
            label TEXT NOT NULL,
            created_us INTEGER NOT NULL,
            seen_us INTEGER NOT NULL,
            expires_us INTEGER NOT NULL,
            limit_us INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
        """
    )
    op.execute("CREATE INDEX session_jid ON session (jid, seen_us)")
    op.execute("CREATE INDEX session_token ON session (token_id)")
    op.execute("CREATE INDEX session_end ON session (expires_us)")
