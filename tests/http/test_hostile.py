"""HTTP that is made to hurt: each gets a clear status and a JSON problem, and the next one is served as ever."""

import asyncio
import contextlib
import io
import re
import socket
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from smartfeeds import telemetry
from smartfeeds.core.token import Token, TokenScope
from smartfeeds.errors import StoreError, UnknownOutcomeError
from smartfeeds.http import router, server
from smartfeeds.http.negotiation import ATOM
from support.component import ALICE, Component
from support.raw import Heard, Raw, connected, request
from support.waiting import until
from support.web import Web

PROBLEM = "application/problem+json"
# What no answer may tell of us.
INTERNAL = re.compile(
    rb"Traceback|File \"|\.py|sqlite|aiohttp|Python/|0x[0-9a-f]{6}|/var/|/home/|/work/", re.IGNORECASE
)
LONG = "a" * 20_000


async def filled(component: Component) -> None:
    """A feed that everybody may read, with one item."""
    await component.create(ALICE, "notes", access_model="open")
    await component.publish(ALICE, "notes", "a")


@pytest_asyncio.fixture(loop_scope="module")
async def web(shared_web: Web) -> Web:
    """The component of the file with a feed that everybody may read."""
    await filled(shared_web.component)
    return shared_web


@pytest.fixture
def log() -> io.StringIO:
    """What the operator sees on the console."""
    stream = io.StringIO()
    telemetry.set_up_logging("console", "info", stream)
    return stream


def is_problem(heard: Heard, status: int) -> None:
    """An error as all errors are."""
    assert (heard.status, heard.headers.get("content-type")) == (status, PROBLEM), heard
    assert heard.json["status"] == status and heard.json["title"]
    assert heard.headers["cache-control"] == "no-store"
    assert heard.headers["x-content-type-options"] == "nosniff"
    assert heard.headers["server"] == "smartfeeds"
    assert not INTERNAL.search(heard.body), heard.body


async def ask(web: Web, data: bytes, *, bodiless: bool = False) -> Heard:
    """The answer to some bytes; whatever it is, others are served."""
    async with connected(web.port) as raw:
        raw.say(data)
        heard = await raw.hear(bodiless=bodiless)
    assert (await web.get("/healthz")).status == 200
    return heard


