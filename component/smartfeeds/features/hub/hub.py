"""The WebSub hub: takes requests of subscribers, and delivers the changes of feeds to their callbacks (WebSub;
PubSubHubbub Core 0.3).

Each subscription is a consumer of its feed, so the delivery mechanism has its mark, its turns and its retries.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import Final

import structlog

from smartfeeds.core.backoff import StepPauses
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.ip_addresses import network_of
from smartfeeds.core.limits import Rate, TokenBuckets
from smartfeeds.core.model import Mark, NodeState
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order
from smartfeeds.delivery.deliverer import (
    ConsumerPosition,
    Delivered,
    Gone,
    Idle,
    Outcome,
    RetryAfter,
)
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.consumers import CallbackConsumers
from smartfeeds.features.callbacks.last_deliveries import DeliveryResults
from smartfeeds.features.callbacks.metrics import CallbackReading
from smartfeeds.features.callbacks.registration import Callback, host_of, number_of
from smartfeeds.features.callbacks.registrations import (
    CallbackReader,
    check_reader,
    reader_of,
    remove_registration,
)
from smartfeeds.features.callbacks.signatures import sign
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.callbacks.topics import TopicError, is_below, read_topic
from smartfeeds.features.hub.documents import DocumentDesk, DocumentKey, TopicBatch, key_of_document, read_topic_batch
from smartfeeds.features.hub.protocol import (
    HUB_TERMS,
    HubQuestion,
    HubRequest,
    HubRequestError,
    HubTerms,
    Mode,
    read_request,
)
from smartfeeds.features.hub.questions import HubQuestions
from smartfeeds.features.hub.requests import HUB, QuestionOutcome, deny, store_question, topic_of
from smartfeeds.formats.rss_channel import OwnCloud
from smartfeeds.net.callbacks import CallbackAnswer
from smartfeeds.service.consumers import waiting_items
from smartfeeds.service.context import Context
from smartfeeds.service.pulls import newest_mark
from smartfeeds.store.base import ReadTx, WriteTx

_BACKLOG_PAUSES_S: Final = (5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0)
# After these the backlog is dropped with each failure: an attempt for each new item, at most every five minutes for the
# first hour, then every hour (WS-060).
PAUSES: Final = StepPauses((*_BACKLOG_PAUSES_S, *(300.0,) * 12, 3_600.0))
RETRIES: Final = len(_BACKLOG_PAUSES_S)
BACKLOG_ITEMS: Final = 1_000  # WS-071
BACKLOG_US: Final = 86_400 * US_PER_S  # WS-071
LONGEST_PAUSE_S: Final = 3_600.0  # that a callback may ask for (WS-064)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A delivery that is due: the subscription, its terms, and the document to send."""

    callback: Callback
    terms: HubTerms
    order: Order
    key: DocumentKey


