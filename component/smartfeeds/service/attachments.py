"""Attachments to items (XEP-0470): the service creates the nodes, checks what is published, and keeps the summaries.

The functions here stand before those of `service.publishing` and `service.nodes`, and leave every other node to them.
An attachment node shows the access and publish models of its target node. Users attach if they may read the target:
with the publish model of a blog, nobody but its author could like a post.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lxml import etree

from smartfeeds.core.attachments import (
    ATTACHMENTS,
    MAX_SUMMARY_REACTIONS,
    SUMMARY,
    AttachmentTarget,
    attachment_names,
    countable_reactions,
    follows_target,
    is_reserved,
    summary_name,
    target_of,
)
from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import OPTIONS, PUBSUB, NodeOptions
from smartfeeds.core.schemas import with_kind
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.xml import Element
from smartfeeds.service import nodes, publishing
from smartfeeds.service.context import Context, locate_for
from smartfeeds.service.items import remove_summary, retire
from smartfeeds.service.requests import (
    Configure,
    CreateNode,
    DeleteNode,
    EmptyResult,
    NodeCreated,
    NodeRequest,
    Publish,
    Published,
    Purge,
    Retract,
)
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import WriteTx

_ROOT = f"{{{ATTACHMENTS}}}attachments"
_NOTICED = f"{{{ATTACHMENTS}}}noticed"
_REACTIONS = f"{{{ATTACHMENTS}}}reactions"
_REACTION = f"{{{ATTACHMENTS}}}reaction"
_SUM = f"{{{SUMMARY}}}"
# The options of the target node that its attachment nodes share (XEP-0470 4.4).
_MODELS = ("access_model", "publish_model")
CHUNK = 100  # attachment nodes that one transaction changes


def publish(tx: WriteTx, context: Context, request: Publish) -> Published:
    """Stores an item, or an attachment to an item of this service."""
    if not follows_target(request.node or ""):  # nearly every publish
        return publishing.publish(tx, context, request)
    target = _target(context, request)
    if target is not None:
        return _attach(tx, context, request, target)
    if is_reserved(request.node, context.policy.domain):
        raise FeedError(Condition.FORBIDDEN, "the service writes the summaries; publish attachments instead")
    return publishing.publish(tx, context, request)


def retract(tx: WriteTx, context: Context, request: Retract) -> EmptyResult:
    """Retracts a live item, and takes an attachment out of the summary."""
    target = _target(context, request)
    if target is None and is_reserved(request.node, context.policy.domain):
        raise FeedError(Condition.FORBIDDEN, "the service writes the summaries; retract attachments instead")
    node = None if target is None else tx.node(target.name)
    attachment = None if node is None or not request.item_id else tx.item(node.node_no, request.item_id)
    answer = publishing.retract(tx, context, request)
    if target is not None:
        _summarise(tx, context, target, attachment, None)
    return answer


def purge(tx: WriteTx, context: Context, request: Purge) -> EmptyResult | MoreSteps[EmptyResult]:
    """Retracts every item that is live now, and the summary of the attachments among them."""
    answer = publishing.purge(tx, context, request)
    if (target := _target(context, request)) is not None:
        remove_summary(tx, context, target)
    return answer


def create(tx: WriteTx, context: Context, request: CreateNode) -> NodeCreated:
    """Creates a node. Attachment and summary nodes are created by the service alone (XEP-0470 4.4).

    A node with the name of a form node is one (XEP-0346 2).
    """
    if is_reserved(request.node, context.policy.domain):
        raise FeedError(Condition.NOT_ALLOWED, "the service creates this node; publish an attachment")
    return nodes.create(tx, context, replace(request, form=with_kind(request.node, request.form)))


def configure(tx: WriteTx, context: Context, request: Configure) -> EmptyResult | MoreSteps[EmptyResult]:
    """Changes the options of a node, and the models of its attachment nodes with its own."""
    if is_reserved(request.node, context.policy.domain):
        raise FeedError(Condition.NOT_ALLOWED, "this node follows the node of the item; configure that node")
    before = tx.node(request.node or "")
    answer = nodes.configure(tx, context, request)
    after = None if before is None else tx.node(before.name)
    if before is None or after is None or _models(before) == _models(after):
        return answer
    summary = tx.lock(summary_name(after.name))
    if summary is None:
        return answer
    _follow(tx, context, summary, _models(after))
    first, _ = attachment_names(context.policy.domain, after.name)
    return MoreSteps(partial(_follow_rest, name=after.name, reached=first))


def delete(tx: WriteTx, context: Context, request: DeleteNode) -> EmptyResult | MoreSteps[EmptyResult]:
    """Deletes a node with the attachments to its items, or one attachment node with its summary."""
    answer = nodes.delete(tx, context, request)
    if (target := _target(context, request)) is not None:
        remove_summary(tx, context, target)
    summary = tx.lock(summary_name(request.node or ""))
    if summary is None:
        return answer
    retire(tx, context, summary)
    return MoreSteps(partial(_delete_rest, name=request.node or ""))


def _target(context: Context, request: NodeRequest) -> AttachmentTarget | None:
    target = target_of(request.node)
    return target if target is not None and target.domain == context.policy.domain else None


def _attach(tx: WriteTx, context: Context, request: Publish, target: AttachmentTarget) -> Published:
    """Stores an attachment (XEP-0470 4.2, 4.4). Publish-options are ignored. Raises FeedError."""
    located = locate_for(tx, context, target.node, request.actor)
    located.access.check_read()
    publisher = str(request.actor.bare)
    draft = request.draft
    if not request.item_present:
        raise FeedError(Condition.ITEM_REQUIRED)
    if request.item_id != publisher:
        raise FeedError(Condition.BAD_REQUEST, f"the id of an attachment item must be your address, {publisher}")
    if draft is None or draft.payload.root.tag != _ROOT:
        raise FeedError(Condition.BAD_REQUEST, f"the payload must be an attachments element in {ATTACHMENTS}")
    item = tx.item(located.node.node_no, target.item_id)
    if item is None or item.deleted:
        raise FeedError(Condition.ITEM_NOT_FOUND, "there is no such item to attach to")
    node = tx.lock(target.name) or _add(tx, context, located.node, target.name)
    if len(draft.payload) > min(node.options.max_payload_size, context.policy.options.max_payload_size_bytes):
        raise FeedError(Condition.PAYLOAD_TOO_BIG)
    existing = tx.item(node.node_no, publisher)
    if (existing is None or existing.deleted) and node.live >= context.policy.options.max_items:
        raise FeedError(Condition.POLICY_VIOLATION, "the item has as many attachments as this service stores")
    stored = publishing.store_item(tx, context, node, existing, publisher, draft.payload, publisher)
    _summarise(tx, context, target, existing, stored)
    return Published(request.node or "", stored.id, created=existing is None or existing.deleted)


def _add(tx: WriteTx, context: Context, target: Node, name: str) -> Node:
    """Stores an attachment or summary node. Its creator is the service, so it counts against nobody's quota."""
    limits = context.policy.options
    models = {f"{PUBSUB}{name}": values for name, values in _models(target).items()}
    options = NodeOptions.initial(NodeKind.GENERIC, limits).apply(models, limits)
    return tx.add_node(Node(0, name, NodeKind.GENERIC, context.policy.domain, context.now_us, options))


