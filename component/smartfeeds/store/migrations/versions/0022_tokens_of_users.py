"""An index of bearer tokens by user, because users list their own and each new token is counted."""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.execute("CREATE INDEX token_jid ON token (jid, created_us)")
