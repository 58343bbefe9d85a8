"""Items that expire (`pubsub#item_expire`): requests never see them, and a background sweep removes them.

A node without requests keeps expired items until the next sweep. A request for a node with expired items removes them
first (`OverdueItems`), so it needs no filter in any of its queries, and all counts are right. Subscribers of the bare
node get no event, as from other servers: they know the time of expiry from the metadata of the node. Followers of views
receive tombstones, because only these prove that nothing else is missing.
"""

from collections.abc import Sequence
from functools import partial

from smartfeeds.core.model import MAX_ITEM_NO, Edge, NodeState, Slice
from smartfeeds.core.view import BARE
from smartfeeds.service.context import Context, OverdueItems, find_overdue
from smartfeeds.service.item_writes import remove_item
from smartfeeds.service.requests import EmptyResult
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.store.base import ReadTx, WriteTx

CHUNK = 150  # items that one transaction removes: some 16 ms, while all other writes wait
NODES = 100  # nodes that one transaction of the sweep looks at


def expire(tx: WriteTx, context: Context, overdue: OverdueItems) -> EmptyResult | MoreSteps[EmptyResult]:
    """Removes the items of a node up to a time, a chunk in each step."""
    return drop_oldest(tx, context, overdue.node_no, overdue.before_us)


def drop_oldest(tx: WriteTx, context: Context, node_no: int, before_us: int) -> EmptyResult | MoreSteps[EmptyResult]:
    """Removes the items up to a key of the modified order without notifications, a chunk in each step."""
    node = tx.lock_no(node_no)
    if node is None or node.state is NodeState.DELETED:
        return EmptyResult()
    items = tx.slice(node_no, Slice(BARE, CHUNK, before=Edge(before_us, MAX_ITEM_NO)))
    if not items:
        return EmptyResult()
    for item in items:
        node = remove_item(tx, context, node, item, notify=False)
    if len(items) < CHUNK:
        return EmptyResult()
    return MoreSteps(partial(drop_oldest, node_no=node_no, before_us=before_us))


def due_expiry(tx: ReadTx, context: Context, after: int) -> tuple[Sequence[WriteStep[EmptyResult]], int | None]:
    """Returns the steps for expired items among the next nodes behind a number, and the number behind
    which the search continues."""
    nodes = tx.expiring(after, NODES)
    overdue = [items for node in nodes if (items := find_overdue(tx, context, node)) is not None]
    return [partial(expire, overdue=items) for items in overdue], nodes[-1].node_no if len(nodes) == NODES else None
