"""The hooks of sources in the use cases of the kernel: the feeds that fill a node, its removal, and data of persons
(`service.context`)."""

from collections.abc import Iterator, Mapping

from smartfeeds.core.model import Node
from smartfeeds.core.person import Person
from smartfeeds.features.polling import rows
from smartfeeds.service.context import Context, Hooks, Origin, Personal
from smartfeeds.service.personal import NODE, OWN, TEXT, PersonalTable
from smartfeeds.store.base import ReadTx, WriteTx


def _remove_sources(tx: WriteTx, _context: Context, node: Node) -> None:
    """Removes the sources of a removed node: their next poll would create it again."""
    for source in rows.sources_of(tx, node.name):
        rows.remove(tx, source.source_no)


def _origins(tx: ReadTx, node: str) -> Iterator[Origin]:
    """The sources of a node. Their items have ids of their own (`source_items`)."""
    for source in rows.sources_of(tx, node):
        yield Origin(
            source.url,
            source.progress.title,
            source.first_url,
            visible=not source.settings.user,
            listed=source.is_listed,
            quiet_us=source.progress.quiet_us,
            fails=source.is_failing,
        )


def _erase(tx: WriteTx, _context: Context, person: Person) -> Mapping[str, int]:
    """Removes the sources that are feeds of the person elsewhere."""
    numbers = rows.named_after(tx, person)
    for source_no in numbers:
        rows.remove(tx, source_no)
    return {"sources": len(numbers)}


TABLES = (
    PersonalTable(
        "source",
        "source_no",
        {
            "node": NODE,
            "first_url": OWN,
            "url": OWN,
            "owner": TEXT,
            "reason": TEXT,
            "settings": TEXT,
            "progress": TEXT,
        },
        frozenset({"host", "state"}),
    ),
    PersonalTable("source_entry", "entry_no", {"link": TEXT, "item_id": TEXT}, frozenset({"identity", "digest"})),
    PersonalTable("source_host", others=frozenset({"host"})),
    PersonalTable(
        "source_push",
        "push_no",
        {"reason": TEXT, "url": TEXT, "details": TEXT},
        frozenset({"token", "state", "host"}),
    ),
)
HOOKS = Hooks(node_removed=(_remove_sources,), origins=(_origins,), personal=(Personal(TABLES, erase=_erase),))
