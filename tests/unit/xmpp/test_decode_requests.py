"""Elements in, requests out: every action of pubsub and pubsub#owner (XEP-0060)."""

import pytest

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import ID, TITLE, UPDATED
from smartfeeds.formats.payload import Shape
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import PayloadDraft
from smartfeeds.xmpp.decode import ACTIONS, decode
from unit.xmpp.wire import ACTOR, OW, PS, RSM, SERVICE, field, parse, submit

ENTRY = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:x,1</id><title>T</title><updated>2011-05-09T12:00:00Z</updated>"
    "<link rel='enclosure' href='http://x/y'/></entry>"
)
ENTRY_BYTES = (
    b'<entry xmlns="http://www.w3.org/2005/Atom"><id>tag:x,1</id><title>T</title>'
    b'<updated>2011-05-09T12:00:00Z</updated><link href="http://x/y" rel="enclosure"></link></entry>'
)
GEOLOC_BYTES = b'<geoloc xmlns="urn:geo"></geoloc>'
DELETION_BYTES = (
    b'<entry xmlns="http://www.w3.org/2005/Atom">'
    b'<sync xmlns="http://feedsync.org/2007/feedsync" deleted="true"></sync></entry>'
)
ORDER = "<order xmlns='urn:xmpp:order-by:1' "
NODE_CONFIG = f"{PS}#node_config"
PUBLISH_OPTIONS = f"{PS}#publish-options"
SUBSCRIBE_OPTIONS = f"{PS}#subscribe_options"


def request_of(kind: str, content: str, namespace: str = PS) -> r.Request:
    """The request that an IQ of this kind with this content of `<pubsub/>` makes."""
    container = parse(f"<iq><pubsub xmlns='{namespace}'>{content}</pubsub></iq>")[0]
    return decode(kind, container, ACTOR, SERVICE)


def condition_of(kind: str, content: str, namespace: str = PS) -> Condition:
    """The condition with which it is refused."""
    with pytest.raises(FeedError) as refused:
        request_of(kind, content, namespace)
    return refused.value.condition


WHO = (ACTOR, SERVICE)

