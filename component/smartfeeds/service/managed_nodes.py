"""The nodes that a user manages, for administration from a chat client, in pages and by the command line."""

from dataclasses import dataclass

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, IndexState, KeyRange, Node, NodeKind
from smartfeeds.core.options import KIND, PUBSUB, AccessModel
from smartfeeds.core.times import format_second
from smartfeeds.core.urls import ADMIN_FEEDS, entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, expired_count, is_admin, locate_for
from smartfeeds.service.paged_lists import PagedList, listed_bytes, number_in, page_of
from smartfeeds.service.requests import Answer, CreateNode, NodeCreated, NodeRequest
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    Brief,
    Caller,
    Column,
    Field,
    Fields,
    Form,
    ListAnswer,
    ListCommand,
    ListRequest,
    Resource,
    TablePage,
    reader,
)
from smartfeeds.service.standing import Standing
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_


@dataclass(frozen=True, slots=True)
class ListManagedNodes(ListRequest):
    """The nodes that the actor manages: all nodes for an admin, by name, else those that it owns, by age."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node with its counts. `deleted` are tombstones, `subscriptions` those in state subscribed."""

    node: Node
    items: int
    deleted: int
    subscriptions: int


@dataclass(frozen=True, slots=True)
class GetManagedNode(NodeRequest):
    """A node that the actor manages."""


@dataclass(frozen=True, slots=True)
class ManagedNode(Answer):
    """A node with its counts. `affiliations` counts them all, `conflicts` the items with unsettled versions, and
    `index_current` says whether the filter index has every item, if somebody has read a filtered view."""

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
    return ManagedNode(summary_of(tx, context, node), *counts, tx.index_state(node.node_no) is not IndexState.BEHIND)


def list_managed(tx: ReadTx, context: Context, request: ListManagedNodes) -> ListAnswer[NodeSummary]:
    """The nodes that the actor manages, with their counts."""
    nodes, result_set = (
        page_of(_all(tx), request.page, context.policy)
        if is_admin(context.policy, request.actor)
        else page_of(_owned(tx, request.actor.bare_text), request.page, context.policy)
    )
    return ListAnswer(tuple(summary_of(tx, context, node) for node in nodes), result_set)


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

    return PagedList(number_in, read, _listed_bytes, lambda: tx.owned_count(bare))


def _listed_bytes(node: Node) -> int:
    return listed_bytes(node.name, node.options.title)


async def _create(caller: Caller, fields: Fields) -> ActionResult:
    form = {PUBSUB + name: (fields[name],) for name in ("title", "access_model") if fields.get(name)}
    name = fields.get("name", "")
    if not name:
        raise FeedError(Condition.BAD_REQUEST, "the feed needs a name")
    kind = fields.get("kind", NodeKind.FEED.value)
    request = CreateNode(caller.actor, caller.service, name, {KIND: (kind,), **form})
    node = (await caller.ask(request, NodeCreated)).node
    return ActionResult(done="created", path=entry_path(node, folder=ADMIN_FEEDS))


_MODELS = (
    (AccessModel.OPEN.value, N_("Everybody")),
    (AccessModel.AUTHORIZE.value, N_("Users whom an owner has approved")),
    (AccessModel.WHITELIST.value, N_("Members only")),
)


def _form(_actor: Jid, standing: Standing) -> Form | None:
    if not standing.creator:
        return None
    return Form(
        N_("Create a feed"),
        N_("Create"),
        (
            Field("name", N_("Name"), required=True, hint=N_("The name in the address; it stays")),
            Field("title", N_("Title")),
            Field("access_model", N_("Who may subscribe and retrieve"), "choice", choices=_MODELS),
            Field("kind", N_("Kind"), "choice", choices=tuple((kind.value, kind.value) for kind in NodeKind)),
        ),
    )


NODES: Resource[NodeSummary] = Resource(
    "feeds",
    "node",
    (
        Column("node", lambda entry: entry.node.name, "Node", heading=N_("Name")),
        Column("title", None, "Title", text=lambda entry: entry.node.options.title),
        Column("kind", lambda entry: entry.node.kind.value, "Kind"),
        Column("items", lambda entry: entry.items, "Items", "number", heading=N_("Entries")),
        Column("deleted", lambda entry: entry.deleted, N_("Deleted"), "number"),
        Column("subscriptions", lambda entry: entry.subscriptions, N_("Subscriptions"), "number"),
        Column("created", lambda entry: format_second(entry.node.created_us), N_("Created"), "time"),
        Column("creator", lambda entry: entry.node.creator, "Creator", heading=N_("Created by")),
    ),
    empty="There are no nodes.",
    brief=Brief(("node", "kind", "items", "subscriptions", "created")),
    read=reader(ListManagedNodes),
    command=ListCommand(
        "list-nodes", "List nodes", ("node", "title", "kind", "items", "deleted", "subscriptions", "creator")
    ),
    table=TablePage(
        N_("Feeds"),
        N_("The feeds that you manage, with their entries and subscriptions."),
        N_("You own no feed yet."),
        ("node", "items", "deleted", "subscriptions", "creator", "created"),
        links=True,
    ),
    actions=(Action("create", _create, form=_form),),
)
