"""Creates, configures and deletes nodes, and decides which names are free (XEP-0060 8.1 to 8.4; xep-map 51, 56 to 83).

The exact name of a node takes precedence over the name of a view (D17). So no user may get a node with the name of a
view of another user's feed, whichever of both is created first.
"""

import re
from functools import cache
from hashlib import sha256

from smartfeeds.core.attachment_names import GOVERNED, is_reserved
from smartfeeds.core.jid import Jid
from smartfeeds.core.kinds import decide_kind, options_by_name
from smartfeeds.core.model import RELEASE, Node, NodeEvent, NodeKind, Slice
from smartfeeds.core.options import KIND, MAX_TEXT, OPTIONS, FormFields, NodeOptions, OptionLimits
from smartfeeds.core.view import BARE, MARKS, from_canonical, names_view
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.service.context import Context, LocatedNode, admits, find, locate_for, lock_located
from smartfeeds.service.expiry import drop_oldest
from smartfeeds.service.item_writes import retire
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    CreateNode,
    DeleteNode,
    EmptyResult,
    EnsureNode,
    GetConfiguration,
    GetDefaultConfiguration,
    NodeCreated,
    NodeEnsured,
)
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import ReadTx, WriteTx


def create(tx: WriteTx, context: Context, request: CreateNode) -> NodeCreated:
    """Creates a node; an instant node if the request has no name."""
    name = request.node or context.new_id()
    add_node(tx, context, request.actor, name, request.form)
    return NodeCreated(name, generated=not request.node)


def ensure(tx: WriteTx, context: Context, request: EnsureNode) -> NodeEnsured:
    """Creates a node. If the actor owns a node of this name, its options must have the values of the form.

    Raises FeedError(CONFLICT) that names the first option with another value.
    """
    try:
        node = _owned(tx, context, request.node, request.actor).node
    except FeedError:
        # No such node, a view, or the node of somebody else: `add_node` creates it, or says why not.
        add_node(tx, context, request.actor, request.node or "", request.form)
        return NodeEnsured(created=True)
    limits = context.policy.options
    kind = decide_kind(request.form, context.policy.default_kind, limits, name=node.name, foreign=False)
    if kind is not node.kind:
        raise FeedError(Condition.CONFLICT, f"{node.name} exists already, with the kind {node.kind.value}")
    options = node.options.apply(request.form, limits)
    for name, option in OPTIONS.items():
        values = node.options.values_of(option)
        if values != options.values_of(option):
            stored = ", ".join(values)
            raise FeedError(Condition.CONFLICT, f"{node.name} exists already, with {name} {stored!r}")
    return NodeEnsured(created=False)


# Clients show a redirect as a link and may open it, so schemes that run code, such as javascript, are refused.
_ADDRESS = re.compile(r"(?:xmpp|https?):[^\s<>\"]+", re.IGNORECASE)
# Steps in a path, also percent-encoded: a browser removes them before it sends a request (RFC 3986 section 5.2.4).
_DOTS = frozenset({".", ".."})
_MARK = re.compile("|".join(map(re.escape, MARKS)))
MAX_NEIGHBOURS = 500  # nodes with such a mark behind the name of a new node: reading them takes 10 ms in a write


def add_node(
    tx: WriteTx,
    context: Context,
    actor: Jid,
    name: str,
    form: FormFields | None,
    *,
    foreign: bool = False,
    trusted: bool = False,
) -> Node:
    """Stores a new node and makes the actor its owner.

    `foreign` says that its first item is none for a feed. `trusted` skips the quotas, for operators. Raises FeedError.
    """
    if not trusted and not may_create(context, actor):
        raise FeedError(Condition.FORBIDDEN, "this service does not let you create nodes")
    _check_unreserved(context, name)
    limits = context.policy.options
    kind = decide_kind(form or {}, context.policy.default_kind, limits, name=name, foreign=foreign)
    options = _initial_options(kind, limits)
    chosen = {**((options_by_name(name) if kind is NodeKind.GENERIC else None) or {}), **(form or {})}
    if chosen:
        options = options.apply(chosen, limits)
    creator = actor.bare_text
    # Both locks end with the transaction. Another process that creates a node would not see this one, and both would
    # pass the checks. Names that differ only behind a mark may hide each other's views.
    if not trusted:
        tx.lock_quotas(creator)
    tx.reserve_name(_MARK.split(name, maxsplit=1)[0])
    is_unused = tx.is_unused(name)
    if not is_unused:
        _check_free(tx, name)
        _check_views_free(tx, name, creator)
    if not trusted and tx.created_by(creator) >= context.policy.nodes_per_jid:
        raise FeedError(Condition.POLICY_VIOLATION, "you have as many nodes as this service allows")
    if not trusted and tx.created_in(actor.domain) >= context.policy.nodes_per_domain:
        raise FeedError(Condition.POLICY_VIOLATION, f"{actor.domain} has as many nodes as this service allows a domain")
    if not is_unused and tx.redirect(name) is not None:
        tx.remove_redirect(name)
    return tx.add_node(Node(0, name, kind, creator, context.now_us, options), owner=creator)