READ = {
    "publish": (
        "set",
        PS,
        f"<publish node='n'><item id='i' publisher='forged@x'>{ENTRY}</item></publish>",
        r.Publish(*WHO, "n", "i", PayloadDraft(ENTRY_BYTES, ENTRY_BYTES)),
    ),
    "publish without an id": (
        "set",
        PS,
        "<publish node='n'><item><geoloc xmlns='urn:geo'/></item></publish>",
        r.Publish(*WHO, "n", None, PayloadDraft(GEOLOC_BYTES, GEOLOC_BYTES)),
    ),
    "publish a deletion": (
        "set",
        PS,
        "<publish node='n'><item id='i'><entry xmlns='http://www.w3.org/2005/Atom'>"
        "<sync xmlns='http://feedsync.org/2007/feedsync' deleted='true'/></entry></item></publish>",
        r.Publish(*WHO, "n", "i", PayloadDraft(DELETION_BYTES, DELETION_BYTES)),
    ),
    "publish an entry with the mark of one that is not deleted": (
        "set",
        PS,
        "<publish node='n'><item id='i'><entry xmlns='http://www.w3.org/2005/Atom'>"
        "<sync xmlns='http://feedsync.org/2007/feedsync' deleted='false'/></entry></item></publish>",
        r.Publish(
            *WHO,
            "n",
            "i",
            PayloadDraft(
                DELETION_BYTES.replace(b"true", b"false"), b'<entry xmlns="http://www.w3.org/2005/Atom"></entry>'
            ),
        ),
    ),
    "publish an empty item": ("set", PS, "<publish node='n'><item/></publish>", r.Publish(*WHO, "n", None, None)),
    "publish no item": ("set", PS, "<publish/>", r.Publish(*WHO, None, None, None, None, False)),
    "publish with options": (
        "set",
        PS,
        "<publish node='n'><item id='i'/></publish><publish-options>"
        + submit(PUBLISH_OPTIONS, field("pubsub#max_items", "max") + field("pubsub#contact", "a@b", "c@d"))
        + "</publish-options>",
        r.Publish(*WHO, "n", "i", None, {"pubsub#max_items": ("max",), "pubsub#contact": ("a@b", "c@d")}),
    ),
    "retract": ("set", PS, "<retract node='n'><item id='i'/></retract>", r.Retract(*WHO, "n", "i")),
    "retract with notify": (
        "set",
        PS,
        "<retract node='n' notify='1'><item id='i'/></retract>",
        r.Retract(*WHO, "n", "i", notify=True),
    ),
    "retract without an item": ("set", PS, "<retract node='n' notify='0'/>", r.Retract(*WHO, "n", None)),
    "items": ("get", PS, "<items node='n'/>", r.Pull(*WHO, "n")),
    "items with max_items": ("get", PS, "<items node='n' max_items='12'/>", r.Pull(*WHO, "n", max_items="12")),
    "items by id": (
        "get",
        PS,
        "<items node='n' subid='s'><item id='a'/><item id='b'/></items>",
        r.Pull(*WHO, "n", ("a", "b")),
    ),
    "items with a result set": (
        "get",
        PS,
        f"<items node='n'/><set xmlns='{RSM}'><max>10</max><after>A</after><before/><index>3</index><new/></set>",
        r.Pull(*WHO, "n", page=ResultSetRequest("10", "A", "", "3")),
    ),
    "items, result set first": (
        "get",
        PS,
        f"<set xmlns='{RSM}'/><items node='n'/>",
        r.Pull(*WHO, "n", page=ResultSetRequest()),
    ),
    "items around a result set [xep-map 208]": (
        "get",
        PS,
        f"<items node='n'><set xmlns='{RSM}'><max>1</max></set></items>",
        r.Pull(*WHO, "n", page=ResultSetRequest(max="1")),
    ),
    "items in two orders [xep-map 227]": (
        "get",
        PS,
        f"<items node='n'/>{ORDER}by='creation' desc='1'/>{ORDER}by='modification'/>{ORDER}by='x' desc='true'/>",
        r.Pull(
            *WHO, "n", order_by=(r.OrderBy("creation", True), r.OrderBy("modification", False), r.OrderBy("x", True))
        ),
    ),
    "create": ("set", PS, "<create node='n'/>", r.CreateNode(*WHO, "n")),
    "create an instant node": ("set", PS, "<create/><configure/>", r.CreateNode(*WHO, None)),
    "create and configure": (
        "set",
        PS,
        f"<create node='n'/><configure>{submit(NODE_CONFIG, field('pubsub#title', 'T'))}</configure>",
        r.CreateNode(*WHO, "n", {"pubsub#title": ("T",)}),
    ),
    "subscribe": ("set", PS, "<subscribe node='n' jid='a@b'/>", r.Subscribe(*WHO, "n", "a@b")),
    "subscribe without attributes": ("set", PS, "<subscribe/>", r.Subscribe(*WHO, None, None)),
    "subscribe with options": (
        "set",
        PS,
        f"<subscribe node='n' jid='a@b'/><options>{submit(SUBSCRIBE_OPTIONS, field('pubsub#deliver', '0'))}</options>",
        r.Subscribe(*WHO, "n", "a@b", {"pubsub#deliver": ("0",)}),
    ),
    "unsubscribe with a subid [xep-map 123]": (
        "set",
        PS,
        "<unsubscribe node='n' jid='a@b' subid='x'/>",
        r.Unsubscribe(*WHO, "n", "a@b"),
    ),
    "subscriptions": ("get", PS, "<subscriptions/>", r.GetSubscriptions(*WHO)),
    "subscriptions to a node": ("get", PS, "<subscriptions node='n'/>", r.GetSubscriptions(*WHO, "n")),
    "a page of subscriptions": (
        "get",
        PS,
        "<subscriptions/><set xmlns='http://jabber.org/protocol/rsm'><max>5</max><after>7</after></set>",
        r.GetSubscriptions(*WHO, page=ResultSetRequest("5", "7")),
    ),
    "a page of affiliations": (
        "get",
        PS,
        "<affiliations/><set xmlns='http://jabber.org/protocol/rsm'><before/></set>",
        r.GetAffiliations(*WHO, page=ResultSetRequest(before="")),
    ),
    "affiliations": ("get", PS, "<affiliations/>", r.GetAffiliations(*WHO)),
    "get options": ("get", PS, "<options node='n' jid='a@b'/>", r.GetSubscribeOptions(*WHO, "n", "a@b")),
    "get options with a form": (
        "get",
        PS,
        f"<options node='n' jid='a@b'>{submit(SUBSCRIBE_OPTIONS, field('pubsub#deliver', '0'))}</options>",
        r.GetSubscribeOptions(*WHO, "n", "a@b"),
    ),
    "set options": (
        "set",
        PS,
        f"<options node='n' jid='a@b'>{submit(SUBSCRIBE_OPTIONS, field('pubsub#deliver', '0'))}</options>",
        r.SetSubscribeOptions(*WHO, "n", "a@b", {"pubsub#deliver": ("0",)}),
    ),
    "cancel options": (
        "set",
        PS,
        f"<options node='n' jid='a@b'>{submit(SUBSCRIBE_OPTIONS, kind='cancel')}</options>",
        r.SetSubscribeOptions(*WHO, "n", "a@b", None),
    ),
    "default options": ("get", PS, "<default node='n'/>", r.GetDefaultSubscribeOptions(*WHO, "n")),
    "get configuration": ("get", OW, "<configure node='n'/>", r.GetConfiguration(*WHO, "n")),
    "configure": (
        "set",
        OW,
        f"<configure node='n'>{submit(NODE_CONFIG, field('pubsub#title', 'T'))}</configure>",
        r.Configure(*WHO, "n", {"pubsub#title": ("T",)}),
    ),
    "cancel configuring": (
        "set",
        OW,
        "<configure node='n'><x xmlns='jabber:x:data' type='cancel'/></configure>",
        r.Configure(*WHO, "n", None),
    ),
    "default configuration": ("get", OW, "<default/>", r.GetDefaultConfiguration(*WHO)),
    "default of collections": (
        "get",
        OW,
        "<default type='collection'/>",
        r.GetDefaultConfiguration(*WHO, "collection"),
    ),
    "delete": ("set", OW, "<delete node='n'/>", r.DeleteNode(*WHO, "n")),
    "delete with a redirect": (
        "set",
        OW,
        "<delete node='n'><redirect uri='xmpp:x'/></delete>",
        r.DeleteNode(*WHO, "n", "xmpp:x"),
    ),
    "purge": ("set", OW, "<purge node='n'/>", r.Purge(*WHO, "n")),
    "a page of the owner's affiliations": (
        "get",
        OW,
        "<affiliations node='n'/><set xmlns='http://jabber.org/protocol/rsm'><index>3</index></set>",
        r.GetAffiliations(*WHO, "n", True, ResultSetRequest(index="3")),
    ),
    "a page of the owner's subscriptions": (
        "get",
        OW,
        "<subscriptions node='n'/><set xmlns='http://jabber.org/protocol/rsm'><max>1</max></set>",
        r.GetNodeSubscriptions(*WHO, "n", ResultSetRequest("1")),
    ),
    "owner's affiliations": ("get", OW, "<affiliations node='n'/>", r.GetAffiliations(*WHO, "n", True)),
    "set affiliations": (
        "set",
        OW,
        "<affiliations node='n'><affiliation jid='a@b' affiliation='owner'/><affiliation jid='c@d'/></affiliations>",
        r.SetAffiliations(*WHO, "n", (("a@b", "owner"), ("c@d", None))),
    ),
    "owner's subscriptions": ("get", OW, "<subscriptions node='n'/>", r.GetNodeSubscriptions(*WHO, "n")),
    "set subscriptions": (
        "set",
        OW,
        "<subscriptions node='n'><subscription jid='a@b' subscription='none'/></subscriptions>",
        r.SetSubscriptions(*WHO, "n", (("a@b", "none"),)),
    ),
}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("publish", Shape(entry=True, enclosure=True)),
        ("publish without an id", Shape()),
        (
            "publish a deletion",
            Shape(entry=True, synced=True, deletion=True, removed=True, missing=frozenset({ID, TITLE, UPDATED})),
        ),
    ],
)
def test_payload_knows_what_its_root_is(name: str, shape: Shape) -> None:
    """[xep-map 138]"""
    kind, namespace, content, _ = READ[name]
    request = request_of(kind, content, namespace)
    assert isinstance(request, r.Publish) and request.draft is not None
    assert request.draft.payload.shape == shape


