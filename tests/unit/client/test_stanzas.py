"""The follower's stanzas, and the payloads in them."""

from xml.etree.ElementTree import Element, canonicalize, fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.client import stanzas
from smartfeeds.client.change import NO_ATOM, Atom, ReceivedItem
from smartfeeds.client.errors import AnswerError
from smartfeeds.client.events import GapSuspected, Input, NodeGone, PageRequest, PushReceived
from smartfeeds.client.payload import read_atom, read_item, serialise
from smartfeeds.xmpp.framer import CUT_NS, cut_down
from support.golden import GOLDEN

XMPP = GOLDEN["xmpp"]
NODE = "comments?order=created"
RESULT = f'<iq type="result"><pubsub xmlns="{stanzas.PUBSUB}"><items node="{NODE}">%s</items>%s</pubsub></iq>'
COUNT = f'<set xmlns="{stanzas.RSM}"><last>cursor:1</last><count>2</count></set>'


def same(element: Element, text: str) -> bool:
    return canonicalize(tostring(element), rewrite_prefixes=True) == canonicalize(text, rewrite_prefixes=True)


def payload_of(iq: str) -> str:
    return iq[iq.index("<pubsub") : iq.index("</iq>")]


def test_pull_golden() -> None:
    """[SF-084] [SF-093]"""
    wanted = payload_of(XMPP["pull"])

    assert same(stanzas.pull(NODE, PageRequest(1, max_items=2)), wanted)


def test_pull_next_page_golden() -> None:
    """[SF-088] [SF-093]: the cursor has its type in a result set."""
    found = stanzas.pull(NODE, PageRequest(1, after="1304942400_1_b191b173", max_items=2))

    assert same(found[1], XMPP["next_set"])


def test_pull_newest_golden() -> None:
    """[SF-047]"""
    assert same(stanzas.pull(NODE, PageRequest(1, newest=True, max_items=1))[1], XMPP["last_page_set"])


@pytest.mark.parametrize("name", ["subscribe", "unsubscribe"])
def test_subscribe_names_node_and_address(name: str) -> None:
    """[SF-097]"""
    made = stanzas.request(name, node=NODE, jid="alice@example.net/1")

    assert same(made, f'<pubsub xmlns="{stanzas.PUBSUB}"><{name} node="{NODE}" jid="alice@example.net/1"/></pubsub>')


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pull_result_set", ("1304942400_0_82079eb1", "1304942400_1_b191b173", 0, 5)),
        ("next_result_set", ("1304942401_0_6c09ff9d", "1304942402_0_1b0ecf0b", 2, 5)),
        ("empty_result_set", (None, None, None, 5)),
        ("last_page_result_set", ("1304942402_1_c3bdfba5", "1304942402_1_c3bdfba5", 4, 5)),
    ],
)
def test_read_page_golden(name: str, expected: tuple[str | None, str | None, int | None, int | None]) -> None:
    """[SF-089] [SF-094] [SF-095] [SF-096]"""
    page = stanzas.read_page(fromstring(RESULT % ("", XMPP[name])), 7, NODE)

    assert (page.request_no, page.items) == (7, ())
    assert (page.first, page.last, page.index, page.count) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", (None, None, None, None)),
        ("<set/>", (None, None, None, None)),
        (f'<set xmlns="{stanzas.RSM}"><first index="x">1</first><last/><count>-1</count></set>',
         ("1", None, None, None)),
        (f'<set xmlns="{stanzas.RSM}"><first index=" 3 "> cursor:a </first><last>b</last><count>1e3</count></set>',
         ("a", "b", 3, None)),
        (f'<set xmlns="{stanzas.RSM}"><count>{"9" * 5000}</count></set>', (None, None, None, None)),
        (f'<set xmlns="{stanzas.RSM}"><count>²</count></set>', (None, None, None, None)),
    ],
)  # fmt: skip
def test_read_page_odd_sets(answer: str, expected: tuple[str | None, str | None, int | None, int | None]) -> None:
    """[SF-094]: what cannot be read is not there. Any service may have a node without parameters."""
    page = stanzas.read_page(fromstring((RESULT % ("", answer)).replace(NODE, "plain")), 1, "plain")

    assert (page.first, page.last, page.index, page.count) == expected


