"""A checksum of the content of each item, by which damage is found before it is sent.

What is damaged already gets the checksum of what is there; `smartfeeds doctor` finds it if it is not well-formed.
"""

from alembic import op
from sqlalchemy import text

from smartfeeds.store.migrations import run_script
from smartfeeds.store.rows import checksum

revision = "0036"
down_revision = "0035"

_ROWS = 200  # of one step: their payloads are in memory
_COLUMN = "ALTER TABLE item ADD COLUMN checksum {} NOT NULL DEFAULT 0;"


def upgrade() -> None:
    run_script(_COLUMN.format("INTEGER"), postgres=_COLUMN.format("BIGINT"))
    bind, last = op.get_bind(), 0
    select = text("SELECT item_no, payload, sync FROM item WHERE item_no > :last ORDER BY item_no LIMIT :rows")
    update = text("UPDATE item SET checksum = :checksum WHERE item_no = :item_no")
    while rows := bind.execute(select, {"last": last, "rows": _ROWS}).all():
        last = rows[-1][0]
        bind.execute(update, [{"item_no": row[0], "checksum": checksum(bytes(row[1]), bytes(row[2]))} for row in rows])