@pytest.mark.parametrize(("kind", "namespace", "content", "expected"), READ.values(), ids=READ.keys())
def test_decode_action_gives_request(kind: str, namespace: str, content: str, expected: r.Request) -> None:
    assert request_of(kind, content, namespace) == expected


def test_decode_every_action_of_the_tables_is_read() -> None:
    """The table above leaves no action out."""
    read = {(kind, f"{{{namespace}}}{name_of(content)}") for kind, namespace, content, _ in READ.values()}

    assert set(ACTIONS) <= read


def name_of(content: str) -> str:
    return parse(f"<iq>{content}</iq>")[0].tag.rpartition("}")[2]


TOO_LONG = "x" * 1024
REFUSED = {
    "no action [xep-map 15]": ("get", PS, "", Condition.BAD_REQUEST),
    "unknown action [xep-map 15]": ("set", PS, "<frobnicate/>", Condition.BAD_REQUEST),
    "publish as a get [xep-map 15]": ("get", PS, "<publish node='n'/>", Condition.BAD_REQUEST),
    "items as a set [xep-map 15]": ("set", PS, "<items node='n'/>", Condition.BAD_REQUEST),
    "two actions [xep-map 15]": (
        "set",
        PS,
        "<subscribe node='n' jid='a@b'/><unsubscribe node='n' jid='a@b'/>",
        Condition.BAD_REQUEST,
    ),
    "delete among publishers' actions [xep-map 16]": ("set", PS, "<delete node='n'/>", Condition.BAD_REQUEST),
    "publish among owners' actions [xep-map 16]": ("set", OW, "<publish node='n'/>", Condition.BAD_REQUEST),
    "owner's element inside pubsub [xep-map 16]": (
        "set",
        PS,
        f"<delete xmlns='{OW}' node='n'/>",
        Condition.BAD_REQUEST,
    ),
    "owner's configure beside create [xep-map 16]": (
        "set",
        PS,
        f"<create node='n'/><configure xmlns='{OW}'/>",
        Condition.BAD_REQUEST,
    ),
    "several items [xep-map 140]": (
        "set",
        PS,
        "<publish node='n'><item id='a'/><item id='b'/></publish>",
        Condition.INVALID_PAYLOAD,
    ),
    "two payloads [xep-map 136]": (
        "set",
        PS,
        "<publish node='n'><item><a xmlns='urn:a'/><b xmlns='urn:a'/></item></publish>",
        Condition.INVALID_PAYLOAD,
    ),
    "retract several [xep-map 158]": (
        "set",
        PS,
        "<retract node='n'><item id='a'/><item id='b'/></retract>",
        Condition.BAD_REQUEST,
    ),
    "publish-options without a form [xep-map 148]": (
        "set",
        PS,
        "<publish node='n'/><publish-options/>",
        Condition.BAD_REQUEST,
    ),
    "publish-options of another type [xep-map 148]": (
        "set",
        PS,
        f"<publish node='n'/><publish-options>{submit(NODE_CONFIG)}</publish-options>",
        Condition.BAD_REQUEST,
    ),
    "publish-options cancelled [xep-map 148]": (
        "set",
        PS,
        f"<publish node='n'/><publish-options>{submit(PUBLISH_OPTIONS, kind='cancel')}</publish-options>",
        Condition.BAD_REQUEST,
    ),
    "publish-options twice": (
        "set",
        PS,
        f"<publish node='n'/>{f'<publish-options>{submit(PUBLISH_OPTIONS)}</publish-options>' * 2}",
        Condition.BAD_REQUEST,
    ),
    "configure before create [xep-map 61]": ("set", PS, "<configure/><create node='n'/>", Condition.BAD_REQUEST),
    "configure with a node [xep-map 61]": ("set", PS, "<create node='n'/><configure node='n'/>", Condition.BAD_REQUEST),
    "options before subscribe [xep-map 118]": (
        "set",
        PS,
        f"<options>{submit(SUBSCRIBE_OPTIONS)}</options><subscribe node='n' jid='a@b'/>",
        Condition.BAD_REQUEST,
    ),
    "options with a node [xep-map 118]": (
        "set",
        PS,
        f"<subscribe node='n' jid='a@b'/><options node='n'>{submit(SUBSCRIBE_OPTIONS)}</options>",
        Condition.BAD_REQUEST,
    ),
    "options with a jid [xep-map 118]": (
        "set",
        PS,
        f"<subscribe node='n' jid='a@b'/><options jid='a@b'>{submit(SUBSCRIBE_OPTIONS)}</options>",
        Condition.BAD_REQUEST,
    ),
    "max twice": ("get", PS, f"<items node='n'/><set xmlns='{RSM}'><max/><max/></set>", Condition.BAD_REQUEST),
    "two result sets": (
        "get",
        PS,
        f"<items node='n'><set xmlns='{RSM}'/></items><set xmlns='{RSM}'/>",
        Condition.BAD_REQUEST,
    ),
    "order by nothing": ("get", PS, f"<items node='n'/>{ORDER}/>", Condition.BAD_REQUEST),
    "order of no direction": ("get", PS, f"<items node='n'/>{ORDER}by='creation' desc='no'/>", Condition.BAD_REQUEST),
    "item without an id asked for": ("get", PS, "<items node='n'><item/></items>", Condition.ITEM_REQUIRED),
    "empty node name": ("get", PS, "<items node=''/>", Condition.NODEID_REQUIRED),
    "long node name": ("get", PS, f"<items node='{TOO_LONG}'/>", Condition.BAD_REQUEST),
    "long item id": ("set", PS, f"<retract node='n'><item id='{TOO_LONG}'/></retract>", Condition.BAD_REQUEST),
    "configure without a form": ("set", OW, "<configure node='n'/>", Condition.BAD_REQUEST),
    "configure with another form [xep-map 70]": (
        "set",
        OW,
        f"<configure node='n'>{submit(SUBSCRIBE_OPTIONS)}</configure>",
        Condition.BAD_REQUEST,
    ),
    "delete with a redirect to nowhere": ("set", OW, "<delete node='n'><redirect/></delete>", Condition.BAD_REQUEST),
    "affiliation of nobody": (
        "set",
        OW,
        "<affiliations node='n'><affiliation affiliation='owner'/></affiliations>",
        Condition.JID_REQUIRED,
    ),
    "subscription without a state": (
        "set",
        OW,
        "<subscriptions node='n'><subscription jid='a@b'/></subscriptions>",
        Condition.BAD_REQUEST,
    ),
}


@pytest.mark.parametrize(("kind", "namespace", "content", "condition"), REFUSED.values(), ids=REFUSED.keys())
def test_decode_wrong_request_is_refused(kind: str, namespace: str, content: str, condition: Condition) -> None:
    assert condition_of(kind, content, namespace) is condition


@pytest.mark.parametrize("name", ["x" * 1023, "ü" * 511, "\U0001f600" * 255, "a b/c:d?e&amp;f'"])
def test_decode_node_name_of_up_to_1023_bytes_is_read(name: str) -> None:
    request = request_of("get", f'<items node="{name}"/>')

    assert isinstance(request, r.Pull) and request.node == name.replace("&amp;", "&")


@pytest.mark.parametrize("name", ["ü" * 512, "\U0001f600" * 256])
def test_decode_node_name_of_more_bytes_is_refused(name: str) -> None:
    assert condition_of("get", f"<items node='{name}'/>") is Condition.BAD_REQUEST