def test_read_page_items() -> None:
    """[SF-084]"""
    entry = '<entry xmlns="http://www.w3.org/2005/Atom"><title>x</title></entry>'
    answer = RESULT % (f'<item id="a" publisher="b@c">{entry}</item><item id="b"/>', COUNT)

    page = stanzas.read_page(fromstring(answer), 1, NODE)

    assert page.items == (ReceivedItem("a", entry.encode(), publisher="b@c", atom=Atom(title="x")), ReceivedItem("b"))


@pytest.mark.parametrize(
    "answer",
    [
        '<iq type="result"/>',
        f'<iq type="result"><pubsub xmlns="{stanzas.PUBSUB}"/></iq>',
        f'<iq type="result"><pubsub xmlns="{stanzas.PUBSUB}">{COUNT}</pubsub></iq>',
        '<iq type="result"><pubsub xmlns="other"><items/></pubsub></iq>',
        f'<iq type="result"><pubsub xmlns="{stanzas.PUBSUB}"><items/>{COUNT}</pubsub></iq>',
        f'<iq type="result"><pubsub xmlns="{stanzas.PUBSUB}"><items node="other"/>{COUNT}</pubsub></iq>',
        RESULT % ("", ""),
        RESULT % ("", f'<set xmlns="{stanzas.RSM}"><count>some</count></set>'),
        RESULT % ('<item id="a"/>', f'<set xmlns="{stanzas.RSM}"><count>2</count></set>'),
    ],
    ids=["empty", "pubsub", "set only", "other", "no node", "other node", "no set", "no count", "no last"],
)
def test_read_page_that_is_none_is_no_empty_page(answer: str) -> None:
    """[SF-045] [SF-094] [SF-095]: it would prove that there is nothing more."""
    with pytest.raises(AnswerError, match="the response "):
        stanzas.read_page(fromstring(answer), 1, NODE)


@pytest.mark.parametrize(
    ("items", "places", "last"),
    [("", "", None), ('<item id="a"/>', '<first index="3">cursor:1</first><last>cursor:2</last>', "2")],
)
def test_read_page_of_a_view_that_is_not_counted(items: str, places: str, last: str | None) -> None:
    """[SF-045] [SF-095]: the result set is there, which says where the page ends; the count may be left out."""
    answer = RESULT % (items, f'<set xmlns="{stanzas.RSM}">{places}</set>')
    page = stanzas.read_page(fromstring(answer), 1, NODE)

    assert (len(page.items), page.last, page.count) == (bool(items), last, None)


def test_read_page_and_subscription_that_were_cut_down() -> None:
    """[SF-045]: what the component's stream leaves of a stanza above its limit says nothing, of no node."""
    whole = (RESULT % (f'<item id="a">{"x" * 500}</item>', COUNT)).replace(NODE, "plain")
    cut = fromstring(cut_down(whole.encode(), "too long " * 100))
    half = fromstring((RESULT % ("", COUNT)).replace("<pubsub", f'<cut xmlns="{CUT_NS}"/><pubsub'))

    for answer, node, reason in ((cut, "plain", "too long too"), (half, NODE, "no reason")):
        with pytest.raises(AnswerError, match=f"^the response was truncated: {reason}") as caught:
            stanzas.read_page(answer, 1, node)
        assert len(str(caught.value)) < 250
    with pytest.raises(AnswerError):
        stanzas.is_pending(cut)


def test_read_message_golden_push() -> None:
    """[SF-099] [SF-100]"""
    push = stanzas.read_message(fromstring(XMPP["push"]), "comments?order=modified")

    assert isinstance(push, PushReceived)
    assert (push.previous, push.last, push.total) == ("1304942401_0_71beeff9", "1304942401.5_0_e8b7be43", 2)
    (entry,) = push.items
    assert (entry.item_id, entry.deleted, entry.atom.author) == ("a", False, "alice")
    assert entry.atom.updated == "2011-05-09T12:00:01.5Z"


