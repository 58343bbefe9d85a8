"""The HTTP client for addresses of strangers: what it takes, what it refuses, what it bounds."""

import asyncio
import gzip
from ipaddress import ip_network

import pytest
from aiohttp import web

from smartfeeds.core.validators import Validators
from smartfeeds.net import fetch_client
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchError, FetchLimits, FetchResponse, display_url
from smartfeeds.net.limiter import HostLimiter, HostLimits
from support.faketime import FakeTime
from support.waiting import HANG_S, wait_for
from support.website import NO_ADDRESSES, Names


def open_fetcher(*, at_once=20, at_once_per_host=2, resolver=None, **limits):
    limiter = HostLimiter(HostLimits(at_once, at_once_per_host))
    return Fetcher(FetchLimits(**{"allowed": EVERYWHERE, **limits}), limiter=limiter, resolver=resolver)


async def refused(fetcher, url, **options):
    with pytest.raises(FetchError) as caught:
        await fetcher.get(url, **options)
    return caught.value


async def test_get_gives_the_answer_and_what_the_next_request_needs(site, fetcher):
    headers = {"Content-Type": "Application/ESS; charset=us-ascii", "ETag": 'W/"1"', "Last-Modified": "yesterday"}
    site.pages["/a"] = web.Response(body=b"hello", headers=headers)

    assert await fetcher.get(site.url("/a?b=c"), accept="application/ess") == FetchResponse(
        site.url("/a?b=c"),
        200,
        b"hello",
        "application/ess",
        Validators(site.url("/a?b=c"), 'W/"1"', "yesterday"),
        "us-ascii",
    )
    (asked,) = site.asked
    assert (asked.path_qs, asked.headers["Accept"]) == ("/a?b=c", "application/ess")
    assert asked.headers["User-Agent"].startswith("smartfeeds/")
    assert "If-None-Match" not in asked.headers and "Cookie" not in asked.headers


@pytest.mark.parametrize(("size", "charset"), [(1024, "koi8-r"), (1025, ""), (60_000, "")])
async def test_charset_of_a_long_media_type_is_not_parsed(site, fetcher, size, charset):
    """Python's parser takes 20 s for quotation marks of 64 KB, and the event loop waits."""
    media_type = 'text/xml; charset=koi8-r; a="'
    site.pages["/"] = web.Response(body=b"hello", headers={"Content-Type": media_type + "x" * (size - len(media_type))})

    response = await fetcher.get(site.url())

    assert (response.body, response.content_type, response.charset) == (b"hello", "text/xml", charset)


