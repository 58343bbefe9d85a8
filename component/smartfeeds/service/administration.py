"""Administration of nodes from a chat client: what a user may administer, and the nodes that it manages.

The commands of the command line and those of a chat client (`xmpp/admin_*.py`) call the same functions.
"""

from dataclasses import dataclass

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import NO_LIMIT, Affiliation, KeyRange, Node
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, Policy, expired_count, is_admin
from smartfeeds.service.lists import PagedList, listed_bytes, number, page_of
from smartfeeds.service.nodes import may_create
from smartfeeds.service.requests import Answer, Request, ResultSet
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class GetStanding(Request):
    """What may the actor administer?"""


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


@dataclass(frozen=True, slots=True)
class ListManagedNodes(Request):
    """The nodes that the actor manages: all nodes for an admin, else those that it owns."""

    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node with its counts. `deleted` are tombstones, `subscriptions` those in state subscribed."""

    node: Node
    items: int
    deleted: int
    subscriptions: int


@dataclass(frozen=True, slots=True)
class ManagedNodes(Answer):
    """Nodes by name for an admin, else by age. `result_set` is None if the list is complete."""

    entries: tuple[NodeSummary, ...]
    result_set: ResultSet | None


def list_managed(tx: ReadTx, context: Context, request: ListManagedNodes) -> ManagedNodes:
    """The nodes that the actor manages, with their counts."""
    nodes, result_set = (
        page_of(_all(tx), request.page, context.policy)
        if is_admin(context.policy, request.actor)
        else page_of(_owned(tx, str(request.actor.bare)), request.page, context.policy)
    )
    return ManagedNodes(tuple(summary_of(tx, context, node) for node in nodes), result_set)


def summary_of(tx: ReadTx, context: Context, node: Node) -> NodeSummary:
    """A node with its counts. O(1) but for items that have expired and are not removed yet."""
    items = node.live - expired_count(tx, context, node)
    return NodeSummary(node, items, node.total - items, tx.subscription_count(node.node_no))


def _all(tx: ReadTx) -> PagedList[str, Node]:
    def read(part: KeyRange[str]) -> list[tuple[str, Node]]:
        nodes = tx.nodes(part.after or "", part.limit + part.offset, before=part.before, newest=part.newest)
        return [(node.name, node) for node in nodes[part.offset :]]

    return PagedList(str, read, _listed_bytes, tx.node_count)


def _owned(tx: ReadTx, bare: str) -> PagedList[int, Node]:
    def read(part: KeyRange[int]) -> list[tuple[int, Node]]:
        return [(node.node_no, node) for node, _ in tx.affiliations_of(bare, part, kind=Affiliation.OWNER)]

    return PagedList(number, read, _listed_bytes, lambda: tx.owned_count(bare))


def _listed_bytes(node: Node) -> int:
    return listed_bytes(node.name, node.options.title)


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
