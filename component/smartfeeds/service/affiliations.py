"""Lists and changes affiliations: an entity's own, and the owner's list (XEP-0060 5.7, 8.9; xep-map 84 to 92)."""

from collections.abc import Iterable, Mapping
from functools import partial

from smartfeeds.core.attachment_names import is_reserved
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Affiliation, KeyRange, Node, SubscriptionState
from smartfeeds.core.text import without_forbidden
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.service.context import Context, governor_of, locate_for, recipient_access
from smartfeeds.service.paged_lists import PagedList, listing_of, number_in, page_of, shown_bytes
from smartfeeds.service.requests import (
    AffiliationList,
    AffiliationShown,
    EmptyResult,
    GetAffiliations,
    PartlyRefused,
    SetAffiliations,
)
from smartfeeds.service.steps import MoreSteps
from smartfeeds.service.subscription_states import approve_all, end_all, owned_node
from smartfeeds.store.base import ReadTx, WriteTx

# Owners are notified of subscribers, and every change of affiliations reads the list. These bounds keep both short.
OWNERS = 100
AFFILIATIONS = 10_000
STEP = 100  # entries that one transaction applies: some 5 ms
_BY_NAME = {affiliation.value: affiliation for affiliation in Affiliation}


def get_affiliations(tx: ReadTx, context: Context, request: GetAffiliations) -> AffiliationList:
    """The actor's own affiliations, or those of a node for its owner."""
    if request.owner:
        node = owned_node(tx, context, request.node, request.actor)
        entries, result_set = page_of(
            _of_node(tx, governor_of(tx, context, node) or node), request.page, context.policy
        )
        return AffiliationList(request.node, entries, True, result_set)
    bare = request.actor.bare_text
    if request.node:
        node = locate_for(tx, context, request.node, request.actor).node
        own = tx.affiliation((governor_of(tx, context, node) or node).node_no, bare)
        listing = listing_of([] if own is Affiliation.NONE else [AffiliationShown(own, node=node.name)], shown_bytes)
    else:
        listing = _of_entity(tx, bare)
    entries, result_set = page_of(listing, request.page, context.policy)
    return AffiliationList(request.node, entries, result_set=result_set)


def _of_node(tx: ReadTx, node: Node) -> PagedList[str, AffiliationShown]:
    def read(part: KeyRange[str]) -> list[tuple[str, AffiliationShown]]:
        return [
            (jid, AffiliationShown(kind, jid=without_forbidden(jid)))
            for jid, kind in tx.affiliations(node.node_no, part)
        ]

    return PagedList(str, read, shown_bytes, lambda: tx.affiliation_count(node.node_no))


def _of_entity(tx: ReadTx, bare: str) -> PagedList[int, AffiliationShown]:
    def read(part: KeyRange[int]) -> list[tuple[int, AffiliationShown]]:
        return [(node.node_no, AffiliationShown(kind, node=node.name)) for node, kind in tx.affiliations_of(bare, part)]

    return PagedList(number_in, read, shown_bytes, lambda: tx.affiliated(bare))


def set_affiliations(
    tx: WriteTx, context: Context, request: SetAffiliations
) -> EmptyResult | PartlyRefused | MoreSteps[EmptyResult | PartlyRefused]:
    """Changes affiliations. The last owner stays; refused entries are returned as they are (xep-map 88, 89).

    Nothing is changed if an entry is malformed. A step applies `STEP` entries, so that the writes of others do not wait
    for the whole list.
    """
    node = owned_node(tx, context, request.node, request.actor)
    if is_reserved(node.name, context.policy.domain):
        raise FeedError(Condition.NOT_ALLOWED, "the affiliations are those of the node of the items; change them there")
    entries = _checked(request.entries)
    _check_room(dict(tx.affiliations(node.node_no)), entries)
    actor = request.actor.bare_text
    # New owners come first, so that a node can be handed over in one request; the actor's own entry comes last, because
    # the transactions that follow need its right.
    ordered = sorted(entries, key=lambda entry: (entry[0] == actor, entry[1] is not Affiliation.OWNER))
    changes = tuple((bare, affiliation) for bare, affiliation in ordered if affiliation is not None)
    return _apply(tx, context, request, changes, ())


