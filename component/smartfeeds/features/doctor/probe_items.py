"""The checks of `smartfeeds doctor` on the content of items, and on the rows of other tables."""

from collections.abc import Iterator
from typing import Final

from smartfeeds.app.config_store import StoreSettings
from smartfeeds.app.opening import all_row_readers
from smartfeeds.core.text import counted
from smartfeeds.errors import StoreError
from smartfeeds.features.doctor import maintenance
from smartfeeds.features.doctor.damage import DamagedItem, DamagedRow
from smartfeeds.features.doctor.findings import Check, Finding

NAMED: Final = 10  # damaged items or rows that a finding names
_ITEMS: Final = Check("items")
_ROWS: Final = Check("rows")


def check_items(store: StoreSettings) -> Iterator[Finding]:
    """Report the items and rows that are damaged, if there are any. Reads most of a database of this schema."""
    try:
        items, rows = _read_damage(store)
    except StoreError as error:
        yield _ITEMS.fix(str(error))
        return
    if items:
        names = _first_of([f"{each.item} in {each.node}" for each in items])
        yield _ITEMS.fix(
            f"the content of {counted(len(items), 'item')} is damaged: {names}",
            "publish or retract these items again, or restore a backup; then check the disk and the memory",
        )
    if rows:
        names = _first_of([f"{each.text} of the table {each.table}" for each in rows])
        yield _ROWS.fix(
            f"{counted(len(rows), 'row')} of the database cannot be read: {names}",
            "restore a backup; then check the disk and the memory",
        )


def _first_of(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _read_damage(store: StoreSettings) -> tuple[list[DamagedItem], list[DamagedRow]]:
    if not store.is_shared:
        return maintenance.read_damage(store.path.absolute(), all_row_readers())
    from smartfeeds.features.doctor.postgres_facts import read_damage

    return read_damage(store.address, all_row_readers())
