"""The follower over a real slixmpp component and a fake server, and what keeps a client's connection up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from lxml import etree
from slixmpp import ComponentXMPP

from smartfeeds.client import ClientLink, Follower, LoginError, SlixLink
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.transport import BACKOFF, Timeouts
from smartfeeds.errors import LinkError
from support.fakeserver import FakeServer, Session
from support.waiting import waiting

BOT = "bot.example.org"
PUBSUB = "http://jabber.org/protocol/pubsub"
RSM = "http://jabber.org/protocol/rsm"
ADDRESS = "xmpp:feeds.example.org?;node=comments"
ENTRY = '<entry xmlns="http://www.w3.org/2005/Atom" xmlns:t="urn:t" t:count="2"><title>one</title></entry>'


@asynccontextmanager
async def component() -> AsyncIterator[tuple[FakeServer, ComponentXMPP]]:
    """A server, and a component of somebody's own that is connected to it."""
    async with FakeServer(BOT, "secret") as server:
        xmpp = ComponentXMPP(BOT, "secret", "127.0.0.1", server.port)  # type: ignore[no-untyped-call]
        xmpp.connect()
        await xmpp.wait_until("session_start", 10)
        try:
            yield server, xmpp
        finally:
            xmpp.abort()
            await xmpp.wait_until("disconnected", 10)
            xmpp.cancel_connection_attempt()
            if xmpp._run_out_filters is not None:
                xmpp._run_out_filters.cancel()


async def answer(session: Session, body: str = "", kind: str = "result") -> etree._Element:
    """Takes the next request and answers it."""
    request = await session.expect()
    await session.send(
        f'<iq type="{kind}" from="{request.get("to")}" to="{request.get("from")}" id="{request.get("id")}">{body}</iq>'
    )
    return request


def page(*items: str, first: int = 0, count: int = 1) -> str:
    cursors = f'<first index="{first}">cursor:{first}</first><last>cursor:{first + len(items) - 1}</last>'
    return (
        f'<pubsub xmlns="{PUBSUB}"><items node="comments?order=modified">{"".join(items)}</items>'
        f'<set xmlns="{RSM}">{cursors if items else ""}<count>{count}</count></set></pubsub>'
    )


def push(item: str, previous: str, last: str) -> str:
    return (
        f'<message from="feeds.example.org" to="{BOT}" type="headline"><event xmlns="{PUBSUB}#event">'
        f'<items node="comments?order=modified">{item}</items></event>'
        f'<headers xmlns="http://jabber.org/protocol/shim"><header name="PreviousCursor">{previous}</header>'
        f'<header name="LastCursor">{last}</header></headers></message>'
    )


async def test_follower_on_a_component_of_the_caller() -> None:
    """[SF-047] [SF-048] [SF-093] [SF-097]: subscribe, pull, push, over real stanzas in both directions."""
    async with component() as (server, xmpp):
        session = await server.session()
        async with Follower(xmpp, ADDRESS, mirror=True) as feed:
            coming = asyncio.ensure_future(anext(feed))
            subscribed = await answer(session)
            pulled = await answer(session, page(f'<item id="a">{ENTRY}</item>'))
            first = await coming
            await session.send(push(f'<item id="b">{ENTRY.replace("one", "two")}</item>', "0", "1"))
            second = await anext(feed)

    assert subscribed.get("from") == BOT and subscribed.find(f".//{{{PUBSUB}}}subscribe") is not None
    assert pulled.findtext(f".//{{{RSM}}}max") == "50" and pulled.find(f".//{{{RSM}}}after") is None
    assert [change.title for change in (first, second)] == ["one", "two"]
    assert b'n1:count="2"' in first.payload


