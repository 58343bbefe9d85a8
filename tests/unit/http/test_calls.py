"""Who is calling: addresses behind proxies, our own origin, credentials."""

import base64
from ipaddress import ip_network
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import HttpVersion10, web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.token import Token, TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import CallReader, HttpCall, credential_of, peer_of
from smartfeeds.http.http_errors import HttpError

PROXY = "10.0.0.1"
PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def request(
    headers: list[tuple[str, str]], peer: str = PROXY, target: str = "/feeds/a/?x=1", **options: Any
) -> web.BaseRequest:
    """A request as it arrives from this address."""
    transport = Mock()
    transport.get_extra_info = {"peername": (peer, 1_234), "sockname": ("192.0.2.1", 8_280)}.get
    return make_mocked_request("GET", target, CIMultiDict(headers), transport=transport, **options)


def read(*headers: tuple[str, str], peer: str = PROXY, base_url: str = "") -> HttpCall:
    """What is read of a request with a Host."""
    return CallReader(PROXIES, base_url).read(request([("Host", "feeds.example"), *headers], peer))


# headers, the client's address, the origin
BEHIND: dict[str, tuple[list[tuple[str, str]], str, str]] = {
    "a proxy that says nothing": ([], PROXY, "http://feeds.example"),
    "one address": ([("X-Forwarded-For", "203.0.113.9")], "203.0.113.9", "http://feeds.example"),
    "the client's own claim first": ([("X-Forwarded-For", "198.51.100.1, 203.0.113.9")], "203.0.113.9", ""),
    "a chain of proxies": ([("X-Forwarded-For", "203.0.113.9, 10.1.1.1, 10.2.2.2")], "203.0.113.9", ""),
    "a chain on two lines": (
        [("X-Forwarded-For", "198.51.100.1, 203.0.113.9"), ("X-Forwarded-For", "10.2.2.2")],
        "203.0.113.9",
        "",
    ),
    "proxies only": ([("X-Forwarded-For", "10.1.1.1, 10.2.2.2")], "10.1.1.1", ""),
    "a port": ([("X-Forwarded-For", "203.0.113.9:4711")], "203.0.113.9", ""),
    "IPv6": ([("X-Forwarded-For", "2001:db8::1")], "2001:db8::1", ""),
    "IPv6 with a port": ([("X-Forwarded-For", "[2001:db8::1]:4711")], "2001:db8::1", ""),
    "IPv6 with a zone": ([("X-Forwarded-For", "fe80::1%eth0")], "fe80::1", ""),
    "IPv4 in IPv6": ([("X-Forwarded-For", "::ffff:203.0.113.9")], "203.0.113.9", ""),
    "a proxy of IPv6": ([("X-Forwarded-For", "203.0.113.9, fd00::5")], "203.0.113.9", ""),
    "unknown": ([("X-Forwarded-For", "unknown")], "unknown", ""),
    "unknown behind a claim": ([("X-Forwarded-For", "203.0.113.9, unknown")], "unknown", ""),
    "what is no address": ([("X-Forwarded-For", "<script>")], "unknown", ""),
    "an empty header": ([("X-Forwarded-For", "")], PROXY, ""),
    "empty elements": ([("X-Forwarded-For", ", ,203.0.113.9,")], "203.0.113.9", ""),
    "1,000 proxies": ([("X-Forwarded-For", "203.0.113.9" + ", 10.1.1.1" * 1_000)], "10.1.1.1", ""),
    "scheme and host": (
        [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "News.Example")],
        "203.0.113.9",
        "https://news.example",
    ),
    "a host with a port": (
        [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Host", "news.example:8443")],
        "203.0.113.9",
        "http://news.example:8443",
    ),
    "a chain of schemes": (
        [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "http, HTTPS")],
        "203.0.113.9",
        "https://feeds.example",
    ),
    "a scheme that is none": (
        [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "javascript")],
        "203.0.113.9",
        "http://feeds.example",
    ),
    "a scheme alone": ([("X-Forwarded-Proto", "https")], "unknown", "https://feeds.example"),
    "Forwarded": (
        [("Forwarded", "for=203.0.113.9;proto=https;host=news.example")],
        "203.0.113.9",
        "https://news.example",
    ),
    "Forwarded in quotes": ([("Forwarded", 'For="203.0.113.9:4711"; Proto="HTTPS"')], "203.0.113.9", ""),
    "Forwarded of IPv6": ([("Forwarded", 'for="[2001:db8::1]:4711"')], "2001:db8::1", ""),
    "Forwarded of IPv6 without a port": ([("Forwarded", 'for="[2001:db8::1]"')], "2001:db8::1", ""),
    "Forwarded with a claim first": ([("Forwarded", "for=198.51.100.1, for=203.0.113.9")], "203.0.113.9", ""),
    "Forwarded of a chain": ([("Forwarded", "for=203.0.113.9, for=10.1.1.1;by=10.9.9.9")], "203.0.113.9", ""),
    "Forwarded on two lines": ([("Forwarded", "for=203.0.113.9"), ("Forwarded", "for=10.1.1.1")], "203.0.113.9", ""),
    "Forwarded of an unknown": ([("Forwarded", "for=unknown")], "unknown", ""),
    "Forwarded of a secret name": ([("Forwarded", 'for="_hidden"')], "unknown", ""),
    "Forwarded without an address": ([("Forwarded", "proto=https")], "unknown", "https://feeds.example"),
    "Forwarded behind what says no address": (
        [("Forwarded", "for=198.51.100.1, proto=https")],
        "unknown",
        "https://feeds.example",
    ),
    "Forwarded that is none": ([("Forwarded", ";;=,=;for")], "unknown", ""),
    "both of one mind": ([("Forwarded", "for=203.0.113.9"), ("X-Forwarded-For", "203.0.113.9")], "203.0.113.9", ""),
    "both, and they differ": ([("Forwarded", "for=198.51.100.1"), ("X-Forwarded-For", "203.0.113.9")], "unknown", ""),
}


