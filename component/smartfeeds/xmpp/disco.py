"""Answers service discovery: the service, its nodes and its commands (XEP-0030, 0128, 0131, 0157, 0462).

See xep-map 1.5 and 22 to 46, and Smart Feeds, Feed Requirements (SF-112 to SF-114). The features come from the tables
of requests, options and commands, so the service announces what it implements and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, NodeKind
from smartfeeds.core.options import OPTIONS, PUBSUB, SOCIAL_FEED, OptionLimits, access_models
from smartfeeds.core.position import kinds_of_positions
from smartfeeds.core.text import attribute
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import entry_path, feed_path, xmpp_uri
from smartfeeds.core.view import PARAMETERS, Order, View, canonical
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.discovery import CLOSED_META_DATA, PUBLIC_META_DATA, GetAddressInfo, ServiceDescription
from smartfeeds.service.requests import GetItemIds, GetNodeInfo, GetNodes, ItemIds, NodeInfo, NodeList, Request
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp import service_queries
from smartfeeds.xmpp.caps import INFO_QUERY, Caps, CapsKey, DiscoInfo, Identity
from smartfeeds.xmpp.commands import Command, CommandList, ListCommands, table_of
from smartfeeds.xmpp.decode import ACTIONS
from smartfeeds.xmpp.elements import Element, node_of, only, result_set_of
from smartfeeds.xmpp.encode import attribute_bytes, encode_result_set, is_plain, node_attribute
from smartfeeds.xmpp.forms import FormField, encode_form, option_field, parse_submit
from smartfeeds.xmpp.side import XmppSide
from smartfeeds.xmpp.stanza_side import StanzaSide

ITEMS_QUERY = ns.tag(ns.DISCO_ITEMS, "query")
PUBSUB_COMMAND = f"{ns.PUBSUB}#"
_FILTER = ns.tag(ns.FILTER, "filter")
# IQs that slixmpp answers: namespace and name of the payload. The service announces them as features.
PASSED_ON: Mapping[str, str] = {ns.PING: "ping", ns.VERSION: "query"}
_HEADERS = ("TotalItems", "PreviousCursor", "LastCursor", "SubID")
# `<link rel="alternate"/>` of an Atom feed, as a field of the metadata (XEP-0068 3.3).
_ALTERNATE = f"{{{ns.ATOM}}}link#alternate"
HASH = "sha-1"  # of our capabilities: the function that every client supports (XEP-0115 section 9.1)
_ADDRESSES = ("abuse", "admin", "feedback", "sales", "security", "status", "support")
# Every service has these two, so XEP-0060 section 10 defines no feature for them.
_IMPLIED = frozenset({Affiliation.OWNER, Affiliation.NONE})


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """The description of the service from the configuration.

    `http_base_url` is empty if the service has no HTTP side. `addresses` are contact URIs by role (XEP-0157): abuse,
    admin, feedback, sales, security, status, support. `limits` are those of node options.
    """

    domain: str
    name: str = "Smart Feeds"
    default_kind: NodeKind = NodeKind.FEED
    auto_create: bool = False
    http_base_url: str = ""
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: OptionLimits = field(default_factory=OptionLimits)


NO_STANZAS = StanzaSide()


def features(info: ServiceInfo, side: XmppSide, stanzas: StanzaSide = NO_STANZAS) -> list[str]:
    """Returns the features of the service, each once, in the order of xep-map 1.5."""
    names = {name for action in ACTIONS.values() for name in action.features.split()}
    names |= {f"{affiliation.value}-affiliation" for affiliation in Affiliation if affiliation not in _IMPLIED}
    names |= {f"access-{value}" for value in access_models(info.limits)}
    names |= {"meta-data", "subscription-notifications", "filtered-notifications", "presence-notifications"}
    # The commands of XEP-0060 are named like their features.
    names |= {
        command.node.removeprefix(PUBSUB_COMMAND)
        for command in side.commands
        if command.node.startswith(PUBSUB_COMMAND)
    }
    if any(option.datatype == "pubsub:integer-or-max" for option in OPTIONS.values()):
        names.add("config-node-max")
    if info.auto_create:
        names.add("auto-create")
    return [
        ns.DISCO_INFO,
        ns.DISCO_ITEMS,
        ns.PUBSUB,
        *(f"{ns.PUBSUB}#{name}" for name in sorted(names)),
        ns.RSM,
        ns.SHIM,
        *sorted((*PASSED_ON, *service_queries.PAYLOADS)),
        ns.ORDER_BY,
        f"{ns.ORDER_BY}@{ns.PUBSUB}",
        ns.FILTER,
        ns.CAPS,
        *side.features,
        *((ns.COMMANDS,) if side.commands else ()),
        *stanzas.features,
        SOCIAL_FEED,
    ]


def _identities(info: ServiceInfo, stanzas: StanzaSide) -> tuple[Identity, ...]:
    kinds = (("pubsub", "service"), ("pubsub", ns.FORMS), *stanzas.identities)
    return tuple(Identity(category, kind, "", info.name) for category, kind in kinds)


def capabilities(info: ServiceInfo, side: XmppSide, stanzas: StanzaSide = NO_STANZAS) -> Caps:
    """Returns the capabilities of the service for its presence (XEP-0115)."""
    contacts = tuple((each.var, each.values) for each in _contact_fields(info.addresses))
    forms = ((ns.SERVER_INFO, contacts),) if contacts else ()
    ver = DiscoInfo(_identities(info, stanzas), tuple(features(info, side, stanzas)), forms).verification(HASH)
    assert ver is not None  # HASH is a known function
    return Caps(CapsKey(HASH, ver), ns.PROJECT)


class Disco:
    """Reads discovery requests and writes their responses.

    Responses that need no store are prepared once. `readers` and `encoders` are the rows that the router adds to its
    tables.
    """

    def __init__(self, info: ServiceInfo, side: XmppSide, stanzas: StanzaSide = NO_STANZAS) -> None:
        self._info = info
        self._commands = table_of(*side.commands)
        self._node_features = [ns.DISCO_INFO, ns.PUBSUB, *side.node_features]
        identity = "".join(
            f"<identity category='{category}' type='{kind}' name='{attribute(name)}'/>"
            for category, kind, _, name in _identities(info, stanzas)
        )
        contact_fields = _contact_fields(info.addresses)
        contacts = encode_form("result", ns.SERVER_INFO, contact_fields) if contact_fields else ""
        names = features(info, side, stanzas)
        caps = capabilities(info, side, stanzas)
        caps_node = f"{caps.node}#{caps.key.ver}"
        shim = [f"{ns.SHIM}#{name}" for name in _HEADERS]
        self._prepared: dict[tuple[str, str | None], bytes] = {
            (INFO_QUERY, None): _info_query(None, identity, names, contacts),
            (INFO_QUERY, caps_node): _info_query(caps_node, identity, names, contacts),
            (INFO_QUERY, ns.SHIM): _info_query(ns.SHIM, "", [ns.DISCO_INFO, *shim]),
            (INFO_QUERY, ns.COMMANDS): _info_query(
                ns.COMMANDS, "<identity category='automation' type='command-list'/>", [ns.DISCO_INFO]
            ),
            (ITEMS_QUERY, ns.SHIM): _items_query(ns.SHIM),
            **{(ITEMS_QUERY, node): _items_query(node) for node in self._commands},
        }
        self.readers: Mapping[tuple[str, str], Callable[[Element, Jid, str], Request | bytes]] = {
            **{("get", query): self.read for query in (INFO_QUERY, ITEMS_QUERY)},
            **{("set", query): _refuse_set for query in (INFO_QUERY, ITEMS_QUERY)},
        }
        # By the type of the service's response. The second parameter is the address that the request was sent to.
        self.encoders: Mapping[type, Callable[[Any, str], bytes]] = {
            NodeInfo: self._node_info,
            NodeList: self._nodes,
            ItemIds: _item_ids,
            ServiceDescription: lambda _answer, _service: self._prepared[INFO_QUERY, None],
            CommandList: _command_list,
        }

    def read(self, query: Element, actor: Jid, service: str) -> Request | bytes:
        """Returns the request of a `<query/>`, or the body of the response if it needs no store. Raises FeedError."""
        node = node_of(query) if query.get("node") else None
        if node is None and query.tag == INFO_QUERY and "@" in service:
            return GetAddressInfo(actor, service)
        prepared = self._prepared.get((query.tag, node))
        if prepared is not None:
            return prepared
        children = list(query.iterchildren("*"))
        if node is None:
            included, excluded = _types(children)
            return GetNodes(actor, service, result_set_of(children), included, excluded)
        if query.tag == ITEMS_QUERY and node == ns.COMMANDS:
            return ListCommands(actor, service)
        if query.tag == INFO_QUERY and node in self._commands:
            return _command_info(self._commands[node])
        if query.tag == INFO_QUERY:
            return GetNodeInfo(actor, service, node)
        return GetItemIds(actor, service, node, result_set_of(children))

    def _node_info(self, answer: NodeInfo, service: str) -> bytes:
        title = answer.node.options.title
        name = f" name='{attribute(title)}'" if title else ""
        identity = f"<identity category='pubsub' type='leaf'{name}/>"
        forms = encode_form("result", ns.META_DATA, [*_meta_data(answer), *self._alternate(answer)])
        if answer.node.kind is NodeKind.FEED:
            forms += encode_form("result", ns.REQUIREMENTS, self._requirements(answer, service))
        return _info_query(answer.name, identity, self._node_features, forms)

    def _requirements(self, answer: NodeInfo, service: str) -> list[FormField]:
        """Returns the addresses of the feed and the requests that it accepts (Smart Feeds, Feed Requirements; D16)."""
        view = answer.view
        separator = "&" if "?" in answer.name else "?"
        node = answer.name if view.smart else f"{answer.name}{separator}order={Order.MODIFIED.value}"
        fields = [
            FormField("xmpp-jid", "jid-single", (service,), "Address"),
            FormField("xmpp-node", "text-single", (node,), "Node"),
            FormField("xmpp-uri", "text-single", (xmpp_uri(service, node),), "URI"),
        ]
        if self._info.http_base_url:
            name = answer.node.name
            item_url = f"{self._origin}{entry_path(name)}{{id}}"
            fields.append(FormField("http-url", "text-single", (self._http_url(name, view),), "Base URL"))
            fields.append(FormField("http-item-url", "text-single", (item_url,), "URL of an item (RFC 6570)"))
        parameters = tuple(PARAMETERS.items())
        return [
            *fields,
            FormField("positions", "list-multi", kinds_of_positions(view), "Position specifications"),
            FormField("orders", "list-multi", tuple(order.value for order in Order), "Orders"),
            FormField("parameters", "list-multi", tuple(PARAMETERS), "Parameters of the node name", parameters),
            FormField("item-format", "text-single", (ns.ATOM,), "Format of the items"),
        ]

    def _alternate(self, answer: NodeInfo) -> list[FormField]:
        """Returns the link to the page of a node over HTTP (xep-map 236). The service adds no link to entries."""
        if not (self._info.http_base_url and answer.readable):
            return []
        url = self._http_url(answer.node.name, answer.view)
        return [FormField(_ALTERNATE, "text-single", (url,), "Alternate link")]

    @property
    def _origin(self) -> str:
        return self._info.http_base_url.rstrip("/")

    def _http_url(self, name: str, view: View) -> str:
        query = f"?{canonical(view)}" if view.smart else ""
        return f"{self._origin}{feed_path(name)}{query}"

    def _nodes(self, answer: NodeList, _service: str) -> bytes:
        """Returns nodes at the domain, even if the request was sent to another address of ours (D21)."""
        items = _disco_items(self._info.domain, [(node.name, node.options.title) for node in answer.nodes])
        return _items_query(None, items, encode_result_set(answer.result_set))


def _refuse_set(_query: Element, _actor: Jid, _service: str) -> Request:
    raise FeedError(Condition.BAD_REQUEST, "discovery requests must be of type get")


def _disco_items(jid: str, nodes: Sequence[tuple[str, str]]) -> bytes:
    """Returns items at an address, with these nodes and names."""
    if not is_plain("".join([node + name for node, name in nodes])):
        nodes = [(attribute(node), attribute(name)) for node, name in nodes]
    start = f"<item jid='{attribute(jid)}' node='"
    items = [f"{start}{node}' name='{name}'/>" if name else f"{start}{node}'/>" for node, name in nodes]
    return "".join(items).encode()


def _command_list(answer: CommandList, service: str) -> bytes:
    """Returns the commands (XEP-0050 2.2; xep-map 46), at the address that the request was sent to."""
    return _items_query(ns.COMMANDS, _disco_items(service, [(each.node, each.name) for each in answer.commands]))


def _command_info(command: Command) -> bytes:
    identity = f"<identity category='automation' type='command-node' name='{attribute(command.name)}'/>"
    return _info_query(command.node, identity, [ns.DISCO_INFO, ns.COMMANDS, ns.DATA])


def _item_ids(answer: ItemIds, service: str) -> bytes:
    jid = attribute_bytes(service)
    items = [b"<item jid='%b' name='%b'/>" % (jid, attribute_bytes(item_id)) for item_id in answer.ids]
    return _items_query(answer.node, *items, encode_result_set(answer.result_set))


def _meta_data(answer: NodeInfo) -> list[FormField]:
    """Returns the meta-data form (XEP-0060 5.4; xep-map 31 to 34)."""
    node = answer.node
    known = OPTIONS.keys() if answer.described else CLOSED_META_DATA if answer.is_joinable else PUBLIC_META_DATA
    options = [option for var, option in OPTIONS.items() if option.metadata and var in known]
    fields = [option_field(option, node.options) for option in options]
    if answer.described:
        created = format_datetime(node.created_us)
        fields.append(FormField(f"{PUBSUB}creator", "jid-single", (node.creator,), "Creator"))
        fields.append(FormField(f"{PUBSUB}creation_date", "text-single", (created,), "Creation date"))
    if answer.described and answer.readable:
        fields.append(FormField(f"{PUBSUB}owner", "jid-multi", answer.owners, "Owners"))
        fields.append(FormField(f"{PUBSUB}publisher", "jid-multi", answer.publishers, "Publishers"))
        fields.append(FormField(f"{PUBSUB}num_subscribers", "text-single", (str(answer.subscribers),), "Subscribers"))
    return fields


def _contact_fields(addresses: Mapping[str, tuple[str, ...]]) -> list[FormField]:
    """Returns the fields of the serverinfo form (XEP-0157), none if no address is configured."""
    return [FormField(f"{role}-addresses", "list-multi", addresses[role]) for role in _ADDRESSES if addresses.get(role)]


def _types(children: Iterable[Element]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Returns the included and the excluded types of a filter (XEP-0462). Raises FeedError(BAD_REQUEST)."""
    type_filter = only(children, _FILTER)
    form = (parse_submit(type_filter, ns.FILTER) if type_filter is not None else None) or {}
    included, excluded = form.get("included-types"), form.get("excluded-types")
    if included is not None and excluded is not None:
        raise FeedError(Condition.BAD_REQUEST, "the filter has included-types and excluded-types; send one of them")
    return included, excluded


def _info_query(node: str | None, identity: str, names: Iterable[str], forms: str = "") -> bytes:
    features_xml = "".join(f"<feature var='{attribute(name)}'/>" for name in names)
    return f"<query xmlns='{ns.DISCO_INFO}'{node_attribute(node)}>{identity}{features_xml}{forms}</query>".encode()


def _items_query(node: str | None, *parts: bytes) -> bytes:
    start = f"<query xmlns='{ns.DISCO_ITEMS}'{node_attribute(node)}>".encode()
    return b"".join((start, *parts, b"</query>"))
