"""Answers in, elements out (XEP-0060)."""

import pytest

from smartfeeds.core.model import Affiliation, Item, NodeKind, SubscriptionState
from smartfeeds.core.text import ForbiddenCharacterError
from smartfeeds.service import requests as r
from smartfeeds.service.authorization import PendingNodes, ResentRequests
from smartfeeds.service.discovery import ChangedNodes
from smartfeeds.service.resources import ListAnswer
from smartfeeds.xmpp.disco import Disco, ServiceInfo
from smartfeeds.xmpp.encode import ENCODERS, encode_items, encode_last_item, envelope
from smartfeeds.xmpp.side import XmppSide
from unit.xmpp.wire import DATA, ERR, OW, PS, RSM, STANZAS, canonical

PAYLOAD = b'<entry xmlns="http://www.w3.org/2005/Atom"><title>a</title></entry>'
ENTRY = PAYLOAD.decode()
# The modules of requests that no pubsub stanza makes: of commands, of other commands in stanzas, and over HTTP.
NO_STANZA = {"consumer_requests", "managed_nodes", "origins", "placing", "standing", "work"}
HOUR_US = 1_304_942_400_500_000


def item(item_id: str, publisher: str = "juliet@capulet.lit", payload: bytes = PAYLOAD) -> Item:
    return Item(1, item_id, HOUR_US, HOUR_US, payload, publisher)


def encoded(answer: object) -> bytes:
    return ENCODERS[type(answer)](answer)


def shown(node: str = "n", jid: str = "a@b", state: SubscriptionState = SubscriptionState.SUBSCRIBED) -> object:
    return r.SubscriptionShown(node, jid, state)


FORM_TYPE = "<field var='FORM_TYPE' type='hidden'><value>{}</value></field>"
DELIVER = "<field var='pubsub#deliver' type='boolean' label='Whether events are sent'><value>{}</value></field>"
INCLUDE_BODY = (
    "<field var='pubsub#include_body' type='boolean' label='Whether events carry a readable body'>"
    "<value>false</value></field>"
)
EXPIRE = "<field var='pubsub#expire' type='text-single' label='When the subscription ends'>{}</field>"
SHOWS = ("away", "chat", "dnd", "online", "xa")
SHOW_VALUES = (
    "<field var='pubsub#show-values' type='list-multi' label='In which states of presence events are sent'>"
    + "".join(f"<value>{show}</value>" for show in SHOWS)
    + "".join(f"<option><value>{show}</value></option>" for show in SHOWS)
    + "</field>"
)


def options_form(kind: str, deliver: str, *more: str, expire: str = "") -> str:
    fields = FORM_TYPE.format(f"{PS}#subscribe_options") + DELIVER.format(deliver) + "".join(more)
    fields += EXPIRE.format(f"<value>{expire}</value>" if expire else "") + SHOW_VALUES
    return f"<x xmlns='{DATA}' type='{kind}'>{fields}</x>"


