"""Whatever comes in gives a request or FeedError, and whatever goes out is well-formed (design section 3)."""

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.app.sides import xmpp_side
from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.text import ForbiddenCharacterError
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.decode import ACTIONS, decode
from smartfeeds.xmpp.disco import INFO_QUERY, ITEMS_QUERY, Disco, ServiceInfo
from smartfeeds.xmpp.encode import ENCODERS, envelope
from smartfeeds.xmpp.stanza_errors import encode_error
from unit.xmpp.wire import ACTOR, DATA, OW, PS, RSM, SERVICE, parse

DISCO = Disco(ServiceInfo(SERVICE), xmpp_side())
NAMESPACES = (
    *(PS, OW, f"{PS}#event", DATA, RSM, "urn:xmpp:order-by:1", "urn:xmpp:pubsub-filter:0"),
    *("http://www.w3.org/2005/Atom", "http://feedsync.org/2007/feedsync", "urn:other", "relative"),
)
NAMES = [
    "publish", "retract", "items", "item", "create", "configure", "subscribe", "unsubscribe", "options", "default",
    "affiliations", "affiliation", "delete", "subscriptions", "subscription", "purge", "redirect",
    "publish-options", "set", "max", "after", "before", "index", "order", "filter", "x", "field", "value", "entry",
    "id", "title", "updated", "link", "sync",
]  # fmt: skip
ATTRIBUTES = [
    "node", "id", "jid", "max_items", "subid", "notify", "by", "desc", "type", "var", "affiliation",
    "subscription", "publisher", "rel", "href", "deleted",
]  # fmt: skip
FORM_TYPES = [f"{PS}#node_config", f"{PS}#publish-options", f"{PS}#subscribe_options", "urn:xmpp:pubsub-filter:0"]
XML_TEXT = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff") | st.sampled_from("\t\n\r"),
    max_size=20,
)
TEXT = XML_TEXT | st.sampled_from(
    [
        "",
        "0",
        "1",
        "true",
        "submit",
        "cancel",
        "form",
        "FORM_TYPE",
        "n",
        "x" * 1024,
        "ü" * 512,
        "a@b/c",
        "creation",
        *FORM_TYPES,
    ]
)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3, namespaces: tuple[str, ...] = NAMESPACES) -> etree._Element:
    """A tree of elements that pubsub knows, in places where it may not expect them, now and then a comment."""
    namespace = draw(st.sampled_from(namespaces) | st.just(""))
    name = draw(st.sampled_from(NAMES))
    found = etree.Element(f"{{{namespace}}}{name}" if namespace else name)
    for attribute, value in draw(st.dictionaries(st.sampled_from(ATTRIBUTES), TEXT, max_size=4)).items():
        found.set(attribute, value)
    found.text = draw(TEXT)
    if depth:
        inner = (namespace, *namespaces) if namespace else namespaces
        for child in draw(st.lists(elements(depth - 1, inner), max_size=2)):
            found.append(child)
    if draw(st.integers(0, 9)) == 0:
        found.append(etree.Comment("c"))
    return found


def from_wire(container: etree._Element) -> etree._Element:
    """The same tree as the stream's parser gives it."""
    return parse(b"<iq>" + etree.tostring(container) + b"</iq>")[0]


# Where in a request the drawn elements go: below the last of these elements.
FIELDS = (f"{{{DATA}}}x", f"{{{DATA}}}field")
PLACES: list[tuple[str, tuple[str, ...]]] = [
    *((kind, (f"{action.partition('}')[0]}}}pubsub", action)) for kind, action in ACTIONS),
    *((kind, (f"{{{namespace}}}pubsub",)) for kind in ("get", "set") for namespace in (PS, OW)),
    *[("set", (f"{{{PS}}}pubsub", f"{{{PS}}}publish", f"{{{PS}}}item"))] * 6,
    *[("set", (f"{{{PS}}}pubsub", f"{{{PS}}}options", *FIELDS))] * 3,
    *[("set", (f"{{{OW}}}pubsub", f"{{{OW}}}configure", *FIELDS))] * 3,
    *[("get", (f"{{{PS}}}pubsub", f"{{{PS}}}items", f"{{{RSM}}}set"))] * 3,
]