def _models(node: Node) -> dict[str, tuple[str, ...]]:
    return {name: node.options.values_of(option) for name, option in OPTIONS.items() if name in _MODELS}


# The summary.


def _summarise(tx: WriteTx, context: Context, target: AttachmentTarget, old: Item | None, new: Item | None) -> None:
    """Replaces the old attachment of a user by the new one in the summary of the item (XEP-0470 4.5, 5).

    The old summary is the base, so the cost does not grow with the number of attachments.
    """
    located = tx.node(target.node)
    if located is None:
        return
    name = summary_name(target.node)
    node = tx.lock(name) or _add(tx, context, located, name)
    existing = tx.item(node.node_no, target.item_id)
    noticed, reactions = _read_summary(existing)
    for item, sign in ((old, -1), (new, 1)):
        own_noticed, own_reactions = _read_attachment(item)
        noticed = max(noticed + sign * own_noticed, 0)
        for text in own_reactions:
            if text in reactions or len(reactions) < MAX_SUMMARY_REACTIONS:
                reactions[text] = reactions.get(text, 0) + sign
    payload = _write_summary(noticed, {text: count for text, count in reactions.items() if count > 0})
    publishing.store_item(tx, context, node, existing, target.item_id, payload, context.policy.domain)


def _read_attachment(item: Item | None) -> tuple[bool, list[str]]:
    if item is None or item.deleted:
        return False, []
    root = payload_of(item.payload).root
    texts = [each.text or "" for each in root.iterfind(f"{_REACTIONS}/{_REACTION}")]
    return root.find(_NOTICED) is not None, countable_reactions(texts)