@pytest.mark.parametrize("count", [0, 2, 20, 21, 5000])
async def test_interim_responses_are_bounded(fetcher, count):
    """A server that never stops sending them would keep the event loop busy until the time limit."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * count + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        if count <= 20:
            assert (await fetcher.get(url)).body == b"hello"
        else:
            assert (
                await refused(fetcher, url)
            ).reason == "gave no usable answer: it has more than 20 interim responses"


async def test_get_of_what_has_not_changed_has_no_body(site, fetcher):
    """Validators go back byte for byte. Those of the 304 replace the former (RFC 9111 4.3.4)."""

    async def page(request):
        known = request.headers["If-None-Match"], request.headers["If-Modified-Since"]
        return web.Response(status=304 if known == ("no quotes", "yesterday") else 500, headers={"ETag": '"2"'})

    site.pages["/"] = page
    response = await fetcher.get(site.url(), known=Validators(site.url(), "no quotes", "yesterday"))

    assert response.not_modified and response.body == b""
    assert response.validators == Validators(site.url(), '"2"', "yesterday")


async def test_response_without_validators_clears_both(site, fetcher):
    """Validators are a pair of one response."""
    site.pages["/"] = web.Response(body=b"hello", headers={"Last-Modified": "today"})

    response = await fetcher.get(site.url(), known=Validators(site.url(), '"1"', "yesterday"))

    assert response.validators == Validators(site.url(), "", "today")


@pytest.mark.parametrize(("known", "conditional"), [("/a", ["/a"]), ("/b", ["/b"]), ("/c", [])])
async def test_validators_go_only_to_the_address_that_gave_them(site, fetcher, known, conditional):
    """RFC 9110 8.8: after a redirect, the other address never gets them."""
    site.pages["/a"] = web.Response(status=302, headers={"Location": "/b"})
    site.pages["/b"] = web.Response(body=b"hello", headers={"ETag": '"b"'})

    response = await fetcher.get(site.url("/a"), known=Validators(site.url(known), '"1"'))

    assert response.validators == Validators(site.url("/b"), '"b"')
    asked = [request.path for request in site.asked if "If-None-Match" in request.headers]
    assert asked == conditional


@pytest.mark.parametrize("status", [429, 503])
async def test_host_that_asks_for_a_pause_gets_no_request_before_it_ends(site, status):
    """RFC 9110 10.2.3, RFC 6585 4: every address of the host waits, whoever fetches it; other hosts do not."""
    site.pages["/"] = web.Response(status=status, headers={"Retry-After": "120"})
    site.pages["/b"] = b"hello"
    time, limits, names = FakeTime(), FetchLimits(allowed=EVERYWHERE), Names("127.0.0.1")
    limiter = HostLimiter(clock=time.clock, sleep=time.sleep)
    async with (
        Fetcher(limits, limiter=limiter, resolver=names) as fetcher,
        Fetcher(limits, limiter=limiter, resolver=names) as neighbour,
    ):
        error = await refused(fetcher, site.url(host="a.example.org"))
        assert (error.status, error.retry_after_s) == (status, 120.0)

        await time.advance(119)
        error = await refused(neighbour, site.url("/b", host="a.example.org"))
        assert (error.status, error.retry_after_s) == (0, 1.0)
        assert "try again in 1 seconds" in str(error)
        assert site.paths == ["/"]
        assert (await fetcher.get(site.url("/b", host="b.example.org"))).body == b"hello"

        await time.advance(1)
        assert (await neighbour.get(site.url("/b", host="a.example.org"))).body == b"hello"


async def test_pause_until_a_date_is_counted_from_now(site):
    site.pages["/"] = web.Response(status=503, headers={"Retry-After": "Tue, 14 Nov 2023 22:15:20 GMT"})
    async with Fetcher(FetchLimits(allowed=EVERYWHERE), clock=lambda: 1_700_000_000.0) as fetcher:
        assert (await refused(fetcher, site.url())).retry_after_s == 120.0


@pytest.mark.parametrize(("status", "header"), [(429, None), (503, "soon"), (500, "120"), (404, "120")])
async def test_only_an_overloaded_server_can_ask_for_a_pause(site, fetcher, status, header):
    site.pages["/"] = web.Response(status=status, headers={"Retry-After": header} if header else {})
    site.pages["/b"] = b"hello"

    assert (await refused(fetcher, site.url())).retry_after_s is None
    assert (await fetcher.get(site.url("/b"))).body == b"hello"


async def test_answer_304_to_a_request_without_condition_is_an_error(site, fetcher):
    site.pages["/"] = web.Response(status=304)

    assert (await refused(fetcher, site.url())).status == 304


@pytest.mark.parametrize("status", [300, 404, 410, 429, 500, 503])
async def test_status_that_is_no_success_is_an_error_that_names_it(site, fetcher, status):
    site.pages["/"] = web.Response(status=status, body=b"x" * 100_000)

    error = await refused(fetcher, site.url())
    assert error.status == status and f"answered {status}" in str(error)


@pytest.mark.parametrize(
    "path", ["/a%2Cb,c", "/%7Euser", "/x?q=%2C,+%20&r=%26", "/straße"], ids=["commas", "tilde", "query", "unicode"]
)
async def test_address_is_accept_types_it_is_written(site, fetcher, path):
    decoded = path.partition("?")[0].replace("%2C", ",").replace("%7E", "~")
    site.pages[decoded] = b"hello"
    await fetcher.get(site.url(path))

    assert [request.raw_path for request in site.asked] == ["/stra%C3%9Fe" if path == "/straße" else path]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "/etc/passwd",
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "javascript:alert(1)",
        "http://",
        "http:///x",
        "http://[::1",
        "http://example.org:99999/",
        "http://exa\nmple.org/\r\nX: y",
        "http://xn--/",
    ],
)
async def test_address_that_is_none_of_http_is_refused(fetcher, url):
    error = await refused(fetcher, url)

    assert "\n" not in str(error)


# Where it may go.


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "not public"),
        ("localhost", "not public"),
        ("[::1]", "not public"),
        ("[::ffff:127.0.0.1]", "not public"),
        ("127.1", "no usable answer"),
        ("2130706433", "no usable answer"),
    ],
)
async def test_private_address_is_not_connected_to_however_it_is_written(site, host, reason):
    site.pages["/"] = b"secret"
    async with Fetcher() as fetcher:
        error = await refused(fetcher, site.url(host=host))

    assert reason in str(error)
    assert site.asked == []


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::ffff:127.0.0.1", "fe80::1"])
async def test_name_that_leads_to_a_private_address_is_refused(site, address):
    async with Fetcher(resolver=Names(address)) as fetcher:
        error = await refused(fetcher, site.url(host="feeds.example.org"))

    assert (
        error.reason == "was not requested: its address is not public; "
        "the operator may allow it with --allow-private or sources.allowed_networks"
    )
    assert site.asked == []


async def test_name_that_is_public_when_looked_up_first_and_private_then_is_refused(site):
    """DNS rebinding: what counts is the address of the socket."""
    names = Names("127.0.0.2", "127.0.0.1")
    site.pages["/"] = web.Response(status=302, headers={"Location": "http://again.example.org/"})
    limits = FetchLimits(allowed=(ip_network("127.0.0.2/32"),))
    async with Fetcher(limits, resolver=names) as fetcher:
        first = await refused(fetcher, site.url(host="one.example.org"))
        second = await refused(fetcher, site.url(host="two.example.org"))

    assert names.asked == ["one.example.org", "two.example.org"]
    assert "cannot be reached" in first.reason
    assert (
        second.reason == "was not requested: its address is not public; "
        "the operator may allow it with --allow-private or sources.allowed_networks"
    )
    assert site.asked == []


async def test_network_that_the_operator_allows_is_asked(site):
    site.pages["/"] = b"hello"
    async with Fetcher(FetchLimits(allowed=(ip_network("127.0.0.0/8"),)), resolver=Names("127.0.0.1")) as fetcher:
        assert (await fetcher.get(site.url(host="feeds.example.org"))).body == b"hello"


async def test_redirect_into_the_private_network_is_refused(site):
    """Every hop is checked: 127.0.0.1 is allowed here, 127.0.0.2 is not."""
    site.pages["/"] = web.Response(status=302, headers={"Location": site.url(host="127.0.0.2")})
    async with Fetcher(FetchLimits(allowed=(ip_network("127.0.0.1/32"),))) as fetcher:
        error = await refused(fetcher, site.url())

    assert "127.0.0.2" in str(error) and "not public" in str(error)
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/b?c", "b?c", "//{host}/b?c", "http://{host}/b?c"])
async def test_redirects_are_followed(site, fetcher, status, location):
    host = f"127.0.0.1:{site.port}"
    site.pages["/a"] = web.Response(status=status, headers={"Location": location.format(host=host)})
    site.pages["/b"] = b"hello"

    found = await fetcher.get(site.url("/a"))
    assert (found.url, found.body) == (site.url("/b?c"), b"hello")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/passwd", "http://"),
        ("", "without naming an address"),
        *((text, "cannot be read as an address") for text in NO_ADDRESSES),
        ("/", "more than 5 times"),
    ],
)
async def test_redirect_to_nowhere_or_in_circles_is_an_error(site, fetcher, location, reason):
    site.pages["/"] = web.Response(status=302, headers={"Location": location} if location else {})

    assert reason in str(await refused(fetcher, site.url()))
    assert len(site.asked) == (6 if location == "/" else 1)


@pytest.mark.parametrize("text", NO_ADDRESSES)
async def test_text_that_is_no_address_is_refused(fetcher, text):
    assert "cannot be read as an address" in str(await refused(fetcher, text))


# How much it takes.


async def test_body_above_the_limit_is_refused_whether_it_is_announced_or_not(site):
    async def unannounced(request):
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 1_000)
        except ConnectionError:
            gone.set()
        return response

    gone = asyncio.Event()
    site.pages |= {"/told": b"x" * 1_001, "/endless": unannounced, "/fits": b"x" * 1_000}
    async with open_fetcher(max_bytes=1_000) as fetcher:
        assert len((await fetcher.get(site.url("/fits"))).body) == 1_000
        for path in ("/told", "/endless"):
            assert "larger than 1000 bytes" in str(await refused(fetcher, site.url(path)))
        assert "larger than 10 bytes" in str(await refused(fetcher, site.url("/fits"), max_bytes=10))
        await wait_for(gone.wait(), "the end of the request")


async def test_compressed_body_counts_as_it_becomes(site, fetcher):
    headers = {"Content-Encoding": "gzip"}
    site.pages["/"] = web.Response(body=gzip.compress(b"x" * 1_000), headers=headers)
    site.pages["/bomb"] = web.Response(body=gzip.compress(b"\0" * 50_000_000), headers=headers)
    site.pages["/br"] = web.Response(body=b"x", headers={"Content-Encoding": "br"})

    assert (await fetcher.get(site.url())).body == b"x" * 1_000
    assert "larger than" in str(await refused(fetcher, site.url("/bomb")))
    assert "not asked for" in str(await refused(fetcher, site.url("/br")))


class Raw(asyncio.Protocol):
    """Answers a request with these bytes, and leaves the connection open unless it `ends`."""

    def __init__(self, answer, *, ends=False):
        self.answer, self.ends = answer, ends

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(self.answer)
        if self.ends:
            self.transport.close()


async def raw_server(answer, *, ends=False):
    server = await asyncio.get_running_loop().create_server(lambda: Raw(answer, ends=ends), "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", b"HTTP/1.1 200 OK\r\nContent-Le"],
    ids=["nothing", "half a body", "half a head"],
)
@pytest.mark.parametrize("limit", ["idle_s", "total_s"])
async def test_server_that_says_nothing_more_is_given_up(answer, limit):
    server, url = await raw_server(answer)
    async with server, open_fetcher(**{limit: 0.05}) as fetcher:
        assert "answer" in str(await refused(fetcher, url))


@pytest.mark.parametrize(
    "answer",
    [
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["no http", "no length", "endless header", "no chunk"],
)
async def test_answer_that_is_no_http_is_an_error_that_does_not_quote_it(answer):
    """Whoever chooses the address must not read what a mail or database server says."""
    server, url = await raw_server(answer)
    async with server, open_fetcher() as fetcher:
        error = await refused(fetcher, url)

    assert "no usable answer" in str(error)
    assert "\n" not in str(error) and len(str(error)) < 400
    assert "no HTTP at all" not in str(error)


async def test_nobody_there_is_an_error(fetcher):
    assert "cannot be reached" in str(await refused(fetcher, "http://127.0.0.1:1/"))


class Gate:
    """A page that counts who is inside and lets nobody out before it is told to."""

    def __init__(self):
        self.inside = self.most = 0
        self.open = asyncio.Event()
        self.changed = asyncio.Condition()

    async def page(self, request):
        async with self.changed:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.changed.notify_all()
        await self.open.wait()
        self.inside -= 1
        return web.Response()

    async def until(self, count):
        async with self.changed:
            await wait_for(self.changed.wait_for(lambda: self.inside >= count), f"{count} requests")


@pytest.mark.parametrize(("limits", "most"), [({"at_once_per_host": 2}, 4), ({"at_once_per_host": 9, "at_once": 3}, 3)])
async def test_no_more_are_fetched_at_once_than_allowed(site, limits, most):
    """Two hosts: two each, or three of all."""
    gate = Gate()
    site.pages["/"] = gate.page
    async with open_fetcher(resolver=Names("127.0.0.1"), **limits) as fetcher:
        work = [
            asyncio.ensure_future(fetcher.get(site.url(host=host)))
            for host in ("a.example.org", "B.example.org", "b.example.org") * 4
        ]
        await gate.until(most)
        gate.open.set()
        await asyncio.gather(*work)

        assert gate.most == most
        assert len(site.asked) == 12


async def test_waiting_for_a_turn_does_not_count_as_time(site):
    """The second one is asked when the first is done, however long that took."""
    gate = Gate()
    site.pages["/"] = gate.page
    site.pages["/b"] = b"hello"
    async with open_fetcher(at_once_per_host=1, total_s=1.5) as fetcher:
        first = asyncio.ensure_future(refused(fetcher, site.url()))
        await gate.until(1)
        second = asyncio.ensure_future(fetcher.get(site.url("/b")))

        assert "1.5 seconds" in str(await first)
        assert (await second).body == b"hello"
        gate.open.set()


async def test_fetcher_that_is_not_open_says_so():
    with pytest.raises(RuntimeError, match="async with"):
        await Fetcher().get("http://example.org/")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://alice:secret@example.org/x", "https://example.org/x"),
        ("http://[", "http://["),
        ("http://e/\n\x1b[2J", "http://e/  [2J"),
        ("http://e/" + "x" * 500, "http://e/" + "x" * 191),
    ],
)
def test_shown_address_has_no_password_and_is_one_short_line(url, text):
    assert display_url(url) == text


async def test_response_has_all_headers_and_the_requests_that_led_to_it(site, fetcher):
    """[SRC-022] [SRC-034] The permanent address ends at the first temporary redirect."""
    site.pages["/a"] = web.Response(status=301, headers={"Location": "/b"})
    site.pages["/b"] = web.Response(status=308, headers={"Location": "/c"})
    site.pages["/c"] = web.Response(status=302, headers={"Location": "/d"})
    site.pages["/d"] = web.Response(body=b"hello", headers={"Link": "</hub>; rel=hub", "Expires": "0"})

    response = await fetcher.get(site.url("/a"))

    assert [(hop.url, hop.status) for hop in response.hops] == [
        (site.url("/a"), 301), (site.url("/b"), 308), (site.url("/c"), 302), (site.url("/d"), 200),
    ]  # fmt: skip
    assert response.permanent_url == site.url("/c")
    assert (response.headers["link"], response.headers["Expires"]) == ("</hub>; rel=hub", "0")
    assert (await fetcher.get(site.url("/d"))).permanent_url == site.url("/d")


async def test_error_keeps_the_headers_and_the_requests(site, fetcher):
    """[SRC-041] Whose pause it is follows from the last request."""
    site.pages["/a"] = web.Response(status=302, headers={"Location": "/b"})
    site.pages["/b"] = web.Response(status=429, headers={"Retry-After": "5", "X-Why": "busy"})

    error = await refused(fetcher, site.url("/a"))

    assert [(hop.url, hop.status) for hop in error.hops] == [(site.url("/a"), 302), (site.url("/b"), 429)]
    assert (error.status, error.retry_after_s, error.headers["x-why"]) == (429, 5.0, "busy")
    unreachable = await refused(fetcher, "http://127.0.0.1:9/")
    assert [hop.status for hop in unreachable.hops] == [0] and not unreachable.headers


async def test_request_that_may_be_held_has_its_own_time(site, monkeypatch):
    """[SF-046] It may be silent for longer than others, and stops none of them. Beyond that its connection is dead."""
    monkeypatch.setattr(fetch_client, "HELD_ANSWER_S", 0.5)
    asked, news = asyncio.Event(), asyncio.Event()

    async def page(_request):
        asked.set()
        await news.wait()
        return web.Response(body=b"news")

    site.pages |= {"/held": page, "/other": b"other"}
    async with open_fetcher(at_once=1, at_once_per_host=1, idle_s=0.5, total_s=HANG_S) as fetcher:
        held = asyncio.create_task(fetcher.get(site.url("/held"), hold_s=60.0))
        await asked.wait()
        assert (await fetcher.get(site.url("/other"))).body == b"other"
        error = await refused(fetcher, site.url("/held"), hold_s=0.1)
        assert error.reason == "does not answer"  # after 0.6 s, more than others may be silent
        assert not held.done()
        news.set()
        assert (await held).body == b"news"


async def test_answer_of_a_held_request_that_trickles_is_bounded_in_time(site):
    """Each byte would give it another 20 seconds."""
    over = asyncio.Event()

    async def page(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        await over.wait()
        return response

    site.pages["/"] = page
    async with open_fetcher(total_s=0.02) as fetcher:
        error = await refused(fetcher, site.url(), hold_s=0.03)
    over.set()
    assert error.reason == "did not answer within 0.05 seconds"


def answer_with(head: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + head + b"\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n",
    ],
    ids=["shorter than its length", "without the last chunk"],
)
async def test_document_that_ends_early_is_refused_in_words(answer):
    """[SRC-043] Without the names and numbers of the library."""
    server, url = await raw_server(answer, ends=True)
    async with server, open_fetcher() as fetcher:
        assert (await refused(fetcher, url)).reason == "ended early: the rest of the document is missing"


LONG_LINK = b"<https://blog.example/a>; rel=alternate, " * 400  # 16 KB
COOKIES = b"\r\n".join(b"Set-Cookie: name%d=value; Path=/" % number for number in range(250))


@pytest.mark.parametrize(
    "answer",
    [
        answer_with(b"Link: " + LONG_LINK),
        answer_with(b"Content-Security-Policy: " + b"x" * 60_000),
        answer_with(COOKIES),
        answer_with(b"X-A: b\r\n folded"),
        answer_with(b"X-A: caf\xe9 \xc3\xa9"),
        answer_with(b"content-type: text/xml\r\nContent-Type: text/xml"),
        answer_with(b"Content-Encoding: identity\r\nContent-Encoding: identity"),
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 D'accord \xe9\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 " + b"x" * 10_000 + b"\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2;a=b\r\nok\r\n00\r\nX-Trailer: 1\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer_with(b"X: y"),
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    ],
    ids=lambda answer: str(answer[13:40]),
)
async def test_unusual_headers_are_read(answer):
    """[SRC-016] As servers and their plug-ins send them."""
    server, url = await raw_server(answer)
    async with server, open_fetcher() as fetcher:
        assert (await fetcher.get(url)).body == b"ok"


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (
            b"Link: " + b"x" * 70_000,
            "gave no usable answer: the header Link has more than 65536 bytes, which is the limit",
        ),
        (b"Link: " + b"x" * 1_000_000, "gave no usable answer: a header has more than 65536 bytes, which is the limit"),
        (
            b"\r\n".join(b"X-%d: y" % number for number in range(400)),
            "gave no usable answer: it has more than 300 headers, which is the limit",
        ),
        (
            b"\r\n".join(b"X-%d: %b" % (number, b"y" * 60_000) for number in range(5)),
            "the headers have more than 262144 bytes in all, which is the limit",
        ),
        (b"Content-Length: 2", "it is not valid HTTP, duplicate content-length"),
        (b"no colon secret", "it is not valid HTTP, invalid header token"),
    ],
    ids=lambda value: str(value[:20]),
)
async def test_header_beyond_the_limits_is_named(head, text):
    """[SRC-016] The message has the limit and the field, and nothing else of the response."""
    server, url = await raw_server(answer_with(head))
    async with server, open_fetcher() as fetcher:
        error = await refused(fetcher, url)
    assert str(error).endswith(text)


async def test_headers_beyond_ascii_are_text_that_can_be_stored():
    """[SRC-023] UTF-8, or else ISO 8859-1. A validator in other bytes than ASCII is not sent back."""
    server, url = await raw_server(
        answer_with(b'ETag: "\xe9"\r\nX-A: caf\xe9\r\nX-B: caf\xc3\xa9\r\nLast-Modified: \xe9')
    )
    async with server, open_fetcher() as fetcher:
        response = await fetcher.get(url)
    assert (response.headers["X-A"], response.headers["X-B"]) == ("café", "café")
    assert (response.validators.etag, response.validators.last_modified) == ("", "")


@pytest.mark.parametrize("location", [b"/\xe9", b"/\xc3\xa9", b"/%C3%A9?" + b"x" * 8_000])
async def test_long_location_and_one_beyond_ascii_are_followed(site, fetcher, location):
    """[SRC-016]"""
    site.pages["/é"] = b"there"
    head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "
    server, url = await raw_server(head + site.url("").encode() + location + b"\r\n\r\n")
    async with server:
        assert (await fetcher.get(url)).body == b"there"
