"""Service discovery (XEP-0030, 0128, 0131, 0157, 0462; Smart Feeds, Feed Requirements)."""

from dataclasses import replace

import pytest
from lxml import etree

from smartfeeds.app.sides import KERNEL
from smartfeeds.core.model import Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import BARE, CREATED, PARAMETERS, SMART, View
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.caps import read_info
from smartfeeds.xmpp.commands import ListCommands
from smartfeeds.xmpp.disco import Disco, ServiceInfo, capabilities
from unit.xmpp.wire import ACTOR, DATA, PS, RSM, SERVICE, canonical, field, parse, submit

INFO = "http://jabber.org/protocol/disco#info"
ITEMS = "http://jabber.org/protocol/disco#items"
SHIM = "http://jabber.org/protocol/shim"
COMMANDS = "http://jabber.org/protocol/commands"
FILTER = "urn:xmpp:pubsub-filter:0"
REQUIREMENTS = "urn:smartfeeds:0#requirements"
SIDE = replace(KERNEL, commands=())
HOUR_US = 1_304_942_400_000_000
OPTIONS = NodeOptions(NodeKind.FEED, {"title": ("A & B",), "contact": ("a@b",)})
NODE = Node(7, "com ments", NodeKind.FEED, "romeo@montague.lit", HOUR_US, OPTIONS)

# xep-map 1.5, without commands.
ALTERNATE = "{http://www.w3.org/2005/Atom}link#alternate"
FEATURES = f"""
{INFO} {ITEMS} {PS} {RSM} {SHIM} jabber:iq:last jabber:iq:version urn:xmpp:ping urn:xmpp:time vcard-temp
urn:xmpp:order-by:1 urn:xmpp:order-by:1@{PS} {FILTER}
urn:xmpp:pubsub-social-feed:1 http://jabber.org/protocol/caps
""".split()
PUBSUB_FEATURES = [
    "access-authorize", "access-open", "access-whitelist",
    "config-node", "config-node-max", "create-and-configure", "create-nodes", "delete-items",
    "delete-nodes", "filtered-notifications", "instant-nodes", "item-ids", "leased-subscription",
    "manage-subscriptions", "member-affiliation", "meta-data",
    "modify-affiliations", "multi-items", "outcast-affiliation", "persistent-items",
    "presence-notifications", "publish",
    "publish-node-full", "publish-only-affiliation", "publish-options", "publisher-affiliation", "purge-nodes",
    "retract-items",
    "retrieve-affiliations", "retrieve-default", "retrieve-default-sub", "retrieve-items",
    "retrieve-subscriptions", "rsm", "subscribe", "subscription-notifications", "subscription-options",
]  # fmt: skip


def read(query: str, info: ServiceInfo | None = None) -> r.Request | bytes:
    return Disco(info or ServiceInfo(SERVICE), SIDE).read(parse(query), ACTOR, SERVICE)


def prepared(query: str, info: ServiceInfo | None = None) -> etree._Element:
    answer = read(query, info)
    assert isinstance(answer, bytes)
    return parse(answer)


def encoded(answer: object, info: ServiceInfo | None = None) -> bytes:
    return Disco(info or ServiceInfo(SERVICE), SIDE).encoders[type(answer)](answer, SERVICE)


def features_of(query: etree._Element) -> list[str]:
    return [each.get("var", "") for each in query.iterchildren(f"{{{INFO}}}feature")]


def identities_of(query: etree._Element) -> list[tuple[str | None, str | None, str | None]]:
    found = query.iterchildren(f"{{{INFO}}}identity")
    return [(each.get("category"), each.get("type"), each.get("name")) for each in found]


def forms_of(query: etree._Element) -> dict[str, dict[str, list[str]]]:
    """FORM_TYPE -> field -> values; every form is a result with a hidden FORM_TYPE, each FORM_TYPE once."""
    forms: dict[str, dict[str, list[str]]] = {}
    for form in query.iterchildren(f"{{{DATA}}}x"):
        assert form.get("type") == "result" and form[0].get("type") == "hidden"
        fields = {
            each.get("var", ""): [value.text or "" for value in each.iterchildren(f"{{{DATA}}}value")] for each in form
        }
        (form_type,) = fields.pop("FORM_TYPE")
        assert form_type not in forms
        forms[form_type] = fields
    return forms