@pytest.mark.parametrize("row", GOLDEN["shim"], ids=lambda row: row["event"])
def test_read_message_golden_headers(row: dict[str, str]) -> None:
    """[SF-099]"""
    (chain,) = (step for step in GOLDEN["push_chain_modified_order"] if step["event"] == row["event"])
    message = f'<message><event xmlns="{stanzas.EVENT}"><items node="n"/></event>{row["xml"]}</message>'

    push = stanzas.read_message(fromstring(message), "n")

    assert push == PushReceived((), chain["PreviousCursor"], chain["LastCursor"], chain["TotalItems"])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("", (None, None, None)),
        ('<header name="LastCursor">cursor:5</header><header name="PreviousCursor"/>', (None, "5", None)),
        ('<header name="TotalItems">many</header><header>x</header>', (None, None, None)),
        ('<header name="LastCursor">5</header><header name="LastCursor">6</header>', (None, "5", None)),
        ('<header name="TotalItems"> 7 </header><header name="SubID">1</header>', (None, None, 7)),
    ],
)
def test_read_message_odd_headers(headers: str, expected: tuple[str | None, str | None, int | None]) -> None:
    """[SF-099] (A-15, A-16): with the type or without; repeated or empty headers do no harm."""
    message = fromstring(
        f'<message><event xmlns="{stanzas.EVENT}"><items node="n"><retract id="a"/></items></event>'
        f'<headers xmlns="{stanzas.SHIM}">{headers}</headers></message>'
    )

    assert stanzas.read_message(message, "n") == PushReceived((ReceivedItem("a", deleted=True),), *expected)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ('<purge node="n"/>', GapSuspected()),
        ('<delete node="n"><redirect uri="xmpp:x"/></delete>', NodeGone()),
        ('<subscription node="n" jid="a@b" subscription="none"/>', GapSuspected()),
        ('<configuration node="n"/>', None),
        ('<purge node="m"/>', None),
        ('<items node="m"/>', None),
        ('<items xmlns="other" node="n"/>', None),
        ("", None),
    ],
)
def test_read_message_other_events(event: str, expected: Input | None) -> None:
    """[SF-049]"""
    message = fromstring(f'<message><event xmlns="{stanzas.EVENT}">{event}</event></message>')

    assert stanzas.read_message(message, "n") == expected


@pytest.mark.parametrize(
    "message",
    [
        "<message><body>hello</body></message>",
        f'<message type="error"><event xmlns="{stanzas.EVENT}"><items node="n"/></event></message>',
    ],
)
def test_read_message_that_is_no_event(message: str) -> None:
    """[SF-100]"""
    assert stanzas.read_message(fromstring(message), "n") is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (f'<error type="wait"><resource-constraint xmlns="{stanzas.STANZAS}"/><text xmlns="{stanzas.STANZAS}">slow'
         "</text></error>", ("resource-constraint", "wait", "slow")),
        (f'<error type="cancel"><item-not-found xmlns="{stanzas.STANZAS}"/><closed-node xmlns="other"/></error>',
         ("item-not-found", "cancel", "")),
        ("<error/>", ("undefined-condition", "cancel", "")),
        ("", ("undefined-condition", "cancel", "")),
    ],
)  # fmt: skip
def test_read_error(error: str, expected: tuple[str, str, str]) -> None:
    """[SF-084]"""
    found = stanzas.read_error(fromstring(f'<iq xmlns="jabber:client" type="error">{error}</iq>'))

    assert (found.condition, found.kind, found.text) == expected


@pytest.mark.parametrize(("state", "pending"), [("pending", True), ("subscribed", False)])
def test_is_pending(state: str, pending: bool) -> None:
    """[SF-097]"""
    reply = f'<iq><pubsub xmlns="{stanzas.PUBSUB}"><subscription subscription="{state}"/></pubsub></iq>'

    assert stanzas.is_pending(fromstring(reply)) is pending
    assert not stanzas.is_pending(fromstring("<iq/>"))


# Payloads


@pytest.mark.parametrize(
    "spelling",
    [
        '<entry xmlns="http://www.w3.org/2005/Atom" xmlns:thr="urn:thr" thr:count="2" xml:lang="en"><id>a</id></entry>',
        '<a:entry xmlns:a="http://www.w3.org/2005/Atom" xml:lang="en" xmlns:x="urn:thr" x:count="2">'
        "<a:id>a</a:id></a:entry>",
    ],
)
def test_serialise_one_form_for_every_spelling(spelling: str) -> None:
    """[SF-109]: servers rename prefixes; the same version must be told to be the same."""
    expected = (
        '<entry xmlns="http://www.w3.org/2005/Atom" xml:lang="en" xmlns:n1="urn:thr" n1:count="2"><id>a</id></entry>'
    )

    assert serialise(fromstring(spelling)) == expected.encode()


