"""Requests to callbacks: every result is a value, and neither addresses nor answers can do harm."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web

from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.callback_client import HttpCallbacks
from smartfeeds.net.callbacks import CallbackAnswer
from smartfeeds.net.clients import CallbackClient
from support.website import NO_ADDRESSES, Names, Site

FORM = {"Content-Type": "text/plain"}


@pytest.fixture
async def client() -> AsyncIterator[CallbackClient]:
    async with CallbackClient(EVERYWHERE, contact="https://feeds.example/") as made:
        yield made


@asynccontextmanager
async def raw_server(answer: bytes, *, endless: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that reads one request, and answers with these bytes, for ever if `endless`."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            while endless:
                writer.write(b"x" * 65_536)
                await writer.drain()
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
    finally:
        server.close()


async def test_post_sends_the_bytes_and_returns_the_status(site: Site, client: CallbackClient) -> None:
    """[WS-069] A name with version and contact address, and nothing else about us."""

    async def answer(request: web.Request) -> web.Response:
        assert await request.read() == b"hello"
        return web.Response(status=418, body=b"teapot", headers={"Retry-After": "20"})

    site.pages["/cb"] = answer
    result = await client.post(site.url("/cb?a=b"), b"hello", FORM, max_bytes=3)

    url = site.url("/cb?a=b")
    assert result == CallbackAnswer(418, b"tea", "", 20.0, url, url)
    assert not result.succeeded and result.outcome == "answered 418"
    (request,) = site.asked
    assert request.headers["User-Agent"].startswith("smartfeeds/")
    assert request.headers["User-Agent"].endswith(" (+https://feeds.example/)")
    assert {"Referer", "Cookie", "Content-Encoding"}.isdisjoint(request.headers)


async def test_get_has_no_body(client: CallbackClient) -> None:
    """[WS-032]"""
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as (url, requests):
        assert (await client.get(f"{url}/cb")).body == b"ok"
    assert b"content-length" not in requests[0].lower() and b"content-type" not in requests[0].lower()


@pytest.mark.parametrize("tail", ["/a%2Fb?c=%C3%A9&d=+&e=;&f=&d=2", "/%7Ea/../b", "?x=%26", "/a?%20"])
async def test_bytes_of_the_address_arrive_unchanged(client: CallbackClient, tail: str) -> None:
    """[WS-013] [WS-052]"""
    async with raw_server(b"HTTP/1.1 204 OK\r\n\r\n") as (url, requests):
        assert (await client.get(url + tail)).status == 204
    assert requests[0].split(b" ")[1].decode().endswith(tail)


async def test_redirect_is_an_answer(site: Site, client: CallbackClient) -> None:
    """[WS-063]"""
    site.pages["/cb"] = web.Response(status=301, headers={"Location": site.url("/other")})
    assert (await client.post(site.url("/cb"), b"", FORM)).status == 301
    assert site.paths == ["/cb"]


async def test_redirects_are_followed_with_method_and_body_when_asked(site: Site, client: CallbackClient) -> None:
    bodies: list[bytes] = []

    async def last(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.Response(status=200)

    site.pages |= {
        "/1": web.Response(status=308, headers={"Location": "/2"}),
        "/2": web.Response(status=302, headers={"Location": "/3"}),
        "/3": last,
    }
    answer = await client.post(site.url("/1"), b"body", FORM, redirects=2)
    assert (answer.status, answer.url, answer.permanent_url) == (200, site.url("/3"), site.url("/2"))
    assert bodies == [b"body"]
    assert (await client.post(site.url("/1"), b"body", FORM, redirects=1)).status == 302


@pytest.mark.parametrize("text", NO_ADDRESSES)
async def test_text_that_is_no_address_is_a_reason(site: Site, client: CallbackClient, text: str) -> None:
    """As the address of a callback, and as the target of a redirect."""
    site.pages["/cb"] = web.Response(status=302, headers={"Location": text})
    for url in (text, site.url("/cb")):
        answer = await client.post(url, b"", FORM, redirects=1)
        assert (answer.status, answer.reason) == (0, "gave no usable answer: an address cannot be read")


async def test_endless_answer_is_cut(client: CallbackClient) -> None:
    """[WS-035] [WS-065]"""
    async with raw_server(b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as (url, _):
        assert (await client.post(url, b"x", FORM)).body == b""
        assert len((await client.get(url, max_bytes=1_024)).body) == 1_024


async def test_silent_server_ends_with_a_reason() -> None:
    """[WS-065]"""
    async with CallbackClient(EVERYWHERE, total_s=0.01) as client, raw_server(b"") as (url, _):
        answer = await client.get(url)
    assert (answer.status, answer.outcome) == (0, "did not answer within 0.01 seconds")


async def test_answer_that_is_no_http_ends_with_a_reason(client: CallbackClient) -> None:
    async with raw_server(b"no HTTP\r\n\r\n") as (url, _):
        answer = await client.get(url)
    assert answer.status == 0 and answer.reason.startswith("gave no usable answer")


async def test_closed_port_ends_with_a_reason(client: CallbackClient) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer = await client.get(f"http://127.0.0.1:{free.getsockname()[1]}/")
    assert answer.status == 0 and answer.reason.startswith("cannot be reached")


@pytest.mark.parametrize("url", ["ftp://reader.example/", "javascript:alert(1)", "http://[1/", "http:///x"])
async def test_other_addresses_end_with_a_reason(client: CallbackClient, url: str) -> None:
    assert (await client.get(url)).reason.startswith("gave no usable answer")


async def test_private_address_is_refused_unless_it_is_allowed(site: Site) -> None:
    """[WS-049]"""
    site.pages["/"] = b"ok"
    refusal = "its address is not public; the operator may allow it with webhooks.allowed_networks"
    async with CallbackClient() as client:
        assert (await client.get(site.url())).reason == refusal
    async with CallbackClient([ip_network("127.0.0.0/8")]) as client:
        assert (await client.get(site.url())).succeeded


async def test_name_that_leads_elsewhere_after_the_check_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[WS-049] DNS rebinding: the address of each socket counts."""
    monkeypatch.setattr(HttpCallbacks, "names_s", 0.0)
    site.pages["/"] = web.Response(body=b"ok", headers={"Connection": "close"})
    names = Names("127.0.0.1", "127.0.0.2")
    async with CallbackClient([ip_network("127.0.0.1/32")], resolver=names) as client:
        assert (await client.get(site.url(host="reader.example"))).succeeded
        again = await client.post(site.url(host="reader.example"), b"", FORM)
    assert again.reason.startswith("its address is not public")
    assert names.asked == ["reader.example", "reader.example"]


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + b"x" * 2000, 3),
    ],
)
async def test_deliveries_to_a_host_share_a_connection(client: CallbackClient, answer: bytes, connections: int) -> None:
    """[WS-065] Unless the answer is longer than what is read of it: then the connection is closed."""
    made: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    for _ in range(3):
        assert (await client.post(url, b"", FORM)).succeeded
    assert len(made) == connections
    server.close()