def test_service_info_lists_exactly_what_is_done() -> None:
    """[xep-map 22] [xep-map 23] [xep-map 24] [xep-map 25] [xep-map 27]"""
    query = prepared(f"<query xmlns='{INFO}'/>")

    assert query.get("node") is None
    assert identities_of(query) == [("pubsub", kind, "Smart Feeds") for kind in ("service", "urn:xmpp:fdp:0")]
    assert sorted(features_of(query)) == sorted([*FEATURES, *(f"{PS}#{name}" for name in PUBSUB_FEATURES)])
    assert len(set(features_of(query))) == len(features_of(query))
    assert forms_of(query) == {}


def test_service_info_tells_auto_create_only_while_it_is_on() -> None:
    """[xep-map 26]"""
    on = features_of(prepared(f"<query xmlns='{INFO}'/>", ServiceInfo(SERVICE, auto_create=True)))
    off = features_of(prepared(f"<query xmlns='{INFO}'/>"))

    assert set(on) - set(off) == {f"{PS}#auto-create"}


def test_service_info_tells_contact_addresses() -> None:
    """XEP-0157."""
    info = ServiceInfo(SERVICE, "Feeds & more", addresses={"admin": ("mailto:a@b", "xmpp:a@b"), "abuse": ()})
    query = prepared(f"<query xmlns='{INFO}' node=''/>", info)

    assert identities_of(query) == [("pubsub", kind, "Feeds & more") for kind in ("service", "urn:xmpp:fdp:0")]
    assert forms_of(query) == {"http://jabber.org/network/serverinfo": {"admin-addresses": ["mailto:a@b", "xmpp:a@b"]}}


@pytest.mark.parametrize("addresses", [{}, {"admin": ("xmpp:a@b", "mailto:a@b"), "abuse": ("mailto:c@d",)}])
def test_node_of_the_capabilities_has_the_information_of_the_service(addresses: dict[str, tuple[str, ...]]) -> None:
    """XEP-0115 section 6.2: what a client reads has the hash that our presence names."""
    info = ServiceInfo(SERVICE, "Feeds & more", addresses=addresses)
    caps = capabilities(info, SIDE)
    assert caps.node == "urn:smartfeeds:0"
    node = f"{caps.node}#{caps.key.ver}"
    answer = parse(f"<iq type='result'><query xmlns='{INFO}'/></iq>")
    answer[0] = prepared(f"<query xmlns='{INFO}' node='{node}'/>", info)
    assert answer[0].get("node") == node
    read_back = read_info(answer)
    assert read_back is not None and read_back.is_well_formed
    assert read_back.verification(caps.key.hash) == caps.key.ver
    assert features_of(answer[0]) == features_of(prepared(f"<query xmlns='{INFO}'/>", info))


def test_shim_node_lists_headers() -> None:
    """[xep-map 45]"""
    query = prepared(f"<query xmlns='{INFO}' node='{SHIM}'/>")

    assert query.get("node") == SHIM
    headers = {f"{SHIM}#{name}" for name in ("TotalItems", "PreviousCursor", "LastCursor", "SubID")}
    assert set(features_of(query)) - {INFO} == headers


def test_commands_node_lists_the_commands_of_the_requester() -> None:
    """The list depends on the rights of the requester [xep-map 46]."""
    assert read(f"<query xmlns='{ITEMS}' node='{COMMANDS}'/>") == ListCommands(ACTOR, SERVICE)
    assert identities_of(prepared(f"<query xmlns='{INFO}' node='{COMMANDS}'/>")) == [
        ("automation", "command-list", None)
    ]


def type_filter(*fields: str) -> str:
    return f"<query xmlns='{ITEMS}'><filter xmlns='{FILTER}'>{submit(FILTER, ''.join(fields))}</filter></query>"


