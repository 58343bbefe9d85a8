"""A deliverer that posts the changes of a feed to a URL as JSON pages (see "How to add a consumer" in the guide)."""

import time
from urllib.parse import urlsplit

import aiohttp

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.view import SMART, Order
from smartfeeds.delivery.deliverer import ConsumerPosition, Delivered, Gone, Outcome, RetryAfter, Skip
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.slices import read_changes
from smartfeeds.net.limiter import retry_after_s
from smartfeeds.service.consumers import FIRST, add_consumer
from smartfeeds.service.feeds import FeedService

KIND, ITEMS = "webhook", 50


class Webhooks:
    def __init__(self, service: FeedService, session: aiohttp.ClientSession) -> None:
        self._service, self._session = service, session

    def host(self, consumer: Consumer) -> str:
        return urlsplit(consumer.target).netloc

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        changes = await self._service.read(lambda tx, ctx: read_changes(tx, ctx, consumer, position, SMART, ITEMS))
        if changes is None:
            return Gone("the feed was deleted")
        if not changes.items:
            return Delivered(position)
        items = [{"id": item.id, "deleted": item.deleted, "xml": item.payload.decode()} for item in changes.items]
        page = {"feed": changes.node.name, "items": items, "cursor": changes.end.marks[Order.MODIFIED].cursor}
        try:
            async with self._session.post(consumer.target, json=page) as answer:
                status, retry_after = answer.status, answer.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            return RetryAfter(f"the receiver cannot be reached: {error}")
        if status == 410:
            return Gone("the receiver answers 410")
        if status == 413:
            return Skip(changes.end, "the page is too large for the receiver", changes.more)
        if status >= 300:
            return RetryAfter(f"the receiver answers {status}", retry_after_s(retry_after, time.time()))
        return Delivered(changes.end, changes.more)

    async def follow(self, dispatcher: Dispatcher, node_no: int, url: str) -> None:
        consumer = Consumer(node_no, f"{KIND}:{url}")
        await self._service.write(lambda tx, _: add_consumer(tx, consumer, Order.MODIFIED))
        dispatcher.follow(consumer)

    async def start(self, dispatcher: Dispatcher) -> None:
        await dispatcher.resume(KIND)
        for row in await self._service.read(lambda tx, _: tx.consumers(FIRST, NO_LIMIT)):
            if row.consumer.kind == KIND:
                dispatcher.follow(row.consumer)
