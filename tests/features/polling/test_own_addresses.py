"""Addresses of sources: names of their nodes, and those of this service."""

import pytest

from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.source import new_source, node_names_of

DIFFERENT = [
    *("https://a.example/feed", "https://b.example/feed", "https://www.a.example/feed", "https://a.example:8443/feed"),
    *("https://a.example/Feed", "https://a.example/feed/", "https://a.example/feed.xml", "https://a.example/feed.rss"),
    *("https://a.example/feed?channel_id=AAA", "https://a.example/feed?channel_id=BBB", "https://a.example/a%2Ffeed"),
    *("https://a.example/a/feed", "https://a.example/feed?a=1&b=2", "https://a.example/feed?b=2&a=1"),
    *("https://a.example/?q=a+b", "https://a.example/?q=a%2Bb", "https://straße.example/", "https://strasse.example/"),
    *("https://a.example/новости.xml", "https://a.example/спорт.xml", "https://bob@a.example/feed"),
    *("http://a.example:8080/feed", "https://a.example/feed?Channel_ID=AAA"),
]


def test_different_addresses_have_different_keys_and_names():
    """[SRC-037] Each has a name that no other one has, and always the same names."""
    sources = [new_source("x", url, 0) for url in DIFFERENT]
    assert len({source.identity for source in sources}) == len(DIFFERENT)
    names = [list(node_names_of(source)) for source in sources]
    assert names == [list(node_names_of(source)) for source in sources]
    assert len({name[1] for name in names}) == len(DIFFERENT)
    assert names[8][:2] == ["a.example/feed", names[8][1]] and names[8][1].startswith("a.example/feed-")
    assert next(node_names_of(new_source("x", "https://bücher.example/feed", 0))) == "xn--bcher-kva.example/feed"


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        ("https://feeds.example/feeds/news.rss", True),
        ("https://feeds.example/feeds", True),
        ("feed:https://FEEDS.example/feeds/news/?max=3", True),
        ("http://feeds.example:80/feeds/news/", True),
        ("feeds.example/feeds/news/", True),
        ("https://feeds.example/feedsnews", False),
        ("https://feeds.example/blog", False),
        ("https://feeds.example:8443/feeds/news/", False),
        ("https://other.example/feeds/news/", False),
    ],
)
def test_feed_of_the_service_is_known_in_each_spelling(url, is_ours):
    """[SRC-082]"""
    assert is_own(url, "https://feeds.example/feeds") is is_ours
    assert not is_own(url, "")
