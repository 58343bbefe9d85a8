"""Affiliations: an entity's own, and the owner's list (XEP-0060 5.7, 8.9; xep-map 84 to 92)."""

from smartfeeds.core.access import reading_refused
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Affiliation, Node, SubscriptionState
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.service.context import Context, access_model, locate
from smartfeeds.service.requests import (
    AffiliationList,
    AffiliationShown,
    Done,
    GetAffiliations,
    PartlyRefused,
    SetAffiliations,
)
from smartfeeds.service.subscriptions import end_all, owned_node
from smartfeeds.store.base import ReadTx, WriteTx

_BY_NAME = {affiliation.value: affiliation for affiliation in Affiliation}


def get_affiliations(tx: ReadTx, context: Context, request: GetAffiliations) -> AffiliationList:
    """The actor's own affiliations, or all of a node for its owner."""
    if request.owner:
        node = owned_node(tx, context, request.node, request.actor)
        listed = tuple(AffiliationShown(held, jid=jid) for jid, held in tx.affiliations(node.node_no))
        return AffiliationList(request.node, listed, owner=True)
    node_no = locate(tx, request.node).node.node_no if request.node else None
    mine = tx.affiliations_of(str(request.actor.bare))
    own = tuple(AffiliationShown(held, node=n.name) for n, held in mine if node_no in (None, n.node_no))
    return AffiliationList(request.node, own)


def set_affiliations(tx: WriteTx, context: Context, request: SetAffiliations) -> Done | PartlyRefused:
    """Changes the entries given; the last owner stays, and what was refused comes back as it is (xep-map 88, 89)."""
    node = owned_node(tx, context, request.node, request.actor)
    refused = []
    # New owners come first, so that a node can be handed over in one request.
    entries = sorted(_checked(request.entries), key=lambda entry: entry[1] is not Affiliation.OWNER)
    for bare, wanted in entries:
        if wanted is None:
            continue
        current = tx.affiliation(node.node_no, bare)
        last = current is Affiliation.OWNER and wanted is not Affiliation.OWNER and _owners(tx, node) == 1
        if last:
            refused.append(AffiliationShown(current, jid=bare))
        else:
            _set(tx, context, node, bare, wanted)
    if refused:
        return PartlyRefused(affiliations=AffiliationList(request.node, tuple(refused), owner=True))
    return Done()


def _checked(entries: tuple[tuple[str, str | None], ...]) -> list[tuple[str, Affiliation | None]]:
    """Bare addresses and affiliations. Raises FeedError before anything is changed."""
    found: dict[str, Affiliation | None] = {}
    for text, name in entries:
        jid = parse_jid(text)
        if jid is None:
            raise FeedError(Condition.JID_MALFORMED, "an affiliation names an address that is malformed")
        bare = str(jid.bare)
        if bare in found:
            raise FeedError(Condition.BAD_REQUEST, f"{bare} is named twice")
        if name is not None and name not in _BY_NAME:
            raise unsupported(f"{name}-affiliation", f"{name} is no affiliation")
        found[bare] = None if name is None else _BY_NAME[name]
    return list(found.items())


def _owners(tx: ReadTx, node: Node) -> int:
    return sum(held is Affiliation.OWNER for _, held in tx.affiliations(node.node_no))


def _set(tx: WriteTx, context: Context, node: Node, bare: str, wanted: Affiliation) -> None:
    tx.set_affiliation(node.node_no, bare, wanted)
    if reading_refused(wanted, access_model(node), SubscriptionState.SUBSCRIBED) is not None:
        end_all(tx, context, node, bare)
