"""Contacts of the service: who may see its presence, and whose presence it sees (RFC 6121 section 3).

The service accepts a subscription to its presence by the setting `pubsub.contacts`, and subscribes back. Each change of
a contact writes one row; a repeated stanza writes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.access import Access
from smartfeeds.core.consumers import Consumer, held_consumer
from smartfeeds.core.contacts import Contact, ContactState
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Item, KeyRange, Node, Subscription, SubscriptionState
from smartfeeds.core.suboptions import flag, is_temporary, wants_events
from smartfeeds.core.view import BARE, View, from_canonical
from smartfeeds.features.presence import rows
from smartfeeds.push.audience import is_interested
from smartfeeds.service.context import Context, admits, find_overdue, recipient_access
from smartfeeds.service.requests import Answer, EmptyResult, Request, Subscribed, SubscriptionShown
from smartfeeds.service.steps import IndexFirst, MoreSteps, index_first
from smartfeeds.service.subscription_states import change_state
from smartfeeds.service.subscriptions import STEP, newest_item, with_last_item
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx

AVAILABLE = ""  # available presence has no type (RFC 6121 section 4.7.1)
# The types of presence that are sent to a contact after each connection, by its state. Our request is repeated until
# the contact answers, because it may have been lost with a connection.
GREETINGS: Mapping[ContactState, tuple[str, ...]] = {
    ContactState.ASKED: (AVAILABLE, "subscribe"),
    ContactState.GRANTED: (AVAILABLE, "probe"),
    ContactState.REFUSED: (AVAILABLE,),
}


@dataclass(frozen=True, slots=True)
class ChangeContact(Request):
    """A presence stanza of the types `CHANGES`, from the bare JID of `actor` to our address `service`."""

    kind: str


@dataclass(frozen=True, slots=True)
class ContactProbe(Request):
    """A question for our presence."""


@dataclass(frozen=True, slots=True)
class ContactAnswer(Answer):
    """The types of the presence stanzas to send in return, and the contact after the change; None if the JID is no
    contact."""

    kinds: tuple[str, ...] = ()
    contact: Contact | None = None


@dataclass(frozen=True, slots=True)
class ContactArrived(Request):
    """A resource of a contact is available: the full JID `actor`. `is_new`: it was not available before.

    A bare JID stands for all its resources. It is a former contact, whose presence is unknown now.
    `after_no` is the number of the subscription behind which the answer continues.
    """

    is_new: bool
    after_no: int = 0


@dataclass(frozen=True, slots=True)
class NotifyRequested(Request):
    """The full JID `actor` requests notifications of nodes by its capabilities."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContactLeft(Request):
    """Resources of the bare JID of `actor` went offline. `is_offline`: no other resource is available."""

    resources: tuple[str, ...]
    is_offline: bool


@dataclass(frozen=True, slots=True)
class Arrival(Answer):
    """The newest items to send to a resource, each with our address that sends it, and the consumers whose held events
    can be sent now. `next_after` is the number of the subscription behind which the next request continues."""

    last: tuple[tuple[str, Subscribed], ...] = ()
    held: tuple[Consumer, ...] = ()
    next_after: int | None = None


def change_contact(tx: WriteTx, context: Context, request: ChangeContact) -> ContactAnswer | MoreSteps[ContactAnswer]:
    """Changes a contact as RFC 6121 appendix A requires.

    A contact of the service that unsubscribes loses its subscriptions to nodes of the access model `presence`. If the
    service does not see its presence any more, the contact also loses the subscriptions that end with its presence.
    """
    contact = tx.contact(request.service, request.actor.bare_text)
    if contact is None:
        return _add(tx, context, request) if request.kind == "subscribe" else ContactAnswer()
    answer = CHANGES[request.kind](tx, contact)
    sees_presence = answer.contact is not None and answer.contact.is_watched
    if contact.is_watched and not sees_presence and contact.address == context.policy.domain:
        return MoreSteps(partial(_end_subscriptions, contact=contact, answer=answer))
    return answer


def _end_subscriptions(
    tx: WriteTx, context: Context, contact: Contact, answer: ContactAnswer, after_no: int = 0
) -> ContactAnswer | MoreSteps[ContactAnswer]:
    """Ends the subscriptions that the contact may not have any more (XEP-0060 section 4.5), `STEP` in a transaction."""
    subscriptions = tx.subscriptions_of(contact.jid, KeyRange(STEP, after=after_no), now_us=None)
    for node, subscription in subscriptions:
        access = _access(tx, context, node, subscription)
        closed = access is None or (access.depends_on_contact and not access.may_read)
        if closed or is_temporary(subscription.options):
            change_state(tx, context, subscription, SubscriptionState.NONE)
    if len(subscriptions) < STEP:
        return answer
    after_no = subscriptions[-1][1].sub_no
    return MoreSteps(partial(_end_subscriptions, contact=contact, answer=answer, after_no=after_no))


def _access(tx: ReadTx, context: Context, node: Node, subscription: Subscription) -> Access | None:
    """Returns the access of a subscriber to a node, None for a malformed address."""
    jid = parse_jid(subscription.jid)
    return None if jid is None else recipient_access(tx, context, node, jid, subscription.state)


