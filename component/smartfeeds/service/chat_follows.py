"""The follows of persons and rooms by chat: subscriptions whose items the bot delivers.

Such a subscription is an ordinary one, made by the ordinary use case, so access, limits, approval and the owner's list
hold for it. The option `CHAT` marks it. The subscriber's clients receive no notifications beside the chat, unless one
of them subscribes too.
"""

from dataclasses import dataclass

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import ALL_NUMBERS, Item, Node, Subscription, SubscriptionState
from smartfeeds.core.suboptions import CHAT, CHAT_ONLY, CHAT_TOO
from smartfeeds.core.view import Order
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.consumers import add_consumer
from smartfeeds.service.context import Context, admits, locate_for
from smartfeeds.service.requests import Subscribe, Unsubscribe
from smartfeeds.service.steps import IndexFirst
from smartfeeds.service.subscriptions import subscribe, unsubscribe
from smartfeeds.store.base import ReadTx, WriteTx

KIND = "chat"  # of the consumers: chat:alice@example.org


@dataclass(frozen=True, slots=True)
class Follow:
    """A subscription by chat: its consumer, its node and its state. `last` is an item to show at once.

    `is_stranger`: the subscriber is no contact of the service, and may become one. `is_known`: the view was delivered
    by chat before.
    """

    consumer: Consumer
    node: Node
    state: SubscriptionState
    last: Item | None = None
    is_stranger: bool = False
    is_known: bool = False


def consumer_of(node_no: int, jid: str) -> Consumer:
    """Returns the consumer of a bare JID at a node."""
    return Consumer(node_no, f"{KIND}:{jid}")


def chat_subscriptions(tx: ReadTx, node_no: int, jid: str) -> list[Subscription]:
    """Returns the subscriptions of a bare JID to views of one node that the bot delivers."""
    return [sub for sub in tx.subscriptions_on(node_no, jid, now_us=None) if sub.jid == jid and CHAT in sub.options]


def list_follows(tx: ReadTx, jid: str) -> list[tuple[Node, Subscription]]:
    """Returns what a bare JID follows by chat, oldest first. The limit of its subscriptions is that of the list."""
    return [
        (node, sub)
        for node, sub in tx.subscriptions_of(jid, ALL_NUMBERS, now_us=None)
        if sub.jid == jid and CHAT in sub.options
    ]


def follow(tx: WriteTx, context: Context, actor: Jid, node_name: str) -> Follow | IndexFirst:
    """Subscribes the actor's bare JID to a view, delivered by chat. Raises FeedError as `subscribe` does."""
    jid, service = actor.bare_text, context.policy.domain
    located = locate_for(tx, context, node_name, actor)
    node_no, view = located.node.node_no, located.view_text
    before = tx.subscription(node_no, jid, view, now_us=context.now_us)
    # The repetition of a request that waits for approval would raise an error, and may only lack the mark.
    last = None
    if before is None or before.state is not SubscriptionState.PENDING:
        answer = subscribe(tx, context, Subscribe(actor.bare, service, node_name, jid))
        if isinstance(answer, IndexFirst):
            return answer
        last = answer.last
    row = tx.subscription(node_no, jid, view, now_us=context.now_us)
    assert row is not None  # `subscribe` has stored it, or it was pending before
    options = {**row.options, CHAT: CHAT_ONLY if before is None else before.options.get(CHAT, CHAT_TOO)}
    tx.put_subscription(row._replace(options=options))
    consumer = consumer_of(node_no, jid)
    add_consumer(tx, consumer, Order.MODIFIED)
    is_stranger = tx.contact(service, jid) is None and admits(context.policy.contacts, actor)
    new = before is None
    is_known = before is not None and before.state is row.state and CHAT in before.options
    return Follow(consumer, located.node, row.state, last if new else None, new and is_stranger, is_known)


def unfollow(tx: WriteTx, context: Context, actor: Jid, node_name: str) -> list[Consumer]:
    """Ends the delivery by chat of a view, or of all views of a node if the name has no parameters.

    A subscription that the subscriber's clients use too stays for them. Raises FeedError.
    """
    jid = actor.bare_text
    located = locate_for(tx, context, node_name, actor)
    rows = chat_subscriptions(tx, located.node.node_no, jid)
    if located.view.smart:
        rows = [row for row in rows if row.view == located.view_text]
    if not rows:
        raise FeedError(Condition.NOT_SUBSCRIBED)
    for row in rows:
        _end(tx, context, actor, row)
    return [consumer_of(located.node.node_no, jid)]


def unfollow_all(tx: WriteTx, context: Context, actor: Jid) -> list[Consumer]:
    """Ends all deliveries by chat to a bare JID, such as a room that removed the bot."""
    consumers = []
    for node, row in list_follows(tx, actor.bare_text):
        _end(tx, context, actor, row)
        consumers.append(consumer_of(node.node_no, row.jid))
    return consumers


def _end(tx: WriteTx, context: Context, actor: Jid, row: Subscription) -> None:
    if row.options[CHAT] != CHAT_ONLY:
        tx.put_subscription(row._replace(options={name: value for name, value in row.options.items() if name != CHAT}))
        return
    node = tx.node_by_no(row.node_no)
    assert node is not None
    try:
        unsubscribe(tx, context, Unsubscribe(actor.bare, row.service, row.node_text, row.jid))
    except FeedError:
        # The node has been closed to the subscriber, or the parameters of its name mean another node now.
        tx.remove_subscription(row.sub_no)
