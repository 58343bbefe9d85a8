"""The connection that a follower keeps up by itself, on a real server."""

import asyncio
import ssl
import subprocess
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import pytest

from smartfeeds.client import CertificateError, ClientLink, LoginError
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.transport import DEFAULT_TIMEOUTS, Timeouts
from smartfeeds.errors import LinkError
from smartfeeds.local.process import HOST
from support.client import ClientFactory
from support.faketime import FakeTime
from support.listener import Listener
from support.servers import TestServer
from support.waiting import wait_for


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
        return await wait_for(self.calls.get(), "an event of the link")


class Wire:
    """A way to a server that can go dead: it stays open, and nothing passes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: Listener | None = None
        self.dead = False

    async def open(self) -> int:
        """Listens; returns the port."""
        self._listener = Listener(self._accept)
        return self._listener.port

    async def close(self) -> None:
        """Ends everything."""
        assert self._listener is not None
        await self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(HOST, self._port)
        self._tasks.append(asyncio.ensure_future(self._pass_on(reader, far_writer)))
        self._tasks.append(asyncio.ensure_future(self._pass_on(far_reader, writer)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                if not self.dead:
                    writer.write(data)
        finally:
            writer.close()


async def made(
    server: TestServer,
    name: str,
    time: FakeTime,
    *,
    password: str = "",
    port: int = 0,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> ClientLink:
    account = await asyncio.to_thread(server.server.account, name)
    return ClientLink(
        account.jid,
        password or account.password,
        server=(HOST, port or server.client_port),
        plaintext=True,
        timeouts=timeouts,
        spread=lambda: 0.0,
        sleep=time.sleep,
    )


async def ping(link: ClientLink) -> str:
    """The type of the own server's answer."""
    request = Element("{urn:xmpp:ping}ping")
    return (await link.ask("get", "localhost", request)).get("type", "")


async def test_client_link_logs_in_and_asks(prosody: TestServer) -> None:
    """[SF-084]"""
    heard, link = Heard(), await made(prosody, "link", FakeTime())
    link.open(heard)

    assert await heard.next() == "up"
    assert await ping(link) == "result"
    unknown = Element("{http://jabber.org/protocol/pubsub}pubsub")
    SubElement(unknown, "{http://jabber.org/protocol/pubsub}items", {"node": "x"})
    with pytest.raises(RequestError):
        await link.ask("get", "nowhere.localhost", unknown)
    await link.close()
    assert not link.client.is_connected()
    tasks = [task for task in asyncio.all_tasks() if "XMLStream" in repr(task)]
    assert tasks == [], "slixmpp would end this task after the event loop"


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

    assert isinstance(found, LoginError)
    assert str(found) == (
        f"127.0.0.1:{prosody.client_port} refuses the login of link-login@localhost: not-authorized; "
        "check the account and its password"
    )
    assert time.slept == []
    await link.close()


async def test_client_link_server_without_tls_is_named(prosody: TestServer) -> None:
    """[SF-084]: nothing is refused there, the password was never sent; the text says how to allow it."""
    account = await asyncio.to_thread(prosody.server.account, "link-tls")
    heard, time = Heard(), FakeTime()
    link = ClientLink(account.jid, account.password, server=(HOST, prosody.client_port), sleep=time.sleep)
    link.open(heard)

    while not isinstance(found := await heard.next(), Exception):
        assert found == "down"

    assert isinstance(found, LoginError) and "offers no TLS" in str(found) and "--plaintext" in str(found)
    assert str(found).startswith(f"127.0.0.1:{prosody.client_port} ") and "plaintext=True" in str(found)
    assert "refuses" not in str(found) and time.slept == []
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

    assert time.slept[:4] == [0.5, 1.0, 2.0, 4.0]
    assert heard.calls.empty()
    await link.close()


async def outage(link: ClientLink, time: FakeTime, caplog: pytest.LogCaptureFixture) -> str:
    """What the log says of the first attempt and nothing of the second, which fails in the same way."""
    heard = Heard()
    with caplog.at_level("WARNING", "smartfeeds.client"):
        link.open(heard)
        await time.until_sleeping(60)
        await time.advance(60)
        await time.until_sleeping(60)
    await link.close()
    (record,) = [record for record in caplog.records if record.name == "smartfeeds.client"]
    return record.getMessage()


