"""The deliverer of held events: sends a subscriber the items that were published while it was offline or busy.

`push.sender` stores a consumer for each subscription that it begins to hold. When the subscriber returns, this
deliverer continues from the mark. When the subscriber has everything, its notifications come from `push.sender` again.
"""

from collections.abc import Callable
from functools import partial

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Subscription
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order, from_canonical
from smartfeeds.delivery.deliverer import ConsumerPosition, Delivered, Gone, Outcome, StanzaSender, Unreachable
from smartfeeds.errors import LinkError
from smartfeeds.features.presence.states import Availability
from smartfeeds.push.audience import depends_on_presence, presence_recipient
from smartfeeds.push.batch import NodeBatch, read_held_batch
from smartfeeds.push.frames import PushHeaders
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx

# Older changes are not sent. The next PreviousCursor shows the gap, and the subscriber pulls the missing items.
MAX_AGE_S = 30 * 86_400


class HeldSender:
    """Sends the held events of single subscriptions (`delivery.deliverer.Deliverer`)."""

    def __init__(
        self,
        service: FeedService,
        wire: StanzaSender,
        availability: Availability,
        *,
        clock: Callable[[], int],
    ) -> None:
        self._service = service
        self._wire = wire
        self._availability = availability
        self._clock = clock

    def host(self, _consumer: Consumer) -> str:
        """Returns "": all notifications use one link, which has its own back-pressure."""
        return ""

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends one batch if the subscriber can receive events. Raises LinkError, StoreError."""
        if not self._wire.online:
            raise LinkError("the link to the XMPP server is down")
        turn = f"push {consumer.node_no}"
        read = await self._service.read(partial(read_held_batch, consumer=consumer, marks=position.marks), turn=turn)
        if read is None:
            return Gone("the subscription does not wait for events")
        sub, batch = read
        recipient = presence_recipient(sub)
        waits = depends_on_presence(batch.node, sub)
        if waits and self._availability.is_available(sub.jid, recipient.shows) is False:
            return Unreachable(position)
        order = batch.orders[0]
        # Before the mark moves: after a crash a batch comes once more, and none is lost.
        await self._wire.notify(self._frames(batch, sub))
        end = ConsumerPosition({order.order: order.end})
        if order.more:
            return Delivered(end, more=True)
        rejoined = await self._service.write(
            partial(_rejoin, consumer=consumer, sub=sub, key_us=order.end.key_us), turn=turn
        )
        return Gone("the subscriber has everything", removed=True) if rejoined else Delivered(end, more=True)

    def _frames(self, batch: NodeBatch, sub: Subscription) -> list[bytes]:
        recipient = presence_recipient(sub)
        oldest_us = self._clock() - MAX_AGE_S * US_PER_S
        frames: list[bytes] = []
        previous = batch.previous.get(sub.view, "")
        for change in batch.orders[0].changes:
            if sub.view not in change.views or not batch.notifies(sub.view, change):
                continue
            if batch.node.options.deliver_notifications and change.item.modified_us >= oldest_us:
                chain = PushHeaders(batch.total_of(sub.view, change.item), previous, change.cursor)
                frame = batch.frame(change, recipient.group, chain)
                frames.append(frame.head + recipient.part + frame.tail)
            previous = change.cursor
        return frames


def _rejoin(tx: WriteTx, _context: Context, consumer: Consumer, sub: Subscription, key_us: int) -> bool:
    """Ends the hold of a subscription that has received everything up to a key, unless there are newer changes.

    The key becomes the beginning of the subscription, so that `push.sender` neither repeats nor omits a change.
    """
    node, current = tx.lock_no(consumer.node_no), tx.subscription_by_no(sub.sub_no)
    if node is not None and current is not None:
        created = from_canonical(sub.view).order is Order.CREATED
        if (node.last_created_us if created else node.last_modified_us) > key_us:
            return False
        tx.put_subscription(current._replace(since_created_us=key_us) if created else current._replace(since_us=key_us))
    tx.remove_consumer(consumer)
    return True