def _read_summary(item: Item | None) -> tuple[int, dict[str, int]]:
    if item is None or item.deleted:
        return 0, {}
    root = payload_of(item.payload).root
    noticed = root.find(f"{_SUM}noticed")
    reactions = root.iterfind(f"{_SUM}reactions/{_SUM}reaction")
    return (
        0 if noticed is None else int(noticed.get("count", "0")),
        {each.text or "": int(each.get("count", "1")) for each in reactions},
    )


def _write_summary(noticed: int, reactions: dict[str, int]) -> Payload:
    # Payloads have no prefixes for their own namespace.
    root: Element = etree.fromstring(f"<summary xmlns='{SUMMARY}'/>")
    if noticed:
        etree.SubElement(root, f"{_SUM}noticed", count=str(noticed))
    if reactions:
        parent = etree.SubElement(root, f"{_SUM}reactions")
        for text, count in sorted(reactions.items(), key=lambda row: -row[1]):
            # XEP-0470 5.2: the number is there if a reaction appears several times.
            reaction = etree.SubElement(parent, f"{_SUM}reaction", {"count": str(count)} if count > 1 else {})
            reaction.text = text
    return Payload.of(root)


# The nodes of a target. Each step changes a chunk of them, so that the writes of others do not wait.


def _chunk(tx: WriteTx, context: Context, name: str, reached: str) -> Sequence[Node]:
    _, end = attachment_names(context.policy.domain, name)
    found = tx.nodes(reached, CHUNK, before=end, newest=False)
    return [node for node in map(tx.lock, (node.name for node in found)) if node is not None]


def _follow(tx: WriteTx, context: Context, node: Node, models: dict[str, tuple[str, ...]]) -> None:
    form = {f"{PUBSUB}{name}": values for name, values in models.items()}
    nodes.change_options(tx, context, node, node.options.apply(form, context.policy.options))


def _follow_rest(tx: WriteTx, context: Context, name: str, reached: str) -> EmptyResult | MoreSteps[EmptyResult]:
    target = tx.node(name)
    found = [] if target is None else _chunk(tx, context, name, reached)
    if target is None or not found:
        return EmptyResult()
    for node in found:
        _follow(tx, context, node, _models(target))
    return MoreSteps(partial(_follow_rest, name=name, reached=found[-1].name))


def _delete_rest(tx: WriteTx, context: Context, name: str) -> EmptyResult | MoreSteps[EmptyResult]:
    first, _ = attachment_names(context.policy.domain, name)
    found = _chunk(tx, context, name, first)
    for node in found:
        retire(tx, context, node)
    return MoreSteps(partial(_delete_rest, name=name)) if found else EmptyResult()