async def test_certificate_of_an_unknown_authority_is_refused_unless_the_operator_adds_it(
    certificate: tuple[Path, Path],
) -> None:
    """[WS-075]"""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with CallbackClient(EVERYWHERE) as client:
        refused = await client.get(url)
    async with CallbackClient(EVERYWHERE, ca_file=certificate[0]) as client:
        accepted = await client.get(url)
    server.close()
    assert refused.status == 0 and refused.reason == "has a certificate that is not valid: self-signed certificate"
    assert accepted.status == 204


async def test_secrets_are_not_redirected_out_of_tls(certificate: tuple[Path, Path]) -> None:
    """[WS-103] A form may have the secret of a subscription."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    plain: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plain.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 308 Moved\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    other = await asyncio.start_server(note, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    server = await asyncio.start_server(redirect, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with CallbackClient(EVERYWHERE, ca_file=certificate[0]) as client:
        answer = await client.post(url, b"hub.secret=s", FORM, redirects=3)
    server.close()
    other.close()
    assert answer.reason == f"gave no usable answer: it redirects from https to http://127.0.0.1:{port}/"
    assert answer.permanent_url == url and plain == []


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that no authority has signed, and its key."""
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "1", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", str(paths[0]), "-keyout", str(paths[1])),
        ],
        check=True,
        capture_output=True,
    )
    return paths


@pytest.mark.parametrize(
    ("host", "address", "expected"),
    [
        ("reader.example", "192.0.2.7", True),
        ("reader.example", "::ffff:192.0.2.7", True),
        ("reader.example", "192.0.2.8", False),
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.8", "192.0.2.7", False),
        ("[2001:DB8::1]", "2001:db8::1", True),
        ("reader.example", "local", False),
    ],
)
async def test_name_of_an_address(host: str, address: str, expected: bool) -> None:
    """[RC-026] [RC-030] A name is resolved; an IPv4-mapped address is the IPv4 address."""
    async with CallbackClient(resolver=Names("::ffff:192.0.2.7")) as client:
        assert await client.is_address_of(host, address) is expected


async def test_name_that_leads_nowhere_is_no_address() -> None:
    """[RC-030]"""
    async with CallbackClient() as client:
        assert not await client.is_address_of("a." * 200, "192.0.2.7")
