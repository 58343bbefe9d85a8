"""Mirrors in SQL (`mirror`)."""

from smartfeeds.features.mirrors.mirror import MIRROR_SETTINGS, MIRROR_STATES, MirrorRow
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.store.engine import Row
from smartfeeds.store.rows import undamaged
from smartfeeds.store.sql_tables import Table

MIRROR = Table("mirror", "name", "configured, settings, state")


def to_mirror(row: Row) -> MirrorRow:
    """A mirror from the columns of MIRROR. Raises one of `rows.DAMAGES`."""
    name, configured, settings, state = row
    return MirrorRow(MIRROR_SETTINGS.read(settings, name=name), bool(configured), MIRROR_STATES.read(state))


def mirror(tx: ReadTx, name: str) -> MirrorRow | None:
    """Returns the mirror with this name."""
    row = tx.db.row(f"{MIRROR.select} WHERE name = ?", (name,))
    return to_mirror(row) if row else None


def mirrors(tx: ReadTx) -> list[MirrorRow]:
    """Returns all mirrors by name. Their number is small."""
    return undamaged(MIRROR, to_mirror, tx.db.rows(f"{MIRROR.select} ORDER BY name"))


def put(tx: WriteTx, row: MirrorRow) -> None:
    """Stores a mirror, or replaces the mirror with its name."""
    values = (row.mirror.name, int(row.configured), MIRROR_SETTINGS.write(row.mirror), MIRROR_STATES.write(row.states))
    tx.change(MIRROR.replace, values)


def remove(tx: WriteTx, name: str) -> None:
    """Removes a mirror. The items that it received remain."""
    tx.change(MIRROR.delete, (name,))