@given(st.sampled_from(PLACES), st.dictionaries(st.sampled_from(ATTRIBUTES), TEXT), st.lists(elements(), max_size=3))
def test_decode_any_tree_gives_request_or_feed_error(
    place: tuple[str, tuple[str, ...]], attributes: dict[str, str], content: list[etree._Element]
) -> None:
    """[xep-map 15] [xep-map 21]"""
    kind, path = place
    deepest = container = etree.Element(path[0])
    for name in path[1:]:
        deepest = etree.SubElement(deepest, name, attributes)
    deepest.extend(content)
    found = from_wire(container)

    try:
        request = decode(kind, found, ACTOR, SERVICE)
    except FeedError as refused:
        parse(encode_error(refused))
    else:
        assert (request.actor, request.service) == (ACTOR, SERVICE)
        if isinstance(request, r.Publish) and request.draft is not None:
            parse(request.draft.payload)


@given(st.sampled_from([INFO_QUERY, ITEMS_QUERY]), elements())
def test_discovery_any_tree_gives_request_answer_or_feed_error(name: str, content: etree._Element) -> None:
    content.tag = name
    found = from_wire(content)

    try:
        answer = DISCO.read(found, ACTOR, SERVICE)
    except FeedError as refused:
        parse(encode_error(refused))
    else:
        assert isinstance(answer, bytes | r.Request)


@given(XML_TEXT.filter(lambda name: 0 < len(name.encode()) <= 1023), XML_TEXT.filter(bool))
def test_names_and_ids_of_any_characters_survive_the_wire(node: str, item_id: str) -> None:
    """In as XML, out as XML, the same texts [xep-map 55]."""
    container = etree.Element(f"{{{PS}}}pubsub")
    publish = etree.SubElement(container, f"{{{PS}}}publish", node=node)
    etree.SubElement(publish, f"{{{PS}}}item", id=item_id)
    found = from_wire(container)

    request = decode("set", found, ACTOR, SERVICE)
    assert isinstance(request, r.Publish) and (request.node, request.item_id) == (node, item_id)
    answer = parse(ENCODERS[r.Published](r.Published(node, item_id)))[0]
    assert (answer.get("node"), answer[0].get("id")) == (node, item_id)


ANY = st.text(max_size=10)
ITEMS = st.builds(Item, st.just(1), ANY, st.just(0), st.just(0), st.sampled_from([b"", b"<a></a>"]), ANY)
OPTIONS = st.builds(
    NodeOptions,
    st.sampled_from(NodeKind),
    st.dictionaries(st.sampled_from(["title", "description", "type"]), st.tuples(ANY), max_size=3),
)
NODES = st.builds(lambda name, creator, options: Node(1, name, options.kind, creator, 0, options), ANY, ANY, OPTIONS)
SETS = st.none() | st.builds(r.ResultSet, st.integers(0, 9), ANY, ANY, st.none() | st.integers(0, 9))
ANSWERS = (
    st.builds(r.Page, ANY, st.lists(ITEMS, max_size=3).map(tuple), SETS, st.booleans())
    | st.builds(r.Published, ANY, ANY)
    | st.builds(r.SubscribeOptions, st.none() | ANY, st.none() | ANY, st.sampled_from(NodeKind), st.just({}))
    | st.builds(r.NodeInfo, ANY, NODES, st.just(BARE), st.booleans(), st.tuples(ANY), st.tuples(ANY))
    | st.builds(r.NodeList, st.tuples(NODES), SETS)
    | st.builds(r.ItemIds, ANY, st.tuples(ANY, ANY), SETS)
)


@given(ANSWERS)
def test_encode_any_answer_is_well_formed_or_refused(answer: object) -> None:
    """Characters that XML forbids are refused before they can end the link; nothing else is."""
    try:
        discovered = DISCO.encoders.get(type(answer))
        body = discovered(answer, SERVICE) if discovered is not None else ENCODERS[type(answer)](answer)
    except ForbiddenCharacterError:
        return
    parse(envelope(b"result", b" id='1'", body))


@given(st.sampled_from(Condition), st.text(), st.text())
def test_encode_any_error_is_well_formed(condition: Condition, text: str, feature: str) -> None:
    """[xep-map 17]"""
    parse(encode_error(FeedError(condition, text, feature=feature)))
