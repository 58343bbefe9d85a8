"""The hooks of prefetch in other use cases: it notes and holds back the items of sources, names local files in
documents, and erases data of persons (`service.context`)."""

from collections.abc import Mapping, Sequence

from smartfeeds.core.model import Node
from smartfeeds.features.polling.extensions import ImportSteps
from smartfeeds.features.polling.source import Source
from smartfeeds.features.prefetch.enclosures import note_enclosures
from smartfeeds.features.prefetch.held_items import held_items, hold_back
from smartfeeds.features.prefetch.held_release import release_held
from smartfeeds.features.prefetch.local_files import local_files_of
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.service.context import Context, Hooks, Personal
from smartfeeds.service.personal import MENTION, TEXT, PersonalTable
from smartfeeds.store.base import ReadTx, WriteTx

TABLES = (
    PersonalTable(
        "enclosure",
        "enclosure_no",
        {"url": MENTION, "reason": TEXT},
        frozenset({"host", "digest", "media_type", "state", "etag", "modified", "condition"}),
    ),
    PersonalTable("enclosure_use", "enclosure_no, source_no, item_id", {"item_id": MENTION, "node": MENTION}),
    PersonalTable("arrival", "arrival_no", {"node": MENTION, "item_id": MENTION, "url": MENTION, "reason": TEXT}),
)


def _take(
    tx: WriteTx, context: Context, source: Source, node: Node, items: Sequence[ImportedItem]
) -> list[ImportedItem]:
    note_enclosures(tx, context, source, node, items)
    return hold_back(tx, context, source, node, items)


def _held(tx: ReadTx, source_no: int) -> Mapping[str, bytes]:
    return {item_id: held.item.payload for item_id, held in held_items(tx, source_no).items()}


HOOKS = Hooks(
    local_files=(local_files_of,),
    personal=(Personal(TABLES),),
    of_features=(ImportSteps(release_held, _take, _held),),
)