@pytest.mark.parametrize("case", BEHIND)
def test_a_proxy_is_believed_about_who_is_calling(case: str) -> None:
    """[design 5] RFC 7239: the first address from the right that is no proxy is the client's."""
    headers, address, origin = BEHIND[case]
    call = read(*headers)
    assert call.proxied
    assert call.address == address
    assert not origin or call.origin == origin


@pytest.mark.parametrize("case", BEHIND)
def test_nobody_else_is_believed(case: str) -> None:
    """[design 5] From an address that is no proxy these headers say nothing."""
    headers, _, _ = BEHIND[case]
    call = read(*headers, peer="198.51.100.77")
    assert (call.address, call.origin, call.proxied) == ("198.51.100.77", "http://feeds.example", False)


def test_without_proxies_nobody_is_believed() -> None:
    made = request([("Host", "feeds.example"), ("X-Forwarded-For", "203.0.113.9")])
    assert CallReader().read(made).address == PROXY
    assert CallReader(PROXIES).read(made).address == "203.0.113.9"


def test_the_configured_origin_wins() -> None:
    """http.base_url, whatever a client or proxy says; then the host may be anything."""
    headers = [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Host", "evil.example")]
    assert read(*headers, base_url="https://feeds.example").origin == "https://feeds.example"
    made = request([("Host", "<script>")], "198.51.100.77")
    assert CallReader(PROXIES, "https://feeds.example").read(made).origin == "https://feeds.example"


HOSTS = {
    "feeds.example": "http://feeds.example",
    "FEEDS.Example:8080": "http://feeds.example:8080",
    "localhost": "http://localhost",
    "a": "http://a",
    "192.0.2.7:80": "http://192.0.2.7:80",
    "[::1]": "http://[::1]",
    "[2001:db8::1]:8080": "http://[2001:db8::1]:8080",
    "xn--e1afmkfd.example": "http://xn--e1afmkfd.example",
    "a" * 254: f"http://{'a' * 254}",
}


@pytest.mark.parametrize("host", HOSTS)
def test_the_host_that_was_asked_is_the_origin(host: str) -> None:
    assert CallReader().read(request([("Host", host)])).origin == HOSTS[host]


BAD_HOSTS = [
    "", " ", "a b", "a/b", "a?b", "a#b", "u@a", "a\\b", "a:", "a:b", "a:123456", "-a", "a-", ".a", "[::1", "::1",
    "[zz]", "a,b", "a\tb", 'a"b', "<a>", "é.example", "a\u2028b", "a" * 255, "a%00b", "[" + ":" * 50 + "]",
]  # fmt: skip


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_a_host_that_is_none_is_refused(host: str) -> None:
    """[design 5] 400: it would stand in addresses that we write."""
    with pytest.raises(HttpError) as caught:
        CallReader().read(request([("Host", host)]))
    assert caught.value.status == 400


@pytest.mark.parametrize("host", [host for host in BAD_HOSTS if host.strip() and "," not in host])
def test_a_host_that_is_none_is_refused_from_a_proxy_too(host: str) -> None:
    with pytest.raises(HttpError):
        read(("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Host", host))


def test_http_1_0_without_a_host_gets_our_address() -> None:
    """RFC 9112 3.2: the Host header is of HTTP/1.1."""
    assert CallReader().read(request([], version=HttpVersion10)).origin == "http://192.0.2.1:8280"
    with pytest.raises(HttpError):
        CallReader().read(request([]))


def test_path_and_query_stay_as_they_were_written() -> None:
    call = CallReader().read(request([("Host", "a")], target="/feeds/a%2Fb/?q=%26&x="))
    assert (call.path, call.query) == ("/feeds/a%2Fb/", "q=%26&x=")


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("", ""),
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER   abc ", "abc"),
        (basic("user:abc"), "abc"),
        (basic(":abc"), "abc"),
        (basic("user:a:b"), "a:b"),
        (f"Bearer {'a' * 256}", "a" * 256),
    ],
)
def test_credentials_are_a_token(header: str, token: str) -> None:
    """[SF-110] A bearer token, or one as the password of Basic."""
    assert credential_of(header) == token


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", f"Bearer {'a' * 257}", "Basic", "Basic !!!", "Basic é", "Basic YQ", "Basic /w==",
     basic("user"), basic("user:"), "Digest x", "Negotiate abc", "abc", "Bearerabc"],
)  # fmt: skip
def test_other_credentials_are_refused(header: str) -> None:
    """[SF-110] 401, never as nobody."""
    with pytest.raises(HttpError) as caught:
        credential_of(header)
    assert caught.value.status == 401


