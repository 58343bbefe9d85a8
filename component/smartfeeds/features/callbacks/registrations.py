"""Registrations of callbacks: their limits, the rights of their subscribers, and their end (`registration`).

The use cases of one protocol are in its module, such as `features/hub/requests.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from smartfeeds.core.jid import ANONYMOUS, parse_jid
from smartfeeds.core.model import Node, NodeKind
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.token import TokenScope, covers, ended
from smartfeeds.core.view import View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.callbacks import rows
from smartfeeds.features.callbacks.registration import Callback, CallbackKind
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.topics import Topic
from smartfeeds.service.context import Context, LocatedNode, access_of, check_admitted
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.store.base import ReadTx, WriteTx

STEP = 200  # registrations that one transaction ends: some 10 ms
# How long a registration that is not active yet is remembered: longer than all attempts of its check together.
PENDING_US = 3_600 * US_PER_S


@dataclass(frozen=True, slots=True)
class CallbackReader:
    """The subscriber whose rights a registration has: a bare JID and its token, or nobody in particular."""

    jid: str = ""
    token_id: str = ""


NOBODY = CallbackReader()
NO_TOPIC = "hub.topic is not a feed of this service, or it is closed to you"


def check_limits(
    tx: ReadTx, kind: CallbackKind, settings: WebhooksSettings, node_no: int, host: str, *, others: int = 0
) -> None:
    """Raises FeedError if there is no room for another registration: BUSY, or UNAVAILABLE for the limit of all.

    So many `others` may be there beside the limit.
    """
    per_feed, per_host = settings.subscriptions_per_feed + others, settings.subscriptions_per_host + others
    if rows.count(tx, kind, node_no=node_no) >= per_feed:
        raise FeedError(Condition.BUSY, f"this feed has {per_feed} subscriptions, which is the limit")
    if rows.count(tx, kind, host=host) >= per_host:
        raise FeedError(Condition.BUSY, f"{host} has {per_host} subscriptions, which is the limit")
    # Measured on 2 cores: this count takes 2.4 to 10 ms at 100,000 rows, each of the two above 0.3 ms at 10,000.
    total = settings.subscriptions + others
    if rows.count(tx, kind) >= total:
        raise FeedError(Condition.UNAVAILABLE, f"this service has {total} subscriptions, which is the limit")


def check_reader(tx: ReadTx, context: Context, node: Node, view: View, reader: CallbackReader) -> None:
    """Raises FeedError if a subscriber may not read a view, or if its token is not valid any more. Raises OverdueItems
    if the node has items that have expired.
    """
    jid = parse_jid(reader.jid) if reader.jid else ANONYMOUS
    assert jid is not None  # the row has the JID of a token or session
    check_admitted(tx, context.policy, jid)
    if reader.token_id:
        token = tx.token(reader.token_id)
        if token is None or ended(token, context.now_us) or not covers(token, TokenScope.READ, node.name):
            raise FeedError(Condition.NOT_AUTHORIZED, "the token was withdrawn or has expired")
    LocatedNode(node, view, access_of(tx, context, node, jid)).check_read()


def locate_topic(tx: ReadTx, context: Context, topic: Topic, reader: CallbackReader) -> Node:
    """Returns the feed of a topic.

    Raises FeedError(BAD_REQUEST) with one text for feeds that do not exist and for those that the subscriber may not
    read, so that it does not learn which feeds exist (WS-007).
    """
    node = tx.node(topic.name)
    if node is None or node.kind is not NodeKind.FEED:
        raise FeedError(Condition.BAD_REQUEST, NO_TOPIC)
    try:
        check_reader(tx, context, node, topic.view, reader)
    except FeedError:
        raise FeedError(Condition.BAD_REQUEST, NO_TOPIC) from None
    return node


def reader_of(callback: Callback) -> CallbackReader:
    """Returns the subscriber of a registration."""
    return CallbackReader(callback.reader, callback.token_id)


def remove_registration(tx: WriteTx, callback: Callback) -> None:
    """Removes a registration with its consumer."""
    tx.remove_consumer(callback.consumer)
    rows.remove(tx, callback.callback_no)


def due_callbacks(tx: ReadTx, context: Context, _after: int) -> tuple[Sequence[WriteStep[None]], None]:
    """Returns `end_callbacks` if a registration has ended. A read costs less than an empty transaction."""
    return ([end_callbacks] if rows.ended(tx, context.now_us, 1) else []), None


def end_callbacks(tx: WriteTx, context: Context) -> MoreSteps[None] | None:
    """Removes the next registrations whose time is over. One with a question to ask only ends its deliveries, because
    its subscriber asked to renew it before the end."""
    callbacks = rows.ended(tx, context.now_us, STEP)
    for callback in callbacks:
        if callback.active and callback.due_us is not None:
            tx.remove_consumer(callback.consumer)
            rows.put(tx, replace(callback, active=False, expires_us=context.now_us + PENDING_US))
        else:
            remove_registration(tx, callback)
    return MoreSteps(end_callbacks) if len(callbacks) == STEP else None
