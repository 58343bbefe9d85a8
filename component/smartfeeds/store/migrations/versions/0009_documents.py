"""Documents from the web that were processed: after a restart, the next request for each of them is conditional."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE document (
            reader TEXT NOT NULL,
            url TEXT NOT NULL,
            source_url TEXT NOT NULL,
            etag TEXT NOT NULL,
            last_modified TEXT NOT NULL,
            content BLOB NOT NULL,
            PRIMARY KEY (reader, url)
        ) STRICT
        """
    )