def test_nothing_secret_is_shown_of_a_call() -> None:
    """What is written into a log by mistake holds no token."""
    assert "s3cret" not in repr(read(("Authorization", "Bearer s3cret")))


def test_several_lines_of_a_header_are_one_list() -> None:
    call = read(("Accept", "text/html"), ("Accept", "*/*;q=0.1"))
    assert call.header("Accept") == "text/html, */*;q=0.1"
    assert call.header("Missing") == ""


def test_a_token_lets_what_its_scope_and_feed_say() -> None:
    """[SF-110] No more than that; who has none is judged by the service."""
    call = read()
    call.require(TokenScope.ADMIN, "notes")
    assert call.actor is ANONYMOUS and call.anonymous
    call.token = Token("id", b"", "alice@example.org", TokenScope.PUBLISH, "notes", "", 0)
    call.require(TokenScope.READ, "notes")
    call.require(TokenScope.PUBLISH, "notes")
    for scope, feed in ((TokenScope.ADMIN, "notes"), (TokenScope.READ, "other")):
        with pytest.raises(FeedError) as caught:
            call.require(scope, feed)
        assert caught.value.condition is Condition.FORBIDDEN


@pytest.mark.parametrize(
    ("peername", "address"),
    [
        (("203.0.113.9", 1), "203.0.113.9"),
        (("::ffff:203.0.113.9", 1, 0, 0), "203.0.113.9"),
        (("fe80::1%eth0", 1, 0, 2), "fe80::1"),
        (("2001:db8::1", 1, 0, 0), "2001:db8::1"),
        ("/run/smartfeeds.sock", "local"),
        ("", "local"),
        (None, "local"),
    ],
)
def test_the_other_end_of_a_connection(peername: object, address: str) -> None:
    assert peer_of(peername) == address
