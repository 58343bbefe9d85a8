"""The list of the nodes that a user manages, for administration from a chat client and by the command line."""

from dataclasses import dataclass

from smartfeeds.core.model import Affiliation, KeyRange, Node
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.context import Context, expired_count, is_admin, locate_for
from smartfeeds.service.lists import PagedList, listed_bytes, number, page_of
from smartfeeds.service.requests import Answer, NodeRequest, Request, ResultSet
from smartfeeds.store.base import ReadTx


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


@dataclass(frozen=True, slots=True)
class GetManagedNode(NodeRequest):
    """A node that the actor manages."""


@dataclass(frozen=True, slots=True)
class ManagedNode(Answer):
    """A node with its counts. `affiliations` counts them all, `conflicts` the items with unsettled versions, and
    `index_current` says whether filtered views have every item already."""

    summary: NodeSummary
    affiliations: int
    conflicts: int
    index_current: bool


def get_managed_node(tx: ReadTx, context: Context, request: GetManagedNode) -> ManagedNode:
    """A node with its counts. Raises FeedError for a node that the actor does not manage."""
    located = locate_for(tx, context, request.node, request.actor)
    located.access.check_manage()
    node = located.node
    counts = tx.affiliation_count(node.node_no), tx.conflict_count(node.node_no)
    return ManagedNode(summary_of(tx, context, node), *counts, tx.index_current(node.node_no))


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
