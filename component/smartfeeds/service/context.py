"""The context of a use case besides the transaction: the policy, the time, new ids, the hooks of features, and the
node that a name stands for.

A use case is a function `(tx, context, request) -> answer`. It runs in the store's thread, so it must not await, log
or use anything but its arguments. Hooks are functions of features that use cases of the kernel call with their context,
in the same transaction. This module also resolves node names (XEP-0060, SF-086) for actors and operators.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from smartfeeds.core.access import Access
from smartfeeds.core.attachment_names import GOVERNED, canonical_name, target_node
from smartfeeds.core.blocklist import Refusal
from smartfeeds.core.jid import ANONYMOUS, Jid
from smartfeeds.core.model import MAX_ITEM_NO, MAX_SYNC_BYTES, Affiliation, Edge, Item, Node, Slice, SubscriptionState
from smartfeeds.core.options import AccessModel, NodeKind, NodeOptions, OptionLimits
from smartfeeds.core.page import PagePlan, ResultSetRequest, plan
from smartfeeds.core.person import Person
from smartfeeds.core.position import Cursor
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import BARE, View, canonical, parse_view, shared_splits, split_name
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.service.personal import PersonalData, PersonalTable
from smartfeeds.service.requests.items import LocalFile
from smartfeeds.store.base import ReadTx, WriteTx

H = TypeVar("H")
P = TypeVar("P")

REQUEST_MARGIN_BYTES = 16_384  # what stands around an item


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's settings.

    `creators`, `contacts` and `admins` hold addresses, the first two also domains or `*`. `hides_closed`: a whitelist
    node does not exist for those who are not on its list. `restarts`: a process manager
    starts the service again when it exits for a restart. `base_url` is the address of the site over HTTP, "" if the
    operator has set none. `of_features` are the settings of features, by their type (`find`).
    """

    domain: str
    default_kind: NodeKind = NodeKind.FEED
    creators: frozenset[str] = frozenset({"*"})
    contacts: frozenset[str] = frozenset({"*"})
    admins: frozenset[str] = frozenset()
    auto_create: bool = False
    owners_subscribe_others: bool = False
    hides_closed: bool = False
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
    restarts: bool = False
    base_url: str = ""
    contacts_per_jid: int = 100
    contacts_per_domain: int = 100_000
    files_bytes_per_jid: int = 268_435_456
    sources_per_jid: int = 200
    of_features: tuple[object, ...] = ()
    options: OptionLimits = field(default_factory=OptionLimits)

    @property
    def max_request_bytes(self) -> int:
        """The size of the largest request that may carry an item, with its history and its conflicts."""
        # Character references make a payload longer on the wire than in the store.
        return 2 * self.options.max_payload_size_bytes + MAX_SYNC_BYTES + REQUEST_MARGIN_BYTES

    def find(self, kind: type[P]) -> P | None:
        """The settings of a feature, None if it is off."""
        return next((settings for settings in self.of_features if isinstance(settings, kind)), None)

    def plan(
        self, page: ResultSetRequest | None, max_items: str | None = None, *, descending: bool = False
    ) -> PagePlan:
        """The plan of a page within the limits of this service. Raises FeedError(BAD_REQUEST)."""
        return plan(page, max_items, page_default=self.page_default, page_max=self.page_max, descending=descending)


def is_admin(policy: Policy, actor: Jid) -> bool:
    """Whether an actor is an admin of the service."""
    return actor.bare_text in policy.admins


def refusal_of(tx: ReadTx, policy: Policy, jid: Jid) -> Refusal | None:
    """Returns the reason for which a user may not use the service, None if it may. The service itself, admins and
    readers without an address are always admitted."""
    if jid == ANONYMOUS or jid.domain == policy.domain:
        return None
    refusal = tx.refusal(jid.bare_text, jid.domain)
    # An admin could not correct a list that excludes every admin.
    return None if refusal is not Refusal.ERASING and is_admin(policy, jid) else refusal


def check_admitted(tx: ReadTx, policy: Policy, actor: Jid) -> None:
    """Raises FeedError(FORBIDDEN) if an actor may not use the service (OPS-061). Every request begins here."""
    # One look-up for all works of a transaction.
    if actor.bare_text not in tx.admitted:
        refusal = refusal_of(tx, policy, actor) if tx.blocks_version() else None
        if refusal is not None:
            raise FeedError(Condition.FORBIDDEN, refusal.value)
        tx.admitted.add(actor.bare_text)


