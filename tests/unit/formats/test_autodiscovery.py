"""Links to feeds in web pages."""

import pytest

from smartfeeds.formats.autodiscovery import MAX_LINKS, LinkType, PageLink, links_of

PAGE = "https://example.com/blog/index.html"


def found(html, base=PAGE):
    return [(link.type, link.href) for link in links_of(html.encode(), base)]


def test_links_are_found_with_quoted_and_unquoted_attributes():
    """[ESS-024] As the document writes them, resolved against the page."""
    html = """<!DOCTYPE html><html><head><title>x</title>
    <link rel="alternate" type="application/ess" title="example" href="/ess/" />
    <link rel=alternate type=application/nno title=example href=/nno/>
    <LINK REL='Alternate' TYPE='application/RSS+xml; charset=utf-8' HREF='rss.xml'>
    <link type="application/atom+xml" rel="home alternate" href="?format=atom&amp;all=1">
    <link rel="alternate" type="application/feed+json" href="https://cdn.example.net/feed.json">
    </head><body></body></html>"""

    assert links_of(html.encode(), PAGE)[0] == PageLink(LinkType.ESS, "https://example.com/ess/", "example")
    assert found(html) == [
        (LinkType.ESS, "https://example.com/ess/"),
        (LinkType.NNO, "https://example.com/nno/"),
        (LinkType.RSS, "https://example.com/blog/rss.xml"),
        (LinkType.ATOM, "https://example.com/blog/index.html?format=atom&all=1"),
        (LinkType.JSON_FEED, "https://cdn.example.net/feed.json"),
    ]


@pytest.mark.parametrize(
    "link",
    [
        '<link rel="stylesheet" type="application/ess" href="/x">',
        '<link rel="alternate stylesheet" type="application/ess" href="/x">',
        '<link rel="alternate" type="text/html" href="/x">',
        '<link rel="alternate" href="/x">',
        '<link rel="alternate" type="application/ess">',
        '<link rel="alternate" type="application/ess" href=" ">',
        '<link rel="alternate" type="application/ess" href="javascript:alert(1)">',
        '<link rel="alternate" type="application/ess" href="file:///etc/passwd">',
        '<link rel="alternate" type="application/ess" href="http://">',
        '<link rel="alternate" type="application/ess" href="http://[x/">',
        f'<link rel="alternate" type="application/ess" href="/{"x" * 3000}">',
        '<link rel="alternate" type="application/atom+xml; type=entry" href="/x">',
        '<!-- <link rel="alternate" type="application/ess" href="/x"> -->',
        '<script>"<link rel=alternate type=application/ess href=/x>"</script>',
        '<a rel="alternate" type="application/ess" href="/x">x</a>',
    ],
)
def test_other_links_are_left_out(link):
    """[ESS-024] Other relations, other types, other schemes, no address, no link."""
    assert found(f"<html><head>{link}<link rel=alternate type=application/nno href=/n></head>") == [
        (LinkType.NNO, "https://example.com/n")
    ]


def test_base_element_is_honoured():
    """[ESS-024] Relative to the page itself where it is relative."""
    link = "<link rel=alternate type=application/ess href=e>"

    assert found(f"<base><base href=/other/><base href=/third/>{link}") == [
        (LinkType.ESS, "https://example.com/other/e")
    ]


@pytest.mark.parametrize("href", ["feed:https://a.example/f", "FEEDS://a.example/f", "https://a.example/f#x"])
def test_address_of_a_feed_reader_is_read(href):
    """[ESS-024] [SRC-048]"""
    link = f"<link rel=alternate type=application/rss+xml href='{href}'>"
    assert found(link) == [(LinkType.RSS, "https://a.example/f")]


def test_links_are_bounded_and_each_comes_once():
    """[ESS-024] A page cannot name thousands."""
    link = '<link rel="alternate" type="application/ess" href="/{}">'

    assert len(links_of("".join(link.format(n) for n in range(1_000)).encode(), PAGE)) == MAX_LINKS
    assert len(links_of((link.format(1) * 50).encode(), PAGE)) == 1


@pytest.mark.parametrize(
    "html", [b"", b"   ", b"\x00\xff\xfe", b"plain text", b"<", b"<html>", b"<div>" * 100_000, b"&" * 1000]
)
def test_pages_that_are_none_have_no_links(html):
    assert links_of(html, PAGE) == ()
