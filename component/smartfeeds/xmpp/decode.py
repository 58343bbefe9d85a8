"""Pubsub elements to requests: one table (kind of IQ, container) -> action -> reader (XEP-0060; xep-map 15, 16).

An action that is in no table does not exist, and the features a service announces are read from the same tables.
Only FeedError leaves this module for any element.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import Draft, draft_of
from smartfeeds.xmpp.elements import TRUE, Element, item_id_of, node_of, only, orders_of, result_set_of
from smartfeeds.xmpp.forms import find_form, parse_submit
from smartfeeds.xmpp.namespaces import NODE_CONFIG, PUBLISH_OPTIONS, PUBSUB, SUBSCRIBE_OPTIONS, tag

# (who asks, our address, the action's element, the other children of the container) -> the request.
Decoder = Callable[[Jid, str, Element, list[Element]], r.Request]

_ITEM = tag(PUBSUB, "item")
_OPTIONS = tag(PUBSUB, "options")
_CONFIGURE = tag(PUBSUB, "configure")
_PUBLISH_OPTIONS = tag(PUBSUB, "publish-options")
# Namespaces of pubsub that are not the container's own have no place in it.
_ANY_PUBSUB = f"{{{PUBSUB}"


@dataclass(frozen=True, slots=True)
class Action:
    """How an action is read, which features of XEP-0060 it makes true, and what may stand beside it, once each."""

    decode: Decoder
    features: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()


Actions = Mapping[str, Action]


def decode(actions: Actions, container: Element, actor: Jid, service: str) -> r.Request:
    """The request in a `<pubsub/>` element, `actions` being those of its namespace and kind of IQ.

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
            raise FeedError(Condition.BAD_REQUEST, "the namespaces of pubsub do not mix")
        rest.append(child)
    found = actions.get(action.tag) if action is not None else None
    if action is None or found is None:
        raise FeedError(Condition.BAD_REQUEST, "no such action in this kind of request")
    if beside and (len(set(beside)) < len(beside) or not found.companions.issuperset(beside)):
        raise FeedError(Condition.BAD_REQUEST, "one action at a time, with nothing beside it that it does not know")
    return found.decode(actor, service, action, rest)


def _publish(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 7.1; one item a request (X1, xep-map 140)."""
    item: Element | None = None
    for child in action.iterchildren(_ITEM):
        if item is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "publish one item at a time")
        item = child
    options = None
    if rest and (companion := only(rest, _PUBLISH_OPTIONS)) is not None:
        options = parse_submit(find_form(companion), PUBLISH_OPTIONS)
        if options is None:
            raise FeedError(Condition.BAD_REQUEST, "publish-options hold a form of type submit")
    node = node_of(action)
    if item is None:
        return r.Publish(actor, service, node, None, None, options, False)
    return r.Publish(actor, service, node, item_id_of(item), _draft(item), options)


def _draft(item: Element) -> Draft | None:
    payload: Element | None = None
    for child in item.iterchildren("*"):
        if payload is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "an item has one payload")
        payload = child
    if payload is None:
        return None
    return draft_of(payload)


def _retract(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 7.2; one item a request (xep-map 158)."""
    item = only(action.iterchildren("*"), _ITEM)
    item_id = item_id_of(item) if item is not None else None
    return r.Retract(actor, service, node_of(action), item_id, action.get("notify") in TRUE)


def _items(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 6.5. The result set stands beside the items, one inside them is understood too (xep-map 208)."""
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
        raise FeedError(Condition.ITEM_REQUIRED, "an item is asked for by its id")
    return item_id


def _create(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 8.1 (xep-map 61)."""
    configure = only(rest, _CONFIGURE)
    form = None
    if configure is not None:
        if configure.get("node") is not None:
            raise FeedError(Condition.BAD_REQUEST, "configure names no node beside create")
        found = find_form(configure)
        form = parse_submit(found, NODE_CONFIG) if found is not None else None
    return r.CreateNode(actor, service, node_of(action), form)


def _subscribe(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 6.1 and 6.3.7 (xep-map 118)."""
    companion = only(rest, _OPTIONS)
    options = None
    if companion is not None:
        if companion.get("node") is not None or companion.get("jid") is not None:
            raise FeedError(Condition.BAD_REQUEST, "options name neither node nor jid beside subscribe")
        options = parse_submit(find_form(companion), SUBSCRIBE_OPTIONS)
    return r.Subscribe(actor, service, node_of(action), action.get("jid"), options)


def _unsubscribe(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.2."""
    return r.Unsubscribe(actor, service, node_of(action), action.get("jid"))


def _subscriptions(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 5.6; a result set stands beside."""
    return r.GetSubscriptions(actor, service, node_of(action), result_set_of(rest))


def _affiliations(actor: Jid, service: str, action: Element, rest: list[Element]) -> r.Request:
    """XEP-0060 5.7; a result set stands beside."""
    return r.GetAffiliations(actor, service, node_of(action), False, result_set_of(rest))


def _get_options(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.3.2; a form sent along changes nothing."""
    return r.GetSubscribeOptions(actor, service, node_of(action), action.get("jid"))


def _set_options(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.3.5."""
    form = parse_submit(find_form(action), SUBSCRIBE_OPTIONS)
    return r.SetSubscribeOptions(actor, service, node_of(action), action.get("jid"), form)


def _default(actor: Jid, service: str, action: Element, _rest: list[Element]) -> r.Request:
    """XEP-0060 6.4."""
    return r.GetDefaultSubscribeOptions(actor, service, node_of(action))


GET: Actions = {
    tag(PUBSUB, "items"): Action(_items, ("retrieve-items", "rsm", "multi-items")),
    tag(PUBSUB, "subscriptions"): Action(_subscriptions, ("retrieve-subscriptions",)),
    tag(PUBSUB, "affiliations"): Action(_affiliations, ("retrieve-affiliations",)),
    _OPTIONS: Action(_get_options, ("subscription-options",)),
    tag(PUBSUB, "default"): Action(_default, ("retrieve-default-sub",)),
}

SET: Actions = {
    tag(PUBSUB, "publish"): Action(
        _publish, ("publish", "publish-options", "item-ids", "persistent-items"), frozenset({_PUBLISH_OPTIONS})
    ),
    tag(PUBSUB, "retract"): Action(_retract, ("delete-items", "retract-items")),
    tag(PUBSUB, "subscribe"): Action(_subscribe, ("subscribe",), frozenset({_OPTIONS})),
    tag(PUBSUB, "unsubscribe"): Action(_unsubscribe),
    _OPTIONS: Action(_set_options, ("subscription-options",)),
    tag(PUBSUB, "create"): Action(
        _create, ("create-nodes", "create-and-configure", "instant-nodes"), frozenset({_CONFIGURE})
    ),
}
