"""Publishes the items of sources that were held back (`held_items`; RSS-035, RSS-036)."""

from smartfeeds.core.model import NodeKind
from smartfeeds.features.polling.source import Source, SourceState, held_reader, publisher_of
from smartfeeds.features.prefetch.held_items import held_items, is_waiting
from smartfeeds.service.context import Context
from smartfeeds.service.importing import ImportCounts, import_items
from smartfeeds.store.base import WriteTx


def release_held(tx: WriteTx, context: Context, source: Source) -> ImportCounts:
    """Publishes the held items that have nothing to wait for any more: their enclosures have arrived or were given up,
    the time is over, or the source holds nothing back now. A paused source publishes nothing.
    """
    held = held_items(tx, source.source_no)
    node = tx.node(source.node) if held and source.state is not SourceState.PAUSED else None
    if node is None or node.kind is not NodeKind.FEED:
        return ImportCounts()
    ready = [held_item.item for held_item in held.values() if not is_waiting(tx, context, source, held_item)]
    for item in ready:
        tx.remove_document(held_reader(source.source_no), item.id)
    ready.sort(key=lambda item: context.now_us if item.made_us is None else item.made_us)
    return import_items(tx, context, source.node, publisher_of(source, context.policy.domain), ready)
