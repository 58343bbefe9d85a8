"""Every consumer of a feed has marks and failures of its own; the marks that exist belong to the XMPP notifications."""

from alembic import op

revision = "0010"
down_revision = "0009"

_STATEMENTS = (
    """
    ALTER TABLE mark RENAME TO former_mark
    """,
    """
    CREATE TABLE mark (
        node_no INTEGER NOT NULL REFERENCES node (node_no),
        ord TEXT NOT NULL CHECK (ord IN ('modified', 'created')),
        consumer TEXT NOT NULL,
        key_us INTEGER NOT NULL,
        cursor TEXT NOT NULL,
        PRIMARY KEY (node_no, ord, consumer)
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO mark (node_no, ord, consumer, key_us, cursor)
    SELECT node_no, ord, 'push', key_us, cursor FROM former_mark
    """,
    """
    DROP TABLE former_mark
    """,
    """
    CREATE TABLE failure (
        node_no INTEGER NOT NULL REFERENCES node (node_no),
        consumer TEXT NOT NULL,
        failures INTEGER NOT NULL CHECK (failures > 0),
        since_us INTEGER NOT NULL,
        next_us INTEGER,
        error TEXT NOT NULL,
        PRIMARY KEY (node_no, consumer)
    ) STRICT, WITHOUT ROWID
    """,
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
