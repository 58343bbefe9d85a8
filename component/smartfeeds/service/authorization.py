"""Requests to subscribe that wait for an owner: answering, listing and sending them again (XEP-0060 8.6, 8.7)."""

from dataclasses import dataclass

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Node, Subscription, SubscriptionState
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, LocatedNode, is_admin, locate_for
from smartfeeds.service.paged_lists import listed_bytes
from smartfeeds.service.pulls import fitting
from smartfeeds.service.requests import Answer, EmptyResult, NodeRequest, Request
from smartfeeds.service.subscription_states import change_state, of_jid, owned_node, send_request
from smartfeeds.store.base import ReadTx, WriteTx

# One response names so many nodes, and one request sends so many messages: both are bounded by a stanza and by some
# milliseconds of the writing thread. An owner repeats the request for the others.
NODES = 100
REQUESTS = 100


@dataclass(frozen=True, slots=True)
class AnswerAuthorization(NodeRequest):
    """Answers the request of `jid` to subscribe, as an owner of the node (XEP-0060 8.6). `subid` is empty if the answer
    has none."""

    jid: str
    subid: str
    allow: bool


@dataclass(frozen=True, slots=True)
class GetPendingNodes(Request):
    """Lists the requester's nodes with requests to subscribe that wait (XEP-0060 8.7)."""


@dataclass(frozen=True, slots=True)
class PendingNodes(Answer):
    """The first of these nodes by name; with `more` there are others."""

    names: tuple[str, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class ResendPending(NodeRequest):
    """Sends the waiting requests for a node to the requester, as messages (XEP-0060 8.7)."""


@dataclass(frozen=True, slots=True)
class ResentRequests(Answer):
    """The number of messages; with `more` there are other requests."""

    count: int
    more: bool


def decide(tx: WriteTx, context: Context, request: AnswerAuthorization) -> EmptyResult:
    """Approves or denies a request, and notifies the subscriber.

    Raises FeedError if no such request is pending, or if the actor does not own the node.
    """
    located = locate_for(tx, context, request.node, request.actor)
    located.access.check_manage()
    subscription = _pending(tx, context, located, request)
    state = SubscriptionState.SUBSCRIBED if request.allow else SubscriptionState.NONE
    change_state(tx, context, subscription, state)
    return EmptyResult()


def _pending(tx: ReadTx, context: Context, located: LocatedNode, request: AnswerAuthorization) -> Subscription:
    """The request that the answer is for. The subid is optional: ejabberd's clients leave it out."""
    jid = parse_jid(request.jid) if request.jid else None
    if jid is None:
        raise FeedError(Condition.INVALID_JID, "the field pubsub#subscriber_jid must have an address")
    for subscription in of_jid(tx, context, located.node, jid):
        same_request = request.subid in ("", str(subscription.sub_no))
        exact = subscription.jid == str(jid) and subscription.view == located.view_text
        if exact and same_request and subscription.state is SubscriptionState.PENDING:
            return subscription
    raise FeedError(
        Condition.NOT_SUBSCRIBED, "there is no pending request of this address; it was answered or withdrawn"
    )


def pending_nodes(tx: ReadTx, context: Context, request: GetPendingNodes) -> PendingNodes:
    """The nodes of the actor with requests that wait, by name: as many as fit into one stanza."""
    owner = None if is_admin(context.policy, request.actor) else request.actor.bare_text
    names = [node.name for node in tx.pending_nodes(owner, NODES + 1, now_us=context.now_us)]
    count = fitting(map(listed_bytes, names[:NODES]), context.policy.page_bytes)
    return PendingNodes(tuple(names[:count]), more=len(names) > count)


def resend(tx: WriteTx, context: Context, request: ResendPending) -> ResentRequests:
    """Sends the oldest requests for a node once more, to the owner who asks for them."""
    node: Node = owned_node(tx, context, request.node, request.actor)
    requests = tx.pending_subscriptions(node.node_no, REQUESTS + 1, now_us=context.now_us)
    for subscription in requests[:REQUESTS]:
        send_request(tx, context, node, subscription, request.actor.bare_text)
    return ResentRequests(len(requests[:REQUESTS]), more=len(requests) > REQUESTS)
