"""What a use case works with besides the transaction: the service's policy, the time, fresh ids, and who acts.

A use case is a function `(tx, context, request) -> answer`. It runs in the store's thread and touches nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from smartfeeds.core.access import reading_refused
from smartfeeds.core.cursor import Cursor
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, Node, SubscriptionState
from smartfeeds.core.options import AccessModel, NodeKind, OptionLimits, PublishModel
from smartfeeds.core.view import BARE, View, canonical, parse_view, shared_splits, split_name
from smartfeeds.errors import Condition, FeedError
from smartfeeds.store.base import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator decided. `creators` and `admins` hold addresses, domains (creators only) or `*`."""

    domain: str
    default_kind: NodeKind = NodeKind.FEED
    creators: frozenset[str] = frozenset({"*"})
    admins: frozenset[str] = frozenset()
    auto_create: bool = False
    page_default: int = 50
    page_max: int = 500
    page_bytes: int = 204_800
    span_cursors: bool = True
    subscriptions_per_jid: int = 10_000
    subscriptions_per_jid_and_node: int = 50
    filters_per_jid: int = 50
    nodes_per_jid: int = 1_000
    subscriptions_per_domain: int = 1_000_000
    nodes_per_domain: int = 1_000_000
    options: OptionLimits = field(default_factory=OptionLimits)


@dataclass(slots=True)
class Context:
    """One run of a use case, and what is to happen once it is over: a work may be run twice, so it does nothing itself.

    `changed` collects the nodes with something to push after the commit, `degraded` the cursors that did not check.
    """

    policy: Policy
    now_us: int
    new_id: Callable[[], str]
    changed: set[int] = field(default_factory=set)
    degraded: set[Cursor] = field(default_factory=set)


class IndexBehindError(Exception):
    """A work needs the filter index of a node brought up to date first; `FeedService` does that and runs it again."""

    def __init__(self, node_no: int) -> None:
        super().__init__(node_no)
        self.node_no = node_no


@dataclass(frozen=True, slots=True)
class Located:
    """A node name resolved: the node, and the view of it that the name asks for."""

    node: Node
    view: View


# Whether a node exists for somebody.
Exists = Callable[[Node], bool]


def everywhere(_node: Node) -> bool:
    """For the operator every node exists."""
    return True


def existing_for(tx: ReadTx, context: Context, actor: Jid) -> Exists:
    """Returns a test for the nodes that an entity may know of. For all other nodes it gets the answers of a missing
    node, on every wire."""

    def exists(node: Node) -> bool:
        if node.options.listed:
            return True
        affiliation = affiliation_of(tx, context, node, actor)
        if affiliation is Affiliation.NONE:
            # Access may have been closed after the entity subscribed.
            open_to_publish = node.options.publish_model is PublishModel.OPEN
            return open_to_publish or standing_of(tx, node, actor) is not SubscriptionState.NONE
        return affiliation is not Affiliation.OUTCAST

    return exists


def no_such_node() -> FeedError:
    """The same error for a node that does not exist and for one that the asker may not know of."""
    return FeedError(Condition.ITEM_NOT_FOUND, "no such node, or it is closed to you")


def locate(tx: ReadTx, name: str | None, exists: Exists = everywhere) -> Located:
    """The node and view of a NodeID: an exact match first, then a feed with parameters behind its name (D17; 47 to 53).

    Raises FeedError: NODEID_REQUIRED, ITEM_NOT_FOUND (no such node, or parameters that this feed does not know).
    """
    found = find(tx, name, exists)
    if found is None and exists is everywhere:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"no such node: {name}")
    if found is None:
        raise no_such_node()
    return found


def find(tx: ReadTx, name: str | None, exists: Exists = everywhere) -> Located | None:
    """As `locate`, but None where no node has this name and it is no view of one."""
    if not name:
        raise FeedError(Condition.NODEID_REQUIRED, "the name of the node is missing")
    node = tx.node(name)
    if node is not None and exists(node):
        return Located(node, BARE)
    split = split_name(name)
    if split is None:
        return None
    base = _feed(tx, split[0], exists)
    view = parse_view(split[1]) if base is not None else None
    if base is not None and view is not None:
        return Located(base, view)
    # The name of a feed may hold a query string of its own, which the parameters are then appended to (SF-087).
    for text, query in shared_splits(name):
        longer = _feed(tx, text, exists)
        view = parse_view(query) if longer is not None else None
        if longer is not None and view is not None:
            return Located(longer, view)
    if base is not None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "this feed has no such parameter or value")
    return None


def _feed(tx: ReadTx, name: str, exists: Exists) -> Node | None:
    node = tx.node(name)
    return node if node is not None and node.kind is NodeKind.FEED and exists(node) else None


def feed_locked(tx: WriteTx, name: str) -> Node:
    """The feed of this name, for items that are brought into it, and nobody else changes it before this is done.

    Raises FeedError: ITEM_NOT_FOUND, NOT_ALLOWED for a node of another kind.
    """
    node = tx.lock(name)
    if node is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"no such node: {name}")
    if node.kind is not NodeKind.FEED:
        raise FeedError(Condition.NOT_ALLOWED, "items are brought into feeds, and this node is a generic one")
    return node


def affiliation_of(tx: ReadTx, context: Context, node: Node, actor: Jid) -> Affiliation:
    """The affiliation in force; admins of the service own every node."""
    bare = str(actor.bare)
    if bare in context.policy.admins:
        return Affiliation.OWNER
    return tx.affiliation(node.node_no, bare)


def standing_of(tx: ReadTx, node: Node, actor: Jid) -> SubscriptionState:
    """The best state among the actor's subscriptions to the node: its bare address and its resource count."""
    bare = str(actor.bare)
    mine = {bare, str(actor)}
    states = [found.state for found in tx.subscriptions_on(node.node_no, bare) if found.jid in mine]
    for state in (SubscriptionState.SUBSCRIBED, SubscriptionState.PENDING):
        if state in states:
            return state
    return SubscriptionState.NONE


def reading_refusal(tx: ReadTx, context: Context, node: Node, actor: Jid) -> FeedError | None:
    """Why the actor may not retrieve from the node, or None where it may (xep-map 184, 185)."""
    model = access_model(node)
    state = standing_of(tx, node, actor) if model is AccessModel.AUTHORIZE else SubscriptionState.NONE
    return reading_refused(affiliation_of(tx, context, node, actor), model, state)


def access_model(node: Node) -> AccessModel:
    """The access model in force."""
    return node.options.access_model


def view_key(located: Located) -> str:
    """The canonical text under which subscriptions to this view are kept."""
    return canonical(located.view)