def _apply(
    tx: WriteTx,
    context: Context,
    request: SetAffiliations,
    changes: tuple[tuple[str, Affiliation], ...],
    refused: tuple[AffiliationShown, ...],
) -> EmptyResult | PartlyRefused | MoreSteps[EmptyResult | PartlyRefused]:
    """Applies the next changes; `refused` are the entries that earlier steps refused."""
    node = owned_node(tx, context, request.node, request.actor)
    owners = len(tx.affiliations(node.node_no, kind=Affiliation.OWNER))
    count = tx.affiliation_count(node.node_no)
    rejected = list(refused)
    for bare, affiliation in changes[:STEP]:
        current = tx.affiliation(node.node_no, bare)
        left = owners + (affiliation is Affiliation.OWNER) - (current is Affiliation.OWNER)
        if owners and not left:
            rejected.append(AffiliationShown(current, jid=bare))
        else:
            owners = left
            set_affiliation(tx, context, node, bare, affiliation)
    # Two concurrent requests can both pass the check of the whole list, so the count is checked after each step.
    if tx.affiliation_count(node.node_no) > max(AFFILIATIONS, count):
        raise FeedError(Condition.POLICY_VIOLATION, f"a node has up to {AFFILIATIONS} affiliations")
    if len(changes) > STEP:
        return MoreSteps(partial(_apply, request=request, changes=changes[STEP:], refused=tuple(rejected)))
    if rejected:
        return PartlyRefused(affiliations=AffiliationList(request.node, tuple(rejected), owner=True))
    return EmptyResult()


def _checked(entries: tuple[tuple[str, str | None], ...]) -> list[tuple[str, Affiliation | None]]:
    """Bare addresses and affiliations. Raises FeedError before anything is changed."""
    by_jid: dict[str, Affiliation | None] = {}
    for text, name in entries:
        jid = parse_jid(text)
        if jid is None:
            raise FeedError(Condition.JID_MALFORMED, "an affiliation names an address that is malformed")
        bare = jid.bare_text
        if bare in by_jid:
            raise FeedError(Condition.BAD_REQUEST, f"{bare} is named twice")
        if name is not None and name not in _BY_NAME:
            raise unsupported(f"{name}-affiliation", f"{name} is no affiliation")
        by_jid[bare] = None if name is None else _BY_NAME[name]
    return list(by_jid.items())


def _check_room(before: Mapping[str, Affiliation], entries: Iterable[tuple[str, Affiliation | None]]) -> None:
    """Raises FeedError if the request would raise the number of affiliations or owners above its bound."""
    after = {**before, **{bare: affiliation for bare, affiliation in entries if affiliation is not None}}
    count = sum(affiliation is not Affiliation.NONE for affiliation in after.values())
    if count > max(AFFILIATIONS, len(before)):
        raise FeedError(Condition.POLICY_VIOLATION, f"a node has up to {AFFILIATIONS} affiliations")
    if _owners(after) > max(OWNERS, _owners(before)):
        raise FeedError(Condition.POLICY_VIOLATION, f"a node has up to {OWNERS} owners")


def _owners(affiliations: Mapping[str, Affiliation]) -> int:
    return sum(affiliation is Affiliation.OWNER for affiliation in affiliations.values())


def set_affiliation(tx: WriteTx, context: Context, node: Node, bare: str, affiliation: Affiliation) -> None:
    """Stores an affiliation. Ends the subscriptions that it forbids, and approves the requests that it allows."""
    tx.set_affiliation(node.node_no, bare, affiliation)
    jid = parse_jid(bare)
    access = None if jid is None else recipient_access(tx, context, node, jid, SubscriptionState.SUBSCRIBED)
    if access is None or not access.may_read:
        end_all(tx, context, node, bare)
    elif access.rights.read:
        approve_all(tx, context, node, bare)
