"""The places of items in the outline of a feed (SSE 3.2, SSE-028)."""

from smartfeeds.core.model import Item, Node
from smartfeeds.service.context import Context
from smartfeeds.service.syncing import read_shared, state_of
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.places import Place, with_place


def put_place(tx: WriteTx, context: Context, node: Node, item: Item, place: Place) -> None:
    """Stores the place of an item with its present version: no reader sees a change."""
    shared = read_shared(context, node, item)
    state = state_of(shared, with_place(shared.version, place))
    tx.put_item(node.node_no, item._replace(sync=state.sync))