# What is no HTTP request, or one that can be understood in two ways.
UNREADABLE: dict[str, bytes] = {
    "nothing but control characters": b"\x00\x01\x02\r\n\r\n",
    "the beginning of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": request(version="1.2"),
    "no target": b"GET  HTTP/1.1\r\nHost: a\r\n\r\n",
    "lines that end in LF alone": b"GET /feeds/notes/ HTTP/1.1\nHost: a\n\n",
    "NUL in the target": request("/feeds/a\0b/"),
    "control characters in the target": request("/feeds/\x01\x7f/"),
    "a tab in the target": request("/feeds/\t/"),
    "a space in the target": request("/feeds/a b/"),
    "a target that is not UTF-8": request(b"/feeds/\xff\xfe/"),
    "a query that is not UTF-8": request(b"/feeds/notes/?q=\xff"),
    "a target beyond ASCII": request("/feeds/é/"),
    "a target of 20 KB": request(f"/feeds/{LONG}/"),
    "a target without a slash": request("feeds/notes/"),
    "a target with backslashes": request("\\feeds\\notes\\"),
    "an address that is none": request("http://[/feeds/notes/"),
    "an address with an impossible port": request("http://a:99999999/feeds/notes/"),
    "GET of *": request("*"),
    "a method that nobody knows": request(method="BREW"),
    "a method in lower case": request(method="get"),
    "a method of 9 KB": request(method="A" * 9_000),
    "a header of 64 KB": request("/healthz", "X: " + "a" * 65_536),
    "a header name of 64 KB": request("/healthz", "a" * 65_536 + ": x"),
    "1,000 headers": request("/healthz", *(f"X-{n}: a" for n in range(1_000))),
    "a header without a colon": request("/healthz", "Xa"),
    "a header without a name": request("/healthz", ": x"),
    "a space before the colon": request("/healthz", "X : a"),
    "a header on two lines": request("/healthz", "X: a", " b"),
    "NUL in a header": request("/healthz", "X: a\0b"),
    "CR in a header": request("/healthz", "X: a\rb"),
    "LF in a header": request("/healthz", "X: a\nY: b"),
    "no host": request("/healthz", host=None),
    "two hosts": request("/healthz", "Host: other.example"),
    "the same host twice": request("/healthz", "Host: feeds.example"),
    "CR in the host": request(host="a\rb"),
    "LF in the host": request(host="a\nX-Forwarded-For: 127.0.0.1"),
    "NUL in the host": request(host="a\0b"),
    "both lengths": request(
        "/feeds/notes/", "Content-Length: 5", "Transfer-Encoding: chunked", method="POST", body=b"0\r\n\r\nGET /x"
    ),
    "both lengths, the other way round": request(
        "/feeds/notes/", "Transfer-Encoding: chunked", "Content-Length: 5", method="POST", body=b"0\r\n\r\n"
    ),
    "two codings": request(
        "/feeds/notes/", "Transfer-Encoding: chunked", "Transfer-Encoding: identity", method="POST", body=b"0\r\n\r\n"
    ),
    "a coding that nobody knows": request("/feeds/notes/", "Transfer-Encoding: xchunked", method="POST"),
    "two lengths": request("/feeds/notes/", "Content-Length: 5", "Content-Length: 6", method="POST", body=b"abcdef"),
    "a length with a plus": request("/feeds/notes/", "Content-Length: +5", method="POST", body=b"abcde"),
    "a length below 0": request("/feeds/notes/", "Content-Length: -5", method="POST", body=b"abcde"),
    "a length beyond all numbers": request("/feeds/notes/", f"Content-Length: {'9' * 30}", method="POST"),
    "a length in hexadecimal": request("/feeds/notes/", "Content-Length: 0x5", method="POST", body=b"abcde"),
    "a piece that has no length": request(
        "/feeds/notes/", "Transfer-Encoding: chunked", method="POST", body=b"zz\r\n\r\n"
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
async def test_what_cannot_be_read_ends_the_connection(web: Web, case: str) -> None:
    """[design 5] 400 as a problem, and nothing that stands behind it is taken for a request."""
    before = web.component.app.site.listener.unreadable  # type: ignore[union-attr]
    async with connected(web.port) as raw:
        raw.say(UNREADABLE[case] + request("/healthz"))
        is_problem(await raw.hear(), 400)
        assert await raw.ended() == b""
    assert web.component.app.site.listener.unreadable == before + 1  # type: ignore[union-attr]
    assert (await web.get("/healthz")).status == 200


@pytest.mark.parametrize("data", [request(f"/feeds/notes/?x={LONG}"), request("/feeds/notes/", f"Cookie: {LONG}")])
async def test_refusal_names_the_limit_of_a_line(web: Web, data: bytes) -> None:
    """[design 5] A person sees why an address with a long query is not served."""
    heard = await ask(web, data)
    assert heard.status == 400 and b"has more than 8190 bytes, which is the limit" in heard.body


# What can be read, and what comes of it.
READ: dict[str, tuple[bytes, int]] = {
    "HTTP/0.9": (request(version="0.9"), 505),
    "HTTP/2.0 in letters": (request(version="2.0"), 505),
    "a host with a path": (request(host="a/b"), 400),
    "a host with a user": (request(host="u@a"), 400),
    "a host with markup": (request(host='a"><script>alert(1)</script>'), 400),
    "a host that is too long": (request(host="a" * 300), 400),
    "an empty host": (request(host=""), 400),
    "a host with a port that is none": (request(host="a:port"), 400),
    "TRACE": (request("/feeds/notes/", "X-Secret: s", method="TRACE"), 405),
    "PROPFIND": (request(method="PROPFIND"), 405),
    "CONNECT to a host": (request("evil.example:443", method="CONNECT"), 404),
    "CONNECT to a path": (request("/feeds/notes/", method="CONNECT"), 404),
    "nothing there": (request("/nothing"), 404),
    "another host in the path": (request("//evil.example/feeds/notes/"), 404),
    "a name of 2 KB": (request(f"/feeds/{'a' * 2_048}/"), 404),
    "a name of 2 KB without its slash": (request(f"/feeds/{'a' * 2_048}"), 404),
    "a name with %00": (request("/feeds/a%00b/"), 404),
    "a name that is not UTF-8": (request("/feeds/%ff%fe/"), 404),
    "a name with a surrogate": (request("/feeds/%ed%a0%80/"), 404),
    "a name with an overlong slash": (request("/feeds/%c0%af/"), 404),
    "dots": (request("/feeds/../../etc/passwd/"), 404),
    "encoded dots": (request("/feeds/%2e%2e/%2e%2e/etc/passwd/"), 404),
    "dots encoded twice": (request("/feeds/%252e%252e%252fetc/"), 404),
    "an escape that is none": (request("/feeds/%zz/"), 404),
    "a document of dots": (request("/feeds/...rss?timeout=0"), 404),
    "credentials of no kind": (request("/feeds/notes/", "Authorization: Negotiate x"), 401),
    "credentials that are not text": (request("/feeds/notes/", b"Authorization: Bearer \xff\xfe"), 401),
    "credentials of 8 KB": (request("/feeds/notes/", "Authorization: Bearer " + "a" * 8_000), 401),
    "credentials in no Base64": (request("/feeds/notes/", b"Authorization: Basic \xe9"), 401),
    "credentials in broken Base64": (request("/feeds/notes/", "Authorization: Basic !!!"), 401),
    "an Accept that is not text": (request("/feeds/notes/", b"Accept: \xff\xfe"), 406),
    "an Accept of 8 KB": (request("/feeds/notes/", "Accept: " + "a/b," * 2_000), 406),
    "an Accept with a quality that is none": (request("/feeds/notes/", "Accept: application/json;q=nan"), 406),
    "a Last-Event-ID that is no cursor": (
        request("/feeds/notes/", "Accept: text/event-stream", b"Last-Event-ID: \xff\xfe"),
        404,
    ),
}


@pytest.mark.parametrize("case", READ)
async def test_what_can_be_read_is_refused_with_a_reason(web: Web, case: str) -> None:
    """[design 5] The status says what is wrong, and so does the problem."""
    data, status = READ[case]
    heard = await ask(web, data)
    is_problem(heard, status)
    assert heard.json["detail"]


# Queries of a feed that is there: what is wrong with them, in their own words [SF-052] [SF-054] [SF-056].
QUERIES: dict[str, tuple[str, int]] = {
    "a position without a type": ("since=42", 400),
    "a position of no type": ("since=x:42", 400),
    "an empty type": ("since=:42", 400),
    "a position with NUL": ("since=cursor:%00", 400),
    "a position with a line end": ("since=cursor:1_0_a%0Adata:%20x", 400),
    "a position that is not UTF-8": ("since=%ff", 400),
    "a position of 2 KB": (f"since=cursor:{'a' * 2_048}", 400),
    "a cursor from elsewhere": ("since=cursor:99999999999999999999_0_aaaaaaaa", 404),
    "a cursor that is none": ("since=cursor:<script>", 404),
    "a time beyond all times": ("since=time:99999999999999999999999999", 400),
    "a time that is none": ("since=time:tomorrow", 400),
    "an id where items move": ("since=id:a", 400),
    "a position twice": ("since=time:1&since=time:2", 400),
    "an until that is none": ("until=42", 400),
    "a timeout below 0": ("timeout=-1", 400),
    "a timeout that is no number": ("timeout=x", 400),
    "a timeout in digits of another script": ("timeout=%D9%A1", 400),
    "a timeout with a fraction": ("timeout=1.5", 400),
    "a timeout of 30 digits": (f"timeout={'9' * 30}", 400),
    "no timeout": ("timeout=", 400),
    "a max below 0": ("max=-1", 400),
    "a max that is infinite": ("max=inf", 400),
    "a max twice, once encoded": ("max=1&%6dax=2", 400),
    "an order that is none": ("order=random", 400),
    "a parameter that is misspelt": ("catgory=blue", 400),
    "a query with NUL": ("q=%00", 400),
    "a query of 7 KB of parameters": ("&".join(f"author=a{n}" for n in range(800)), 400),
    "a semicolon in the place of an ampersand": ("timeout=0;order=created", 400),
    "an ampersand of another script": ("timeout=0%EF%BC%86max=1", 400),
}


@pytest.mark.parametrize("case", QUERIES)
async def test_wrong_queries_are_told_what_is_wrong(web: Web, case: str) -> None:
    """[SF-052] [SF-054] [SF-056] [A-11] [A-24] [A-29] A problem, and at once."""
    query, status = QUERIES[case]
    heard = await ask(web, request(f"/feeds/notes/?{query}"))
    is_problem(heard, status)
    assert heard.json["detail"] and heard.json["condition"]
    assert b"<script>" not in heard.body


CALLBACKS_REFUSED = {
    "a call": "alert(1)",
    "a comment": "a//",
    "an end of a script": "</script><script>alert(1)</script>",
    "a second statement": "a;alert(1)",
    "an assignment": "a=1",
    "an index": "a[0]",
    "a quote": "a'b",
    "a back-quote": "a`b`",
    "a line end": "a\nalert",
    "a line end after it": "a\n",
    "a line separator": "a\u2028b",
    "a zero-width space": "a\u200bb",
    "a space": "a b",
    "nothing": "",
    "a dot at the end": "a.",
    "a dot at the beginning": ".a",
    "two dots": "a..b",
    "a digit first": "1a",
    "a digit first behind a dot": "a.1b",
    "a Unicode identifier": "функция",
    "a Unicode escape": "\\u0061lert",
    "129 characters": "a" * 129,
    "NUL": "a\0",
    "a byte order mark": "\ufeffa",
    "an operator": "a-b",
    "a minus greater": "-->",
    "a question mark": "a?.b",
    "half an escape": "%2",
}


@pytest.mark.parametrize("case", CALLBACKS_REFUSED)
async def test_a_callback_can_do_nothing_but_be_called(web: Web, case: str) -> None:
    """[SF-055] [A-12] Whatever is no dotted name is refused, with the status of an error and never as a script."""
    text = "".join(f"%{byte:02x}" for byte in CALLBACKS_REFUSED[case].encode())
    for accept in ("*/*", "application/atom+xml", "application/javascript"):
        heard = await ask(web, request(f"/feeds/notes/?timeout=0&callback={text}", f"Accept: {accept}"))
        is_problem(heard, 400)
        assert "callback" in heard.json["detail"]


@pytest.mark.parametrize("name", ["a", "$", "_", "app.cb", "$.fn.x1", "jQuery_123", "a" * 128])
@pytest.mark.parametrize(
    "accept", ["", "application/json", "application/atom+xml", "text/html", "application/javascript"]
)
async def test_a_script_begins_with_a_comment_and_is_what_it_says(web: Web, name: str, accept: str) -> None:
    """[SF-055] [SF-059] [A-12] Nothing that a caller chooses comes first, and no browser guesses a type."""
    got = await web.get(f"/feeds/notes/?timeout=0&callback={name}", accept=accept)
    assert (got.status, got.header("Content-Type")) == (200, "application/javascript; charset=utf-8")
    assert got.header("X-Content-Type-Options") == "nosniff"
    assert got.text.startswith(f"/**/{name}(") and got.text.endswith(");")
    assert "\u2028" not in got.text and "</script" not in got.text.lower()


async def test_errors_in_a_script_keep_their_status(web: Web) -> None:
    """[A-12] A page that cannot see the status gets nothing to run."""
    got = await web.get("/feeds/missing/?callback=app.cb")
    assert (got.status, got.header("Content-Type")) == (404, PROBLEM)


@pytest.mark.parametrize(
    "target",
    [
        "/feeds/a%0d%0aSet-Cookie:%20x=1",
        "/feeds/a%0aX",
        "/feeds//evil.example",
        "/feeds/%2F%2Fevil.example",
        "/feeds/..",
        "/feeds/../../etc/passwd",
        "/feeds/%5c%5cevil.example",
        "/feeds/a%3Fx=%23",
        "/feeds/%E2%80%AE",
        "/feeds/notes?a=%0d%0aX:%20y",
    ],
)
async def test_redirects_stay_here_and_on_one_line(web: Web, target: str) -> None:
    """[SF-057] What a path says never ends a header or leads to another host."""
    heard = await ask(web, request(target))
    assert heard.status == 308
    location = heard.headers["location"]
    assert re.fullmatch(r"/feeds/[\x21-\x7e]+", location)
    assert not location.startswith(("/feeds//", "//")) and "\\" not in location
    assert "set-cookie" not in heard.headers and "x" not in heard.headers


async def test_requests_one_behind_the_other_are_answered_in_order(web: Web) -> None:
    """Pipelining (RFC 9112 9.3.2), with an error in the middle."""
    async with connected(web.port) as raw:
        raw.say(request("/healthz") + request("/feeds/missing/?timeout=0") + request("/feeds/notes/?timeout=0"))
        assert [(await raw.hear()).status for _ in range(3)] == [200, 404, 200]


async def test_a_flood_on_one_connection_is_answered_in_order(web: Web) -> None:
    """5,000 requests in one piece: memory is bounded by what is read of them at a time."""
    async with connected(web.port) as raw:
        raw.say(request("/healthz") * 5_000)
        for _ in range(5_000):
            assert (await raw.hear()).body == b"ok\n"


async def test_http_1_0_is_spoken_without_a_host(web: Web) -> None:
    """RFC 9112 2.3: the answer is whole at the end of the connection."""
    async with connected(web.port) as raw:
        raw.say(request(version="1.0", host=None))
        heard = await raw.hear()
        assert heard.status == 200
        assert heard.json["url"] == f"http://127.0.0.1:{web.port}/feeds/notes/"
        assert await raw.ended() == b""


async def test_an_event_stream_for_http_1_0_has_no_chunks(web: Web) -> None:
    """RFC 9112 7.1: chunks are for HTTP/1.1."""
    async with connected(web.port) as raw:
        raw.say(request("/feeds/notes/", "Accept: text/event-stream", version="1.0"))
        heard = await raw.hear()
        assert "transfer-encoding" not in heard.headers
        assert re.fullmatch(rb"retry: [345]\d{3}\n", await raw.reader.readuntil(b"\n"))


async def test_head_of_an_event_stream_ends_at_once(web: Web) -> None:
    """RFC 9110 9.3.2: HEAD has no content, so there is nothing to wait for."""
    async with connected(web.port) as raw:
        raw.say(request("/feeds/notes/", "Accept: text/event-stream", method="HEAD") + request("/healthz"))
        heard = await raw.hear(bodiless=True)
        assert (heard.status, heard.headers["content-type"]) == (200, "text/event-stream")
        assert (await raw.hear()).body == b"ok\n"


async def test_options_of_the_server_tell_every_method(web: Web) -> None:
    """RFC 9110 9.3.7."""
    heard = await ask(web, request("*", method="OPTIONS"), bodiless=True)
    assert heard.status == 204
    assert {"GET", "HEAD", "OPTIONS"} <= set(heard.headers["allow"].split(", "))


@pytest.mark.parametrize(
    "headers",
    [
        ("Range: bytes=0-1",),
        ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x"),
        ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: x"),
        ("Expect: 200-maybe",),
        (b"If-None-Match: \xff\xfe",),
        ("If-None-Match: " + ",".join(['"x"'] * 1_000),),
        ("If-Modified-Since: yesterday",),
        ("Accept-Encoding: br;q=1, gzip;q=0",),
        ("Cookie: a=b",),
        ("Content-Length: 0",),
    ],
    ids=str,
)
async def test_what_we_do_not_do_is_ignored(web: Web, headers: tuple[str | bytes, ...]) -> None:
    """RFC 9110 14.2, 7.8: the whole document, not compressed, and the connection goes on as HTTP."""
    async with connected(web.port) as raw:
        raw.say(request("/feeds/notes/?timeout=0", *headers))
        heard = await raw.hear()
        assert heard.status == 200 and "content-encoding" not in heard.headers
        assert heard.json["count"] == 1
        raw.say(request("/healthz"))
        assert (await raw.hear()).body == b"ok\n"


@pytest.mark.parametrize("path", ["/feeds/notes/?timeout=0", "/feeds.opml", "/openapi.json"])
async def test_nothing_is_compressed_for_who_refuses_it(web: Web, path: str) -> None:
    """RFC 9110 12.5.3."""
    await web.component.publish(ALICE, "notes", "b" * 900)
    await web.component.configure(ALICE, "notes", title="t" * 900)
    assert (await web.get(path, Accept_Encoding="gzip")).header("Content-Encoding") == "gzip"
    assert (await web.get(path, Accept_Encoding="gzip;q=0, br")).header("Content-Encoding") == ""


@pytest.mark.parametrize("coding", ["gzip", "gzip;q=0.5", "*", "x-gzip"])
async def test_large_answers_are_compressed_for_who_takes_it(web: Web, coding: str) -> None:
    """RFC 9110 12.5.3."""
    await web.component.publish(ALICE, "notes", "b" * 900)
    heard = await ask(web, request("/feeds/notes/?timeout=0", f"Accept-Encoding: {coding}"))
    assert heard.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 405), ("DELETE", 401)])