READ = {
    "node info": (f"<query xmlns='{INFO}' node='n?q=1'/>", r.GetNodeInfo(ACTOR, SERVICE, "n?q=1")),
    "item ids": (f"<query xmlns='{ITEMS}' node='n'/>", r.GetItemIds(ACTOR, SERVICE, "n")),
    "item ids of a page": (
        f"<query xmlns='{ITEMS}' node='n'><set xmlns='{RSM}'><max>1</max></set></query>",
        r.GetItemIds(ACTOR, SERVICE, "n", ResultSetRequest(max="1")),
    ),
    "nodes": (f"<query xmlns='{ITEMS}'/>", r.GetNodes(ACTOR, SERVICE)),
    "nodes of a page": (
        f"<query xmlns='{ITEMS}'><set xmlns='{RSM}'><after>a</after></set></query>",
        r.GetNodes(ACTOR, SERVICE, ResultSetRequest(after="a")),
    ),
    "nodes of types": (
        type_filter(field("included-types", "urn:a", "")),
        r.GetNodes(ACTOR, SERVICE, None, ("urn:a", "")),
    ),
    "nodes of other types": (
        type_filter(field("excluded-types", "urn:a")),
        r.GetNodes(ACTOR, SERVICE, None, None, ("urn:a",)),
    ),
}


@pytest.mark.parametrize(("query", "expected"), READ.values(), ids=READ.keys())
def test_discovery_query_gives_request(query: str, expected: r.Request) -> None:
    assert read(query) == expected


def test_type_filter_both_ways_is_refused() -> None:
    """[xep-map 44]"""
    with pytest.raises(FeedError) as refused:
        read(type_filter(field("included-types", "a"), field("excluded-types", "b")))
    assert refused.value.condition is Condition.BAD_REQUEST


@pytest.mark.parametrize(
    "query",
    [f"<query xmlns='{ITEMS}'><filter xmlns='{FILTER}'/></query>", f"<query xmlns='{INFO}' node='{'n' * 1024}'/>"],
)
def test_discovery_query_that_is_wrong_is_refused(query: str) -> None:
    with pytest.raises(FeedError) as refused:
        read(query)
    assert refused.value.condition is Condition.BAD_REQUEST


def test_node_info_has_leaf_identity_and_meta_data() -> None:
    """[xep-map 28] [xep-map 30] [xep-map 31] [xep-map 32] [xep-map 33]"""
    query = parse(encoded(r.NodeInfo("com ments", NODE, BARE, True, ("o@x",), ("p@x", "q@x"), 3)))

    assert query.get("node") == "com ments"
    assert identities_of(query) == [("pubsub", "leaf", "A & B")]
    assert INFO in features_of(query)
    meta_data = forms_of(query)[f"{PS}#meta-data"]
    expected = {
        "title": ["A & B"],
        "description": [""],
        "type": ["urn:xmpp:pubsub-social-feed:1"],
        "creator": ["romeo@montague.lit"],
        "creation_date": ["2011-05-09T12:00:00Z"],
        "access_model": ["open"],
        "publish_model": ["publishers"],
        "language": [""],
        "contact": ["a@b"],
        "max_items": ["max"],
        "owner": ["o@x"],
        "publisher": ["p@x", "q@x"],
        "num_subscribers": ["3"],
    }
    assert meta_data.items() >= {f"pubsub#{name}": values for name, values in expected.items()}.items()


def test_node_info_of_unreadable_node_hides_people() -> None:
    """[xep-map 34]"""
    meta_data = forms_of(parse(encoded(r.NodeInfo("n", NODE, BARE, readable=False))))[f"{PS}#meta-data"]
    assert meta_data["pubsub#title"] == ["A & B"]

    assert not {"pubsub#owner", "pubsub#publisher", "pubsub#num_subscribers"} & set(meta_data)
    assert meta_data["pubsub#access_model"] == ["open"]


def test_node_info_of_a_closed_node_has_type_and_access_model_alone() -> None:
    """[xep-map 34]"""
    meta_data = forms_of(parse(encoded(r.NodeInfo("n", NODE, BARE, readable=False, described=False))))[
        f"{PS}#meta-data"
    ]

    assert set(meta_data) - {"FORM_TYPE"} == {"pubsub#type", "pubsub#access_model"}


VIEWS = {
    "bare": ("com ments", BARE, "com ments?order=modified", "com%20ments%3Forder%3Dmodified", "", "cursor id time"),
    "created": (
        "com ments?order=created",
        CREATED,
        "com ments?order=created",
        "com%20ments%3Forder%3Dcreated",
        "?order=created",
        "cursor id time",
    ),
    "modified": (
        "com ments?q=",
        SMART,
        "com ments?q=",
        "com%20ments%3Fq%3D",
        "?order=modified",
        "cursor time",
    ),
}