@cache  # for each kind: a process has one value of the limits
def _initial_options(kind: NodeKind, limits: OptionLimits) -> NodeOptions:
    """The options of a new node without a configuration, which many nodes share."""
    return NodeOptions.initial(kind, limits)


def check_name(tx: ReadTx, context: Context, name: str, creator: str) -> None:
    """Raises FeedError if no node of this name can be created: it is reserved, is in use, or names a view."""
    _check_unreserved(context, name)
    _check_free(tx, name)
    _check_views_free(tx, name, creator)


def _check_unreserved(context: Context, name: str) -> None:
    if name.startswith(GOVERNED) and is_reserved(name, context.policy.domain):
        raise FeedError(Condition.NOT_ALLOWED, "the service creates this node; publish an attachment")
    if name in _DOTS:
        raise FeedError(Condition.NOT_ACCEPTABLE, f"no browser requests the address of a feed named {name}")


def may_create(context: Context, actor: Jid) -> bool:
    """Whether the operator lets this actor create nodes (xep-map 59)."""
    return admits(context.policy.creators | context.policy.admins, actor)


def get_configuration(tx: ReadTx, context: Context, request: GetConfiguration) -> Configuration:
    """The options of a node, for its owners."""
    node = _owned(tx, context, request.node, request.actor).node
    return Configuration(request.node, node.options, context.policy.options)


def configure(tx: WriteTx, context: Context, request: Configure) -> EmptyResult | MoreSteps[EmptyResult]:
    """Changes the options in the form; a cancelled form changes nothing (xep-map 67, 69).

    Items above a lower max_items are removed without events, the oldest first.
    """
    node = lock_located(tx, _owned(tx, context, request.node, request.actor))
    if is_reserved(node.name, context.policy.domain):
        raise FeedError(Condition.NOT_ALLOWED, "this node follows the node of the item; configure that node")
    if request.expected is not None and options_tag(node.options) not in request.expected:
        raise FeedError(Condition.PRECONDITION_NOT_MET, "the options of the node have changed; read them again")
    if request.form is not None:
        options = _of_kind(tx, context, node, request.form)
        if request.form.get(KIND, ("",))[:1] not in ((), ("",), (options.kind.value,)):
            raise FeedError(
                Condition.NOT_ACCEPTABLE,
                f"{KIND}: this node stays a {options.kind.value} node; only a feed that has never had an item, and that"
                " has no subscribers of views with sync data, can become generic",
            )
        options = options.apply(request.form, context.policy.options)
        if options != node.options:
            change_options(tx, context, node, options)
            surplus = node.live - (options.max_items or node.live)
            if surplus > 0:
                (last,) = tx.slice(node.node_no, Slice(BARE, 1, offset=surplus - 1))
                return drop_oldest(tx, context, node.node_no, last.modified_us)
    return EmptyResult()


def configure_empty_feed(tx: WriteTx, context: Context, node: Node, form: FormFields, *, foreign: bool) -> Node:
    """Makes a generic node of a locked feed if it has never held an item, and publish-options or a `foreign` item ask
    for a generic node. The options then configure the node as they configure a new one (XEP-0060 7.1.5). Returns the
    node after the change.
    """
    options = _of_kind(tx, context, node, form, foreign=foreign)
    if options.kind is node.kind:
        return node
    options = options.apply(form, context.policy.options)
    change_options(tx, context, node, options)
    return node._replace(kind=options.kind, options=options)


def _of_kind(tx: ReadTx, context: Context, node: Node, form: FormFields, *, foreign: bool = False) -> NodeOptions:
    """Returns the options of a node for the kind that a form asks for.

    A feed changes its kind only before its first item, because the rules for the items of the two kinds differ, and
    only if nobody subscribes to a view with sync data, which generic nodes do not have. Raises
    FeedError(NOT_ACCEPTABLE) for an unknown kind.
    """
    kind = decide_kind(form, node.kind, context.policy.options, foreign=foreign)
    if kind is node.kind or node.kind is not NodeKind.FEED or node.last_created_us >= 0:
        return node.options
    has_sync_views = any(from_canonical(text).sync for text in tx.subscribed_views(node.node_no))
    return node.options if has_sync_views else NodeOptions(kind, node.options.stored)