def admits(allowed: frozenset[str], actor: Jid) -> bool:
    """Whether a setting with addresses, domains or `*` includes an actor."""
    return not allowed.isdisjoint(("*", actor.bare_text, actor.domain))


# Parameters: the transaction, the context, and the person. Returns the numbers of rows by kind, for the report.
Erase = Callable[[WriteTx, "Context", Person], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Personal:
    """The tables of the kernel or of a feature, and what it does with the data of a person in them."""

    tables: tuple[PersonalTable, ...] = ()
    erase: Erase | None = None
    """Changes columns with the use OWN, with the rows of the person."""
    erase_after_items: Erase | None = None
    """As `erase`, when the items of the person are erased."""
    export: Callable[[ReadTx, str], Mapping[str, Mapping[str, Any]]] | None = None
    """Returns JSON values of a bare JID, by the name of a file of the export and their own names."""
    unconfirmed: Callable[[ReadTx], Iterable[tuple[str, str]]] | None = None
    """Yields feeds elsewhere that never confirm a deletion: the name of the node that they fill, and their address."""


class Origin(NamedTuple):
    """A feed elsewhere that fills a node: its address, and its title if it is known.

    The ids of its items are made of `first_address` and their own ids (`formats.atom.digest_id`); empty: they are the
    ids of the items. Readers of the node do not see an origin that is not `visible`. A subscription list names those
    that are `listed`, for others to follow. `quiet_us` are the first and the last key of the items that came with its
    first document: people are not told of each of them. `fails`: nothing comes from it at the moment.
    """

    address: str
    title: str = ""
    first_address: str = ""
    visible: bool = True
    listed: bool = False
    quiet_us: tuple[int, int] | None = None
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of the kernel or of a feature, or of all of them joined.

    `node_removed` is called in the transaction in which a node loses its name, and `item_erased` in that in which the
    item of a person is erased, with the former item. `origins` returns the feeds elsewhere that fill a node of this
    name. `local_files` returns the files of items of a node that the service has loaded. `personal` are the tables,
    and the data of persons in them. `of_features` are hooks that a feature has for others, by their type.
    """

    node_removed: tuple[Callable[[WriteTx, "Context", Node], None], ...] = ()
    item_erased: tuple[Callable[[WriteTx, "Context", Node, Item], None], ...] = ()
    origins: tuple[Callable[[ReadTx, str], Iterable[Origin]], ...] = ()
    local_files: tuple[Callable[[ReadTx, "Context", Node, tuple[Item, ...]], Iterable[LocalFile]], ...] = ()
    personal: tuple[Personal, ...] = ()
    of_features: tuple[object, ...] = ()

    def __or__(self, others: "Hooks") -> "Hooks":
        """These hooks, and others behind them."""
        return Hooks(
            self.node_removed + others.node_removed,
            self.item_erased + others.item_erased,
            self.origins + others.origins,
            self.local_files + others.local_files,
            self.personal + others.personal,
            self.of_features + others.of_features,
        )

    @property
    def personal_data(self) -> PersonalData:
        """The data of persons in all tables."""
        return PersonalData({table.name: table for part in self.personal for table in part.tables})

    def origins_of(self, tx: ReadTx, node: str) -> list[Origin]:
        """Returns the feeds elsewhere that fill a node."""
        return [origin for find in self.origins for origin in find(tx, node)]

    def local_files_of(
        self, tx: ReadTx, context: "Context", node: Node, items: tuple[Item, ...]
    ) -> tuple[LocalFile, ...]:
        """Returns the files of items that the service has loaded."""
        return tuple(file for find in self.local_files for file in find(tx, context, node, items))

    def of(self, kind: type[H]) -> list[H]:
        """Returns the hooks that features have brought for another one, those of this type."""
        return [hook for hook in self.of_features if isinstance(hook, kind)]


NO_HOOKS: Final = Hooks()


class NewReply(NamedTuple):
    """An entry that was published as an answer to another one: its feed, its item id, and who published it."""

    node: str
    item_id: str
    actor: Jid


@dataclass(slots=True)
class Context:
    """One run of a use case. It collects what must happen after the commit, because the store may run a use case twice.

    `changed` are the numbers of the nodes with changes to deliver, `degraded` the cursors whose checksum did not match.
    `damaged` are the node, id and time of change of the damaged items that were read (`service.damage`). `hooks` are
    what features do in use cases of the kernel. `replies` are the published entries that may answer others.
    """

    policy: Policy
    now_us: int
    new_id: Callable[[], str]
    changed: set[int] = field(default_factory=set)
    degraded: set[Cursor] = field(default_factory=set)
    damaged: tuple[tuple[str, str, int], ...] = ()
    hooks: Hooks = NO_HOOKS
    replies: tuple[NewReply, ...] = ()


@dataclass(frozen=True, slots=True)
class LocatedNode:
    """A node name resolved: the node, the view of it that the name asks for, and what the actor may do there.

    The node shows the models that decide about access: for attachments those of another node (`governor_of`).
    """

    node: Node
    view: View
    access: Access

    def __post_init__(self) -> None:
        if self.access.options is not self.node.options:
            options = self.node.options.with_models(self.access.options)
            object.__setattr__(self, "node", self.node._replace(options=options))

    @property
    def view_text(self) -> str:
        """The canonical text of the view, under which subscriptions to it are stored."""
        return canonical(self.view) if self.view.smart else ""

    def check_view(self) -> None:
        """Raises FeedError(FORBIDDEN) if the view is not for the actor, who may read the node."""
        error = self.access.history_error if self.view.sync else None
        if error is not None:
            raise error

    def check_read(self) -> None:
        """Raises FeedError if the actor may not retrieve items of the view."""
        if not self.access.may_read:
            self.access.check_read()
        if self.view.sync:
            self.check_view()


def affiliation_of(tx: ReadTx, context: Context, node: Node, actor: Jid) -> Affiliation:
    """The affiliation in force. Admins of the service own every node."""
    governor = governor_of(tx, context, node)
    if governor is None:
        return Affiliation.OWNER if is_admin(context.policy, actor) else Affiliation.NONE
    return _own_affiliation(tx, context, governor, actor)


def _own_affiliation(tx: ReadTx, context: Context, node: Node, actor: Jid) -> Affiliation:
    bare = actor.bare_text
    return Affiliation.OWNER if bare in context.policy.admins else tx.affiliation(node.node_no, bare)


def governor_of(tx: ReadTx, context: Context, node: Node) -> Node | None:
    """Returns the node whose people and models decide about access: for attachments, the node of their items (XEP-0470
    4.4), for other nodes the node itself.

    Returns None for attachments of a former node, which are still to be removed. Numbers of nodes grow, so attachments
    have greater numbers than their node.
    """
    if not node.name.startswith(GOVERNED):
        return node
    name = target_node(node.name, context.policy.domain)
    if name is None:
        return node
    target = tx.node(name)
    return target if target is not None and target.node_no < node.node_no else None


class OverdueItems(Exception):  # noqa: N818 - a use case that raises it runs again, so it is no error
    """The node has items that have expired: those up to a key of the modified order. The service removes them and runs
    the use case again (`service.expiry`)."""

    def __init__(self, node_no: int, before_us: int) -> None:
        super().__init__(node_no, before_us)
        self.node_no = node_no
        self.before_us = before_us


def _expired_until_us(context: Context, node: Node) -> int | None:
    """The key of the modified order up to which the items of a node have expired, None if they do not expire."""
    if node.kind is NodeKind.FEED or node.options.item_expire is None:
        return None
    return context.now_us - node.options.item_expire * US_PER_S


def find_overdue(tx: ReadTx, context: Context, node: Node) -> OverdueItems | None:
    """Returns what has expired on a node, or None. The cost is one look-up for a node whose items expire."""
    before_us = _expired_until_us(context, node)
    oldest = [] if before_us is None else tx.slice(node.node_no, Slice(BARE, 1))
    if before_us is None or not oldest or oldest[0].modified_us > before_us:
        return None
    return OverdueItems(node.node_no, before_us)


def check_expired(tx: ReadTx, context: Context, node: Node) -> None:
    """Raises OverdueItems if the node has items that have expired. Everything that reads items begins here."""
    if (overdue := find_overdue(tx, context, node)) is not None:
        raise overdue


def expired_count(tx: ReadTx, context: Context, node: Node) -> int:
    """The number of stored items of a node that have expired, for lists of nodes: these only read, and do not wait for
    the removal. The cost grows with the number."""
    before_us = _expired_until_us(context, node)
    return 0 if before_us is None else tx.count(node.node_no, BARE, before=Edge(before_us, MAX_ITEM_NO))


def with_contact(tx: ReadTx, context: Context, access: Access, actor: Jid) -> Access:
    """Reads whether an actor is a contact of the service, if the access depends on it.

    Nobody counts as a contact while everybody may become one: nodes that were closed before must not open.
    """
    policy = context.policy
    if not (access.depends_on_contact and policy.options.presence_access):
        return access
    return replace(access, is_contact=tx.contact(policy.domain, actor.bare_text) is not None)


# For nodes that do not exist any more.
NO_ACCESS = Access(Affiliation.OUTCAST, NodeOptions(NodeKind.GENERIC, {"access_model": (AccessModel.WHITELIST.value,)}))


def access_of(tx: ReadTx, context: Context, node: Node, actor: Jid) -> Access:
    """Reads what an actor may do on a node. Every request of an actor for a node begins here.

    Raises OverdueItems if the node has items that have expired.
    """
    if node.options.item_expire is not None:
        check_expired(tx, context, node)
    # The works of a transaction that ask for the same share one answer. Affiliations and options change the audience
    # number of their node. An answer that depends on subscriptions is not shared, because their leases end and they
    # belong to resources, nor one that depends on another node. Contacts count only where subscriptions count, too.
    key = node.node_no, actor.bare_text
    at_audience, known = tx.accesses.get(key, (-1, NO_ACCESS))
    if at_audience == node.audience and known.options is node.options:
        return known
    governor = governor_of(tx, context, node) if node.name.startswith(GOVERNED) else node
    if governor is None:
        return NO_ACCESS
    if governor is not node:
        check_expired(tx, context, governor)  # the attachments of its items go with them
    access = _access_by(tx, context, governor, actor)
    if governor is node and not access.depends_on_subscription:
        tx.accesses[key] = node.audience, access
    return access


def recipient_access(
    tx: ReadTx, context: Context, node: Node, jid: Jid, subscription: SubscriptionState | None = None
) -> Access:
    """Reads what a user may do on a node, as `access_of` does, but does not look for expired items.

    `subscription` is the best state among the user's subscriptions to the node if the caller knows it. For attachments,
    the subscription to the node of their items decides.
    """
    governor = governor_of(tx, context, node)
    if governor is None:
        return NO_ACCESS
    return _access_by(tx, context, governor, jid, subscription if governor is node else None)


def _access_by(
    tx: ReadTx, context: Context, governor: Node, jid: Jid, subscription: SubscriptionState | None = None
) -> Access:
    """Reads what a user may do on a node that decides itself (`governor_of`)."""
    affiliation = _own_affiliation(tx, context, governor, jid)
    # Users with the same affiliation share one access. Most users have no affiliation.
    key = governor.node_no, affiliation
    access = tx.shared_accesses.get(key)
    if access is None or access.options is not governor.options:
        hides_closed = context.policy.hides_closed
        access = tx.shared_accesses[key] = Access(affiliation, governor.options, hides_closed=hides_closed)
    if not access.depends_on_subscription:  # nor on a contact
        return access
    access = with_contact(tx, context, access, jid)
    if subscription is None:
        bare = jid.bare_text
        # A subscription of another resource of the user does not count.
        states = {
            sub.state
            for sub in tx.subscriptions_on(governor.node_no, bare, now_us=context.now_us)
            if sub.jid in (bare, str(jid))
        }
        best = (state for state in (SubscriptionState.SUBSCRIBED, SubscriptionState.PENDING) if state in states)
        subscription = next(best, SubscriptionState.NONE)
    # Readers without an address cannot ask for membership. A closed node does not exist for them in any case, so a
    # crawler that guesses names learns nothing.
    return replace(access, subscription=subscription, hides_closed=access.hides_closed or jid == ANONYMOUS)


def no_such_node(tx: ReadTx, name: str | None) -> FeedError:
    """The same error for a node that does not exist and for one that the actor may not know of; another one for a
    deleted node that has a new address (XEP-0060 6.1.3.12)."""
    uri = tx.redirect(name) if name else None
    if uri is None and name and (split := split_name(name)) is not None:
        uri = tx.redirect(split[0])
    if uri is not None:
        return FeedError(Condition.GONE, f"the node has moved to {uri}", uri=uri)
    return FeedError(Condition.ITEM_NOT_FOUND, "no such node, or it is closed to you")


def locate_for(tx: ReadTx, context: Context, name: str | None, actor: Jid) -> LocatedNode:
    """Resolves a node name for an actor. Nodes that the actor may not know of do not exist for it, on every wire.

    Raises FeedError as `locate` does.
    """
    node = tx.node(name) if name else None
    if node is not None:  # as `find`, without its calls for most names
        access = access_of(tx, context, node, actor)
        if access.options.listed or access.knows_node:
            return LocatedNode(node, BARE, access)
    located = find_for(tx, context, name, actor)
    if located is None:
        raise no_such_node(tx, name)
    return located


def find_for(tx: ReadTx, context: Context, name: str | None, actor: Jid) -> LocatedNode | None:
    """Resolves a node name as `locate_for` does, but returns None where no node has this name."""
    return find(tx, name, partial(access_of, tx, context, actor=actor))


def locate(tx: ReadTx, name: str | None) -> LocatedNode:
    """Resolves a node name for the operator: an exact match first, then a feed with parameters behind its name.

    Raises FeedError: NODEID_REQUIRED, ITEM_NOT_FOUND (no such node, or parameters that this feed does not know).
    """
    located = find(tx, name)
    if located is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"no such node: {name}")
    return located


def find(
    tx: ReadTx,
    name: str | None,
    # The operator owns every node.
    access_to: Callable[[Node], Access] = lambda node: Access(Affiliation.OWNER, node.options),
) -> LocatedNode | None:
    """Resolves a node name as `locate` does, but returns None if no node has this name and it is no view of one."""
    if not name:
        raise FeedError(Condition.NODEID_REQUIRED, "the name of the node is missing")
    node = tx.node(name)
    if node is not None:
        access = access_to(node)
        if access.knows_node:
            return LocatedNode(node, BARE, access)
    elif (alias := canonical_name(name)) != name:
        return find(tx, alias, access_to)
    split = split_name(name)
    if split is None:
        return None
    # The name of a feed may contain a query string, to which the parameters of a view are appended (SF-087).
    feed_found = False
    for text, query in (split, *shared_splits(name)):
        node = tx.node(text)
        if node is None:
            continue
        access = access_to(node)
        if not access.knows_node:
            continue
        view = view_of(node, query)
        if view is not None:
            return LocatedNode(node, view, access)
        # On a generic node other names with a question mark are free for nodes, as XEP-0060 lets them be.
        feed_found = feed_found or (text == split[0] and node.kind is NodeKind.FEED)
    if feed_found:
        raise FeedError(Condition.ITEM_NOT_FOUND, "this feed has no such parameter or value")
    return None


def view_of(node: Node, query: str) -> View | None:
    """Returns the view of a node that a query string names, None if the node has no such view: items of generic nodes
    have no sync data. Raises FeedError(BAD_REQUEST) for the reserved names (`core.view.parse_view`)."""
    view = parse_view(query)
    return None if view is not None and view.sync and node.kind is not NodeKind.FEED else view


def check_persistent(node: Node) -> None:
    """Raises FeedError(UNSUPPORTED) for a node that stores no items (XEP-0060 6.5.9.8, 7.2.3.5, 8.5.3.3).

    Items from before the node became transient can still be read and removed.
    """
    if not node.options.persist_items and not node.live:
        raise unsupported("persistent-items", "this node stores no items")


def lock_located(tx: WriteTx, located: LocatedNode) -> Node:
    """Returns the node, locked until the transaction ends. Raises FeedError(ITEM_NOT_FOUND) if it is gone."""
    node = tx.lock(located.node.name)
    if node is None:
        raise no_such_node(tx, located.node.name)
    return node


def feed_locked(tx: WriteTx, name: str) -> Node:
    """Returns the feed of this name, locked until the transaction ends, for items that are brought into it.

    Raises FeedError: ITEM_NOT_FOUND, NOT_ALLOWED for a node of another kind.
    """
    node = tx.lock(name)
    if node is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"no such node: {name}")
    if node.kind is not NodeKind.FEED:
        raise FeedError(Condition.NOT_ALLOWED, "items are brought into feeds, and this node is a generic one")
    return node
