"""Pubsub elements to typed requests: a table per (type of IQ, container) maps each action to a function (xep-map 15,
16).

An action in no table is rejected, and the advertised features come from the same tables, so the two cannot differ. For
any input this module raises FeedError only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import PayloadDraft, draft_of
from smartfeeds.xmpp.elements import TRUE, Element, item_id_of, node_of, only, orders_of, result_set_of
from smartfeeds.xmpp.forms import find_form, parse_submit
from smartfeeds.xmpp.namespaces import NODE_CONFIG, PUBLISH_OPTIONS, PUBSUB, SUBSCRIBE_OPTIONS, tag

# Parameters: the requester, our address, the element of the action, the other children of the container.
Decoder = Callable[[Jid, str, Element, list[Element]], r.Request]

_ITEM = tag(PUBSUB, "item")
_OPTIONS = tag(PUBSUB, "options")
_CONFIGURE = tag(PUBSUB, "configure")
_PUBLISH_OPTIONS = tag(PUBSUB, "publish-options")
# The prefix of all pubsub namespaces. Elements of another pubsub namespace than the container's are an error.
_ANY_PUBSUB = f"{{{PUBSUB}"


@dataclass(frozen=True, slots=True)
class PubsubAction:
    """A function that reads an action, the XEP-0060 features it provides, and elements allowed once beside it."""

    decode: Decoder
    features: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()


ActionTable = Mapping[str, PubsubAction]


def decode(actions: ActionTable, container: Element, actor: Jid, service: str) -> r.Request:
    """Returns the request in a `<pubsub/>` element. `actions` is the table for its namespace and the type of the IQ.

    The first child in the container's namespace is the action. Raises FeedError.
    """
    name: str = container.tag
    own = name[: name.index("}") + 1]
    action: Element | None = None
    rest: list[Element] = []
    beside: list[str] = []
    for child in container.iterchildren("*"):
        name = child.tag
        if name.startswith(own):
            if action is None:
                action = child
                continue
            beside.append(name)
        elif name.startswith(_ANY_PUBSUB):
            raise FeedError(
                Condition.BAD_REQUEST, f"{name[:100]} is in another pubsub namespace than its parent; use one namespace"
            )
        rest.append(child)
    entry = actions.get(action.tag) if action is not None else None
    if action is None or entry is None:
        raise FeedError(Condition.BAD_REQUEST, "the request has no action, or one that this type of IQ does not have")
    if beside and (len(set(beside)) < len(beside) or not entry.companions.issuperset(beside)):
        raise FeedError(Condition.BAD_REQUEST, "the request has more than one action, or one element twice")
    return entry.decode(actor, service, action, rest)


def _publish(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 7.1, with one item per request (X1, xep-map 140)."""
    item: Element | None = None
    for child in action.iterchildren(_ITEM):
        if item is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the request has several items; publish one item per request")
        item = child
    options = None
    if rest and (companion := only(rest, _PUBLISH_OPTIONS)) is not None:
        options = parse_submit(find_form(companion), PUBLISH_OPTIONS)
        if options is None:
            raise FeedError(Condition.BAD_REQUEST, "the form in publish-options is cancelled; it must be submitted")
    node = node_of(action)
    if item is None:
        return r.Publish(actor, service, node, None, None, options, False)
    return r.Publish(actor, service, node, item_id_of(item), _draft(item), options)


def _draft(item: Element) -> PayloadDraft | None:
    payload: Element | None = None
    for child in item.iterchildren("*"):
        if payload is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the item has several payloads; send one payload")
        payload = child
    if payload is None:
        return None
    return draft_of(payload)


def _retract(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 7.2, with one item per request (xep-map 158)."""
    item = only(action.iterchildren("*"), _ITEM)
    item_id = item_id_of(item) if item is not None else None
    return r.Retract(actor, service, node_of(action), item_id, action.get("notify") in TRUE)


def _items(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 6.5. The result set is beside the items; a result set inside them is accepted too (xep-map 208)."""
    children = list(action.iterchildren("*"))
    around = rest + children
    return r.Pull(
        actor,
        service,
        node_of(action),
        tuple(_known_id(child) for child in children if child.tag == _ITEM),
        action.get("max_items"),
        result_set_of(around) if around else None,
        orders_of(around) if around else (),
    )


def _known_id(item: Element) -> str:
    item_id = item_id_of(item)
    if item_id is None:
        raise FeedError(Condition.ITEM_REQUIRED, "an item has no id; request items by id")
    return item_id


def _create(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 8.1 (xep-map 61)."""
    configure = only(rest, _CONFIGURE)
    form = None
    if configure is not None:
        if configure.get("node") is not None:
            raise FeedError(Condition.BAD_REQUEST, "configure has a node attribute; only create names the node")
        submitted_form = find_form(configure)
        form = parse_submit(submitted_form, NODE_CONFIG) if submitted_form is not None else None
    return r.CreateNode(actor, service, node_of(action), form)


def _subscribe(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 6.1 and 6.3.7 (xep-map 118)."""
    companion = only(rest, _OPTIONS)
    options = None
    if companion is not None:
        if companion.get("node") is not None or companion.get("jid") is not None:
            raise FeedError(Condition.BAD_REQUEST, "options has node or jid; beside subscribe it must have neither")
        options = parse_submit(find_form(companion), SUBSCRIBE_OPTIONS)
    return r.Subscribe(actor, service, node_of(action), action.get("jid"), options)


def _unsubscribe(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.2."""
    return r.Unsubscribe(actor, service, node_of(action), action.get("jid"))


def _subscriptions(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 5.6, with an optional result set beside it."""
    return r.GetSubscriptions(actor, service, node_of(action), result_set_of(rest))


def _affiliations(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 5.7, with an optional result set beside it."""
    return r.GetAffiliations(actor, service, node_of(action), False, result_set_of(rest))


def _get_options(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.3.2. A form in the request is ignored."""
    return r.GetSubscribeOptions(actor, service, node_of(action), action.get("jid"))


def _set_options(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.3.5."""
    form = parse_submit(find_form(action), SUBSCRIBE_OPTIONS)
    return r.SetSubscribeOptions(actor, service, node_of(action), action.get("jid"), form)


def _default(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.4."""
    return r.GetDefaultSubscribeOptions(actor, service, node_of(action))


GET: ActionTable = {
    tag(PUBSUB, "items"): PubsubAction(_items, ("retrieve-items", "rsm", "multi-items")),
    tag(PUBSUB, "subscriptions"): PubsubAction(_subscriptions, ("retrieve-subscriptions",)),
    tag(PUBSUB, "affiliations"): PubsubAction(_affiliations, ("retrieve-affiliations",)),
    _OPTIONS: PubsubAction(_get_options, ("subscription-options",)),
    tag(PUBSUB, "default"): PubsubAction(_default, ("retrieve-default-sub",)),
}

SET: ActionTable = {
    tag(PUBSUB, "publish"): PubsubAction(
        _publish, ("publish", "publish-options", "item-ids", "persistent-items"), frozenset({_PUBLISH_OPTIONS})
    ),
    tag(PUBSUB, "retract"): PubsubAction(_retract, ("delete-items", "retract-items")),
    tag(PUBSUB, "subscribe"): PubsubAction(_subscribe, ("subscribe",), frozenset({_OPTIONS})),
    tag(PUBSUB, "unsubscribe"): PubsubAction(_unsubscribe),
    _OPTIONS: PubsubAction(_set_options, ("subscription-options",)),
    tag(PUBSUB, "create"): PubsubAction(
        _create, ("create-nodes", "create-and-configure", "instant-nodes"), frozenset({_CONFIGURE})
    ),
}