def change_options(tx: WriteTx, context: Context, node: Node, options: NodeOptions) -> None:
    """Replaces the options and the kind of a locked node, and notifies subscribers if the options say so."""
    if options.kind is not node.kind:
        tx.set_kind(node.node_no, options.kind)
    tx.set_options(node.node_no, options.stored)
    if options.presence_based_delivery != node.options.presence_based_delivery:
        tx.add_event(NodeEvent(0, node.node_no, node.last_modified_us, RELEASE))
        context.changed.add(node.node_no)
    if options.notify_config:
        tx.add_event(NodeEvent(0, node.node_no, node.last_modified_us, "configuration"))
        context.changed.add(node.node_no)


def get_default(_tx: ReadTx, context: Context, request: GetDefaultConfiguration) -> Configuration:
    """The options of a new node."""
    if request.type != "leaf":
        raise unsupported("collections")
    limits = context.policy.options
    return Configuration(None, NodeOptions.initial(context.policy.default_kind, limits), limits)


def delete(tx: WriteTx, context: Context, request: DeleteNode) -> EmptyResult:
    """Frees the name of a node. Its rows are removed after the delete event is sent (xep-map 78 to 80).

    With a redirect, the event has the new address, and so have the errors for later requests for the name, until a node
    of this name is created. Requests for a node that is not listed must not show that it existed.
    """
    located = _owned(tx, context, request.node, request.actor)
    if request.redirect:
        _check_address(request.redirect)
        # Another process must count this redirect. As in `subscribe` the quota is locked before the node, so two
        # transactions never wait for each other.
        tx.lock_quotas(located.node.creator)
    node = lock_located(tx, located)
    if request.redirect and node.options.listed:
        if tx.redirects_by(node.creator) >= context.policy.nodes_per_jid:
            raise FeedError(Condition.POLICY_VIOLATION, "too many redirects; delete the node without one")
        tx.put_redirect(node.name, request.redirect, node.creator)
    retire(tx, context, node, request.redirect)
    return EmptyResult()


def _check_address(uri: str) -> None:
    # Characters that are not printable include those that change the direction of text and so disguise an address.
    if len(uri) > MAX_TEXT or not uri.isprintable() or not _ADDRESS.fullmatch(uri):
        raise FeedError(
            Condition.NOT_ACCEPTABLE,
            f"{uri[:100]!a} is no address; send an xmpp, http or https URI of up to {MAX_TEXT} printable characters,"
            " such as xmpp:SERVICE?;node=NODE",
        )


def _owned(tx: ReadTx, context: Context, name: str | None, actor: Jid) -> LocatedNode:
    located = locate_for(tx, context, name, actor)
    if located.view.smart:
        raise FeedError(Condition.NOT_ALLOWED, "a view has no configuration of its own")
    located.access.check_manage()
    return located


def _check_free(tx: ReadTx, name: str) -> None:
    """Raises FeedError if a node or a view has this name, or if it is the encoded name of a view (xep-map 51, 58).

    An exact name wins over a view. So a node with an encoded name of a view would receive the requests for that view as
    soon as somebody creates the feed. Plain names of views are free until then: `_check_views_free` finds them.
    """
    try:
        located = find(tx, name)
    except FeedError:
        raise FeedError(Condition.NOT_ALLOWED, "the part before the question mark is a node with views") from None
    if located is not None and located.view.smart:
        feed = located.node.name
        raise FeedError(
            Condition.NOT_ALLOWED,
            f"{name} is a view of the node {feed}, and nothing can be brought into a view: name {feed}",
        )
    if located is not None:
        raise FeedError(Condition.CONFLICT, f"there is a node {name} already")
    if "?" not in name and names_view(name):
        raise FeedError(Condition.NOT_ALLOWED, f"{name} is a percent-encoded name of a view; choose another name")


def _check_views_free(tx: ReadTx, name: str, creator: str) -> None:
    """Raises FeedError(NOT_ALLOWED) if somebody else owns a node with the name of a view of a new node."""
    # Views of a node with a query string of its own continue it with an ampersand.
    prefixes = [name + mark for mark in ((*MARKS, "&") if "?" in name else MARKS)]
    for prefix, nodes in zip(prefixes, tx.creators_behind(prefixes, MAX_NEIGHBOURS), strict=True):
        if any(by != creator and names_view(text) for text, by in nodes):
            raise FeedError(Condition.NOT_ALLOWED, "somebody has a node that is named like a view of this node")
        if len(nodes) >= MAX_NEIGHBOURS:
            raise FeedError(
                Condition.NOT_ALLOWED,
                f"{MAX_NEIGHBOURS} or more nodes have names that begin with {prefix}; choose another name",
            )


def options_tag(options: NodeOptions) -> str:
    """Returns the tag of the options of a node. Options of the same kind with the same values have the same tag."""
    return sha256(repr((options.kind.value, sorted(options.stored.items()))).encode("utf-8", "replace")).hexdigest()[
        :24
    ]
