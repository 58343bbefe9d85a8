"""Reads pubsub elements as typed requests, by one table, `ACTIONS` (XEP-0060; xep-map 15, 16).

An action that is not in the table is rejected, and the advertised features come from the same table, so the two cannot
differ. For any input this module raises FeedError only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.drafts import PayloadDraft, draft_of
from smartfeeds.service.requests import (
    Configure,
    CreateNode,
    DeleteNode,
    GetAffiliations,
    GetConfiguration,
    GetDefaultConfiguration,
    GetDefaultSubscribeOptions,
    GetNodeSubscriptions,
    GetSubscribeOptions,
    GetSubscriptions,
    NodeRequest,
    Publish,
    Pull,
    Purge,
    Request,
    Retract,
    SetAffiliations,
    SetSubscribeOptions,
    SetSubscriptions,
    Subscribe,
    Unsubscribe,
)
from smartfeeds.xmpp.elements import TRUE, Element, item_id_of, node_of, only, orders_of, result_set_of
from smartfeeds.xmpp.forms import parse_submit
from smartfeeds.xmpp.namespaces import NODE_CONFIG, OWNER, PUBLISH_OPTIONS, PUBSUB, SUBSCRIBE_OPTIONS, tag

# Parameters: the requester, our address, the element of the action, the other children of the container.
Decoder = Callable[[Jid, str, Element, list[Element]], Request]
# Reads one field of a request from the element of the action and the other children of the container.
FieldReader = Callable[[Element, list[Element]], object]

# Each entry of an owner's list reads and writes a row, in one transaction that blocks other writers.
MAX_ENTRIES = 256

_ITEMS, _ITEM = tag(PUBSUB, "items"), tag(PUBSUB, "item")
_CONFIGURE = tag(PUBSUB, "configure")
_PUBLISH_OPTIONS = tag(PUBSUB, "publish-options")
_REDIRECT = tag(OWNER, "redirect")
# The prefix of all pubsub namespaces. Elements of another pubsub namespace than the container's are an error.
_ANY_PUBSUB = f"{{{PUBSUB}"


@dataclass(frozen=True, slots=True)
class PubsubAction:
    """An action of IQs of type `kind` (get, set): its element, and the function that reads it.

    `features` are the XEP-0060 features that it provides, separated by spaces. One element called `companion` may stand
    beside it.
    """

    kind: str
    namespace: str
    name: str
    decode: Decoder
    features: str = ""
    companion: str = ""


def reader_of_gets(
    known: Mapping[tuple[str, str], bytes], domain: str
) -> Callable[[Element, Jid, str], Request | bytes]:
    """Returns a reader of requests of the type get. Those for the items of `known`, by node and id (empty for all), at
    the address `domain` have these responses; `decode` reads the others."""

    nodes = {node for node, _ in known}

    def read(container: Element, actor: Jid, service: str) -> Request | bytes:
        action = container[0] if service == domain and len(container) else None
        if action is not None and action.tag == _ITEMS and action.get("node") in nodes:
            ids = [item.get("id") or "" for item in action.iterchildren(_ITEM)] or [""]
            body = known.get((action.get("node") or "", ids[0])) if len(ids) == 1 else None
            if body is not None:
                return body
        return decode("get", container, actor, service)

    return read if known else partial(decode, "get")


def decode(kind: str, container: Element, actor: Jid, service: str) -> Request:
    """Returns the request in a `<pubsub/>` element of an IQ of type `kind` (get, set).

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
    entry = ACTIONS.get((kind, action.tag)) if action is not None else None
    if action is None or entry is None:
        raise FeedError(Condition.BAD_REQUEST, "the request has no action, or one that this type of IQ does not have")
    if beside and beside != [tag(entry.namespace, entry.companion)]:
        raise FeedError(Condition.BAD_REQUEST, "the request has more than one action, or one element twice")
    request = entry.decode(actor, service, action, rest)
    # `create` without a node asks for an instant node at any address.
    if isinstance(request, NodeRequest) and request.node is None and not isinstance(request, CreateNode):
        return replace(request, node=request.address_node)
    return request


# Fields that many requests share.


def _fields(request: Callable[..., Request], *fields: FieldReader) -> Decoder:
    """Returns the decoder of a request whose fields are read one by one."""
    return lambda actor, service, action, rest: request(actor, service, *(read(action, rest) for read in fields))