async def test_client_link_refused_connection_is_logged_with_server_and_cause(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    time, server = FakeTime(), (HOST, unused_tcp_port)
    link = ClientLink("bot@localhost", "x", server=server, plaintext=True, spread=lambda: 0.0, sleep=time.sleep)

    assert await outage(link, time, caplog) == (
        f"cannot connect to 127.0.0.1:{unused_tcp_port} as bot@localhost: connection refused; next try in 0.5 s"
    )


@pytest.mark.parametrize("server", [("nohost.invalid", 5222), None])
async def test_client_link_unknown_host_is_logged_by_its_name(
    server: tuple[str, int] | None, caplog: pytest.LogCaptureFixture
) -> None:
    time, where = FakeTime(), "nohost.invalid:5222" if server else "the server of nohost.invalid"
    link = ClientLink("bot@nohost.invalid", "x", server=server, spread=lambda: 0.0, sleep=time.sleep)

    assert await outage(link, time, caplog) == (
        f"cannot connect to {where} as bot@nohost.invalid: the host name has no address; next try in 0.5 s"
    )


async def test_client_link_unknown_account_domain_is_logged_with_what_the_server_says(
    prosody: TestServer, caplog: pytest.LogCaptureFixture
) -> None:
    time, server = FakeTime(), (HOST, prosody.client_port)
    link = ClientLink("bot@else.example", "x", server=server, plaintext=True, spread=lambda: 0.0, sleep=time.sleep)

    message = await outage(link, time, caplog)

    assert (
        f"to 127.0.0.1:{prosody.client_port} as bot@else.example: the server ends the stream, host-unknown" in message
    )


async def test_client_link_silent_address_is_logged_with_the_time_it_had(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A firewall that drops packets: TCP itself would try for minutes."""
    time = FakeTime()
    link = ClientLink(
        "bot@localhost", "x", server=("192.0.2.1", 5222), timeouts=Timeouts(connect_s=0.01),
        spread=lambda: 0.0, sleep=time.sleep,
    )  # fmt: skip

    async def connect(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connect)

    assert "to 192.0.2.1:5222 as bot@localhost: no answer in 0.01 s" in await outage(link, time, caplog)


async def test_client_link_bad_certificate_is_the_end_and_sends_no_password(tmp_path: Path) -> None:
    """[SF-084]: from a server with direct TLS, whose certificate nobody has signed."""
    await asyncio.to_thread(self_signed, tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    received = bytearray()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(accept, HOST, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    heard, time = Heard(), FakeTime()
    link = ClientLink("bot@localhost", "hush", server=(HOST, port), sleep=time.sleep)
    link.client.enable_starttls = False
    link.open(heard)

    error = await heard.next()
    while not isinstance(error, Exception):
        error = await heard.next()

    assert isinstance(error, CertificateError) and isinstance(error, LinkError)
    assert f"cannot connect to 127.0.0.1:{port} as bot@localhost: the certificate is not valid, self-signed" in str(
        error
    )
    assert (time.slept, received) == ([], b"")
    await link.close()
    server.close()
    await server.wait_closed()


def self_signed(folder: Path) -> None:
    """A key and a certificate for localhost."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1",
         "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip


async def test_client_link_server_that_lets_no_session_begin_is_left(prosody: TestServer) -> None:
    """[SF-049]: TCP alone is no connection."""
    wire = Wire(prosody.client_port)
    wire.dead = True
    heard, time, port = Heard(), FakeTime(), await wire.open()
    link = await made(prosody, "link-mute", time, port=port, timeouts=Timeouts(session_s=0.05))
    link.open(heard)

    await time.until_sleeping(60)

    assert await heard.next() == "down" and time.slept == [0.5]
    await link.close()
    await wire.close()


async def test_client_link_dead_connection_is_found_by_a_request(prosody: TestServer) -> None:
    """[SF-051]: the integrity pull finds it, whoever does not say that it has gone."""
    wire = Wire(prosody.client_port)
    heard, time, port = Heard(), FakeTime(), await wire.open()
    link = await made(prosody, "link-dead", time, port=port, timeouts=Timeouts(request_s=0.05, ping_s=0.05))
    link.open(heard)
    assert await heard.next() == "up"

    wire.dead = True
    with pytest.raises(RequestTimeoutError):
        await ping(link)

    assert await heard.next() == "down"
    await link.close()
    await wire.close()


async def test_client_link_silent_service_does_not_end_the_connection(
    prosody: TestServer, client: ClientFactory
) -> None:
    """[SF-049]: the own server still answers."""
    silent = await client(prosody, "silent")
    heard, time = Heard(), FakeTime()
    link = await made(prosody, "link-silent", time, timeouts=Timeouts(request_s=1.0))
    link.open(heard)
    assert await heard.next() == "up"

    with pytest.raises(RequestTimeoutError):
        await link.ask("get", silent.jid, Element("{urn:xmpp:ping}ping"))

    assert await ping(link) == "result" and heard.calls.empty()
    await link.close()
