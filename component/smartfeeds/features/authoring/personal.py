"""Data of persons in files of feeds (`service.personal`)."""

from collections.abc import Mapping
from typing import Any

from smartfeeds.core.person import Person
from smartfeeds.features.authoring import rows
from smartfeeds.service.context import Context, Hooks, Personal
from smartfeeds.service.personal import OWN, TEXT, PersonalTable
from smartfeeds.store.base import ReadTx, WriteTx


def _erase(tx: WriteTx, context: Context, person: Person) -> Mapping[str, int]:
    """Removes the files of the person that no item uses any more. Other files lose their owner."""
    files = rows.owned(tx, person.jid)
    for file in files:
        if rows.is_used(tx, file):
            rows.set_owner(tx, file, context.policy.domain)
        else:
            rows.remove(tx, file)
    return {"files": len(files)}


def _export(tx: ReadTx, jid: str) -> Mapping[str, Mapping[str, Any]]:
    return {"other.json": {"files": [file._asdict() for file in rows.owned(tx, jid)]}}


TABLES = (
    PersonalTable(
        "file", "node_no, file_id", {"name": TEXT, "owner": OWN}, frozenset({"file_id", "digest", "media_type"})
    ),
    PersonalTable("file_use", others=frozenset({"file_id"})),
)
# After the items: only then is it known which files are still in use.
HOOKS = Hooks(personal=(Personal(TABLES, erase_after_items=_erase, export=_export),))