async def test_follower_on_a_component_that_connects_again() -> None:
    """[SF-049]: the caller's object reconnects, the follower goes on behind its position."""
    async with component() as (server, xmpp):
        session = await server.session()
        async with Follower(xmpp, ADDRESS, mirror=True) as feed:
            coming = asyncio.ensure_future(anext(feed))
            await answer(session)
            await answer(session, page(f'<item id="a">{ENTRY}</item>'))
            await coming
            coming = asyncio.ensure_future(anext(feed))
            session.cut()
            await xmpp.wait_until("disconnected", 10)
            xmpp.connect()
            session = await server.session(2)
            await answer(session)
            pulled = await answer(session, page(f'<item id="b">{ENTRY}</item>', first=1, count=2))
            change = await coming

    assert pulled.findtext(f".//{{{RSM}}}after") == "cursor:0"
    assert change.item_id == "b" and feed.proof().counters.gaps_healed == 1


async def test_slix_link_error_is_read_from_the_stanza() -> None:
    """[SF-084]: also a condition that slixmpp does not know (xep-map 6.2)."""
    async with component() as (server, xmpp):
        session = await server.session()
        link = SlixLink(xmpp)
        asking = asyncio.ensure_future(link.ask("get", "feeds.example.org", Element(f"{{{PUBSUB}}}pubsub")))
        ns = "urn:ietf:params:xml:ns:xmpp-stanzas"
        await answer(session, f'<error type="wait"><odd xmlns="{ns}"/><text xmlns="{ns}">later</text></error>', "error")

        with pytest.raises(RequestError) as caught:
            await asking

    assert (caught.value.condition, caught.value.kind, caught.value.text) == ("odd", "wait", "later")


async def test_slix_link_no_answer_is_a_timeout() -> None:
    """[SF-084]"""
    async with component() as (_, xmpp):
        link = SlixLink(xmpp, timeouts=Timeouts(request_s=0.01))

        with pytest.raises(RequestTimeoutError):
            await link.ask("get", "feeds.example.org", Element(f"{{{PUBSUB}}}pubsub"))


class Heard:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.changed = asyncio.Event()

    def on_up(self) -> None:
        self.note("up")

    def on_down(self) -> None:
        self.note("down")

    def on_message(self, message: Element) -> None:
        self.note(message.get("id"))

    def on_failure(self, error: Exception) -> None:
        self.note(error)

    def note(self, call: Any) -> None:
        self.calls.append(call)
        self.changed.set()


async def test_slix_link_closed_leaves_nothing_behind() -> None:
    """[SF-100]: only messages with an event are taken, and none after the end."""
    async with component() as (server, xmpp):
        session, heard, link = await server.session(), Heard(), SlixLink(xmpp)
        link.open(heard)
        event = f'<event xmlns="{PUBSUB}#event"/>'
        for name, body in (("1", event), ("2", "<body>hello</body>"), ("3", event)):
            await session.send(f'<message from="feeds.example.org" to="{BOT}" id="{name}">{body}</message>')
        async with waiting("message 3"):
            while "3" not in heard.calls:
                heard.changed.clear()
                await heard.changed.wait()
        await link.close()
        before = list(heard.calls)
        xmpp.event("session_start")
        xmpp.event("disconnected")

    assert before == heard.calls == ["up", "1", "3"]


@pytest.mark.parametrize(
    ("jid", "subscriber"), [("bob@example.org", "bob@example.org"), ("bob@example.org/x", "bob@example.org/x")]
)
async def test_client_link_subscribes_the_address_it_was_given(jid: str, subscriber: str) -> None:
    """[SF-097]"""
    assert ClientLink(jid, "secret").subscriber == subscriber


@pytest.mark.parametrize(
    ("failures", "spread", "delay_s"),
    [(1, 0.0, 0.5), (1, 1.0, 1.0), (4, 0.0, 4.0), (4, 1.0, 8.0), (99, 1.0, 60.0)],
)
def test_back_off_grows_to_a_bound(failures: int, spread: float, delay_s: float) -> None:
    """[SF-051]"""
    assert BACKOFF.pause_s(failures, spread) == delay_s


def test_login_error_is_one_of_the_link() -> None:
    """[SF-084]: commands end with the exit code of a server that refuses."""
    assert issubclass(LoginError, LinkError)
