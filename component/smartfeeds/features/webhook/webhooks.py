"""The deliverer of webhooks. Each webhook is a consumer of its feed, so the delivery mechanism has its mark, its turns
and its retries.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import Mark, Node, NodeState
from smartfeeds.core.view import Order
from smartfeeds.delivery.deliverer import (
    ConsumerKind,
    ConsumerPosition,
    Delivered,
    Gone,
    Idle,
    Outcome,
    RetryAfter,
    Skip,
)
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.features.webhook.messages import WebhookBatch, headers_of, read_batch, write_message
from smartfeeds.features.webhook.settings import KIND, Webhook
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import CallbackClient
from smartfeeds.service.consumers import add_consumer
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.steps import IndexFirst
from smartfeeds.store.base import ReadTx, WriteTx

ITEMS: Final = 50  # of a message
# A receiver that is down over a weekend loses nothing; one that is dead longer is shown as failing.
GIVE_UP_S: Final = 3 * 86_400.0
# Several webhooks often lead to one small server, such as a relay at home: one slow request holds up one other place.
_HOST_AT_ONCE: Final = 2
_START: Final = Mark(-1, "")  # before all items
_TOO_LARGE: Final = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
_BUSY: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def make_clients(contact: str) -> tuple[CallbackClient, CallbackClient]:
    """Returns the clients for public addresses and for all addresses. `contact` is the address of this service."""
    allowed_by = "allow_private in the section [[webhook]]"
    return CallbackClient(allowed_by=allowed_by, contact=contact), CallbackClient(EVERYWHERE, contact=contact)


class Webhooks:
    """Delivers the changes of feeds to the webhooks of the configuration (`delivery.deliverer.Deliverer`).

    `clients` are those of `make_clients`. `site_url` is the public address of this service.
    """

    def __init__(
        self,
        service: FeedService,
        dispatcher: Dispatcher,
        configured: Sequence[Webhook],
        clients: tuple[CallbackClient, CallbackClient],
        site_url: str,
    ) -> None:
        self._service = service
        self._dispatcher = dispatcher
        self._webhooks: Mapping[str, Webhook] = {webhook.name: webhook for webhook in configured}
        self._public, self._everywhere = clients
        self._site_url = site_url
        self._attached: set[str] = set()  # the webhooks whose node exists
        self._started = False
        dispatcher.register(KIND, ConsumerKind(self, host_at_once=_HOST_AT_ONCE, give_up_s=GIVE_UP_S))

    async def start(self) -> None:
        """Resumes all deliveries from their marks. New webhooks begin behind the newest item. Raises StoreError."""
        await self._dispatcher.resume(KIND)
        await self._attach(None)
        self._started = True

    def wake(self, node_nos: Collection[int]) -> None:
        """The dispatcher serves the consumers of nodes that change; a new node is found by `look`."""

    async def look(self) -> None:
        """Begins with nodes that have been created since: at their first item. Raises StoreError."""
        if self._started:
            await self._attach(_START)

    async def _attach(self, mark: Mark | None) -> None:
        detached = [webhook for name, webhook in self._webhooks.items() if name not in self._attached]
        names = {webhook.node for webhook in detached}
        if not detached or not await self._service.read(
            lambda tx, _context: any(_live(tx.node(name)) for name in names)
        ):
            return

        def add(tx: WriteTx, _context: Context) -> list[tuple[str, Consumer]]:
            pairs = []
            for webhook in detached:
                node = tx.node(webhook.node)
                if node is not None and _live(node):
                    add_consumer(tx, webhook.consumer(node), Order.MODIFIED, mark)
                    pairs.append((webhook.name, webhook.consumer(node)))
            return pairs

        for name, consumer in await self._service.write(add):
            self._attached.add(name)
            self._dispatcher.follow(consumer)

    def host(self, consumer: Consumer) -> str:
        """The host of the address, "" for a webhook of another process (`deliver`)."""
        webhook = self._webhooks.get(consumer.target)
        return "" if webhook is None else webhook.host

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends the next message. Raises StoreError."""
        webhook = self._webhooks.get(consumer.target)
        if webhook is None:
            return RetryAfter(
                "the configuration of this process has no webhook of this name; give all processes the same"
            )
        limit, was_dropped = ITEMS, False
        while True:
            due: _Due | None = await self._service.read(
                partial(_read_due, consumer=consumer, position=position, webhook=webhook, limit=limit)
            )
            if due is None:
                self._attached.discard(webhook.name)
                return Gone("the feed was deleted")
            was_dropped = was_dropped or due.was_dropped
            batch, position = due.batch, ConsumerPosition({Order.MODIFIED: due.batch.end})
            if batch.items:
                outcome = await self._send(webhook, batch, position)
                if not isinstance(outcome, Skip) or limit == 1 or len(batch.items) == 1:
                    return outcome
                # Too large for the receiver. It ends at a limit of one, because items that share a key stay together.
                limit, position = max(1, min(limit, len(batch.items)) // 2), due.position
            elif not batch.more:
                # What has failed waits no more after `webhook drop`.
                return Delivered(position) if was_dropped else Idle(position)

    async def _send(self, webhook: Webhook, batch: WebhookBatch, end: ConsumerPosition) -> Outcome:
        """Sends a message. The outcome is `Skip` if it is too large for the receiver."""
        body = await asyncio.to_thread(write_message, batch, webhook, self._site_url)
        client = self._everywhere if webhook.allow_private else self._public
        answer = await client.post(webhook.url, body, headers_of(body, webhook.secret))
        if answer.succeeded:
            return Delivered(end, batch.more)
        if answer.status == _TOO_LARGE:
            return Skip(end, f"{batch.items[0].id} is too large for the receiver", batch.more)
        return RetryAfter(answer.outcome, answer.retry_after_s if answer.status in _BUSY else None)


def _live(node: Node | None) -> bool:
    return node is not None and node.state is NodeState.LIVE


@dataclass(frozen=True, slots=True)
class _Due:
    """The next changes behind a position. `was_dropped`: `webhook drop` has moved the stored mark."""

    batch: WebhookBatch
    position: ConsumerPosition
    was_dropped: bool


def _read_due(
    tx: ReadTx, context: Context, consumer: Consumer, position: ConsumerPosition, webhook: Webhook, limit: int
) -> _Due | IndexFirst | None:
    """Returns the next changes, None if the feed was deleted."""
    node = tx.node_by_no(consumer.node_no)
    stored = tx.mark(consumer.node_no, Order.MODIFIED, consumer.name)
    if node is None or not _live(node) or stored is None:
        return None
    known = position.marks.get(Order.MODIFIED, stored)
    was_dropped = stored.key_us > known.key_us
    mark = stored if was_dropped else known
    batch = read_batch(tx, context, node, webhook, mark, limit)
    if isinstance(batch, IndexFirst):
        return batch
    return _Due(batch, ConsumerPosition({Order.MODIFIED: mark}), was_dropped)
