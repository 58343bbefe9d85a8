"""Where documents and responses name hubs, topics and clouds."""

import pytest

from smartfeeds.features.polling.push_links import (
    NO_LINKS,
    PushOffer,
    PushTarget,
    document_links,
    header_links,
    is_web,
    push_links,
    same_address,
)
from smartfeeds.features.polling.source import PushKind
from smartfeeds.formats import html_page
from smartfeeds.formats.crowds import TAG_ATTRIBUTES

URL = "http://blog.example/feed"
ATOM = 'xmlns="http://www.w3.org/2005/Atom"'
HUB, SELF = "https://hub.example/", "http://blog.example/self"


def rss(*children, namespaces=""):
    return f'<rss version="2.0" {namespaces}><channel><title>t</title>{"".join(children)}</channel></rss>'.encode()


@pytest.mark.parametrize(
    "values",
    [
        [f'<{HUB}>; rel="hub", <{SELF}>; rel="self"'],
        [f"<{HUB}>; rel=hub", f"<{SELF}>;rel=self"],
        [f'<x>; rel="next"; title="a, <b>; rel=hub", <{SELF}>; rel="self", <{HUB}>; title="t"; REL="other HUB"'],
    ],
)
def test_header(values):
    """[WS-091] [WS-095] Several headers, several values in one, quoted commas."""
    links = header_links(values, URL)
    assert (links.hubs, links.topic) == ((HUB,), SELF)
    assert header_links(['</hub>; rel="hub"'], URL).hubs == ("http://blog.example/hub",)
    assert header_links(['</hub>; anchor="x"', "<", "", "<a>; rel="], URL) == NO_LINKS


def test_header_wins_over_document():
    """[WS-091] websub.rocks 104: the first place that names both."""
    body = f'<feed {ATOM}><link rel="hub" href="http://other/"/><link rel="self" href="http://other/self"/></feed>'.encode()
    both = push_links([f'<{HUB}>; rel="hub", <{SELF}>; rel="self"'], body, URL)
    assert (both.hubs, both.topic) == ((HUB,), SELF)
    half = push_links([f'<{HUB}>; rel="hub"'], body, URL)
    assert (half.hubs, half.topic) == (("http://other/",), "http://other/self")
    alone = push_links([f'<{HUB}>; rel="hub"'], b"<rss/>", URL)
    assert (alone.hubs, alone.topic) == ((HUB,), "")


def test_page():
    """[WS-092] websub.rocks 101: in the head, capitals no matter, several words."""
    page = (
        f'<!DOCTYPE html><html><head><base href="http://base.example/"><link rel="x HUB" href="/hub"><LINK REL="Self" '
        f'HREF="{SELF}"></head><body><a rel="hub" href="/no">a</a><link rel="hub" href="/no2"></body></html>'
    ).encode()
    links = document_links(page, URL)
    assert (links.hubs, links.topic) == (("http://base.example/hub",), SELF)


@pytest.mark.parametrize("prefix", ["atom", "a10"])
def test_feeds(prefix):
    """[WS-093] [WS-095] websub.rocks 102 and 103: on the first level, whatever the prefix."""
    entry = '<entry><link rel="hub" href="/no"/></entry>'
    atom = f'<feed {ATOM}>{entry}<link rel="hub" href="/hub"/><link rel="self" href="{SELF}"/></feed>'.encode()
    item = f'<item><{prefix}:link rel="hub" href="/no"/></item>'
    names = f'xmlns:{prefix}="http://www.w3.org/2005/Atom"'
    inside = f'<{prefix}:link rel="hub" href="/hub"/><{prefix}:link rel="self" href="{SELF}"/>'
    for body in (atom, rss(item, inside, namespaces=names)):
        links = document_links(body, URL)
        assert (links.hubs, links.topic) == (("http://blog.example/hub",), SELF)


def test_json_feed():
    """[WS-094] [RC-054] Types in any case."""
    body = (
        b'{"version": "https://jsonfeed.org/version/1.1", "feed_url": "/self.json", "items": [], "hubs": '
        b'[{"type": "websub", "url": "/hub"}, {"type": "RSSCloud", "url": "/cloud"}, {"type": "x", "url": "/x"}, 5]}'
    )
    links = document_links(body, URL)
    assert (links.hubs, links.topic) == (("http://blog.example/hub",), "http://blog.example/self.json")
    assert [(cloud.url, cloud.protocol) for cloud in links.clouds] == [("http://blog.example/cloud", "http-post")]


def cloud(domain="c.example", port="80", path="/p", procedure="", protocol="http-post", name="cloud"):
    return (
        f'<{name} domain="{domain}" port="{port}" path="{path}" registerProcedure="{procedure}" protocol="{protocol}"/>'
    )


