"""The cloud of rssCloud: takes registrations of workstations, and notifies them of the changes of feeds (RSS-019 to
RSS-028; A-129 to A-137).

Each registration is a consumer of its feed. A notification has no content, so one of them tells of all changes before
it, and its mark moves behind the newest change.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import Final

import structlog

from smartfeeds.core.backoff import StepPauses
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.ip_addresses import network_of, plain_address
from smartfeeds.core.limits import Rate, TokenBuckets
from smartfeeds.core.model import Mark, Node, NodeState
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
from smartfeeds.delivery.slices import items_after, mark_at
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.cloud_messages import own_cloud, refusal_in, write_notification
from smartfeeds.features.callbacks.cloud_protocol import (
    LIFE_S,
    CloudCallback,
    CloudProtocol,
    CloudRequest,
    CloudRequestError,
    challenge_url,
    load_terms,
    read_callback,
)
from smartfeeds.features.callbacks.consumers import CallbackConsumers
from smartfeeds.features.callbacks.last_deliveries import DeliveryResults
from smartfeeds.features.callbacks.metrics import CallbackReading
from smartfeeds.features.callbacks.registration import Callback, host_of, number_of
from smartfeeds.features.callbacks.registrations import NOBODY, check_reader, remove_registration
from smartfeeds.features.callbacks.targets import TargetRates
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.callbacks.topics import Topic, TopicError, read_document_address
from smartfeeds.features.cloud.requests import (
    CLOUD,
    CloudRegistration,
    check_registration,
    no_feed,
    store_registration,
    topic_of,
    topics_for,
)
from smartfeeds.formats.rss_channel import OwnCloud
from smartfeeds.net.callbacks import TOTAL_S, CallbackAnswer
from smartfeeds.service.context import Context
from smartfeeds.service.pulls import WHOLE, in_view, newest_mark
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.store.base import ReadTx
from smartfeeds.threads import OwnThreads

# A failed notification is repeated after these; the third failure in a row ends the registration.
PAUSES: Final = StepPauses((60.0, 300.0))
MAX_FAILURES: Final = 3
ANSWER_BYTES: Final = 4_096
XML_AT_ONCE: Final = 4  # answers that are read at a time
NEWS_ITEMS: Final = 100  # changes that one read looks at for a view with filters
_MAX_CHALLENGE_BYTES: Final = 1_024

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Notification:
    """A notification that is due, and the position behind what it tells of."""

    callback: Callback
    end: ConsumerPosition


@dataclass(frozen=True, slots=True)
class _News:
    """Whether a view has changed behind a mark, known up to `end`. `more`: changes behind it were not looked at."""

    end: Mark
    changed: bool
    more: bool = False


class CloudServer:
    """The cloud (`delivery.deliverer.Deliverer`). `start` is called once. `own` is what feeds name. `results` is
    closed when all deliveries have ended. The check of a callback may take `check_s` seconds.
    """

    def __init__(self, tools: CallbackTools, *, check_s: float = TOTAL_S) -> None:
        settings = tools.settings
        self.own: OwnCloud = own_cloud(tools.site_url, CloudProtocol(settings.cloud))
        self.results = DeliveryResults(tools.service, tools.now_us)
        self._service = tools.service
        self._client = tools.client
        self._dispatcher = tools.dispatcher
        self._settings = settings
        self._site_url = tools.site_url
        self._check_s = check_s
        self._new_challenge = tools.new_challenge
        self._threads = OwnThreads(XML_AT_ONCE)
        seconds = partial(_seconds, tools.now_us)
        rate = Rate(settings.requests_per_minute / 60, settings.requests_per_minute)
        self._callers = TokenBuckets(rate, clock=seconds)
        # Callers beyond the rate get this many refusals that they can read, and then 429 (RC-039).
        self._refusals = TokenBuckets(rate, clock=seconds)
        self._targets = TargetRates(tools.client, seconds)
        self._consumers = CallbackConsumers(CLOUD, self, PAUSES, tools, _protocol_of)

    # Life.

    async def start(self) -> None:
        """Resumes the notifications of all registrations, from their marks. Raises StoreError."""
        await self._consumers.start()

    def readings(self) -> tuple[CallbackReading, ...]:
        """The registrations by protocol."""
        return self._consumers.readings()

    # Registrations.

    def admit(self, address: str) -> None:
        """Counts a request of a network address.

        Raises CloudRequestError beyond the rate, FeedError(BUSY) far beyond it.
        """
        caller, rate = network_of(address), self._settings.requests_per_minute
        text = f"more than {rate} requests in a minute"
        if self._callers.has(caller):
            self._callers.take(caller)
            return
        if not self._refusals.has(caller):
            raise FeedError(Condition.BUSY, text)
        self._refusals.take(caller)
        raise CloudRequestError(f"{text}; try again in a minute.")

    async def register(self, request: CloudRequest, address: str) -> str:
        """Registers a callback for feeds, or renews it, and returns the text for the caller.

        `address` is the network address of the caller. The callback is checked when all else is right (RC-032).
        Raises CloudRequestError.
        """
        pairs = []
        for url in request.urls:
            try:
                pairs.append((read_document_address(url, self._site_url), url))
            except TopicError:
                raise CloudRequestError(no_feed(url)) from None
        if not request.domain and plain_address(address) is None:
            raise CloudRequestError("the address of the caller is not known; name a domain.")
        host = (request.domain or address).lower()
        registration = CloudRegistration(request.callback(host), host, topics_for(pairs, self._site_url))
        check = partial(check_registration, registration=registration, settings=self._settings)
        await self._service.read(check)
        try:
            async with asyncio.timeout(self._check_s):
                await self._check(registration, request.domain, address)
        except TimeoutError:
            text = f"did not answer within {self._check_s:g} seconds"
            raise CloudRequestError(_check_failed(registration.callback, text)) from None
        # It checks again: others may have taken the room during the check of the callback.
        store = partial(store_registration, registration=registration, settings=self._settings)
        rows = await self._service.write(store)
        for row in rows:
            self._consumers.follow(row)
            # The callback has just answered, so former failures do not count any more.
            self._dispatcher.forgive(row.consumer)
        _log.info("cloud_registered", host=host, feeds=len(rows), protocol=request.protocol.value)
        hours = LIFE_S // 3_600
        return f"Registered. Ask again within {hours} hours, best after {hours - 1}."

    async def _check(self, registration: CloudRegistration, domain: str, address: str) -> None:
        """Checks a callback: one on another host than the caller's by a challenge, any other one by a notification.

        Raises CloudRequestError.
        """
        callback, url = registration.callback, registration.topics[0].url
        if domain and not await self._client.is_address_of(domain, address):
            if not await self._targets.admits(registration.host):
                raise CloudRequestError(f"{registration.host} was asked too often; try again in a minute.")
            challenge = self._new_challenge()
            answer = await self._client.get(challenge_url(callback, url, challenge), max_bytes=_MAX_CHALLENGE_BYTES)
            if answer.succeeded and answer.body != challenge.encode():
                raise CloudRequestError(_check_failed(callback, "the body of the answer is not the challenge"))
            refusal = "" if answer.succeeded else answer.outcome
        else:
            answer, refusal = await self._notify(callback, url)
        if refusal:
            raise CloudRequestError(_check_failed(callback, refusal))

    async def _notify(self, callback: CloudCallback, url: str) -> tuple[CallbackAnswer, str]:
        """The answer to a notification, and why it is a failure, "" for success."""
        message = write_notification(callback, url, f"{self._site_url}/")
        answer = await self._client.post(callback.url, message.body, message.headers, max_bytes=ANSWER_BYTES)
        if not answer.succeeded:
            return answer, answer.outcome
        if callback.protocol is CloudProtocol.HTTP_POST:
            return answer, ""
        return answer, await self._threads(refusal_in, callback.protocol, answer.body)

    # Notifications.

    def host(self, consumer: Consumer) -> str:
        """The host of the callback."""
        return host_of(consumer)

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Notifies a workstation once if its view has changed. Raises StoreError."""
        while True:
            due: _Notification | Gone | Idle | ConsumerPosition = await self._service.read(
                partial(self._read_due, consumer=consumer, position=position)
            )
            if isinstance(due, ConsumerPosition):
                position = due
            elif isinstance(due, Idle):
                return due
            elif isinstance(due, Gone):
                return self._gone(consumer, due)
            else:
                return await self._send(due)

    def _read_due(
        self, tx: ReadTx, context: Context, consumer: Consumer, position: ConsumerPosition
    ) -> _Notification | Gone | Idle | ConsumerPosition | IndexFirst:
        """Returns the next step of a delivery; a position if changes behind it must still be read."""
        callback = callback_rows.callback(tx, number_of(consumer))
        if callback is None or callback.consumer != consumer:
            return Gone("the registration has ended")
        node = tx.node_by_no(callback.node_no)
        if callback.expires_us <= context.now_us or node is None or node.state is not NodeState.LIVE:
            return Gone("the registration has expired, or its feed was deleted")
        topic = topic_of(callback, node)
        order = topic.view.order
        try:
            check_reader(tx, context, node, topic.view, NOBODY)
        except FeedError:
            return Gone("the feed is closed")
        mark = position.marks.get(order) or tx.mark(node.node_no, order, consumer.name)
        if mark is None:
            return Gone("the registration has ended")
        news = _read_news(tx, node, topic, mark)
        if isinstance(news, IndexFirst):
            return news
        end = ConsumerPosition({order: news.end})
        if news.changed:
            return _Notification(callback, end)
        return end if news.more else Idle(end)

    async def _send(self, due: _Notification) -> Outcome:
        row, callback = due.callback, read_callback(due.callback.url)
        began_s = perf_counter()
        answer, refusal = await self._notify(callback, load_terms(row.settings).url)
        self.results.note(row, answer, began_s, refusal)
        if not refusal:
            return Delivered(due.end)
        failure = self._dispatcher.failure(row.consumer)
        failures = 1 if failure is None else failure.count + 1
        is_gone = answer.status == HTTPStatus.GONE and callback.protocol is CloudProtocol.HTTP_POST
        if failures < MAX_FAILURES and not is_gone:
            return RetryAfter(refusal)
        _log.info("cloud_registration_dropped", host=row.host, registration=row.callback_no, reason=refusal)
        await self._service.write(lambda tx, _context: remove_registration(tx, row))
        return self._gone(row.consumer, Gone(refusal, removed=True))

    def _gone(self, consumer: Consumer, outcome: Gone) -> Gone:
        self._consumers.forget(consumer)
        return outcome


def _seconds(clock: Callable[[], int]) -> float:
    return clock() / US_PER_S


def _protocol_of(callback: Callback) -> str:
    return read_callback(callback.url).protocol.value


def _check_failed(callback: CloudCallback, reason: str) -> str:
    """Names the address that was tried, because the caller may be behind a translation of addresses (RD-17)."""
    return f"the check of {callback.url} failed: {reason}."


def _read_news(tx: ReadTx, node: Node, topic: Topic, mark: Mark) -> _News | IndexFirst:
    """Whether a topic has changed behind a mark. In a view without filters each change counts."""
    view = topic.view
    order: Order = view.order
    newest = newest_mark(tx, node, order)
    if newest.key_us <= mark.key_us or not view.filtered:
        return _News(newest, newest.key_us > mark.key_us)
    if (behind := index_first(tx, node, view)) is not None:
        return behind
    changes, more = items_after(tx, node.node_no, WHOLE[order], mark.key_us, NEWS_ITEMS)
    if not changes:
        return _News(newest, changed=False)
    if any(in_view(tx, node, view, item) is not None for item in changes):
        return _News(newest, changed=True)
    return _News(mark_at(tx, node.node_no, order, changes[-1]), changed=False, more=more)
