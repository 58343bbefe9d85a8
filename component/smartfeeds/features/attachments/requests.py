"""Attachments to items (XEP-0470): the service creates the nodes, checks what is published, and keeps the summaries.

The service calls these functions for nodes with the names of attachment nodes (`core.attachment_names`). People and
models of an attachment node are those of its target node (`service.context.governor_of`). Users attach if they may read
the target: with the publish model of a blog, nobody but its author could like a post.
"""

import json
from collections import Counter
from collections.abc import Iterable

from lxml import etree

from smartfeeds.core.attachment_names import (
    ATTACHMENTS,
    SUMMARY,
    AttachmentTarget,
    is_reserved,
    summary_name,
    target_of,
)
from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.xml import Element
from smartfeeds.service import nodes, publishing
from smartfeeds.service.context import Context, Hooks, governor_of, locate_for
from smartfeeds.service.item_writes import ItemState, remove_summary, retire, write_state
from smartfeeds.service.requests import (
    DeleteNode,
    EmptyResult,
    NodeRequest,
    Publish,
    Published,
    Purge,
    PurgeBegun,
    Retract,
)
from smartfeeds.service.steps import MoreSteps
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import WriteTx

_ROOT = f"{{{ATTACHMENTS}}}attachments"
_NOTICED = f"{{{ATTACHMENTS}}}noticed"
_REACTIONS = f"{{{ATTACHMENTS}}}reactions"
_REACTION = f"{{{ATTACHMENTS}}}reaction"
_SUM = f"{{{SUMMARY}}}"
# A reaction is an emoji. Longer texts, and texts with letters or digits, are stored but not counted.
MAX_REACTION_CHARACTERS = 16
MAX_REACTIONS = 32  # reactions of one attachment that are counted
# The different reactions to one item that are counted, read and written with each attachment (3 ms), and those of the
# greatest counts, which the summary shows: it must fit into a stanza.
MAX_COUNTS = 5_000
MAX_SUMMARY_REACTIONS = 500


def publish(tx: WriteTx, context: Context, request: Publish) -> Published:
    """Stores an attachment to an item of this service, or an item of another node with such a name."""
    target = _target(context, request)
    if target is not None:
        return _attach(tx, context, request, target)
    _check_no_summary(context, request, "publish attachments")
    return publishing.publish(tx, context, request)


def retract(tx: WriteTx, context: Context, request: Retract) -> EmptyResult:
    """Retracts a live item, and takes an attachment out of the summary."""
    _check_no_summary(context, request, "retract attachments")
    target = _target(context, request)
    node = None if target is None else tx.node(target.name)
    attachment = None if node is None or not request.item_id else tx.item(node.node_no, request.item_id)
    answer = publishing.retract(tx, context, request)
    if target is not None:
        summarise(tx, context, target, attachment, None)
    return answer


def purge(tx: WriteTx, context: Context, request: Purge) -> EmptyResult | PurgeBegun | MoreSteps[EmptyResult]:
    """Retracts every item that is live now, and the summary of the attachments among them."""
    _check_no_summary(context, request, "purge attachments")
    answer = publishing.purge(tx, context, request)
    if (target := _target(context, request)) is not None:
        remove_summary(tx, context, target)
    return answer


def delete(tx: WriteTx, context: Context, request: DeleteNode) -> EmptyResult:
    """Deletes a node, or an attachment node with its summary. The attachments to the items of the node do not exist
    from now on; `reap` removes them."""
    _check_no_summary(context, request, "delete attachments")
    answer = nodes.delete(tx, context, request)
    if (target := _target(context, request)) is not None:
        remove_summary(tx, context, target)
    return answer


def _check_no_summary(context: Context, request: NodeRequest, what_to_do: str) -> None:
    """Raises FeedError(FORBIDDEN) for a summary node: a summary that lost an attachment would be wrong for ever."""
    if is_reserved(request.node, context.policy.domain) and _target(context, request) is None:
        raise FeedError(Condition.FORBIDDEN, f"the service writes the summaries; {what_to_do} instead")


def _target(context: Context, request: NodeRequest) -> AttachmentTarget | None:
    target = target_of(request.node)
    return target if target is not None and target.domain == context.policy.domain else None


