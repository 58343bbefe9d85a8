"""What nodes there are, what they are like, which items they hold (XEP-0030, XEP-0462; xep-map 28 to 44)."""

from dataclasses import replace

from smartfeeds.core.access import AccessModel, reading_refused
from smartfeeds.core.model import Affiliation, Node, SubscriptionState
from smartfeeds.core.options import text_of
from smartfeeds.core.page import Plan, plan
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import (
    Context,
    access_model,
    affiliation_of,
    affiliations_among,
    locate,
    reading_refusal,
)
from smartfeeds.service.pulls import check_readable, fitting, read_page, written_bytes
from smartfeeds.service.requests import (
    GetItemIds,
    GetNodeInfo,
    GetNodes,
    ItemIds,
    NodeInfo,
    NodeList,
    ResultSet,
)
from smartfeeds.store.base import ReadTx

# How many nodes are looked at to fill one page, when many are hidden from the reader or filtered by type.
SCANNED = 10_000
# What everybody who knows the name hears of a node that is not listed to them: so one can ask its owner for access.
TOLD_TO_ALL = frozenset({"type", "access_model"})
SHOWN = 50  # owners, and publishers, that the metadata names: more would not fit in a stanza


def _shown(affiliation: Affiliation, model: AccessModel) -> bool:
    """Outcasts and outsiders of a whitelist do not see a node; an authorize node is there to be asked for."""
    refused = reading_refused(affiliation, model, SubscriptionState.NONE)
    return refused is None or refused.condition is Condition.NOT_SUBSCRIBED_READER


# The access models, as options write them, whose nodes are listed to an entity of this affiliation.
_SHOWN_TO = {
    affiliation: frozenset(model.value for model in AccessModel if _shown(affiliation, model))
    for affiliation in Affiliation
}


def node_info(tx: ReadTx, context: Context, request: GetNodeInfo) -> NodeInfo:
    """A node or Smart view as it is announced to this entity."""
    located = locate(tx, request.node)
    node = located.node
    if reading_refusal(tx, context, node, request.actor) is not None:
        if not _shown(affiliation_of(tx, context, node, request.actor), access_model(node)):
            told = {name: values for name, values in node.options.items() if name in TOLD_TO_ALL}
            closed = Node(node.node_no, node.name, node.kind, "", 0, told)
            return NodeInfo(request.node, closed, located.view, readable=False, described=False)
        return NodeInfo(request.node, node, located.view, readable=False)
    held = tx.affiliations(node.node_no)
    return NodeInfo(
        request.node,
        node,
        located.view,
        readable=True,
        owners=tuple(jid for jid, affiliation in held if affiliation is Affiliation.OWNER)[:SHOWN],
        publishers=tuple(jid for jid, affiliation in held if affiliation is Affiliation.PUBLISHER)[:SHOWN],
        subscribers=tx.subscription_count(node.node_no),
    )


def list_nodes(tx: ReadTx, context: Context, request: GetNodes) -> NodeList:
    """The nodes this entity may see, by name; UIDs are node names (xep-map 36 to 44)."""
    if request.included_types is not None and request.excluded_types is not None:
        raise FeedError(Condition.BAD_REQUEST, "types are either included or excluded")
    policy = context.policy
    wanted = plan(request.page, None, page_default=policy.page_default, page_max=policy.page_max)
    if request.page is None:
        wanted = Plan(policy.page_max)
    if wanted.offset > SCANNED:
        raise FeedError(Condition.FEATURE_NOT_IMPLEMENTED, f"an index goes up to {SCANNED}: page on after a node name")
    total = tx.node_count()
    if not wanted.limit:
        return NodeList((), ResultSet(total))
    nodes, more = _page(tx, context, request, wanted)
    if not nodes:
        return NodeList((), ResultSet(total) if request.page else None)
    index = None
    if wanted.after is None and not wanted.newest:
        index = wanted.offset
        # The end was seen, so the nodes hidden from this entity need not be counted.
        total = total if more else index + len(nodes)
    result_set = ResultSet(total, nodes[0].name, nodes[-1].name, index)
    told = request.page is not None or more
    return NodeList(tuple(nodes), result_set if told else None)


def item_ids(tx: ReadTx, context: Context, request: GetItemIds) -> ItemIds:
    """The ids of live items, the newest page when nothing else was asked (X10)."""
    located = locate(tx, request.node)
    check_readable(tx, context, located.node, request.actor)
    policy = context.policy
    wanted = plan(request.page, None, page_default=policy.page_default, page_max=policy.page_max)
    items, result_set = read_page(tx, context, located.node, BARE, wanted)
    told = wanted.set_wanted or result_set.count > len(items)
    return ItemIds(request.node, tuple(item.id for item in items), result_set if told else None)


def _page(tx: ReadTx, context: Context, request: GetNodes, wanted: Plan) -> tuple[list[Node], bool]:
    """The nodes of a page, as many as one stanza carries, and whether there are more behind them."""
    found, cut = _visible(tx, context, request, replace(wanted, limit=wanted.limit + 1))
    nodes = found[-wanted.limit :] if wanted.newest else found[: wanted.limit]
    sizes = [written_bytes(node.name) + written_bytes(_title(node)) + 60 for node in nodes]
    kept = fitting(reversed(sizes) if wanted.newest else sizes, context.policy.page_bytes)
    nodes = nodes[-kept:] if wanted.newest else nodes[:kept]
    return nodes, cut or len(nodes) < len(found)


def _title(node: Node) -> str:
    return text_of(node.kind, node.options, "title")


def _visible(tx: ReadTx, context: Context, request: GetNodes, wanted: Plan) -> tuple[list[Node], bool]:
    """Nodes of a page that the reader may see and that have a wanted type; hidden ones are passed over. And whether
    the search was given up before the end."""
    found: list[Node] = []
    after, before = wanted.after or "", wanted.before
    skip, scanned = wanted.offset, 0
    while len(found) < wanted.limit and scanned < SCANNED:
        chunk = tx.nodes(after, wanted.limit, before=before, newest=wanted.newest)
        if not chunk:
            break
        scanned += len(chunk)
        held = affiliations_among(tx, context, chunk, request.actor)
        shown = [node for node, mine in zip(chunk, held, strict=True) if _listed(node, mine, request)]
        if wanted.newest:
            found = shown + found
            before = chunk[0].name
        else:
            dropped = min(skip, len(shown))
            skip -= dropped
            found += shown[dropped:]
            after = chunk[-1].name
    cut = len(found) < wanted.limit and scanned >= SCANNED
    return (found[-wanted.limit :] if wanted.newest else found[: wanted.limit]), cut


def _listed(node: Node, affiliation: Affiliation, request: GetNodes) -> bool:
    if request.included_types is not None or request.excluded_types is not None:
        kind = text_of(node.kind, node.options, "type")
        if request.included_types is not None and kind not in request.included_types:
            return False
        if request.excluded_types is not None and kind in request.excluded_types:
            return False
    return text_of(node.kind, node.options, "access_model") in _SHOWN_TO[affiliation]
