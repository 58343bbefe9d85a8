"""The list of webhooks, the end of what waits for one, and the end of those that the configuration has no more."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from smartfeeds.core.consumers import RETRY_REQUEST_US, Consumer, ConsumerRow, failure_of
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.view import Order
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.webhook.settings import KIND, Webhook
from smartfeeds.service.consumers import FIRST, ConsumerStatus, status_of, waiting_items
from smartfeeds.service.context import Context
from smartfeeds.service.pulls import newest_mark
from smartfeeds.store.base import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """A webhook, and its consumer; None if its node does not exist, or if the service has not begun with it yet."""

    webhook: Webhook
    consumer: ConsumerStatus | None


def webhook_status(tx: ReadTx, context: Context, webhook: Webhook) -> WebhookStatus:
    """Returns the state of a webhook."""
    node = tx.node(webhook.node)
    consumer = None if node is None else webhook.consumer(node)
    mark = None if consumer is None else tx.mark(consumer.node_no, Order.MODIFIED, consumer.name)
    if consumer is None or mark is None:
        return WebhookStatus(webhook, None)
    return WebhookStatus(
        webhook, status_of(tx, context, ConsumerRow(consumer, Order.MODIFIED, mark, tx.wait(consumer)))
    )


def drop_waiting(tx: WriteTx, _context: Context, webhook: Webhook) -> int:
    """Moves the mark of a webhook behind the newest item, and ends a failure. Returns the number of items that waited.

    Raises FeedError if the service has not begun with the webhook.
    """
    node = tx.node(webhook.node)
    consumer = None if node is None else webhook.consumer(node)
    mark = None if consumer is None else tx.mark(consumer.node_no, Order.MODIFIED, consumer.name)
    if node is None or consumer is None or mark is None:
        raise FeedError(
            Condition.ITEM_NOT_FOUND, f"nothing waits for {webhook.name}: the service has not begun with it"
        )
    count, _ = waiting_items(tx, node.node_no, Order.MODIFIED, mark)
    tx.move_mark(consumer, Order.MODIFIED, newest_mark(tx, node, Order.MODIFIED))
    if (failure := failure_of(tx.wait(consumer))) is not None:
        # A running service looks for such requests, and finds that nothing waits.
        tx.set_wait(consumer, replace(failure, next_us=RETRY_REQUEST_US))
    return count


def former_consumers(tx: ReadTx, _context: Context, webhooks: Collection[Webhook]) -> list[Consumer]:
    """Returns the consumers of webhooks that are not among these, or that had another node."""
    nodes = ((webhook, tx.node(webhook.node)) for webhook in webhooks)
    present = {webhook.consumer(node) for webhook, node in nodes if node is not None}
    consumers = (row.consumer for row in tx.consumers(FIRST, NO_LIMIT))
    return [consumer for consumer in consumers if consumer.kind == KIND and consumer not in present]