def _node(action: Element, _rest: list[Element]) -> str | None:
    return node_of(action)


def _jid(action: Element, _rest: list[Element]) -> str | None:
    return action.get("jid")


def _page(_action: Element, rest: list[Element]) -> object:
    return result_set_of(rest)


def _constant(value: object) -> FieldReader:
    return lambda _action, _rest: value


def _form(form_type: str) -> FieldReader:
    return lambda action, _rest: parse_submit(action, form_type)


def _entries(name: str, *, required: bool) -> FieldReader:
    """Reads an owner's list: the JID of each entry, and its attribute `name`, which may be absent unless `required`."""

    def read(action: Element, _rest: list[Element]) -> tuple[tuple[str | None, str | None], ...]:
        if len(action) > MAX_ENTRIES:
            raise FeedError(
                Condition.NOT_ACCEPTABLE, f"the request has {len(action)} entries; send at most {MAX_ENTRIES} at once"
            )
        entries = tuple((entry.get("jid"), entry.get(name)) for entry in action.iterchildren(tag(OWNER, name)))
        if not all(jid for jid, _ in entries):
            raise FeedError(Condition.JID_REQUIRED, "an entry has no jid")
        if required and not all(value for _, value in entries):
            raise FeedError(Condition.BAD_REQUEST, f"an entry has no {name} state")
        return entries

    return read


# Requests with rules of their own.


def _publish(actor: Jid, service: str, action: Element, rest: list[Element]) -> Request:
    """Reads a publish request, which may have one item only (XEP-0060 7.1; X1, xep-map 140)."""
    item: Element | None = None
    for child in action.iterchildren(_ITEM):
        if item is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the request has several items; publish one item per request")
        item = child
    options = None
    if rest and (companion := only(rest, _PUBLISH_OPTIONS)) is not None:
        options = parse_submit(companion, PUBLISH_OPTIONS)
        if options is None:
            raise FeedError(Condition.BAD_REQUEST, "the form in publish-options is cancelled; it must be submitted")
    node = node_of(action)
    if item is None:
        return Publish(actor, service, node, None, None, options, False)
    return Publish(actor, service, node, item_id_of(item), _draft(item), options)


def _draft(item: Element) -> PayloadDraft | None:
    payload: Element | None = None
    for child in item.iterchildren("*"):
        if payload is not None:
            raise FeedError(Condition.INVALID_PAYLOAD, "the item has several payloads; send one payload")
        payload = child
    return None if payload is None else draft_of(payload)


def _retract(actor: Jid, service: str, action: Element, _rest: list[Element]) -> Request:
    """Reads a retract request, which may have one item only (XEP-0060 7.2; xep-map 158)."""
    item = only(action.iterchildren("*"), _ITEM)
    item_id = item_id_of(item) if item is not None else None
    return Retract(actor, service, node_of(action), item_id, action.get("notify") in TRUE)


def _items(actor: Jid, service: str, action: Element, rest: list[Element]) -> Request:
    """Reads a request for items (XEP-0060 6.5). The result set is beside the items; a result set inside them is
    accepted too (xep-map 208)."""
    children = list(action.iterchildren("*"))
    around = rest + children
    return Pull(
        actor,
        service,
        node_of(action),
        _ids(child for child in children if child.tag == _ITEM),
        action.get("max_items"),
        result_set_of(around) if around else None,
        orders_of(around) if around else (),
    )


def _ids(items: Iterable[Element]) -> tuple[str, ...]:
    item_ids = [item_id_of(item) for item in items]
    if None in item_ids:
        raise FeedError(Condition.ITEM_REQUIRED, "an item has no id; request items by id")
    return tuple(item_id for item_id in item_ids if item_id is not None)


def _create(actor: Jid, service: str, action: Element, rest: list[Element]) -> Request:
    """Reads a create request (XEP-0060 8.1; xep-map 61). An empty `<configure/>` asks for the default configuration."""
    configure = only(rest, _CONFIGURE)
    form = None
    if configure is not None:
        if configure.get("node") is not None:
            raise FeedError(Condition.BAD_REQUEST, "configure has a node attribute; only create names the node")
        form = parse_submit(configure, NODE_CONFIG, required=False)
    return CreateNode(actor, service, node_of(action), form)


