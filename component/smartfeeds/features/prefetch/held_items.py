"""Items of sources that are held back until their enclosures have arrived (RSS-035, RSS-036).

The store remembers them as documents of a reader (`ReadTx.documents`), not as items. So no view, count or cursor has
them. `held_release` publishes them: an item gets its key at that moment, so followers miss nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.model import NO_LIMIT, Node
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, KnownDocument
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import Source, held_reader
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import EnclosureState
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.formats.entry import enclosures_of
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.formats.payload import Payload
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx

# A file for which there is never room has no failures, and would wait for ever.
MAX_HELD_US: Final = 7 * 86_400 * US_PER_S


@dataclass(frozen=True, slots=True)
class HeldItem:
    """An item that is held back, and since when. An edit does not change this time."""

    item: ImportedItem
    since_us: int


def held_items(tx: ReadTx, source_no: int) -> dict[str, HeldItem]:
    """The held items of a source by id."""
    documents = tx.documents(held_reader(source_no))
    return {item_id: _load(item_id, document.content) for item_id, document in documents.items()}


def hold_back(
    tx: WriteTx, context: Context, source: Source, node: Node, items: Sequence[ImportedItem]
) -> list[ImportedItem]:
    """Holds back the new items whose enclosures are still to be loaded. Returns the others, which are published now.

    A new version of a held item replaces it. A published item is never held back again.
    """
    held = held_items(tx, source.source_no)
    if not held and not _holds(context, source):
        return list(items)
    published = {item.id for item in tx.items(node.node_no, [item.id for item in items]) if not item.deleted}
    ready: list[ImportedItem] = []
    for item in items:
        former = held.get(item.id)
        new = HeldItem(item, context.now_us if former is None else former.since_us)
        if not item.deleted and item.id not in published and is_waiting(tx, context, source, new):
            tx.put_document(held_reader(source.source_no), item.id, KnownDocument(NO_VALIDATORS, _dump(new)))
        else:
            if former is not None:
                tx.remove_document(held_reader(source.source_no), item.id)
            ready.append(item)
    return ready


def _holds(context: Context, source: Source) -> bool:
    settings = source.settings
    return context.policy.find(PrefetchSettings) is not None and settings.prefetch and settings.prefetch_hold


def is_waiting(tx: ReadTx, context: Context, source: Source, held: HeldItem) -> bool:
    """Whether an item must wait: the source holds items back, not for too long, and an enclosure is still to be loaded
    for it.
    """
    if not _holds(context, source) or context.now_us - held.since_us >= MAX_HELD_US:
        return False
    rows = [
        row
        for link in enclosures_of(held.item.payload)
        if (row := enclosure_rows.enclosure_at(tx, link.href)) is not None
    ]
    return any(
        use.source_no == source.source_no and use.item_id == held.item.id
        for row in rows
        if row.state is EnclosureState.WAITING
        for use in enclosure_rows.uses(tx, row.enclosure_no)
    )


def _dump(held: HeldItem) -> bytes:
    item = held.item
    fields = {"published_us": item.published_us, "updated_us": item.updated_us, "since_us": held.since_us}
    return json.dumps(fields | {"payload": item.payload.decode()}).encode()


def _load(item_id: str, content: bytes) -> HeldItem:
    fields = json.loads(content)
    payload = Payload(fields["payload"].encode())
    return HeldItem(ImportedItem(item_id, fields["published_us"], fields["updated_us"], payload), fields["since_us"])


def document_readers(tx: ReadTx) -> set[str]:
    """Returns the names under which the store has the items that sources hold back."""
    return {held_reader(source.source_no) for source in source_rows.sources(tx, 0, NO_LIMIT)}