NAMES = st.sampled_from(["a", "b", "{urn:x}a", "{urn:y}b", "{http://www.w3.org/2005/Atom}entry"])
ATTRIBUTES = st.sampled_from(["a", "b", "{urn:x}a", "{urn:y}b", "{http://www.w3.org/XML/1998/namespace}lang"])
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> Element:
    element = Element(draw(NAMES), draw(st.dictionaries(ATTRIBUTES, TEXT, max_size=3)))
    element.text = draw(TEXT)
    for _ in range(draw(st.integers(0, 2)) if depth else 0):
        child = draw(elements(depth - 1))
        child.tail = draw(TEXT)
        element.append(child)
    return element


@given(elements())
def test_serialise_loses_nothing(element: Element) -> None:
    """[SF-084]"""
    found = canonicalize(serialise(element).decode(), rewrite_prefixes=True)

    assert found == canonicalize(tostring(element), rewrite_prefixes=True)
    assert serialise(fromstring(serialise(element))) == serialise(element)


def test_serialise_any_depth() -> None:
    """[SF-084]: what a service sends must not exhaust the stack."""
    deep = "<a>" * 20_000 + "</a>" * 20_000

    assert serialise(fromstring(deep)) == deep.replace("<a></a>", "<a/>").encode()


@pytest.mark.parametrize(
    ("entry", "deleted"),
    [
        ('<entry><sync xmlns="http://feedsync.org/2007/feedsync" deleted="true"/></entry>', True),
        ('<entry><sync xmlns="http://feedsync.org/2007/feedsync" deleted="1"/></entry>', True),
        ('<entry><sync xmlns="http://feedsync.org/2007/feedsync" deleted="false"/></entry>', False),
        ('<entry><sync xmlns="http://feedsync.org/2007/feedsync"/></entry>', False),
        ("<entry/>", False),
        ('<deleted-entry xmlns="http://purl.org/atompub/tombstones/1.0" ref="a"/>', True),
    ],
)
def test_read_item_tombstone(entry: str, deleted: bool) -> None:
    """[SF-013]"""
    assert read_item(fromstring(f'<item id="a">{entry}</item>')).deleted is deleted


@pytest.mark.parametrize("mark", ["", '<sync xmlns="http://feedsync.org/2007/feedsync" deleted="true"/>'])
def test_read_item_that_has_left_a_view_is_not_a_deletion(mark: str) -> None:
    """[A-20]"""
    found = read_item(fromstring(f'<item id="a"><entry><left xmlns="urn:smartfeeds:0"/>{mark}</entry></item>'))

    assert (found.left, found.deleted, found.complete) == (True, False, True)


def test_read_atom_as_plain_text() -> None:
    """[SF-091]"""
    found = read_atom(
        fromstring(
            '<entry xmlns="http://www.w3.org/2005/Atom">'
            '<title type="html">&lt;b&gt;One&lt;/b&gt; &amp;amp;\n two</title>'
            '<link rel="self" href="s"/><link href="first"/><link rel="alternate" href="second"/>'
            "<author><name> Ann </name></author><author><name>Bob</name></author>"
            "<published>p</published><updated>u</updated></entry>"
        )
    )

    assert found == Atom("One & two", "first", "Ann", "u", "p")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("<geoloc xmlns='http://jabber.org/protocol/geoloc'><title>x</title></geoloc>", NO_ATOM),
        ("<entry xmlns='http://www.w3.org/2005/Atom'/>", NO_ATOM),
        ("<entry xmlns='http://www.w3.org/2005/Atom'><title type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a "
         "<b>b</b></div></title></entry>", Atom(title="a b")),
        ("<entry xmlns='http://www.w3.org/2005/Atom'><title>1 &lt; 2</title></entry>", Atom(title="1 < 2")),
    ],
)  # fmt: skip
def test_read_atom_of_other_entries(entry: str, expected: Atom) -> None:
    """[SF-091]"""
    assert read_atom(fromstring(entry)) == expected