def _subscribe(actor: Jid, service: str, action: Element, rest: list[Element]) -> Request:
    """Reads a subscribe request, also with options beside it (XEP-0060 6.1, 6.3.7; xep-map 118)."""
    companion = only(rest, tag(PUBSUB, "options"))
    options = None
    if companion is not None:
        if companion.get("node") is not None or companion.get("jid") is not None:
            raise FeedError(Condition.BAD_REQUEST, "options has node or jid; beside subscribe it must have neither")
        options = parse_submit(companion, SUBSCRIBE_OPTIONS)
    return Subscribe(actor, service, node_of(action), action.get("jid"), options)


def _get_default(actor: Jid, service: str, action: Element, _rest: list[Element]) -> Request:
    return GetDefaultConfiguration(actor, service, action.get("type") or "leaf")


def _delete(actor: Jid, service: str, action: Element, _rest: list[Element]) -> Request:
    """Reads a delete request, with the address of the node that replaces the deleted node (XEP-0060 8.4.1)."""
    redirect = only(action.iterchildren("*"), _REDIRECT)
    uri = redirect.get("uri", "") if redirect is not None else ""
    if redirect is not None and not uri:
        raise FeedError(Condition.BAD_REQUEST, "redirect has no uri; send the address of the new node")
    return DeleteNode(actor, service, node_of(action), uri)


_CONFIGURATION, _SUBSCRIPTION = _form(NODE_CONFIG), _form(SUBSCRIBE_OPTIONS)
_AFFILIATIONS, _STATES = _entries("affiliation", required=False), _entries("subscription", required=True)
_OF_USER, _OF_NODE = _constant(False), _constant(True)  # whose affiliations a request is for

# A new action is a line here, and a line in the tables of `service.feeds`.
_ROWS = (
    PubsubAction("get", PUBSUB, "items", _items, "retrieve-items rsm multi-items"),
    PubsubAction("get", PUBSUB, "subscriptions", _fields(GetSubscriptions, _node, _page), "retrieve-subscriptions"),
    PubsubAction(
        "get", PUBSUB, "affiliations", _fields(GetAffiliations, _node, _OF_USER, _page), "retrieve-affiliations"
    ),
    # A form in this request is ignored.
    PubsubAction("get", PUBSUB, "options", _fields(GetSubscribeOptions, _node, _jid), "subscription-options"),
    PubsubAction("get", PUBSUB, "default", _fields(GetDefaultSubscribeOptions, _node), "retrieve-default-sub"),
    PubsubAction(
        "set",
        PUBSUB,
        "publish",
        _publish,
        "publish publish-options item-ids persistent-items publish-node-full",
        "publish-options",
    ),
    PubsubAction("set", PUBSUB, "retract", _retract, "delete-items retract-items"),
    PubsubAction("set", PUBSUB, "subscribe", _subscribe, "subscribe", "options"),
    PubsubAction("set", PUBSUB, "unsubscribe", _fields(Unsubscribe, _node, _jid)),
    PubsubAction(
        "set",
        PUBSUB,
        "options",
        _fields(SetSubscribeOptions, _node, _jid, _SUBSCRIPTION),
        "subscription-options leased-subscription",
    ),
    PubsubAction("set", PUBSUB, "create", _create, "create-nodes create-and-configure instant-nodes", "configure"),
    PubsubAction("get", OWNER, "configure", _fields(GetConfiguration, _node), "config-node"),
    PubsubAction("set", OWNER, "configure", _fields(Configure, _node, _CONFIGURATION), "config-node"),
    PubsubAction("get", OWNER, "default", _get_default, "retrieve-default"),
    PubsubAction("set", OWNER, "delete", _delete, "delete-nodes"),
    PubsubAction("set", OWNER, "purge", _fields(Purge, _node), "purge-nodes"),
    PubsubAction("get", OWNER, "affiliations", _fields(GetAffiliations, _node, _OF_NODE, _page), "modify-affiliations"),
    PubsubAction("set", OWNER, "affiliations", _fields(SetAffiliations, _node, _AFFILIATIONS), "modify-affiliations"),
    PubsubAction("get", OWNER, "subscriptions", _fields(GetNodeSubscriptions, _node, _page), "manage-subscriptions"),
    PubsubAction("set", OWNER, "subscriptions", _fields(SetSubscriptions, _node, _STATES), "manage-subscriptions"),
)
# By the type of the IQ and the tag of the action.
ACTIONS: Mapping[tuple[str, str], PubsubAction] = {(row.kind, tag(row.namespace, row.name)): row for row in _ROWS}
