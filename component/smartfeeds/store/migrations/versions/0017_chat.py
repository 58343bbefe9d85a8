"""The persons and rooms that use the chat bot, with their settings."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE chat (
            jid TEXT NOT NULL PRIMARY KEY,
            room INTEGER NOT NULL CHECK (room IN (0, 1)),
            settings TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """
    )
    op.execute("CREATE INDEX chat_room ON chat (jid) WHERE room = 1")
