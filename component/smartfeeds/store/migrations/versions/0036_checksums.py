"""A checksum of the content of each item, by which damage is found before it is sent.

An item that is damaged already gets a checksum of the damaged content. `smartfeeds doctor` reports it if its payload is
not well-formed XML.
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
    # As bytes: a text that is no UTF-8 must not end the upgrade.
    as_bytes = "convert_to({}, 'UTF8')" if bind.dialect.name == "postgresql" else "CAST({} AS BLOB)"
    texts = ", ".join(as_bytes.format(column) for column in ("id", "publisher", "sync_id"))
    select = text(
        f"SELECT item_no, payload, sync, {texts} FROM item WHERE item_no > :last ORDER BY item_no LIMIT :rows"  # noqa: S608 - constants
    )
    update = text("UPDATE item SET checksum = :checksum WHERE item_no = :item_no")
    while rows := bind.execute(select, {"last": last, "rows": _ROWS}).all():
        last = rows[-1][0]
        values = ((row[0], *map(bytes, row[1:])) for row in rows)
        bind.execute(
            update,
            [
                {"item_no": number, "checksum": checksum(payload, sync, b"\0".join(texts))}
                for number, payload, sync, *texts in values
            ],
        )
