"""Administration from a chat client: the rights of users, and the counts and addresses of the whole service.

The requests of the commands in `xmpp/admin_X.py` are in `service/admin_X.py`. They check the rights of the actor, and
then call the functions that the command line calls.
"""

from dataclasses import dataclass

from smartfeeds.core.access import RIGHTS
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import NO_LIMIT, Affiliation, KeyRange, Node
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, Policy, affiliation_of, expired_count, is_admin
from smartfeeds.service.nodes import may_create
from smartfeeds.service.requests import Answer, PartlyRefused, Request
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class GetStanding(Request):
    """Asks what the actor may administer."""


@dataclass(frozen=True, slots=True)
class Standing(Answer):
    """What a user may administer: the service, nodes that it owns, new nodes. `restarts`: a process manager starts the
    service again after a restart command."""

    admin: bool
    owner: bool
    creator: bool
    restarts: bool


def get_standing(tx: ReadTx, context: Context, request: GetStanding) -> Standing:
    """What the actor may administer."""
    bare = str(request.actor.bare)
    owner = bool(tx.affiliations_of(bare, KeyRange(1), kind=Affiliation.OWNER))
    creator = may_create(context, request.actor)
    return Standing(is_admin(context.policy, request.actor), owner, creator, context.policy.restarts)


def check_admin(policy: Policy, actor: Jid) -> None:
    """Raises FeedError(FORBIDDEN) unless the actor is an admin of the service."""
    if not is_admin(policy, actor):
        raise FeedError(Condition.FORBIDDEN, "only admins of the service (pubsub.admins) may do this")


def manages(tx: ReadTx, context: Context, actor: Jid, node: Node | None) -> bool:
    """Whether the actor may configure the node. An admin also manages nodes that do not exist yet."""
    if node is None:
        return is_admin(context.policy, actor)
    return RIGHTS[affiliation_of(tx, context, node, actor)].manage


@dataclass(frozen=True, slots=True)
class CountStore(Request):
    """The size of the store, for admins."""


@dataclass(frozen=True, slots=True)
class StoreCounts(Answer):
    """The numbers of nodes, items, tombstones, and subscriptions in state subscribed."""

    nodes: int
    items: int
    deleted: int
    subscriptions: int


def count_store(tx: ReadTx, context: Context, request: CountStore) -> StoreCounts:
    """The size of the store. The cost grows with the number of nodes. Raises FeedError(FORBIDDEN)."""
    check_admin(context.policy, request.actor)
    items, deleted, subscriptions = tx.totals()
    expired = sum(expired_count(tx, context, node) for node in tx.expiring(0, NO_LIMIT))
    return StoreCounts(tx.node_count(), items - expired, deleted + expired, subscriptions)


@dataclass(frozen=True, slots=True)
class ListAddresses(Request):
    """The bare JIDs of owners, or else of subscribers, behind a JID, for an announcement by an admin."""

    owners: bool
    after: str
    limit: int


@dataclass(frozen=True, slots=True)
class AddressList(Answer):
    """Bare JIDs in their order, each once."""

    addresses: tuple[str, ...]


def list_addresses(tx: ReadTx, context: Context, request: ListAddresses) -> AddressList:
    """The bare JIDs of owners or subscribers. Raises FeedError(FORBIDDEN)."""
    check_admin(context.policy, request.actor)
    return AddressList(tuple(tx.addresses(owners=request.owners, after=request.after, limit=request.limit)))


def check_applied(answer: Answer, *, ends: bool = False) -> None:
    """Raises FeedError if a change of one affiliation or of one subscription was refused. `ends`: the change was to end
    a subscription."""
    if not isinstance(answer, PartlyRefused):
        return
    if answer.affiliations is not None:
        jid = answer.affiliations.entries[0].jid
        raise FeedError(Condition.CONFLICT, f"{jid} is the last owner of the node; add another owner first")
    assert answer.subscriptions is not None
    jid = answer.subscriptions.entries[0].jid
    if ends:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"{jid} has no subscription to this node")
    raise FeedError(
        Condition.NOT_ALLOWED,
        f"{jid} cannot be subscribed: it may not read the node, has too many subscriptions, or the node or the service "
        "does not allow it",
    )
