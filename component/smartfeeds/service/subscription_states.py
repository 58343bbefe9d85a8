"""Changes of subscription states, and the messages about them (XEP-0060 8.6, 12.14).

A message is an event in the queue of its node (`NodeEvent`), which survives a crash and a lost link. Use cases that
change subscriptions share these functions.
"""

from typing import NamedTuple
from urllib.parse import quote, unquote

from smartfeeds.core.attachment_names import GOVERNED
from smartfeeds.core.consumers import PUSH
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import Affiliation, Node, NodeEvent, Subscription, SubscriptionState
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order
from smartfeeds.service.context import Context, governor_of, locate_for
from smartfeeds.service.pulls import newest_mark
from smartfeeds.store.base import ReadTx, WriteTx

# The kinds of events about a subscription: its state, a request for an owner, and the refusal of a request.
STATE, REQUEST, REFUSAL = "subscription", "authorization", "refusal"
# Somebody who subscribes and unsubscribes, or requests and withdraws, in a loop would otherwise fill the chat windows
# of all owners. Three messages of a kind in an hour suffice for a request from two devices and for one that is repeated
# after a refusal. The bound of a domain holds for somebody who creates JIDs.
MESSAGES_WINDOW_US = 3_600 * US_PER_S
MESSAGES_PER_JID = 3
MESSAGES_PER_DOMAIN = 30


class SubscriptionNotice(NamedTuple):
    """The data of an event about a subscription. `value` is the number of a request, else the state."""

    service: str
    value: str
    jid: str
    node_text: str


def read_notice(event: NodeEvent) -> SubscriptionNotice:
    """Returns the data of an event about a subscription."""
    service, value, jid, node_text = event.data.split(" ", 3)
    return SubscriptionNotice(service, value, unquote(jid), node_text)


def change_state(
    tx: WriteTx,
    context: Context,
    subscription: Subscription,
    state: SubscriptionState,
    *,
    by_subscriber: bool = False,
) -> Subscription:
    """Stores a subscription in a state, and notifies the subscriber (XEP-0060 12.14) and the owners (`notify_sub`).

    NONE ends the subscription. With `by_subscriber` the subscriber gets no message, because the response to the request
    has the state.
    """
    if state is subscription.state:
        return subscription
    node = tx.node_by_no(subscription.node_no)
    former = subscription.state
    if state is SubscriptionState.NONE or node is None:
        tx.remove_subscription(subscription.sub_no)
        subscription = subscription._replace(state=state)
    else:
        since_us, created_us = node.last_modified_us, node.last_created_us
        subscription = tx.put_subscription(
            subscription._replace(state=state, since_us=since_us, since_created_us=created_us)
        )
    if node is not None and not by_subscriber:
        refused = former is SubscriptionState.PENDING and state is SubscriptionState.NONE
        tell(tx, context, node, subscription, subscription.jid, REFUSAL if refused else STATE)
    # Requests, and the end of requests, have messages of their own.
    if node is not None and SubscriptionState.SUBSCRIBED in (former, state):
        _tell_owners(tx, context, node, subscription)
    return subscription


def begin(tx: WriteTx, context: Context, node: Node, subscription: Subscription) -> Subscription:
    """Stores a new subscription, which has `sub_no` 0 and its state, and notifies the owners (`notify_sub`).
    `current_subscription` made room for it.
    """
    subscription = tx.put_subscription(subscription)
    # `_tell_owners` finds out whether another node decides.
    may_tell = node.options.notify_sub or node.name.startswith(GOVERNED)
    if may_tell and subscription.state is SubscriptionState.SUBSCRIBED:
        _tell_owners(tx, context, node, subscription)
    return subscription


def current_subscription(tx: WriteTx, context: Context, node_no: int, jid: str, view: str) -> Subscription | None:
    """Returns the subscription of an address to a view. One whose lease has ended is removed, so that a new one can
    replace it.
    """
    stored = tx.subscription(node_no, jid, view, now_us=None)
    if stored is None:
        return None
    current = tx.subscription(node_no, jid, view, now_us=context.now_us)
    if current is None:
        tx.remove_subscription(stored.sub_no)
    return current


def tell(tx: WriteTx, context: Context, node: Node, subscription: Subscription, to: str, kind: str = STATE) -> None:
    """Notifies an address of the state of a subscription."""
    notice = f"{subscription.service} {subscription.state.value} {quote(subscription.jid)} {subscription.node_text}"
    _add_message(tx, context, node, kind, notice, to)


