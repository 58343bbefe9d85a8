"""Service discovery: lists and descriptions of nodes, lists of item ids (XEP-0030, XEP-0462; xep-map 28 to 44)."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from smartfeeds.core.model import Affiliation, KeyRange, Node
from smartfeeds.core.node_place import NodePlace
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.page import PagePlan, ResultSetRequest
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, LocatedNode, Policy, find_for, governor_of, is_admin, locate_for
from smartfeeds.service.pulls import ENTRY_BYTES, fitting, read_page, surely_fits, written_bytes
from smartfeeds.service.requests import (
    Answer,
    GetItemIds,
    GetNodeInfo,
    GetNodes,
    ItemIds,
    NodeInfo,
    NodeList,
    Request,
    ResultSet,
)
from smartfeeds.store.base import ReadTx

# How many nodes a request may examine to fill one page if few have the requested type, and how many at once.
SCANNED = 10_000
SCAN_CHUNK = 200
# The options that users see of a node that their list does not contain.
PUBLIC_META_DATA = frozenset({"type", "access_model"})
# A user who may ask to become a member of a closed node sees whom to ask, too.
CLOSED_META_DATA = PUBLIC_META_DATA | {"contact"}
SHOWN = 50  # owners, and publishers, that the metadata names: more would not fit in a stanza


@dataclass(frozen=True, slots=True)
class GetAddressInfo(Request):
    """Asks for disco#info without a node at an address with a local part: of the feed there, else of the service
    (XEP-0030)."""


@dataclass(frozen=True, slots=True)
class ServiceDescription(Answer):
    """No feed has the requested address, so the response describes the service."""


@dataclass(frozen=True, slots=True)
class GetChangedNodes(Request):
    """The nodes that lists show to the actor, by last change, after a place; `max` is that of a result set."""

    max: str | None = None
    after: NodePlace | None = None


@dataclass(frozen=True, slots=True)
class ChangedNodes(Answer):
    """Nodes by last change, the newest first, the place of the last one if others follow, and the number of all."""

    nodes: tuple[Node, ...]
    next: NodePlace | None
    total: int


def node_info(tx: ReadTx, context: Context, request: GetNodeInfo) -> NodeInfo:
    """The description of a node or Smart view for this actor."""
    return _info(tx, context, request.node, locate_for(tx, context, request.node, request.actor))


def _info(tx: ReadTx, context: Context, name: str, located: LocatedNode) -> NodeInfo:
    """Returns the description: with people and counts for readers, else without them, or `PUBLIC_META_DATA` and
    `CLOSED_META_DATA` alone for actors whose lists do not have the node."""
    node = located.node
    error = located.access.reading_error
    if error is not None:
        if not located.access.sees_description:
            is_joinable = error.condition is Condition.CLOSED_NODE
            names = CLOSED_META_DATA if is_joinable else PUBLIC_META_DATA
            public = {name: values for name, values in node.options.stored.items() if name in names}
            closed = Node(node.node_no, node.name, node.kind, "", 0, NodeOptions(node.kind, public))
            return NodeInfo(name, closed, located.view, readable=False, described=False, is_joinable=is_joinable)
        return NodeInfo(name, node, located.view, readable=False)
    governor = governor_of(tx, context, node) or node
    owners, publishers = (
        tuple(jid for jid, _ in tx.affiliations(governor.node_no, KeyRange(SHOWN), kind=kind))
        for kind in (Affiliation.OWNER, Affiliation.PUBLISHER)
    )
    return NodeInfo(
        name,
        node,
        located.view,
        readable=True,
        owners=owners,
        publishers=publishers,
        subscribers=tx.subscription_count(node.node_no),
    )


def address_info(tx: ReadTx, context: Context, request: GetAddressInfo) -> NodeInfo | ServiceDescription:
    """The description of the feed at this address, else of the service (SF-085)."""
    name = request.address_node
    located = None if name is None else find_for(tx, context, name, request.actor)
    if name is None or located is None:
        return ServiceDescription()
    return _info(tx, context, name, located)


def address_items(tx: ReadTx, context: Context, request: GetNodes) -> NodeList | ItemIds:
    """The ids of the items of the feed at this address, else the nodes of the service (SF-085)."""
    name = request.address_node
    located = None if name is None else find_for(tx, context, name, request.actor)
    if name is None or located is None:
        return list_nodes(tx, context, request)
    return _ids(tx, context, GetItemIds(request.actor, request.service, name, request.page), located)


def list_nodes(tx: ReadTx, context: Context, request: GetNodes) -> NodeList:
    """The nodes that this actor may see, by name; UIDs are node names (xep-map 36 to 44)."""
    if request.included_types is not None and request.excluded_types is not None:
        raise FeedError(Condition.BAD_REQUEST, "types are either included or excluded")
    policy = context.policy
    page_plan = policy.plan(request.page) if request.page is not None else PagePlan(policy.page_max)
    if page_plan.offset > SCANNED:
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, f"an index goes up to {SCANNED}: page on after a node name")
    # Nodes that the actor may not know of cost nothing and do not count (xep-map 38).
    bare = request.actor.bare_text
    sees_all = is_admin(policy, request.actor)
    read: _Nodes = tx.nodes if sees_all else partial(tx.listed_nodes, bare)
    total = tx.node_count() if sees_all else tx.listed_count(bare)
    if not page_plan.limit:
        return NodeList((), ResultSet(total))
    result = _search(read, request, replace(page_plan, limit=page_plan.limit + 1))
    nodes = _within(result.nodes, page_plan, policy)
    more = result.reached is not None or len(nodes) < len(result.nodes)
    with_result_set = request.page is not None or more
    if not nodes and result.reached is None:
        return NodeList((), ResultSet(total) if with_result_set else None)
    index = None
    if page_plan.after is None and not page_plan.newest and nodes:
        index = page_plan.offset
        # The page reaches the end, so its items can be counted and nodes of other types need not be.
        total = total if more else index + len(nodes)
    first, last = _ends(nodes, result, page_plan)
    return NodeList(tuple(nodes), ResultSet(total, first, last, index) if with_result_set else None)


def item_ids(tx: ReadTx, context: Context, request: GetItemIds) -> ItemIds:
    """The ids of live items; the newest page if the request has no result set."""
    return _ids(tx, context, request, locate_for(tx, context, request.node, request.actor))


def _ids(tx: ReadTx, context: Context, request: GetItemIds, located: LocatedNode) -> ItemIds:
    located.access.check_read()
    page_plan = context.policy.plan(request.page)
    items, result_set, _ = read_page(tx, context, located.node, BARE, page_plan, brief=True)
    with_result_set = page_plan.always_result_set or result_set.is_longer_than(len(items))
    return ItemIds(request.node, tuple(item.id for item in items), result_set if with_result_set else None)


class _Nodes(Protocol):
    def __call__(self, after: str, limit: int, *, before: str | None, newest: bool) -> list[Node]:
        """See `ReadTx.nodes`."""


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """`reached` is the last node that was examined, if the search stopped before its end."""

    nodes: list[Node]
    reached: str | None = None


def _search(read: _Nodes, request: GetNodes, page_plan: PagePlan) -> _SearchResult:
    """The nodes of a plan that have a requested type, after an examination of about SCANNED nodes at most."""
    nodes: list[Node] = []
    after, before = page_plan.after or "", page_plan.before
    skip, scanned = page_plan.offset, 0
    typed = request.included_types is not None or request.excluded_types is not None
    size = max(page_plan.limit, SCAN_CHUNK) if typed or skip else page_plan.limit
    while len(nodes) < page_plan.limit:
        if scanned >= SCANNED:
            return _SearchResult(nodes, before if page_plan.newest else after)
        chunk = read(after, size, before=before, newest=page_plan.newest)
        scanned += len(chunk)
        of_type = [node for node in chunk if _has_type(node, request)] if typed else chunk
        if page_plan.newest:
            nodes = of_type + nodes
        else:
            dropped = min(skip, len(of_type))
            skip -= dropped
            nodes += of_type[dropped:]
        if len(chunk) < size:
            break
        after, before = (after, chunk[0].name) if page_plan.newest else (chunk[-1].name, before)
    return _SearchResult(nodes[-page_plan.limit :] if page_plan.newest else nodes[: page_plan.limit])


def _has_type(node: Node, request: GetNodes) -> bool:
    kind = node.options.type
    if request.included_types is not None:
        return kind in request.included_types
    return request.excluded_types is None or kind not in request.excluded_types


def _within(nodes: list[Node], page_plan: PagePlan, policy: Policy) -> list[Node]:
    """Returns as many of the requested nodes as fit into one stanza, without those at the far end."""
    nodes = nodes[-page_plan.limit :] if page_plan.newest else nodes[: page_plan.limit]
    characters = sum([len(node.name) + len(node.options.title) for node in nodes])
    domain_bytes = len(policy.domain.encode())  # every entry has it
    if surely_fits(characters, len(nodes), policy.page_bytes - domain_bytes * len(nodes)):
        return nodes
    entry_bytes = domain_bytes + ENTRY_BYTES
    sizes = [written_bytes(node.name) + written_bytes(node.options.title) + entry_bytes for node in nodes]
    count = fitting(reversed(sizes) if page_plan.newest else sizes, policy.page_bytes)
    return nodes[-count:] if page_plan.newest else nodes[:count]


def _ends(nodes: list[Node], result: _SearchResult, page_plan: PagePlan) -> tuple[str, str]:
    """The UIDs from which to continue. A search that stopped early continues where it stopped."""
    reached = result.reached if len(nodes) == len(result.nodes) else None
    names = [node.name for node in nodes] or [result.reached or ""]
    if reached is None:
        return names[0], names[-1]
    return (reached, names[-1]) if page_plan.newest else (names[0], reached)


def get_changed_nodes(tx: ReadTx, context: Context, request: GetChangedNodes) -> ChangedNodes:
    """One page of the list by last change. Admins see all nodes, as in the list by name."""
    jid = None if is_admin(context.policy, request.actor) else request.actor.bare_text
    limit = context.policy.plan(ResultSetRequest(request.max)).limit
    nodes = tx.changed_nodes(jid, limit + 1, request.after)
    total = tx.node_count() if jid is None else tx.listed_count(jid)
    page = nodes[:limit]
    return ChangedNodes(tuple(page), place_of_node(page[-1]) if page and len(nodes) > limit else None, total)


def place_of_node(node: Node) -> NodePlace:
    """Returns the place of a node in the list by last change."""
    return NodePlace(node.last_modified_us, node.name)
