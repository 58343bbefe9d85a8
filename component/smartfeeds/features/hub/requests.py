"""Subscriptions of the hub: requests, checks of intent, leases and denials (WebSub sections 5.1 to 5.3).

A subscription is a registration of a callback. A request is stored as the question of the registration. It changes
nothing else before the subscriber has confirmed it, so a failed check leaves a running subscription as it was (WS-036).
"""

from dataclasses import dataclass, replace
from enum import Enum

from smartfeeds.core.consumers import Failure, failure_of
from smartfeeds.core.model import Node, NodeState
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback, CallbackKind, SubscriptionPhase
from smartfeeds.features.callbacks.registrations import (
    PENDING_US,
    CallbackReader,
    check_limits,
    locate_topic,
    remove_registration,
)
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.topics import Topic
from smartfeeds.features.hub.protocol import (
    HUB_QUESTION,
    HUB_TERMS,
    HubQuestion,
    Mode,
    host_of_callback,
)
from smartfeeds.service.consumers import add_consumer, waiting_items
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx


def _check(callback: Callback) -> None:
    if callback.active or callback.settings:
        HUB_TERMS.read(callback.settings)
    if callback.question:
        HUB_QUESTION.read(callback.question)


HUB = CallbackKind("hub", _check)
# The pauses before a question without an answer is asked again (WS-037). Then it is given up.
QUESTION_PAUSES_S = (60, 600)
# How long a denial is remembered that cannot be delivered. Ten thousand of one host, five a minute, take 34 hours.
DENIED_US = 2 * 86_400 * US_PER_S


class QuestionOutcome(Enum):
    """The outcome of a question."""

    PASSED = "passed"
    REFUSED = "refused"
    SILENT = "silent"


def topic_of(callback: Callback, node: Node) -> Topic:
    """Returns the topic of a subscription, whatever the name of its feed is now."""
    terms = HUB_TERMS.read(callback.settings)
    return Topic(node.name, terms.suffix, terms.query)


def store_question(
    tx: WriteTx,
    context: Context,
    url: str,
    topic_text: str,
    topic: Topic,
    question: HubQuestion,
    settings: WebhooksSettings,
    *,
    scheduled: bool,
) -> Callback | None:
    """Stores a request of a subscriber in place of an earlier one that is not confirmed yet (WS-042).

    Without `scheduled` the caller asks the question itself. Returns None for the end of a subscription that does not
    exist, which needs no check. Raises FeedError.
    """
    node = locate_topic(tx, context, topic, CallbackReader(question.reader, question.token_id))
    former = callback_rows.callback_for(tx, HUB, url, topic_text)
    if question.mode is Mode.UNSUBSCRIBE and (former is None or not former.active):
        return None
    host = host_of_callback(url)
    if former is None or former.node_no != node.node_no:
        # The feed of the former subscription was deleted, and another one has its name.
        if former is not None:
            remove_registration(tx, former)
        check_limits(tx, HUB, settings, node.node_no, host)
        now_us = context.now_us
        former = Callback(HUB.name, node.node_no, url, topic_text, host, now_us, now_us + PENDING_US)
    due_us = context.now_us if scheduled else None
    return callback_rows.put(tx, replace(former, question=HUB_QUESTION.write(question), due_us=due_us))


def prepare_question(
    tx: WriteTx, context: Context, callback_no: int, text: str, settings: WebhooksSettings
) -> Callback | None:
    """Returns the registration whose question is to be asked now, None if another question has replaced this one.

    A request that cannot be served any more becomes a denial (WS-048).
    """
    callback = callback_rows.callback(tx, callback_no)
    if callback is None or callback.question != text:
        return None
    question = HUB_QUESTION.read(text)
    if question.mode is not Mode.SUBSCRIBE:
        return callback
    terms, node = question.terms, tx.node_by_no(callback.node_no)
    assert terms is not None  # a question to subscribe has them
    try:
        if node is None or node.state is not NodeState.LIVE:
            raise FeedError(Condition.ITEM_NOT_FOUND, "the feed was deleted")
        if not callback.active:
            # This registration has a row already, which the limits count.
            check_limits(tx, HUB, settings, node.node_no, callback.host, others=1)
        topic = Topic(node.name, terms.suffix, terms.query)
        locate_topic(tx, context, topic, CallbackReader(question.reader, question.token_id))
    except FeedError as error:
        return deny(tx, context, callback, error.text)
    return callback