def _tell_owners(tx: WriteTx, context: Context, node: Node, subscription: Subscription) -> None:
    """Notifies owners of a new or ended subscription, if the node is configured so (`pubsub#notify_sub`).

    An owner can make any JID an owner, and the service would multiply messages to people who never used it. So only the
    creator and owners who are subscribed themselves are notified, and only of so many changes by one subscriber.
    """
    governor = governor_of(tx, context, node)
    if governor is None or not governor.options.notify_sub:
        return
    if _count_message(tx, context, governor, STATE, subscription):
        for jid, _ in tx.affiliations(governor.node_no, kind=Affiliation.OWNER):
            if jid == governor.creator or is_subscriber(tx, context, governor, jid):
                tell(tx, context, node, subscription, jid)


def is_subscriber(tx: ReadTx, context: Context, node: Node, bare: str) -> bool:
    """Whether a user follows a node, with any address."""
    subscriptions = tx.subscriptions_on(node.node_no, bare, now_us=context.now_us)
    return any(subscription.state is SubscriptionState.SUBSCRIBED for subscription in subscriptions)


def send_requests(tx: WriteTx, context: Context, node: Node, subscription: Subscription) -> None:
    """Sends a request to subscribe to every owner of the node (XEP-0060 8.6, 12.13). The first answer counts.

    Nothing is sent if the requester or its domain has used up its forms for the node. The request is pending all the
    same, and the owners see it in the command get-pending.
    """
    if _count_message(tx, context, node, REQUEST, subscription):
        for jid, _ in tx.affiliations(node.node_no, kind=Affiliation.OWNER):
            send_request(tx, context, node, subscription, jid)


def _count_message(tx: WriteTx, context: Context, node: Node, kind: str, subscription: Subscription) -> bool:
    """Counts a message to the owners. Returns False if the subscriber or its domain has used up those of this kind."""
    bare = subscription.jid.partition("/")[0]
    after_us = context.now_us - MESSAGES_WINDOW_US
    limits = (
        (f"{kind} {bare}", MESSAGES_PER_JID),
        (f"{kind} @{bare.rpartition('@')[2]}", MESSAGES_PER_DOMAIN),
    )
    if any(tx.request_forms(node.node_no, whom, after_us) >= most for whom, most in limits):
        return False
    tx.count_request_form(node.node_no, [whom for whom, _ in limits], context.now_us, after_us)
    return True


def send_request(tx: WriteTx, context: Context, node: Node, subscription: Subscription, to: str) -> None:
    """Sends a request to subscribe to an address, as a form to fill in."""
    notice = f"{subscription.service} {subscription.sub_no} {quote(subscription.jid)} {subscription.node_text}"
    _add_message(tx, context, node, REQUEST, notice, to)


def _add_message(tx: WriteTx, context: Context, node: Node, kind: str, data: str, to: str) -> None:
    tx.add_event(NodeEvent(0, node.node_no, node.last_modified_us, kind, data, to))
    context.changed.add(node.node_no)


def start_pushing(tx: WriteTx, node: Node, order: Order) -> None:
    """Sets the mark from which pushes of this order continue, if there is none: the newest item, not pushed itself."""
    key = node.node_no, order
    if key not in tx.pushed:  # one look-up for all works of a transaction
        if tx.mark(*key, PUSH) is None:
            tx.set_mark(*key, PUSH, newest_mark(tx, node, order))
        tx.pushed.add(key)


def owned_node(tx: ReadTx, context: Context, name: str | None, actor: Jid) -> Node:
    """The node. Raises FeedError unless the actor is an owner (xep-map 97)."""
    located = locate_for(tx, context, name, actor)
    located.access.check_manage()
    return located.node


def of_jid(tx: ReadTx, context: Context, node: Node, jid: Jid | None) -> list[Subscription]:
    """Subscriptions of exactly a full address, or of a bare one and all its resources, on one node."""
    if jid is None:
        return []
    subscriptions = tx.subscriptions_on(node.node_no, jid.bare_text, now_us=context.now_us)
    return [sub for sub in subscriptions if not jid.resource or sub.jid == str(jid)]


def end_all(tx: WriteTx, context: Context, node: Node, bare: str) -> None:
    """Ends every subscription of a bare address to a node (xep-map 92)."""
    for subscription in of_jid(tx, context, node, parse_jid(bare)):
        change_state(tx, context, subscription, SubscriptionState.NONE)


def approve_all(tx: WriteTx, context: Context, node: Node, bare: str) -> None:
    """Approves every request of a bare address, because its affiliation needs no approval now (XEP-0060 8.7.4)."""
    for subscription in of_jid(tx, context, node, parse_jid(bare)):
        change_state(tx, context, subscription, SubscriptionState.SUBSCRIBED)