async def test_a_body_of_100_mb_is_not_read(web: Web, method: str, status: int) -> None:
    """The answer comes at once, the connection ends, and most of the body never leaves its sender."""
    sent_bytes, piece = 0, b"x" * 65_536
    async with connected(web.port) as raw:
        raw.say(request("/feeds/notes/?timeout=0", f"Content-Length: {100 * 2**20}", method=method))
        heard = await raw.hear()
        assert heard.status == status
        while sent_bytes < 100 * 2**20:
            raw.say(piece)
            try:
                await raw.writer.drain()
            except ConnectionError:
                break
            sent_bytes += len(piece)
    assert sent_bytes < 32 * 2**20
    assert (await web.get("/healthz")).status == 200


async def test_headers_that_never_end_are_cut(start_web: Any) -> None:
    """http.first_request_s: who sends a byte now and then holds a connection no longer than that."""
    web = await start_web(http={"first_request_s": 0.2})
    async with connected(web.port) as raw:
        raw.say(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ")
        assert await raw.ended() == b""
    assert web.component.app.site.listener.connections == 0


async def test_idle_connections_are_cut(start_web: Any) -> None:
    """http.idle_s: also where the next request has begun and does not end."""
    web = await start_web(http={"idle_s": 0.5})
    async with connected(web.port) as raw:
        raw.say(request("/healthz") + b"GET /healthz HTTP/1.1\r\nHo")
        assert (await raw.hear()).status == 200
        assert await raw.ended() == b""


async def test_a_client_that_never_reads_is_cut(web: Web) -> None:
    """http.unread_s: what is written for it stays bounded, and then the connection ends."""
    await web.component.publish(ALICE, "notes", "b" * 900)
    site = web.component.app.site
    assert site is not None
    listener = site.listener
    mine = socket.socket()
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    mine.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(mine, ("127.0.0.1", web.port))
    await loop.sock_sendall(mine, request("/feeds/notes/?timeout=0") * 4_000)

    def unread() -> list[int]:
        open_ = [connection.transport for connection in listener._open]
        return [transport.get_write_buffer_size() for transport in open_ if transport is not None]

    await until(lambda: any(connection._paused for connection in listener._open), "the pause of the responses")
    now_s = loop.time()
    assert 0 < max(unread()) < 256 * 1024
    listener.sweep(now_s)
    listener.sweep(now_s + listener.settings.unread_s / 2)
    assert max(unread(), default=0) > 0
    listener.sweep(now_s + listener.settings.unread_s)
    await until(lambda: not max(unread(), default=0), "the end of the connection")
    mine.close()
    assert (await web.get("/healthz")).status == 200


async def test_too_many_connections_of_one_address_are_told_so(start_web: Any) -> None:
    """http.connections_per_address: the rest get 429 and are closed; those that are in stay; a place is free again."""
    web = await start_web(http={"connections_per_address": 50})
    listener = web.component.app.site.listener
    kept: list[Raw] = []
    for _ in range(50):
        raw = Raw(*await asyncio.open_connection("127.0.0.1", web.port))
        raw.say(request("/healthz"))
        assert (await raw.hear()).status == 200
        kept.append(raw)
    for _ in range(1_950):
        async with connected(web.port) as raw:
            heard = await raw.hear()
            is_problem(heard, 429)
            assert heard.headers["connection"] == "close" and int(heard.headers["retry-after"]) > 0
            assert await raw.ended() == b""
    assert (listener.connections, listener.refused) == (50, 1_950)
    kept[0].say(request("/healthz"))
    assert (await kept[0].hear()).status == 200
    for raw in kept:
        raw.close()
    await until(lambda: not listener.connections, "the end of the connections")
    assert len(listener._per_address) == 0
    assert (await web.get("/healthz")).status == 200


async def test_a_proxy_is_bounded_by_what_its_clients_ask_for(start_web: Any) -> None:
    """http.connections_per_address: through a proxy it is for the client, however many connections the proxy has."""
    web: Web = await start_web(http={"proxies": ["127.0.0.1"], "connections_per_address": 2})
    await filled(web.component)
    since = (await web.get("/feeds/notes/")).json["last_cursor"]
    held = f"/feeds/notes/?since=cursor:{since}"
    async with contextlib.AsyncExitStack() as stack:
        for number in range(6):
            raw = await stack.enter_async_context(connected(web.port))
            raw.say(request(held, f"X-Forwarded-For: 203.0.113.{number // 2}"))
        await web.holding(6)
        is_problem(await ask(web, request(held, "X-Forwarded-For: 203.0.113.1")), 429)
        assert (await web.get("/feeds/notes/", X_Forwarded_For="203.0.113.9")).status == 200
        assert (await web.get("/healthz", X_Forwarded_For="203.0.113.1")).status == 200
        assert web.component.app.site is not None and web.component.app.site.listener.refused == 0
    behind_proxies = web.component.app.site.behind_proxies
    await until(lambda: not len(behind_proxies), "the end of the clients' connections")
    assert (await web.get("/feeds/notes/", X_Forwarded_For="203.0.113.1")).status == 200


async def test_ipv6_network_counts_as_one_address(start_web: Any) -> None:
    """http.connections_per_address: the host part of an IPv6 address is free to choose."""
    web: Web = await start_web(http={"proxies": ["127.0.0.1"], "connections_per_address": 2})
    await filled(web.component)
    since = (await web.get("/feeds/notes/")).json["last_cursor"]
    held = f"/feeds/notes/?since=cursor:{since}"
    async with contextlib.AsyncExitStack() as stack:
        for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
            raw = await stack.enter_async_context(connected(web.port))
            raw.say(request(held, f"X-Forwarded-For: {address}"))
        await web.holding(3)
        is_problem(await ask(web, request(held, "X-Forwarded-For: 2001:db8::3")), 429)
        assert (await web.get("/feeds/notes/", X_Forwarded_For="2001:db8:0:1::2")).status == 200


async def test_connections_in_all_are_bounded(start_web: Any) -> None:
    """http.connections: the same for all addresses together."""
    web = await start_web(http={"connections": 2})
    async with connected(web.port) as one, connected(web.port) as two:
        for raw in (one, two):
            raw.say(request("/healthz"))
            assert (await raw.hear()).status == 200
        async with connected(web.port) as third:
            is_problem(await third.hear(), 429)


async def test_an_unexpected_failure_is_told_as_an_incident(
    web: Web, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[design 5] The client gets a number, the operator the same number with the reason; neither gets a token."""
    site = web.component.app.site
    assert site is not None

    async def fail(*_values: object) -> Any:
        raise RuntimeError("the reason")

    monkeypatch.setattr(site.feeds, "get", fail)
    heard = await ask(web, request("/feeds/notes/?q=private", "Cookie: s3cret-cookie"))
    is_problem(heard, 500)
    incident = re.fullmatch(r"incident ([0-9a-f]{8})", heard.json["detail"])
    assert incident is not None
    told = log.getvalue()
    assert incident[1] in told and "the reason" in told
    for private in ("127.0.0.1", "s3cret-cookie", "private", "feeds.example"):
        assert private not in told.partition("request_failed")[2], private


@pytest.mark.parametrize(("part", "path"), [("problem", "/feeds/nowhere/"), ("write_at_once", "/healthz")])
async def test_a_failure_of_the_last_step_is_an_incident(
    web: Web, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, part: str, path: str
) -> None:
    """Making the page of a problem and writing the response are within the boundary for failures too."""

    def fail(*_values: object, **_more: object) -> object:
        raise ValueError("the reason")

    site = web.component.app.site
    assert site is not None
    outcomes: list[tuple[str, str]] = []
    monkeypatch.setattr(site.router, "_observe", lambda *values: outcomes.append(values[:2]))
    monkeypatch.setattr(site.router._pages if part == "problem" else router, part, fail)
    got = await web.get(path)
    assert got.status == 500
    incident = re.fullmatch(r"incident ([0-9a-f]{8})", got.json["detail"])
    assert incident is not None
    events = log.getvalue()
    assert events.count("request_failed") == 1 and incident[1] in events and "the reason" in events
    assert [outcome for _, outcome in outcomes] == ["internal-server-error"]


async def test_a_failure_while_an_answer_is_made_is_told_as_an_incident(
    web: Web, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what fails outside of every net of ours."""
    site = web.component.app.site
    assert site is not None

    def fail(*_values: object) -> Any:
        raise ValueError("the reason")

    monkeypatch.setattr("smartfeeds.http.replies.Reply.raw", fail)
    async with connected(web.port) as raw:
        raw.say(request("/healthz"))
        await raw.ended()
    monkeypatch.undo()
    assert "the reason" in log.getvalue()
    assert (await web.get("/healthz")).status == 200


async def test_a_store_that_fails_is_told_as_503(web: Web, log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """[design 5] Without a word of where it is."""

    async def fail(*_values: object, **_more: object) -> Any:
        raise StoreError("cannot read /var/lib/smartfeeds/feeds.db")

    monkeypatch.setattr(web.component.app.service, "handle", fail)
    heard = await ask(web, request())
    is_problem(heard, 503)
    assert int(heard.headers["retry-after"]) > 0
    assert "/var/lib" in log.getvalue()


async def test_change_that_may_have_happened_is_told_as_500(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[PG-006] After a 503 a client would send a new item again, which may be stored already."""

    async def fail(*_values: object, **_more: object) -> Any:
        raise UnknownOutcomeError("the database postgresql://db: the connection was lost")

    monkeypatch.setattr(web.component.app.service, "handle", fail)
    heard = await ask(web, request())
    is_problem(heard, 500)
    assert "retry-after" not in heard.headers
    assert b"look whether it did" in heard.body and b"postgresql" not in heard.body


async def test_nothing_of_requests_is_logged(web: Web, log: io.StringIO) -> None:
    """Neither what is served nor what is refused: no addresses, no paths, no tokens."""
    for data in (request(), *[data for data, _ in READ.values()], *UNREADABLE.values()):
        async with connected(web.port) as raw:
            raw.say(data)
            await raw.hear()
    assert log.getvalue() == ""


@pytest.mark.needs("accounts")
async def test_a_stream_whose_reader_cannot_be_looked_at_ends_with_an_error(
    start_web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails while a stream is open: it ends, in the form of a stream."""
    web = await start_web(http={"heartbeat_s": 0.01})
    await filled(web.component)
    site = web.component.app.site
    failing = False

    token = Token("id", b"", "alice@example.org", TokenScope.READ, "notes", "", 0)

    async def look(_text: str) -> Token:
        if failing:
            raise StoreError("cannot read /var/lib/smartfeeds/feeds.db")
        return token

    for part in (site._streams, site.feeds):
        monkeypatch.setattr(part, "_authenticate", look)
    monkeypatch.setattr(site.router._authenticator, "_read_bearer", look)
    headers = {"Accept": "text/event-stream", "Authorization": "Bearer x"}
    async with web.session.get(f"{web.origin}/feeds/notes/", headers=headers) as stream:
        assert stream.status == 200
        await web.holding(1)
        failing = True
        told = await stream.read()
    assert b"event: error\n" in told and b'"status": 503' in told and b"/var" not in told


async def test_a_stream_that_fails_ends_unfinished(start_web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second answer is written into the first one: the client sees that it is broken off."""
    web = await start_web(http={"heartbeat_s": 0.01})
    await filled(web.component)

    async def fail(_call: object) -> Any:
        raise RuntimeError("the reason")

    monkeypatch.setattr(web.component.app.site._streams, "_ended", fail)
    async with web.session.get(f"{web.origin}/feeds/notes/", headers={"Accept": "text/event-stream"}) as stream:
        assert stream.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await stream.read()


async def test_a_view_that_fails_keeps_no_other_from_its_news(
    web: Web, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-004] Who is held on it is told of an incident, once in the log; the others get the item."""
    site = web.component.app.site
    assert site is not None
    last = (await web.get("/feeds/notes/")).json["last_cursor"]
    path = f"/feeds/notes/?since=cursor:{last}"

    def fail(*_values: object) -> bytes:
        raise RuntimeError("the reason")

    pulls = {**site.feeds._pulls, ATOM: fail}
    failing = [asyncio.create_task(web.get(path, accept="application/atom+xml")) for _ in range(3)]
    await web.holding(3)
    held = asyncio.create_task(web.get(path))
    await web.holding(4)
    monkeypatch.setattr(site.feeds, "_pulls", pulls)
    await web.component.publish(ALICE, "notes", "b")
    assert [item["id"] for item in (await held).json["items"]] == ["b"]
    answers = await asyncio.gather(*failing)
    assert {answer.status for answer in answers} == {500}
    assert len({answer.json["detail"] for answer in answers}) == 1
    assert log.getvalue().count("request_failed") == 1


async def test_a_stop_does_not_wait_for_those_who_wait(start_web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held pulls and streams end with the service."""
    monkeypatch.setattr(server, "SHUTDOWN_S", 3_600.0)
    web = await start_web()
    await filled(web.component)
    last = (await web.get("/feeds/notes/")).json["last_cursor"]
    async with connected(web.port) as pull, connected(web.port) as stream:
        pull.say(request(f"/feeds/notes/?since=cursor:{last}"))
        stream.say(request("/feeds/notes/", "Accept: text/event-stream"))
        await web.holding(2)
        await web.component.app.site.stop()
        assert await pull.ended() == b""
        assert (await stream.ended()).endswith(b"0\r\n\r\n")
