"""The live nodes and the items of all nodes by their last change, for the river and the list of feeds."""

from alembic import op

revision = "0026"
down_revision = "0024"


def upgrade() -> None:
    op.execute("CREATE INDEX node_changed ON node (listed, last_modified_us, name) WHERE state = 'live'")
    op.execute("CREATE INDEX item_changed ON item (modified_us, item_no, node_no, change) WHERE change < 2")