ANSWERS = {
    "done": (r.EmptyResult(), ""),
    "published": (
        r.Published("a&b", "<i>"),
        f"<pubsub xmlns='{PS}'><publish node='a&amp;b'><item id='&lt;i&gt;'/></publish></pubsub>",
    ),
    "page": (
        r.Page("n?q=a&order=created", (item("1"), item("2", payload=b"")), None, True),
        f"<pubsub xmlns='{PS}'><items node='n?q=a&amp;order=created'>"
        f"<item id='1' publisher='juliet@capulet.lit'>{ENTRY}</item>"
        "<item id='2' publisher='juliet@capulet.lit'/></items></pubsub>",
    ),
    "page without publishers": (
        r.Page("n", (item("1"),), None, False),
        f"<pubsub xmlns='{PS}'><items node='n'><item id='1'>{ENTRY}</item></items></pubsub>",
    ),
    "page with special characters": (
        r.Page("n", (item('it\'s <1> & "2"', "o'neill@x"), item("ü\U0001f600", "")), None, True),
        f"<pubsub xmlns='{PS}'><items node='n'>"
        f"<item id='it&#39;s &lt;1&gt; &amp; &quot;2&quot;' publisher='o&#39;neill@x'>{ENTRY}</item>"
        f"<item id='ü\U0001f600'>{ENTRY}</item></items></pubsub>",
    ),
    "empty page with a count": (
        r.Page("n", (), r.ResultSet(0), True),
        f"<pubsub xmlns='{PS}'><items node='n'/><set xmlns='{RSM}'><count>0</count></set></pubsub>",
    ),
    "page with a result set [xep-map 208]": (
        r.Page("n", (item("1"),), r.ResultSet(9, "cursor:1_0_a", "cursor:2_0_b", 4), False),
        f"<pubsub xmlns='{PS}'><items node='n'><item id='1'>{ENTRY}</item></items>"
        f"<set xmlns='{RSM}'><first index='4'>cursor:1_0_a</first><last>cursor:2_0_b</last><count>9</count></set>"
        "</pubsub>",
    ),
    "page with a result set without an index": (
        r.Page("n", (), r.ResultSet(9, "a", "b"), False),
        f"<pubsub xmlns='{PS}'><items node='n'/>"
        f"<set xmlns='{RSM}'><first>a</first><last>b</last><count>9</count></set></pubsub>",
    ),
    "page with a result set without a count [SF-095]": (
        r.Page("n", (), r.ResultSet(None, "a", "b", 4), False),
        f"<pubsub xmlns='{PS}'><items node='n'/>"
        f"<set xmlns='{RSM}'><first index='4'>a</first><last>b</last></set></pubsub>",
    ),
    "node created as asked": (r.NodeCreated("n", generated=False), ""),
    "instant node": (r.NodeCreated("n", generated=True), f"<pubsub xmlns='{PS}'><create node='n'/></pubsub>"),
    "subscribed": (
        r.Subscribed(shown(), NodeKind.FEED),
        f"<pubsub xmlns='{PS}'><subscription node='n' jid='a@b' subscription='subscribed'/></pubsub>",
    ),
    "pending": (
        r.Subscribed(shown(state=SubscriptionState.PENDING), NodeKind.FEED),
        f"<pubsub xmlns='{PS}'><subscription node='n' jid='a@b' subscription='pending'/></pubsub>",
    ),
    "subscribed with options": (
        r.Subscribed(shown(), NodeKind.FEED, {"deliver": ("false",)}),
        f"<pubsub xmlns='{PS}'><subscription node='n' jid='a@b' subscription='subscribed'/>"
        f"<options>{options_form('result', 'false', INCLUDE_BODY)}</options></pubsub>",
    ),
    "subscribed with a lease": (
        r.Subscribed(
            r.SubscriptionShown("n", "a@b", SubscriptionState.SUBSCRIBED, 1_767_225_600_500_000),
            NodeKind.GENERIC,
            {"expire": ("2026-01-01T00:00:00.5Z",)},
        ),
        f"<pubsub xmlns='{PS}'>"
        "<subscription node='n' jid='a@b' subscription='subscribed' expiry='2026-01-01T00:00:00.5Z'/>"
        f"<options>{options_form('result', 'true', expire='2026-01-01T00:00:00.5Z')}</options></pubsub>",
    ),
    "unsubscribed": (
        r.Unsubscribed(shown(state=SubscriptionState.NONE)),
        f"<pubsub xmlns='{PS}'><subscription node='n' jid='a@b' subscription='none'/></pubsub>",
    ),
    "options of a feed [xep-map 125]": (
        r.SubscribeOptions("n", "a@b", NodeKind.FEED, {}),
        f"<pubsub xmlns='{PS}'><options node='n' jid='a@b'>"
        f"{options_form('form', 'true', INCLUDE_BODY)}</options></pubsub>",
    ),
    "options of a generic node [xep-map 125]": (
        r.SubscribeOptions("n", "a@b", NodeKind.GENERIC, {"deliver": ("false",)}),
        f"<pubsub xmlns='{PS}'><options node='n' jid='a@b'>{options_form('form', 'false')}</options></pubsub>",
    ),
    "default options [xep-map 129]": (
        r.SubscribeOptions(None, None, NodeKind.GENERIC, {}),
        f"<pubsub xmlns='{PS}'><default>{options_form('result', 'true')}</default></pubsub>",
    ),
    "default options of a node [xep-map 129]": (
        r.SubscribeOptions("n", None, NodeKind.GENERIC, {}),
        f"<pubsub xmlns='{PS}'><default node='n'>{options_form('result', 'true')}</default></pubsub>",
    ),
    "own subscriptions": (
        r.SubscriptionList(None, (shown(), shown("m?q=x", "a@b/c", SubscriptionState.PENDING))),
        f"<pubsub xmlns='{PS}'><subscriptions><subscription node='n' jid='a@b' subscription='subscribed'/>"
        "<subscription node='m?q=x' jid='a@b/c' subscription='pending'/></subscriptions></pubsub>",
    ),
    "no subscriptions to a node": (
        r.SubscriptionList("n", ()),
        f"<pubsub xmlns='{PS}'><subscriptions node='n'/></pubsub>",
    ),
    "owner's subscriptions": (
        r.SubscriptionList("n", (shown(),), owner=True),
        f"<pubsub xmlns='{OW}'><subscriptions node='n'><subscription jid='a@b' subscription='subscribed'/>"
        "</subscriptions></pubsub>",
    ),
    "own affiliations": (
        r.AffiliationList(None, (r.AffiliationShown(Affiliation.PUBLISH_ONLY, node="n"),)),
        f"<pubsub xmlns='{PS}'><affiliations><affiliation node='n' affiliation='publish-only'/></affiliations>"
        "</pubsub>",
    ),
    "no affiliations": (r.AffiliationList(None, ()), f"<pubsub xmlns='{PS}'><affiliations/></pubsub>"),
    "owner's affiliations": (
        r.AffiliationList("n", (r.AffiliationShown(Affiliation.OWNER, jid="a@b"),), owner=True),
        f"<pubsub xmlns='{OW}'><affiliations node='n'><affiliation jid='a@b' affiliation='owner'/></affiliations>"
        "</pubsub>",
    ),
    "affiliations refused": (
        r.PartlyRefused(
            affiliations=r.AffiliationList("n", (r.AffiliationShown(Affiliation.OWNER, jid="a@b"),), owner=True)
        ),
        f"<pubsub xmlns='{OW}'><affiliations node='n'><affiliation jid='a@b' affiliation='owner'/></affiliations>"
        f"</pubsub><error type='modify'><not-acceptable xmlns='{STANZAS}'/>"
        f"<text xmlns='{STANZAS}'>the entries in this response were rejected, all others were applied</text></error>",
    ),
    "subscriptions refused": (
        r.PartlyRefused(subscriptions=r.SubscriptionList("n", (shown(state=SubscriptionState.NONE),), owner=True)),
        f"<pubsub xmlns='{OW}'><subscriptions node='n'><subscription jid='a@b' subscription='none'/></subscriptions>"
        f"</pubsub><error type='modify'><not-acceptable xmlns='{STANZAS}'/>"
        f"<text xmlns='{STANZAS}'>the entries in this response were rejected, all others were applied</text></error>",
    ),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_encode_answer_gives_tree(answer: object, expected: str) -> None:
    assert canonical(encoded(answer)) == canonical(expected)


def test_encode_every_answer_of_the_service_has_an_encoder() -> None:
    known = {*ENCODERS, *Disco(ServiceInfo("feeds.example"), XmppSide()).encoders}
    # Answers to what no pubsub stanza asks.
    others = {
        *(r.FeedPage, r.FileShown, r.ItemShown, r.NodeEnsured, r.PurgeBegun),
        *(ChangedNodes, ListAnswer, PendingNodes, ResentRequests),
    }

    # By name: a class with slots replaces the one that was declared, which may still exist. Features have encoders of
    # their own.
    own = [answer for answer in r.Answer.__subclasses__() if answer.__module__.rpartition(".")[2] not in NO_STANZA]
    own = [answer for answer in own if ".features." not in answer.__module__]
    names = {answer.__name__ for answer in own}
    assert {answer.__name__ for answer in known | others} == names


def test_encode_envelope_holds_kind_head_and_body() -> None:
    assert envelope(b"result", b" id='1'", b"<a/>") == b"<iq type='result' id='1'><a/></iq>"


@pytest.mark.parametrize("forbidden", ["\x00", "\x0b", "\ufffe", "\ud800"])
def test_encode_forbidden_character_never_leaves(forbidden: str) -> None:
    """One such character would end the link for everybody (design section 3)."""
    for answer in (r.Published("n", forbidden), r.Published(forbidden, "i"), r.Page(forbidden, (), None, True)):
        with pytest.raises(ForbiddenCharacterError):
            encoded(answer)
    for bad in (item(forbidden), item("i", forbidden)):
        with pytest.raises(ForbiddenCharacterError):
            encode_items((bad,), show_publisher=True)


def test_encode_attributes_keep_white_space() -> None:
    """A tab or line end in an attribute would come back as a blank [xep-map 55]."""
    assert encoded(r.Published("a\tb\nc\rd", "i")) == (
        b"<pubsub xmlns='%b'><publish node='a&#9;b&#10;c&#13;d'><item id='i'/></publish></pubsub>" % PS.encode()
    )


def test_encode_last_item_is_delayed_headline() -> None:
    """XEP-0060 6.1.7: the stamp is when the item was published [xep-map 116]."""
    answer = r.Subscribed(shown("n?order=created", "a@b/c"), NodeKind.FEED, show_publisher=True)

    message = encode_last_item(answer, item("1"), "feeds.example", "m1")

    assert canonical(message) == canonical(
        "<message type='headline' id='m1' from='feeds.example' to='a@b/c'>"
        f"<event xmlns='{PS}#event'><items node='n?order=created'>"
        f"<item id='1' publisher='juliet@capulet.lit'>{ENTRY}</item></items></event>"
        "<delay xmlns='urn:xmpp:delay' stamp='2011-05-09T12:00:00.5Z'/></message>"
    )


def test_encode_refused_entries_have_no_error_detail() -> None:
    """XEP-0060 8.8.2.4 shows not-acceptable alone."""
    assert ERR.encode() not in encoded(ANSWERS["affiliations refused"][0])
