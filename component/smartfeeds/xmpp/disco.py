"""Service discovery: what we are, what nodes there are, what a node is like (XEP-0030, 0128, 0131, 0157, 0462).

xep-map 1.5 and 22 to 46; Smart Feeds, Feed Requirements (SF-112 to SF-114). Features are read from the tables that
do the work, so that they cannot lie. Approval forms are not there, so neither are their features.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, NodeKind
from smartfeeds.core.options import OPTIONS, PUBSUB, SOCIAL_FEED
from smartfeeds.core.position import kinds_of_positions
from smartfeeds.core.text import attribute
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import feed_path, xmpp_uri
from smartfeeds.core.view import PARAMETERS, Order, View, canonical
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.service.discovery import TOLD_TO_ALL
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.commands import Command
from smartfeeds.xmpp.decode import GET, SET
from smartfeeds.xmpp.decode_owner import OWNER_GET, OWNER_SET
from smartfeeds.xmpp.elements import Element, node_of, only, result_set_of
from smartfeeds.xmpp.encode import attribute_bytes, encode_result_set, node_attribute
from smartfeeds.xmpp.forms import FormField, encode_form, find_form, option_field, parse_submit

INFO_QUERY = ns.tag(ns.DISCO_INFO, "query")
ITEMS_QUERY = ns.tag(ns.DISCO_ITEMS, "query")
_FILTER = ns.tag(ns.FILTER, "filter")
# IQs that slixmpp answers, and that the service announces therefore.
PASSED_ON: Mapping[str, str] = {ns.PING: "ping", ns.VERSION: "query"}
_HEADERS = ("TotalItems", "PreviousCursor", "LastCursor", "SubID")
_ADDRESSES = ("abuse", "admin", "feedback", "sales", "security", "status", "support")
_UNTOLD = frozenset({Affiliation.OWNER, Affiliation.NONE})


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """What the operator tells about the service.

    `http_base_url` is empty where there is no HTTP side. `addresses` are contact URIs by role (XEP-0157): abuse,
    admin, feedback, sales, security, status, support.
    """

    domain: str
    name: str = "Smart Feeds"
    default_kind: NodeKind = NodeKind.FEED
    auto_create: bool = False
    http_base_url: str = ""
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def features(info: ServiceInfo, commands: Mapping[str, Command]) -> list[str]:
    """The features of the service, each once, in the order of xep-map 1.5."""
    names = {
        name for table in (GET, SET, OWNER_GET, OWNER_SET) for action in table.values() for name in action.features
    }
    names |= {f"{held.value}-affiliation" for held in Affiliation if held not in _UNTOLD}
    names |= {f"access-{value}" for value in OPTIONS["access_model"].defaults[info.default_kind]}
    names |= {"meta-data", "subscription-notifications"}
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
        *sorted(PASSED_ON),
        ns.ORDER_BY,
        f"{ns.ORDER_BY}@{ns.PUBSUB}",
        ns.FILTER,
        *((ns.COMMANDS,) if commands else ()),
        SOCIAL_FEED,
    ]


class Disco:
    """Reads discovery requests and writes their answers; what needs no store is answered from prepared bytes."""

    def __init__(self, info: ServiceInfo, commands: Mapping[str, Command] | None = None) -> None:
        self._info = info
        self._commands = commands or {}
        identity = f"<identity category='pubsub' type='service' name='{attribute(info.name)}'/>"
        contacts = _contact_form(info.addresses)
        shim = [f"{ns.SHIM}#{name}" for name in _HEADERS]
        self._prepared: dict[tuple[str, str | None], bytes] = {
            (INFO_QUERY, None): _info_query(None, identity, features(info, self._commands), contacts),
            (INFO_QUERY, ns.SHIM): _info_query(ns.SHIM, "", [ns.DISCO_INFO, *shim]),
            (INFO_QUERY, ns.COMMANDS): _info_query(
                ns.COMMANDS, "<identity category='automation' type='command-list'/>", [ns.DISCO_INFO]
            ),
            (ITEMS_QUERY, ns.SHIM): _items_query(ns.SHIM),
            **{(ITEMS_QUERY, node): _items_query(node) for node in self._commands},
        }

        # type of the answer -> what writes it, given the address of ours that was asked.
        self.encoders: Mapping[type, Callable[[Any, str], bytes]] = {
            r.NodeInfo: self._node_info,
            r.NodeList: self._nodes,
            r.ItemIds: _item_ids,
        }

    def read(self, query: Element, actor: Jid, service: str) -> r.Request | bytes:
        """The request of a `<query/>`, or the body of its answer where that is known already. Raises FeedError."""
        node = node_of(query) if query.get("node") else None
        prepared = self._prepared.get((query.tag, node))
        if prepared is not None:
            return prepared
        children = list(query.iterchildren("*"))
        if node is None:
            included, excluded = _types(children)
            return r.GetNodes(actor, service, result_set_of(children), included, excluded)
        if query.tag == ITEMS_QUERY and node == ns.COMMANDS:
            return self._command_list(service)
        if query.tag == INFO_QUERY and node in self._commands:
            return _command_info(self._commands[node])
        if query.tag == INFO_QUERY:
            return r.GetNodeInfo(actor, service, node)
        return r.GetItemIds(actor, service, node, result_set_of(children))

    def _command_list(self, service: str) -> bytes:
        """The commands (XEP-0050 2.2; xep-map 46), at the address that was asked."""
        jid = attribute_bytes(service)
        items = [
            b"<item jid='%b' node='%b' name='%b'/>" % (jid, attribute_bytes(each.node), attribute_bytes(each.name))
            for each in self._commands.values()
        ]
        return _items_query(ns.COMMANDS, *items)

    def _node_info(self, answer: r.NodeInfo, service: str) -> bytes:
        title = answer.node.options.title
        shown = f" name='{attribute(title)}'" if title else ""
        identity = f"<identity category='pubsub' type='leaf'{shown}/>"
        forms = encode_form("result", ns.META_DATA, _meta_data(answer))
        if answer.node.kind is NodeKind.FEED:
            forms += encode_form("result", ns.REQUIREMENTS, self._requirements(answer, service))
        return _info_query(answer.name, identity, [ns.DISCO_INFO, ns.PUBSUB], forms)

    def _requirements(self, answer: r.NodeInfo, service: str) -> list[FormField]:
        """How to reach the feed and what it can do (Smart Feeds, Feed Requirements; D16)."""
        view = answer.view
        mark = "&" if "?" in answer.name else "?"
        node = answer.name if view.smart else f"{answer.name}{mark}order={Order.MODIFIED.value}"
        fields = [
            FormField("xmpp-jid", "jid-single", (service,), "Address"),
            FormField("xmpp-node", "text-single", (node,), "Node"),
            FormField("xmpp-uri", "text-single", (xmpp_uri(service, node),), "URI"),
        ]
        if self._info.http_base_url:
            fields.append(FormField("http-url", "text-single", (self._http_url(answer.node.name, view),), "Base URL"))
        parameters = tuple(PARAMETERS.items())
        return [
            *fields,
            FormField("positions", "list-multi", kinds_of_positions(view), "Position specifications"),
            FormField("orders", "list-multi", tuple(order.value for order in Order), "Orders"),
            FormField("parameters", "list-multi", tuple(PARAMETERS), "Parameters of the node name", parameters),
            FormField("item-format", "text-single", (ns.ATOM,), "Format of the items"),
        ]

    def _http_url(self, name: str, view: View) -> str:
        query = f"?{canonical(view)}" if view.smart else ""
        return f"{self._info.http_base_url.rstrip('/')}{feed_path(name)}{query}"

    def _nodes(self, answer: r.NodeList, _service: str) -> bytes:
        """Nodes are listed at the domain, wherever the question went (D21)."""
        jid = attribute_bytes(self._info.domain)
        items = []
        for node in answer.nodes:
            title = node.options.title
            shown = b" name='%b'" % attribute_bytes(title) if title else b""
            items.append(b"<item jid='%b' node='%b'%b/>" % (jid, attribute_bytes(node.name), shown))
        return _items_query(None, *items, encode_result_set(answer.result_set))


def _command_info(command: Command) -> bytes:
    identity = f"<identity category='automation' type='command-node' name='{attribute(command.name)}'/>"
    return _info_query(command.node, identity, [ns.DISCO_INFO, ns.COMMANDS, ns.DATA])


def _item_ids(answer: r.ItemIds, service: str) -> bytes:
    jid = attribute_bytes(service)
    items = [b"<item jid='%b' name='%b'/>" % (jid, attribute_bytes(item_id)) for item_id in answer.ids]
    return _items_query(answer.node, *items, encode_result_set(answer.result_set))


def _meta_data(answer: r.NodeInfo) -> list[FormField]:
    """The meta-data form (XEP-0060 5.4; xep-map 31 to 34)."""
    node = answer.node
    told = [one for one in OPTIONS.values() if one.metadata and (answer.described or one.var in TOLD_TO_ALL)]
    fields = [option_field(option, node.options) for option in told]
    fields = [FormField(each.var, each.type, each.values, each.label) for each in fields]
    if not answer.described:
        return fields
    fields.append(FormField(f"{PUBSUB}creator", "jid-single", (node.creator,), "Who made it"))
    fields.append(
        FormField(f"{PUBSUB}creation_date", "text-single", (format_datetime(node.created_us),), "When it was made")
    )
    if answer.readable:
        fields.append(FormField(f"{PUBSUB}owner", "jid-multi", answer.owners, "Owners"))
        fields.append(FormField(f"{PUBSUB}publisher", "jid-multi", answer.publishers, "Publishers"))
        fields.append(FormField(f"{PUBSUB}num_subscribers", "text-single", (str(answer.subscribers),), "Subscribers"))
    return fields


def _contact_form(addresses: Mapping[str, tuple[str, ...]]) -> str:
    """The serverinfo form (XEP-0157), nothing where no address is configured."""
    fields = [
        FormField(f"{role}-addresses", "list-multi", addresses[role]) for role in _ADDRESSES if addresses.get(role)
    ]
    return encode_form("result", ns.SERVER_INFO, fields) if fields else ""


def _types(children: Iterable[Element]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The included and the excluded types of a filter (XEP-0462). Raises FeedError(BAD_REQUEST)."""
    found = only(children, _FILTER)
    form = (parse_submit(find_form(found), ns.FILTER) if found is not None else None) or {}
    included, excluded = form.get("included-types"), form.get("excluded-types")
    if included is not None and excluded is not None:
        raise FeedError(Condition.BAD_REQUEST, "types are either included or excluded")
    return included, excluded


def _info_query(node: str | None, identity: str, names: Iterable[str], forms: str = "") -> bytes:
    told = "".join(f"<feature var='{attribute(name)}'/>" for name in names)
    return f"<query xmlns='{ns.DISCO_INFO}'{node_attribute(node)}>{identity}{told}{forms}</query>".encode()


def _items_query(node: str | None, *parts: bytes) -> bytes:
    start = f"<query xmlns='{ns.DISCO_ITEMS}'{node_attribute(node)}>".encode()
    return b"".join((start, *parts, b"</query>"))
