"""The check of `smartfeeds doctor` on the content of items."""

from collections.abc import Iterator
from typing import Final

from smartfeeds.cli.findings import Check, Finding
from smartfeeds.config_store import StoreSettings
from smartfeeds.core.text import counted
from smartfeeds.errors import StoreError
from smartfeeds.store import maintenance
from smartfeeds.store.damage import DamagedItem

NAMED: Final = 10  # damaged items that the finding names
_ITEMS: Final = Check("items")


def check_items(store: StoreSettings) -> Iterator[Finding]:
    """Report the items whose content is damaged, if there are any. Reads all items of a database of this schema."""
    try:
        damaged = _damaged_items(store)
    except StoreError as error:
        yield _ITEMS.fix(str(error))
        return
    if damaged:
        names = ", ".join(f"{each.item} in {each.node}" for each in damaged[:NAMED])
        more = f" and {len(damaged) - NAMED} more" if len(damaged) > NAMED else ""
        yield _ITEMS.fix(
            f"the content of {counted(len(damaged), 'item')} is damaged: {names}{more}",
            "publish or retract these items again, or restore a backup; then check the disk and the memory",
        )


def _damaged_items(store: StoreSettings) -> list[DamagedItem]:
    if not store.is_shared:
        return maintenance.damaged_items(store.path.absolute())
    from smartfeeds.store.postgres_facts import read_damaged

    return read_damaged(store.address)
