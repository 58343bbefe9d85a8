"""How often a payload is parsed and written on its way into a node: once each, whatever way it comes (design, 4).

The counts are (documents parsed, elements written in canonical form, elements written otherwise).
"""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.service.importing import import_document
from smartfeeds.xmpp.decode import decode
from smartfeeds.xmpp.parsing import StanzaParser
from support.world import ATOM_NS, FEED, OWNER, SERVICE, World, jid
from support.xml_work import XmlWork, xml_work

HEADER = (
    b"<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' id='1' "
    b"from='feeds.example.org'>"
)
COMPLETE = "<id>urn:x:1</id><title>T</title><updated>2011-05-09T12:00:00Z</updated>"
XHTML = "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>words</p></div></content>"
PREFIXED = "<one:more xmlns:one='urn:x-test:more' one:kind='odd'>words</one:more>"
MARK = "<sx:sync xmlns:sx='http://feedsync.org/2007/feedsync' id='i' deleted='true'/>"


def entry(inside: str) -> str:
    return f"<entry xmlns='{ATOM_NS}'>{inside}</entry>"


async def publish(world: World, monkeypatch: pytest.MonkeyPatch, payload: str, node: str = FEED) -> XmlWork:
    """Publishes over XMPP, from the bytes of the stanza on."""
    stanza = (
        f"<iq type='set' id='1' from='{OWNER}' to='{SERVICE}'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
        f"<publish node='{node}'><item id='i'>{payload}</item></publish></pubsub></iq>"
    ).encode()
    parser = StanzaParser(HEADER)
    with xml_work(monkeypatch) as work:
        (element,) = parser.parse([stanza])
        assert element is not None
        await world.service.handle(decode("set", element[0], jid(OWNER), SERVICE))
    return work


async def index(world: World) -> None:
    """Brings the filter index up to date. It reads each stored version once, at the latest when that is replaced."""
    node = await world.node()
    await world.store.write(lambda tx: tx.index_node(node.node_no))


@pytest.mark.parametrize(
    ("inside", "counts"),
    [
        (COMPLETE, (1, 1, 0)),
        (COMPLETE + XHTML, (1, 1, 0)),
        (COMPLETE + PREFIXED, (1, 1, 0)),
        ("<title>T</title>", (1, 1, 0)),
        # An entry with a date that is none is read again to correct it, and written again.
        ("<title>T</title><published>Mon, 09 May 2011 12:00:00 GMT</published>", (2, 2, 0)),
        # The id of the tombstone is that of the stored entry, which is read.
        (MARK, (2, 1, 0)),
    ],
    ids=["complete", "xhtml", "prefixed", "incomplete", "odd date", "marked"],
)
async def test_publish_over_xmpp_parses_and_writes_a_payload_once(
    feed: World, monkeypatch: pytest.MonkeyPatch, inside: str, counts: tuple[int, int, int]
) -> None:
    if inside == MARK:
        await feed.publish("i")
        await index(feed)
    work = await publish(feed, monkeypatch, entry(inside))
    assert work.counts == counts


async def test_publish_of_a_generic_payload_parses_and_writes_it_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create("place", kind="generic")
    work = await publish(world, monkeypatch, "<geoloc xmlns='http://jabber.org/protocol/geoloc'/>", "place")
    assert work.counts == (1, 1, 0)


@pytest.mark.parametrize("inside", [COMPLETE, "<title>T</title><link href='http://e.example/1'/>"])
async def test_import_parses_a_document_once_and_writes_each_item_once(
    feed: World, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    entries = "".join(entry(inside.replace("1", str(number))) for number in range(1, 6))
    feed_document = f"<feed xmlns='{ATOM_NS}'><id>urn:x:feed</id><title>F</title>{entries}</feed>".encode()
    with xml_work(monkeypatch) as work:
        imported = await import_document(feed.service, FEED, read_document(feed_document), jid(OWNER))
    assert (imported.added, work.counts) == (5, (1, 5, 0))