def settle_question(
    tx: WriteTx, context: Context, callback_no: int, text: str, verdict: QuestionOutcome, *, again: bool = True
) -> Callback | None:
    """Applies the outcome of a question, unless another question has replaced it meanwhile.

    Without `again` a question without an answer is not repeated. Returns the subscription if it became active or was
    renewed.
    """
    callback = callback_rows.callback(tx, callback_no)
    if callback is None or callback.question != text:
        return None
    question = HUB_QUESTION.read(text)
    if verdict is QuestionOutcome.SILENT and again and question.attempts < len(QUESTION_PAUSES_S):
        due_us = context.now_us + QUESTION_PAUSES_S[question.attempts] * US_PER_S
        callback_rows.put(tx, replace(callback, question=HUB_QUESTION.write(question.failed()), due_us=due_us))
        return None
    if question.mode is Mode.DENIED or (question.mode is Mode.UNSUBSCRIBE and verdict is QuestionOutcome.PASSED):
        remove_registration(tx, callback)
        return None
    if question.mode is Mode.SUBSCRIBE and verdict is QuestionOutcome.PASSED:
        return _activate(tx, context, callback, question)
    if callback.active:
        callback_rows.put(tx, replace(callback, question="", due_us=None))
    else:
        remove_registration(tx, callback)
    return None


def _activate(tx: WriteTx, context: Context, callback: Callback, question: HubQuestion) -> Callback | None:
    """Begins a subscription behind the newest item, or renews it; a renewal keeps the mark (WS-040, WS-041)."""
    node, terms = tx.node_by_no(callback.node_no), question.terms
    assert terms is not None
    if node is None or node.state is not NodeState.LIVE:
        deny(tx, context, callback, "the feed was deleted")
        return None
    callback = replace(
        callback,
        active=True,
        expires_us=context.now_us + question.lease_s * US_PER_S,
        reader=question.reader,
        token_id=question.token_id,
        settings=HUB_TERMS.write(terms),
        question="",
        due_us=None,
    )
    add_consumer(tx, callback.consumer, topic_of(callback, node).view.order)
    return callback_rows.put(tx, callback)


def deny(tx: WriteTx, context: Context, callback: Callback, reason: str) -> Callback:
    """Ends a subscription or a request; the subscriber is told the reason (WS-047). Returns the registration."""
    tx.remove_consumer(callback.consumer)
    question = HUB_QUESTION.write(HubQuestion(Mode.DENIED, reason=reason))
    now_us = context.now_us
    return callback_rows.put(
        tx, replace(callback, active=False, question=question, due_us=now_us, expires_us=now_us + DENIED_US)
    )


def drop_subscription(tx: WriteTx, context: Context, callback_no: int) -> Callback:
    """Ends a subscription for the operator; the running service tells the subscriber.

    Raises FeedError(ITEM_NOT_FOUND).
    """
    callback = callback_rows.callback(tx, callback_no)
    if callback is None or callback.kind != HUB.name:
        raise FeedError(
            Condition.ITEM_NOT_FOUND, f"there is no subscription {callback_no}; smartfeeds hub list shows the numbers"
        )
    return deny(tx, context, callback, "the operator of this service has ended the subscription")


@dataclass(frozen=True, slots=True)
class HubStatus:
    """A subscription for people. `waiting` counts the items that are still to be delivered, `lag_us` is the age of the
    oldest of them. `dialect` and `order` are empty before the subscription is active."""

    callback: Callback
    node: str
    phase: SubscriptionPhase
    dialect: str = ""
    waiting: int = 0
    lag_us: int = 0
    failure: Failure | None = None


def hub_statuses(tx: ReadTx, context: Context, after_no: int, limit: int) -> list[HubStatus]:
    """Returns subscriptions by number."""
    return [_status(tx, context, callback) for callback in callback_rows.callbacks(tx, HUB, after_no, limit)]


def _status(tx: ReadTx, context: Context, callback: Callback) -> HubStatus:
    node = tx.node_by_no(callback.node_no)
    name = "" if node is None else node.name
    if not callback.active or node is None:
        ending = bool(callback.question) and HUB_QUESTION.read(callback.question).mode is Mode.DENIED
        return HubStatus(callback, name, SubscriptionPhase.ENDING if ending else SubscriptionPhase.CHECKING)
    topic = topic_of(callback, node)
    mark = tx.mark(node.node_no, topic.view.order, callback.consumer.name)
    waiting, oldest_us = (0, None) if mark is None else waiting_items(tx, node.node_no, topic.view.order, mark)
    failure = failure_of(tx.wait(callback.consumer))
    return HubStatus(
        callback,
        name,
        SubscriptionPhase.ACTIVE if failure is None else SubscriptionPhase.RETRYING,
        HUB_TERMS.read(callback.settings).dialect.value,
        waiting,
        0 if oldest_us is None else max(1, context.now_us - oldest_us),
        failure,
    )