def read_arrival(tx: ReadTx, context: Context, request: ContactArrived) -> Arrival | IndexFirst:
    """Returns the newest items and the held events for a resource that has come online or changed its state, for `STEP`
    subscriptions at a time."""
    bare, last, consumers = request.actor.bare_text, [], []
    subscriptions = tx.subscriptions_of(bare, KeyRange(STEP, after=request.after_no), now_us=context.now_us)
    for node, subscription in subscriptions:
        is_other = bool(request.actor.resource) and subscription.jid not in (bare, str(request.actor))
        if subscription.state is not SubscriptionState.SUBSCRIBED or is_other:
            continue
        view, consumer = from_canonical(subscription.view), held_consumer(node.node_no, subscription.sub_no)
        if tx.mark(node.node_no, view.order, consumer.name) is not None:
            # The held events contain the newest item.
            consumers.append(consumer)
            continue
        wants = request.is_new and _announces_last(node) and wants_events(subscription.options)
        access = _access(tx, context, node, subscription) if wants else None
        if access is None or not access.may_read:
            continue
        if (behind := index_first(tx, node, view)) is not None:
            return behind
        own_subscription = SubscriptionShown(subscription.node_text, str(request.actor), subscription.state)
        body = flag(subscription.options, "include_body")
        last.append(
            (subscription.service, with_last_item(node, own_subscription, _newest(tx, context, node, view), body=body))
        )
    after_no = subscriptions[-1][1].sub_no if len(subscriptions) == STEP else None
    return Arrival(tuple(last), tuple(consumers), after_no)


def read_announced_items(tx: ReadTx, context: Context, request: NotifyRequested) -> Arrival:
    """Returns the newest items of the nodes that a resource requests by `NODE+notify`, if the nodes announce them."""
    last = []
    for name in request.nodes:
        node = tx.node(name)
        if node is None or not _announces_last(node) or not is_interested(tx, context, node, request.actor):
            continue
        own_subscription = SubscriptionShown(name, str(request.actor), SubscriptionState.SUBSCRIBED)
        last.append(
            (request.service, with_last_item(node, own_subscription, _newest(tx, context, node, BARE), body=False))
        )
    return Arrival(tuple(last))


def _announces_last(node: Node) -> bool:
    return node.options.send_last_published_item == "on_sub_and_presence"


def _newest(tx: ReadTx, context: Context, node: Node, view: View) -> Item | None:
    if (overdue := find_overdue(tx, context, node)) is not None:
        raise overdue
    return newest_item(tx, context, node, view)


def has_temporary(tx: ReadTx, _context: Context, bare: str) -> bool:
    """Returns whether a bare JID has subscriptions that end with its presence."""
    return tx.has_temporary(bare)


def list_temporary(tx: ReadTx, _context: Context, after_no: int) -> list[Subscription]:
    """Returns `STEP` subscriptions of all users that end with their presence."""
    return tx.temporary_subscriptions(after_no, STEP)


def end_temporary(
    tx: WriteTx, context: Context, request: ContactLeft, after_no: int = 0
) -> EmptyResult | MoreSteps[Answer]:
    """Ends the subscriptions that end when these resources go offline (XEP-0060 12.5), `STEP` in a transaction."""
    bare = request.actor.bare_text
    offline = {f"{bare}/{name}" for name in request.resources} | ({bare} if request.is_offline else set())
    subscriptions = tx.subscriptions_of(bare, KeyRange(STEP, after=after_no), now_us=None)
    for _, subscription in subscriptions:
        if is_temporary(subscription.options) and subscription.jid in offline:
            change_state(tx, context, subscription, SubscriptionState.NONE)
    if len(subscriptions) < STEP:
        return EmptyResult()
    return MoreSteps(partial(end_temporary, request=request, after_no=subscriptions[-1][1].sub_no))


def answer_probe(tx: ReadTx, _context: Context, request: ContactProbe) -> ContactAnswer:
    """Answers with our presence, or with `unsubscribed` to a stranger (RFC 6121 section 4.3.2)."""
    contact = tx.contact(request.service, request.actor.bare_text)
    return ContactAnswer(("unsubscribed",) if contact is None else (AVAILABLE,), contact)


def _add(tx: WriteTx, context: Context, request: ChangeContact) -> ContactAnswer:
    policy, jid = context.policy, request.actor.bare_text
    tx.lock_quotas(jid)
    has_place = rows.contacts_of(tx, jid) < policy.contacts_per_jid and (
        rows.contacts_in(tx, request.actor.domain) < policy.contacts_per_domain
    )
    if not (has_place and admits(policy.contacts | policy.admins, request.actor)):
        return ContactAnswer(("unsubscribed",))
    contact = Contact(request.service, jid, ContactState.ASKED)
    rows.put(tx, contact)
    return ContactAnswer(("subscribed", AVAILABLE, "subscribe"), contact)


def _repeat(_tx: WriteTx, contact: Contact) -> ContactAnswer:
    # Our own request is not repeated: two services that answer each other would do so for ever.
    return ContactAnswer(("subscribed", AVAILABLE), contact)


def _remove(tx: WriteTx, contact: Contact) -> ContactAnswer:
    rows.remove(tx, contact)
    return ContactAnswer(("unsubscribed", "unavailable", "unsubscribe"))


def _move(state: ContactState) -> Callable[[WriteTx, Contact], ContactAnswer]:
    def change(tx: WriteTx, contact: Contact) -> ContactAnswer:
        if contact.state is not state:
            rows.put(tx, contact._replace(state=state))
        return ContactAnswer((), contact._replace(state=state))

    return change


CHANGES: Mapping[str, Callable[[WriteTx, Contact], ContactAnswer]] = {
    "subscribe": _repeat,
    "subscribed": _move(ContactState.GRANTED),
    "unsubscribe": _remove,
    "unsubscribed": _move(ContactState.REFUSED),
}

USE_CASES = UseCases(
    {
        ContactProbe: ("probe", answer_probe),
        ContactArrived: ("contact_arrived", read_arrival),
        NotifyRequested: ("notify_requested", read_announced_items),
    },
    {
        ChangeContact: ("change_contact", change_contact),
        ContactLeft: ("contact_left", end_temporary),
    },
)