def _attach(tx: WriteTx, context: Context, request: Publish, target: AttachmentTarget) -> Published:
    """Stores an attachment (XEP-0470 4.2, 4.4). Publish-options are ignored. Raises FeedError."""
    if is_reserved(target.node, target.domain):
        raise FeedError(Condition.NOT_ALLOWED, "attachments have no attachments; attach to the item itself")
    located = locate_for(tx, context, target.node, request.actor)
    located.access.check_read()
    publisher = request.actor.bare_text
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
    node = _node(tx, context, target.name)
    publishing.check_size(len(draft.payload), node, context.policy.options)
    existing = tx.item(node.node_no, publisher)
    if (existing is None or existing.deleted) and node.live >= context.policy.options.max_items:
        raise FeedError(Condition.POLICY_VIOLATION, "the item has as many attachments as this service stores")
    stored = publishing.store_item(tx, context, node, existing, publisher, draft.payload, publisher)
    summarise(tx, context, target, existing, stored)
    return Published(request.node or "", stored.id, created=existing is None or existing.deleted)


def _node(tx: WriteTx, context: Context, name: str) -> Node:
    """Returns an attachment or summary node of a target, locked. The first attachment creates both.

    Their creator is the service, so they count against nobody's quota.
    """
    node = tx.lock(name)
    if node is not None and governor_of(tx, context, node) is not None:
        return node
    if node is not None:
        retire(tx, context, node)  # of a deleted target of the same name, and not removed yet
    options = NodeOptions.initial(NodeKind.GENERIC, context.policy.options)
    return tx.add_node(Node(0, name, NodeKind.GENERIC, context.policy.domain, context.now_us, options))


# The summary.


def summarise(tx: WriteTx, context: Context, target: AttachmentTarget, old: Item | None, new: Item | None) -> None:
    """Replaces the old attachment of a user by the new one in the summary of the item (XEP-0470 4.5, 5).

    The old counts are the base, so the cost does not grow with the number of attachments. Every reaction is counted,
    also those that the payload has no room for: otherwise taking one back would change the count of somebody else's.
    Raises FeedError(POLICY_VIOLATION).
    """
    if tx.node(target.node) is None:
        return
    node = _node(tx, context, summary_name(target.node))
    existing = tx.item(node.node_no, target.item_id)
    before: Counter[str] = Counter(json.loads(existing.sync) if existing is not None and existing.sync else {})
    counts = Counter(before)
    counts.subtract(_counted(old))
    counts = +counts  # a purge may have removed what the old attachment counted
    counts.update(_counted(new))
    if len(counts) > max(MAX_COUNTS, len(before)):
        raise FeedError(Condition.POLICY_VIOLATION, "the item has as many different reactions as this service counts")
    if existing is None or existing.deleted or existing.damaged or counts != before:
        # The payload of a generic node has no sync data, so its column is free for the counts.
        state = ItemState(_write_summary(counts), sync=json.dumps(counts, ensure_ascii=False).encode())
        write_state(tx, context, node, existing, target.item_id, state, context.policy.domain)


def _counted(item: Item | None) -> list[str]:
    """Returns the reactions of an attachment that the summary counts."""
    if item is None or item.deleted or item.damaged:
        return []
    root = payload_of(item.payload).root
    reactions = countable_reactions(each.text or "" for each in root.iterfind(f"{_REACTIONS}/{_REACTION}"))
    return reactions if root.find(_NOTICED) is None else [_NOTICED, *reactions]


def _write_summary(counts: "Counter[str]") -> Payload:
    # Payloads have no prefixes for their own namespace.
    root: Element = etree.fromstring(f"<summary xmlns='{SUMMARY}'/>")
    reactions = Counter(counts)
    if noticed := reactions.pop(_NOTICED, 0):
        etree.SubElement(root, f"{_SUM}noticed", count=str(noticed))
    if reactions:
        parent = etree.SubElement(root, f"{_SUM}reactions")
        for text, count in reactions.most_common(MAX_SUMMARY_REACTIONS):
            # XEP-0470 5.2: the number is there if a reaction appears several times.
            reaction = etree.SubElement(parent, f"{_SUM}reaction", {"count": str(count)} if count > 1 else {})
            reaction.text = text
    return Payload.of(root)


def countable_reactions(texts: Iterable[str]) -> list[str]:
    """Returns the reactions of one attachment that are counted, each once."""
    emojis = dict.fromkeys(text.strip() for text in texts)
    return [text for text in emojis if 0 < len(text) <= MAX_REACTION_CHARACTERS and not any(map(_is_plain, text))][
        :MAX_REACTIONS
    ]


def _is_plain(character: str) -> bool:
    # Emojis of keys consist of a digit and a combining character.
    return character.isalpha() or character.isspace() or (not character.isprintable() and character != "\u200d")


def _note_erased(tx: WriteTx, context: Context, node: Node, item: Item) -> None:
    target = target_of(node.name)
    if target is not None:
        summarise(tx, context, target, item, None)


USE_CASES = UseCases(
    governed={Publish: publish, Retract: retract, Purge: purge, DeleteNode: delete},
    hooks=Hooks(item_erased=(_note_erased,)),
)