class Hub:
    """The hub (`delivery.deliverer.Deliverer`). `start` is called once. `own_cloud` returns the cloud that documents
    name, None without one. `results` is closed when all deliveries have ended.
    """

    def __init__(self, tools: CallbackTools, own_cloud: Callable[[], OwnCloud | None]) -> None:
        self._service = tools.service
        self._client = tools.client
        self._dispatcher = tools.dispatcher
        self._settings = settings = tools.settings
        self._site_url = tools.site_url
        self._new_id = tools.new_challenge
        self.results = DeliveryResults(tools.service, tools.now_us)
        self.documents = DocumentDesk(self._read_batch, tools.site_url, own_cloud, tools.now_us)
        self.questions = HubQuestions(tools, self._on_active)
        rate = Rate(settings.requests_per_minute / 60, settings.requests_per_minute)
        self._callers = TokenBuckets(rate, clock=lambda: tools.now_us() / US_PER_S)
        self._consumers = CallbackConsumers(HUB, self, PAUSES, tools, _dialect_of)

    # Life.

    async def start(self) -> None:
        """Resumes the deliveries of all subscriptions, from their marks. Raises StoreError."""
        await self._consumers.start()

    async def run(self) -> None:
        """Asks questions for ever."""
        await self.questions.run()

    def readings(self) -> tuple[CallbackReading, ...]:
        """The active subscriptions by dialect."""
        return self._consumers.readings()

    def _on_active(self, callback: Callback) -> None:
        self._consumers.follow(callback)
        # A callback that has just confirmed its subscription can be reached.
        self._dispatcher.hurry(callback.consumer)

    # Requests.

    async def request(self, body: bytes, feed: str, reader: CallbackReader, address: str) -> HTTPStatus:
        """Serves the request of a subscriber, and returns the status of a success.

        `feed` is the name in the address of the hub, "" for the hub of all feeds. `address` is the network address of
        the caller. Raises FeedError, whose text is for the caller.
        """
        caller = network_of(address)
        if not self._callers.has(caller):
            raise FeedError(Condition.BUSY, f"more than {self._settings.requests_per_minute} requests in a minute")
        self._callers.take(caller)
        try:
            request = read_request(body)
        except HubRequestError as error:
            raise FeedError(Condition.BAD_REQUEST, str(error)) from None
        callback = await self._store(request, feed, reader)
        if not request.at_once:
            self.questions.wake()
            return HTTPStatus.ACCEPTED
        return HTTPStatus.NO_CONTENT if callback is None else await self._ask_now(callback)

    async def _store(self, request: HubRequest, feed: str, reader: CallbackReader) -> Callback | None:
        site_url, settings = self._site_url, self._settings
        if is_below(request.callback, site_url):
            raise FeedError(Condition.BAD_REQUEST, "hub.callback is an address of this service")
        try:
            topic = read_topic(request.topic, site_url)
        except TopicError as error:
            raise FeedError(Condition.BAD_REQUEST, f"hub.topic {error}") from None
        if feed and feed != topic.name:
            raise FeedError(Condition.BAD_REQUEST, "hub.topic is another feed than that of this hub")
        question = HubQuestion(
            request.mode,
            self._new_id(),
            HubTerms(topic.suffix, topic.query, request.dialect, request.secret),
            settings.lease_s(request.lease_s) if request.mode is Mode.SUBSCRIBE else 0,
            request.verify_token,
            reader.jid,
            reader.token_id,
        )
        return await self._service.write(
            partial(
                store_question,
                url=request.callback,
                topic_text=request.topic,
                topic=topic,
                question=question,
                settings=settings,
                scheduled=not request.at_once,
            ),
            turn=f"hub {feed}",
        )

    async def _ask_now(self, callback: Callback) -> HTTPStatus:
        outcome = await self.questions.ask_now(callback)
        if outcome.verdict is QuestionOutcome.PASSED:
            return HTTPStatus.NO_CONTENT
        condition = Condition.UNAVAILABLE if outcome.verdict is QuestionOutcome.SILENT else Condition.BAD_REQUEST
        raise FeedError(condition, f"the subscription was not confirmed: {outcome.reason}")

    # Deliveries.

    def host(self, consumer: Consumer) -> str:
        """The host of the callback."""
        return host_of(consumer)

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends the next document. Raises StoreError."""
        while True:
            due: _Delivery | Gone | str = await self._service.read(
                partial(self._read_due, consumer=consumer, position=position)
            )
            if isinstance(due, Gone):
                self._consumers.forget(consumer)
                return due
            if isinstance(due, str):
                return await self._deny(consumer, due)
            document = await self.documents.document(due.key)
            if document is None:
                return await self._deny(consumer, "the feed was deleted")
            end = ConsumerPosition({due.order: document.end})
            if document.body:
                return await self._send(due, document.body, document.media_type, document.links, end, document.more)
            if not document.more:
                return Idle(end)
            # None of these changes is in the view. A write of the mark would only cost.
            position = end

    def _read_due(
        self, tx: ReadTx, context: Context, consumer: Consumer, position: ConsumerPosition
    ) -> _Delivery | Gone | str:
        """Returns the next delivery, or the reason for which the subscription ends: a text if the subscriber is
        informed."""
        callback = callback_rows.callback(tx, number_of(consumer))
        if callback is None or not callback.active or callback.consumer != consumer:
            return Gone("the subscription has ended")
        if callback.expires_us <= context.now_us:
            return Gone("the lease has ended")
        node = tx.node_by_no(callback.node_no)
        if node is None or node.state is not NodeState.LIVE:
            return "the feed was deleted"
        topic = topic_of(callback, node)
        order = topic.view.order
        try:
            check_reader(tx, context, node, topic.view, reader_of(callback))
        except FeedError as error:
            return error.text or "the feed is closed to you"
        mark = position.marks.get(order) or tx.mark(node.node_no, order, consumer.name)
        if mark is None:
            return Gone("the subscription has ended")
        return _Delivery(callback, HUB_TERMS.read(callback.settings), order, key_of_document(node, topic, mark))

    async def _read_batch(self, key: DocumentKey) -> TopicBatch | None:
        return await self._service.read(partial(read_topic_batch, key=key))

    async def _deny(self, consumer: Consumer, reason: str) -> Gone:
        number = number_of(consumer)
        self._consumers.forget(consumer)

        def end(tx: WriteTx, context: Context) -> None:
            callback = callback_rows.callback(tx, number)
            if callback is not None and callback.active:
                deny(tx, context, callback, reason)

        await self._service.write(end)
        self.questions.wake()
        return Gone(reason, removed=True)

    async def _send(
        self, due: _Delivery, body: bytes, media_type: str, links: str, end: ConsumerPosition, more: bool
    ) -> Outcome:
        headers = {"Content-Type": media_type, "Link": links}
        if due.terms.secret:
            method = self._settings.signature or due.terms.dialect.method
            headers["X-Hub-Signature"] = sign(method, due.terms.secret, body)
        began_s = perf_counter()
        answer = await self._client.post(due.callback.url, body, headers)
        self.results.note(due.callback, answer, began_s)
        if answer.succeeded:
            return Delivered(end, more)
        if answer.status == HTTPStatus.GONE:
            self._consumers.forget(due.callback.consumer)
            await self._service.write(lambda tx, _context: remove_registration(tx, due.callback))
            return Gone("the callback answered 410", removed=True)
        return await self._failed(due, answer)

    async def _failed(self, due: _Delivery, answer: CallbackAnswer) -> RetryAfter:
        """Plans another attempt. A backlog that has failed too often, or is too long or too old, is dropped (A-30)."""
        consumer = due.callback.consumer
        failure = self._dispatcher.failure(consumer)
        failures = 1 if failure is None else failure.count + 1
        pause_s = None
        if answer.retry_after_s is not None and answer.status in (429, 503):
            pause_s = min(max(PAUSES.pause_s(failures, 0.0), answer.retry_after_s), LONGEST_PAUSE_S)
        newest = await self._service.read(partial(_newest_if_old, due=due, tired=failures > RETRIES))
        if newest is None:
            return RetryAfter(answer.outcome, pause_s)
        # A dead callback fails again and again: operators read once that it receives nothing any more.
        log = _log.warning if failures <= RETRIES + 1 else _log.debug
        log("backlog_dropped", consumer=consumer.name, node_no=consumer.node_no, failures=failures)
        return RetryAfter(answer.outcome, pause_s, ConsumerPosition({due.order: newest}))


def _dialect_of(callback: Callback) -> str:
    return HUB_TERMS.read(callback.settings).dialect.value


def _newest_if_old(tx: ReadTx, context: Context, due: _Delivery, *, tired: bool) -> Mark | None:
    """The mark behind everything if the backlog of a subscription is to be dropped, else None."""
    node = tx.node_by_no(due.key.node_no)
    if node is None:
        return None
    if not tired:
        count, oldest_us = waiting_items(tx, node.node_no, due.order, due.key.mark)
        tired = count > BACKLOG_ITEMS or (oldest_us is not None and oldest_us <= context.now_us - BACKLOG_US)
    return newest_mark(tx, node, due.order) if tired else None