@pytest.mark.parametrize(("name", "view", "node", "quoted", "query", "positions"), VIEWS.values(), ids=VIEWS.keys())
def test_node_info_of_feed_tells_its_requirements(
    name: str, view: View, node: str, quoted: str, query: str, positions: str
) -> None:
    """Access methods, position specs, item format [SF-112] [SF-113] [SF-114] [xep-map 35]."""
    info = ServiceInfo(SERVICE, http_base_url="https://feeds.example/")
    form = forms_of(parse(encoded(r.NodeInfo(name, NODE, view, readable=True), info)))[REQUIREMENTS]

    assert form == {
        "xmpp-jid": [SERVICE],
        "xmpp-node": [node],
        "xmpp-uri": [f"xmpp:{SERVICE}?;node={quoted}"],
        "http-url": [f"https://feeds.example/feeds/com%20ments/{query}"],
        "http-item-url": ["https://feeds.example/entries/com%20ments/{id}"],
        "positions": positions.split(),
        "orders": ["modified", "created"],
        "parameters": list(PARAMETERS),
        "item-format": ["http://www.w3.org/2005/Atom"],
    }


def test_node_info_without_http_names_no_url() -> None:
    """[xep-map 236]"""
    forms = forms_of(parse(encoded(r.NodeInfo("n", NODE, BARE, readable=True))))

    assert not {"http-url", "http-item-url"} & forms[REQUIREMENTS].keys()
    assert ALTERNATE not in forms[f"{PS}#meta-data"]


def test_node_info_links_to_the_page_of_the_node_over_http() -> None:
    """[xep-map 236]: to those who may read it, of generic nodes too."""
    info = ServiceInfo(SERVICE, http_base_url="https://feeds.example/")
    page = "https://feeds.example/feeds/com%20ments/"

    def alternate(node: Node, view: View, *, readable: bool = True) -> list[str] | None:
        query = parse(encoded(r.NodeInfo("n", node, view, readable=readable), info))
        return forms_of(query)[f"{PS}#meta-data"].get(ALTERNATE)

    generic = NODE._replace(kind=NodeKind.GENERIC, options=NodeOptions(NodeKind.GENERIC, {}))
    assert alternate(NODE, BARE) == alternate(generic, BARE) == [page]
    assert alternate(NODE, CREATED) == [f"{page}?order=created"]
    assert alternate(NODE, BARE, readable=False) is None


def test_node_info_of_generic_node_has_meta_data_alone() -> None:
    node = Node(7, "n", NodeKind.GENERIC, "a@b", HOUR_US, NodeOptions(NodeKind.GENERIC))
    query = parse(encoded(r.NodeInfo("n", node, BARE, readable=True)))

    assert set(forms_of(query)) == {f"{PS}#meta-data"}
    assert identities_of(query) == [("pubsub", "leaf", None)]


def test_nodes_are_listed_at_the_domain() -> None:
    """[xep-map 36]"""
    plain = Node(8, "<plain>", NodeKind.GENERIC, "a@b", HOUR_US, NodeOptions(NodeKind.GENERIC))
    answer = r.NodeList((NODE, plain), r.ResultSet(9, "com ments", "<plain>", 0))

    assert canonical(Disco(ServiceInfo(SERVICE), SIDE).encoders[r.NodeList](answer, f"feed@{SERVICE}")) == canonical(
        f"<query xmlns='{ITEMS}'><item jid='{SERVICE}' node='com ments' name='A &amp; B'/>"
        f"<item jid='{SERVICE}' node='&lt;plain>'/>"
        f"<set xmlns='{RSM}'><first index='0'>com ments</first><last>&lt;plain></last><count>9</count></set></query>"
    )


def test_no_nodes_are_an_empty_query() -> None:
    """[xep-map 39]"""
    assert canonical(encoded(r.NodeList((), None))) == canonical(f"<query xmlns='{ITEMS}'/>")


def test_item_ids_stand_in_names() -> None:
    """[xep-map 40]"""
    assert canonical(encoded(r.ItemIds("n", ("a&b", "c"), None))) == canonical(
        f"<query xmlns='{ITEMS}' node='n'><item jid='{SERVICE}' name='a&amp;b'/>"
        f"<item jid='{SERVICE}' name='c'/></query>"
    )
