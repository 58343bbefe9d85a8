"""The connection that a follower keeps up by itself, on a real server."""

import asyncio
from xml.etree.ElementTree import Element, SubElement

import pytest

from smartfeeds.client import ClientLink, LoginError
from smartfeeds.client.errors import RequestError
from smartfeeds.demo.process import HOST
from support.faketime import FakeTime
from support.servers import TestServer

WAIT_S = 20.0


class Heard:
    """A listener whose calls can be waited for."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[str | Exception] = asyncio.Queue()

    def on_up(self) -> None:
        self.calls.put_nowait("up")

    def on_down(self) -> None:
        self.calls.put_nowait("down")

    def on_message(self, message: Element) -> None:
        self.calls.put_nowait("message")

    def on_failure(self, error: Exception) -> None:
        self.calls.put_nowait(error)

    async def next(self) -> str | Exception:
        return await asyncio.wait_for(self.calls.get(), WAIT_S)


async def made(server: TestServer, name: str, time: FakeTime, *, password: str = "", port: int = 0) -> ClientLink:
    account = await asyncio.to_thread(server.server.account, name)
    return ClientLink(
        account.jid,
        password or account.password,
        server=(HOST, port or server.client_port),
        plaintext=True,
        spread=lambda: 0.0,
        sleep=time.sleep,
    )


async def ping(link: ClientLink) -> str:
    """The type of the own server's answer."""
    request = Element("{urn:xmpp:ping}ping")
    return (await link.ask("get", "localhost", request)).get("type", "")


async def test_client_link_logs_in_and_asks(server: TestServer) -> None:
    """[SF-084]"""
    heard, link = Heard(), await made(server, "link", FakeTime())
    link.open(heard)

    assert await heard.next() == "up"
    assert await ping(link) == "result"
    unknown = Element("{http://jabber.org/protocol/pubsub}pubsub")
    SubElement(unknown, "{http://jabber.org/protocol/pubsub}items", {"node": "x"})
    with pytest.raises(RequestError):
        await link.ask("get", "nowhere.localhost", unknown)
    await link.close()
    assert not link.client.is_connected()


async def test_client_link_connects_again_after_a_cut(prosody: TestServer) -> None:
    """[SF-049]"""
    heard, time = Heard(), FakeTime()
    link = await made(prosody, "link-cut", time)
    link.open(heard)
    assert await heard.next() == "up"

    link.client.abort()
    assert await heard.next() == "down"
    await time.until_sleeping(60)
    await time.advance(60)

    assert await heard.next() == "up"
    assert await ping(link) == "result"
    await link.close()


async def test_client_link_wrong_password_is_the_end(prosody: TestServer) -> None:
    """[SF-084]: repeating it would only annoy the server. (The other test server takes any password.)"""
    heard, time = Heard(), FakeTime()
    link = await made(prosody, "link-login", time, password="wrong")
    link.open(heard)

    while not isinstance(found := await heard.next(), Exception):
        assert found == "down"

    assert isinstance(found, LoginError) and "link-login@localhost" in str(found)
    assert time.slept == []
    await link.close()


async def test_client_link_server_that_is_away_is_tried_with_back_off(
    prosody: TestServer, unused_tcp_port: int
) -> None:
    """[SF-049]: slixmpp's own retries are ours to time."""
    heard, time = Heard(), FakeTime()
    link = await made(prosody, "link-away", time, port=unused_tcp_port)
    link.open(heard)

    for _ in range(3):
        await time.until_sleeping(60)
        await time.advance(60)
    await time.until_sleeping(60)

    assert time.slept[:4] == [1.0, 2.0, 4.0, 8.0]
    assert heard.calls.empty()
    await link.close()
