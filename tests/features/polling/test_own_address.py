"""Addresses of the service itself, in the spellings that people type and documents have."""

import pytest

from smartfeeds.features.polling.own_address import feed_names, own_nodes, own_path

DOMAIN = "feeds.example.org"
OWN = "https://feeds.example.org"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("blogs", ("blogs",)),
        ("blogs.opml", ("blogs.opml", "blogs")),
        ("people/reading list", ("people/reading list",)),
        (f"{OWN}/feeds/blogs.opml", ("blogs.opml", "blogs")),
        (f"{OWN}/feeds/blogs/", ("blogs",)),
        (f"{OWN}/feeds/v1.2/", ("v1.2",)),
        (f"{OWN}/feeds/blogs.opml?sync=true", ("blogs.opml", "blogs")),
        (f"{OWN}/feeds/blogs.atom?sync=true&max=all#top", ("blogs.atom", "blogs")),
        ("HTTPS://Feeds.Example.ORG/feeds/blogs.opml", ("blogs.opml", "blogs")),
        ("https://feeds.example.org:443/feeds/blogs.opml", ("blogs.opml", "blogs")),
        ("http://feeds.example.org/feeds/blogs.opml", ("blogs.opml", "blogs")),
        ("http://feeds.example.org:80/feeds/blogs.opml", ("blogs.opml", "blogs")),
        ("https://feeds.example.org./feeds/blogs.opml", ("blogs.opml", "blogs")),
        ("  https://feeds.example.org/feeds/blogs.opml ", ("blogs.opml", "blogs")),
        ("https://me:secret@feeds.example.org/feeds/blogs.opml", ("blogs.opml", "blogs")),
        (f"{OWN}/feeds/my%20blogs.opml", ("my blogs.opml", "my blogs")),
        (f"{OWN}/feeds/people%2Falice.opml", ("people/alice.opml", "people/alice")),
        ("xmpp:feeds.example.org?;node=blogs", ("blogs",)),
        ("XMPP:FEEDS.example.org?;node=my%20blogs", ("my blogs",)),
        (f"{OWN}/feeds/blogs.opml?category=x", ("blogs.opml?category=x",)),
        # Elsewhere, or of this service and no feed.
        ("https://feeds.example.org:8443/feeds/blogs.opml", ()),
        ("https://feeds.example.org.evil.example/feeds/blogs.opml", ()),
        ("https://blog.example/feeds/blogs.opml", ()),
        ("xmpp:feeds.example.com?;node=blogs", ()),
        ("xmpp:feeds.example.org", ()),
        (f"{OWN}/entries/blogs/1", ()),
        (f"{OWN}/feeds.opml?sources=true", ()),
        ("https://[::1/feeds/blogs.opml", ()),
        ("https://feeds.example.org:port/feeds/blogs.opml", ()),
        ("", ()),
    ],
)
def test_text_leads_to_a_feed_of_the_service(text: str, names: tuple[str, ...]) -> None:
    """[SRC-082] [SRC-083] RFC 3986 6.2.2 and 6.2.3: letters of scheme and host, and the port of the scheme."""
    assert own_nodes(text, DOMAIN, OWN) == names


@pytest.mark.parametrize(
    ("url", "own_url", "path"),
    [
        ("https://example.org/smart/feeds/a", "https://example.org/smart", "/feeds/a"),
        ("https://example.org/smart/feeds/a", "https://example.org/smart/", "/feeds/a"),
        ("https://example.org/smarter/feeds/a", "https://example.org/smart", None),
        ("http://example.org:8280/feeds/a", "http://example.org:8280", "/feeds/a"),
        ("https://b\u00fccher.example/feeds/a", "https://xn--bcher-kva.example", "/feeds/a"),
        ("https://example.org", "https://example.org", "/"),
        ("https://example.org/feeds/a", "", None),
        ("ftp://example.org/feeds/a", "https://example.org", None),
    ],
)
def test_address_is_below_that_of_the_service(url: str, own_url: str, path: str | None) -> None:
    """[SRC-082] The service may be reached below a path."""
    assert own_path(url, own_url) == path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"{OWN}/feeds/planet/", ("planet",)),
        (f"{OWN}/feeds/planet.atom?max=all#top", ("planet.atom", "planet")),
        (f"{OWN}/feeds/planet.rss?author=bob&since=time:0", ("planet.rss?author=bob", "planet?author=bob")),
        (f"{OWN}/feeds/planet/?order=created&q=a%20ship&timeout=30&utm=x", ("planet?q=a%20ship",)),
        (f"{OWN}/feeds/127.0.0.1/feed/", ("127.0.0.1/feed",)),
        (f"{OWN}/feeds/a%3Fb%3Dc/", ("a?b=c",)),
        (f"{OWN}/entries/planet/tag:x,2026:1", ("planet",)),
        (f"{OWN}/entries/people/alice/1", ("people/alice",)),
        (f"{OWN}/entries/people%2Falice/1#replies", ("people/alice",)),
        ("feeds.example.org/feeds/planet/", ("planet",)),
        ("xmpp:feeds.example.org?;node=planet", ("planet",)),
        ("xmpp:feeds.example.org?;node=planet;item=one", ("planet",)),
        ("xmpp:feeds.example.org?pubsub;action=subscribe;node=planet%3Fauthor%3Dbob", ("planet?author=bob",)),
        (f"{OWN}/", ()),
        (f"{OWN}/follow", ()),
        (f"{OWN}/feeds/", ()),
        (f"{OWN}/entries/", ()),
        ("https://blog.example/feeds/planet/", None),
        ("xmpp:feeds.example.com?;node=planet", None),
        ("planet", None),
        ("", None),
    ],
)
def test_address_of_the_service_leads_to_what_is_followed(text: str, names: tuple[str, ...] | None) -> None:
    """[SRC-082] Pages of feeds and entries, documents, views, and addresses over XMPP. A name is no address: a node may
    be named as the address of a blog."""
    assert feed_names(text, DOMAIN, OWN) == names
    assert feed_names(text, DOMAIN, "") == (names if text.startswith("xmpp:") else None)
