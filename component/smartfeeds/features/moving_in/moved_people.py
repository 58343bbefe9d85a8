"""The affiliations and subscriptions of a moved node (IMP-065 to IMP-067).

The source decides: what it names is stored as it says. What it does not name stays, unless the import is a mirror.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import NO_OPTIONS, Affiliation, KeyRange, Node, Subscription, SubscriptionState
from smartfeeds.core.options import FormFields
from smartfeeds.core.suboptions import apply, takes_effect
from smartfeeds.core.text import cut
from smartfeeds.core.view import BARE, Order, canonical
from smartfeeds.errors import FeedError
from smartfeeds.features.moving_in.moved import MovedNode, MovedProblem, MovedSubscription, Report
from smartfeeds.service.affiliations import AFFILIATIONS, OWNERS, set_affiliation
from smartfeeds.service.context import Context, recipient_access
from smartfeeds.service.subscription_states import start_pushing
from smartfeeds.store.base import ReadTx, WriteTx

_AFFILIATIONS: Final = {kind.value: kind for kind in Affiliation if kind is not Affiliation.NONE}
_STATES: Final = {state.value: state for state in SubscriptionState if state is not SubscriptionState.NONE}
_VIEW: Final = canonical(BARE)
_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class MovedPeople:
    """The people of a node with prepared addresses: affiliations by bare JID, and subscriptions by JID."""

    affiliations: dict[str, Affiliation]
    subscriptions: dict[str, tuple[SubscriptionState, FormFields]]

    @property
    def creator(self) -> str:
        """The first owner by address."""
        return min(jid for jid, kind in self.affiliations.items() if kind is Affiliation.OWNER)


def prepare_people(moved: MovedNode, operator: str, report: Report) -> MovedPeople:
    """Returns the people of a node. Reports those who are left out.

    A node without an owner gets the `operator`, a bare JID.
    """
    affiliations: dict[str, Affiliation] = {}
    owners = 0
    # Owners come first, because a node cannot be without any; the rest in the order of addresses, for equal reports.
    for text, name in sorted(moved.affiliations.items(), key=lambda entry: (entry[1] != "owner", entry[0])):
        if name == Affiliation.NONE.value:
            continue
        jid, kind = parse_jid(text), _AFFILIATIONS.get(name)
        bare = "" if jid is None else jid.bare_text
        owners += kind is Affiliation.OWNER
        if kind is None:
            reason = f"{name!r} is no affiliation"
        elif jid is None:
            reason = "not a JID"
        elif bare in affiliations:
            reason = f"the source has this address twice, and it is {affiliations[bare].value} already"
        elif kind is Affiliation.OWNER and owners > OWNERS:
            reason = f"a node has up to {OWNERS} owners"
        elif len(affiliations) >= AFFILIATIONS:
            reason = f"a node has up to {AFFILIATIONS} affiliations"
        else:
            affiliations[bare] = kind
            continue
        report(MovedProblem(f"affiliation {cut(text, 80)!r}", reason))
    if Affiliation.OWNER not in affiliations.values():
        report(MovedProblem("owner", f"the source names no valid owner; {operator} owns the node"))
        affiliations[operator] = Affiliation.OWNER
    return MovedPeople(affiliations, dict(_subscriptions(moved.subscriptions, report)))


def _subscriptions(
    subscriptions: Iterable[MovedSubscription], report: Report
) -> Iterable[tuple[str, tuple[SubscriptionState, FormFields]]]:
    seen: set[str] = set()
    for subscription in subscriptions:
        jid, state = parse_jid(subscription.jid), _STATES.get(subscription.state)
        subject = f"subscription {cut(subscription.jid, 80)!r}"
        if jid is None:
            report(MovedProblem(subject, "not a JID"))
        elif state is None:
            report(MovedProblem(subject, f"{subscription.state!r} is not a state that this service has"))
        elif str(jid) in seen:
            report(MovedProblem(subject, "the source has this address twice; the first subscription moves"))
        else:
            seen.add(str(jid))
            yield str(jid), (state, subscription.options)


@dataclass(frozen=True, slots=True)
class PeopleChanges:
    """The changes of an import: affiliations to set, subscriptions to store, and subscriptions to remove."""

    affiliations: tuple[tuple[str, Affiliation], ...] = ()
    stored: tuple[Subscription, ...] = ()
    removed: tuple[Subscription, ...] = ()


def plan_people(
    tx: ReadTx, context: Context, node: Node, people: MovedPeople, report: Report, *, mirror: bool
) -> PeopleChanges:
    """Returns the changes that give a node the people of the source. A `node_no` of 0 means a new node."""
    current = dict(tx.affiliations(node.node_no)) if node.node_no else {}
    changes = [entry for entry in people.affiliations.items() if current.get(entry[0]) is not entry[1]]
    if mirror:
        changes += [(jid, Affiliation.NONE) for jid in current if jid not in people.affiliations]
    stored = []
    for jid, (state, form) in people.subscriptions.items():
        options = _options(node, form, jid, context.now_us, report)
        known = tx.subscription(node.node_no, jid, _VIEW, now_us=context.now_us) if node.node_no else None
        if known is None:
            service, keys = context.policy.domain, (node.last_modified_us, node.last_created_us)
            stored.append(
                Subscription(0, node.node_no, jid, _VIEW, node.name, service, state, *keys, context.now_us, options)
            )
        elif (known.state, dict(known.options)) != (state, options):
            stored.append(known._replace(state=state, options=options))
    removed = _others(tx, node, people) if mirror and node.node_no else []
    return PeopleChanges(tuple(changes), tuple(stored), tuple(removed))


def _options(node: Node, form: FormFields, jid: str, now_us: int, report: Report) -> dict[str, tuple[str, ...]]:
    options = dict(NO_OPTIONS)
    for name, values in form.items():
        reason = "" if takes_effect(node.kind, name, values) else f"{name} does not exist here or for this kind of node"
        try:
            options = apply(node.kind, options, {name: values}, now_us)
        except FeedError as error:
            reason = error.text
        if reason:
            report(MovedProblem(f"subscription {cut(jid, 80)!r}", f"option left out: {reason}"))
    return options


def _others(tx: ReadTx, node: Node, people: MovedPeople) -> list[Subscription]:
    """Returns the subscriptions to the bare node that the source does not have."""
    others: list[Subscription] = []
    after: str | None = None
    while jids := tx.subscribers(node.node_no, KeyRange(_PAGE, after), now_us=None):
        for jid in jids:
            subscription = tx.subscription(node.node_no, jid, _VIEW, now_us=None)
            if subscription is not None and jid not in people.subscriptions:
                others.append(subscription)
        after = jids[-1]
    return others


def store_affiliations(tx: WriteTx, context: Context, node: Node, changes: PeopleChanges) -> None:
    """Stores the affiliations of a locked node."""
    for bare, affiliation in changes.affiliations:
        set_affiliation(tx, context, node, bare, affiliation)


def store_people(tx: WriteTx, context: Context, node: Node, changes: PeopleChanges, report: Report) -> int:
    """Stores the people of a locked node. Returns the number of subscriptions that were stored.

    New subscriptions begin behind the newest item, so that an import pushes nothing (IMP-065). A subscriber who may not
    read the node is reported and left out.
    """
    store_affiliations(tx, context, node, changes)
    for subscription in changes.removed:
        tx.remove_subscription(subscription.sub_no)
    count = 0
    for subscription in changes.stored:
        jid = parse_jid(subscription.jid)
        access = None if jid is None else recipient_access(tx, context, node, jid, SubscriptionState.SUBSCRIBED)
        if subscription.state is SubscriptionState.SUBSCRIBED and (access is None or not access.may_read):
            report(MovedProblem(f"subscription {cut(subscription.jid, 80)!r}", "the subscriber may not read the node"))
            continue
        # Setting an affiliation may have ended or approved the subscription.
        known = tx.subscription(node.node_no, subscription.jid, _VIEW, now_us=None)
        if not subscription.sub_no:
            subscription = subscription._replace(since_us=node.last_modified_us, since_created_us=node.last_created_us)
        sub_no = 0 if known is None else known.sub_no
        tx.put_subscription(subscription._replace(node_no=node.node_no, sub_no=sub_no))
        count += 1
    if count:
        start_pushing(tx, node, Order.MODIFIED)
        context.changed.add(node.node_no)
    return count