@pytest.mark.parametrize(
    ("element", "url", "protocol"),
    [
        (cloud(), "http://c.example:80/p", "http-post"),
        (cloud(port="5337", path="/?rsscloud=notify"), "http://c.example:5337/?rsscloud=notify", "http-post"),
        (cloud(port="443"), "https://c.example:443/p", "http-post"),
        (cloud(port="8443", protocol="https-post"), "https://c.example:8443/p", "http-post"),
        (cloud(procedure="a.b", protocol="xml-rpc"), "http://c.example:80/p", "xml-rpc"),
        (cloud(procedure="a.b", protocol="soap"), "http://c.example:80/p", "soap"),
    ],
)
def test_cloud(element, url, protocol):
    """[RC-054] [RC-056] [RC-018]"""
    (target,) = document_links(rss(element), URL).clouds
    assert (target.url, target.protocol) == (url, protocol)


@pytest.mark.parametrize(
    "element",
    [
        cloud(domain=""),
        cloud(port="0"),
        cloud(port="x"),
        cloud(port="70000"),
        cloud(path=""),
        cloud(protocol="post"),
        cloud(protocol="soap"),
        cloud(name="CLOUD"),
        '<cloud domain="c.example" port="80" path="/p" protocol="http-post"/>',
    ],
)
def test_cloud_that_lacks_something(element):
    """[RC-054] All five attributes, and a protocol that is known."""
    assert document_links(rss(element), URL).clouds == ()


@pytest.mark.parametrize("namespace", ["http://source.scripting.com/", "https://source.scripting.com"])
def test_source_cloud_wins(namespace):
    """[RC-054] [RC-056]"""
    body = rss(cloud(), "<s:cloud>https://w.example/ping</s:cloud>", namespaces=f'xmlns:s="{namespace}"')
    assert [target.url for target in document_links(body, URL).clouds] == [
        "https://w.example/ping",
        "http://c.example:80/p",
    ]


def test_order_of_targets():
    """[WS-099] [RC-055] Hubs before clouds, https before http, known before unknown."""
    names = [
        (PushKind.CLOUD, "https://c/"),
        (PushKind.HUB, "http://h/"),
        (PushKind.HUB, "https://a/"),
        (PushKind.HUB, "https://b/"),
    ]
    offer = PushOffer(tuple(PushTarget(kind, url, URL) for kind, url in names))
    ranked = [target.url for target in offer.ranked(frozenset({"https://b/"})).targets]
    assert ranked == ["https://b/", "https://a/", "http://h/", "https://c/"]


@pytest.mark.parametrize(
    "other",
    [
        "https://a.example/x%20y",
        "http://A.example:80/x%20y/",
        "http://a.example/%78%20y",
        "https://a.example:443/x%20y",
    ],
)
def test_spellings_of_an_address(other):
    """[WS-110] [RC-070]"""
    assert same_address("http://a.example/x%20y", other)


@pytest.mark.parametrize(
    "other",
    ["http://a.example/X%20y", "http://b.example/x%20y", "http://a.example:81/x%20y", "", "http://a.example/x%20y?z"],
)
def test_other_addresses(other):
    """[WS-110] [RC-070]"""
    assert not same_address("http://a.example/x%20y", other)


@pytest.mark.parametrize(
    "url", ["ftp://h/", "http://", "http://u:p@h/", "http://h:0/", "http://h/ a", "javascript:x", "http://h:x/"]
)
def test_no_web_address(url):
    """[WS-138]"""
    assert not is_web(url) and is_web("https://h/")


def test_hub_at_the_end_of_a_long_header():
    """A field of 64 KB is accepted, so all of it is read."""
    others = [f'<https://blog.example/{number}.css>; rel="preload"; as="style"' for number in range(1_000)]
    links = header_links([", ".join([*others, '<https://hub.example/>; rel="hub"'])], "https://blog.example/feed")
    assert links.hubs == ("https://hub.example/",)


def test_hub_of_a_json_feed_that_is_repaired():
    feed = (
        b'{"version": "https://jsonfeed.org/version/1.1", "hubs": [{"type": "WebSub", "url": "https://hub.example/"}],}'
    )
    assert push_links([], feed, "https://blog.example/feed").hubs == ("https://hub.example/",)


def test_page_with_a_crowd_of_attributes_is_not_parsed(monkeypatch):
    """[xep-map 246] tests/unit/formats/test_html_page.py has the spellings of such a crowd."""
    crowd = "".join(f" a{number}" for number in range(TAG_ATTRIBUTES + 2))
    page = f"<html><head><!-- hub --><link rel=alternate href=x><meta{crowd}>".encode()
    monkeypatch.setattr(html_page, "parse_xml", lambda *_: pytest.fail("it was parsed"))
    assert push_links((), page, URL) == NO_LINKS
