"""Contacts of the service: who may see its presence, and whose presence it sees (RFC 6121 section 3).

The service accepts a subscription to its presence by the setting `pubsub.contacts`, and subscribes back. Each change of
a contact writes one row; a repeated stanza writes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.access import Access
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import KeyRange, SubscriptionState
from smartfeeds.core.options import AccessModel
from smartfeeds.core.presence import Contact, ContactState
from smartfeeds.service.context import Context, admits, affiliation_of, with_contact
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.steps import MoreSteps
from smartfeeds.service.subscription_states import change_state
from smartfeeds.service.subscriptions import STEP
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
    """The types of the presence stanzas to send in return, and the contact after the change, None if it is none."""

    kinds: tuple[str, ...] = ()
    contact: Contact | None = None


def change_contact(tx: WriteTx, context: Context, request: ChangeContact) -> ContactAnswer | MoreSteps[ContactAnswer]:
    """Changes a contact as RFC 6121 appendix A requires.

    A contact of the service that unsubscribes loses its subscriptions to nodes of the access model `presence`.
    """
    contact = tx.contact(request.service, str(request.actor.bare))
    if contact is None:
        return _add(tx, context, request) if request.kind == "subscribe" else ContactAnswer()
    answer = CHANGES[request.kind](tx, contact)
    if answer.contact is None and contact.address == context.policy.domain:
        return MoreSteps(partial(_end_subscriptions, contact=contact, answer=answer))
    return answer


def _end_subscriptions(
    tx: WriteTx, context: Context, contact: Contact, answer: ContactAnswer, after_no: int = 0
) -> ContactAnswer | MoreSteps[ContactAnswer]:
    """Ends the subscriptions that the contact may not have any more (XEP-0060 section 4.5), `STEP` in a transaction."""
    subscriptions = tx.subscriptions_of(contact.jid, KeyRange(STEP, after=after_no))
    for node, subscription in subscriptions:
        jid = parse_jid(subscription.jid)
        if node.options.access_model is AccessModel.PRESENCE and jid is not None:
            access = Access(affiliation_of(tx, context, node, jid), node.options, subscription.state)
            if with_contact(tx, context, access, jid).reading_error is not None:
                change_state(tx, context, subscription, SubscriptionState.NONE)
    if len(subscriptions) < STEP:
        return answer
    after_no = subscriptions[-1][1].sub_no
    return MoreSteps(partial(_end_subscriptions, contact=contact, answer=answer, after_no=after_no))


def probed(tx: ReadTx, _context: Context, request: ContactProbe) -> ContactAnswer:
    """Answers with our presence, or with `unsubscribed` to a stranger (RFC 6121 section 4.3.2)."""
    contact = tx.contact(request.service, str(request.actor.bare))
    return ContactAnswer(("unsubscribed",) if contact is None else (AVAILABLE,), contact)


def _add(tx: WriteTx, context: Context, request: ChangeContact) -> ContactAnswer:
    policy, jid = context.policy, str(request.actor.bare)
    has_place = tx.contacts_of(jid) < policy.contacts_per_jid and (
        tx.contacts_in(request.actor.domain) < policy.contacts_per_domain
    )
    if not (has_place and admits(policy.contacts | policy.admins, request.actor)):
        return ContactAnswer(("unsubscribed",))
    contact = Contact(request.service, jid, ContactState.ASKED)
    tx.put_contact(contact)
    return ContactAnswer(("subscribed", AVAILABLE, "subscribe"), contact)


def _repeat(_tx: WriteTx, contact: Contact) -> ContactAnswer:
    # Our own request is not repeated: two services that answer each other would do so for ever.
    return ContactAnswer(("subscribed", AVAILABLE), contact)


def _remove(tx: WriteTx, contact: Contact) -> ContactAnswer:
    tx.remove_contact(contact)
    return ContactAnswer(("unsubscribed", "unavailable", "unsubscribe"))


def _move(state: ContactState) -> Callable[[WriteTx, Contact], ContactAnswer]:
    def change(tx: WriteTx, contact: Contact) -> ContactAnswer:
        if contact.state is not state:
            tx.put_contact(contact._replace(state=state))
        return ContactAnswer((), contact._replace(state=state))

    return change


CHANGES: Mapping[str, Callable[[WriteTx, Contact], ContactAnswer]] = {
    "subscribe": _repeat,
    "subscribed": _move(ContactState.GRANTED),
    "unsubscribe": _remove,
    "unsubscribed": _move(ContactState.REFUSED),
}
