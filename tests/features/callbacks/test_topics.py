"""Topics: the spellings of the addresses of feeds."""

import pytest

from smartfeeds.app.site import feed_forms
from smartfeeds.core.view import BARE, CREATED, SMART
from smartfeeds.features.callbacks.topics import OTHER_SUFFIXES, TOPIC_SUFFIXES, Topic, TopicError, is_below, read_topic

BASE = "https://feeds.example"


@pytest.mark.parametrize(
    "text",
    [
        "https://feeds.example/feeds/news/",
        "http://feeds.example/feeds/news/",
        "https://FEEDS.Example/feeds/news/",
        "https://feeds.example:443/feeds/news/",
        "http://feeds.example:80/feeds/news/",
        "https://feeds.example/feeds/%6Eews/",
        "https://feeds.example/feeds/news",
        "https://feeds.example./feeds/news/",
    ],
)
def test_spellings_of_one_topic(text: str) -> None:
    """[WS-008]"""
    assert read_topic(text, BASE) == Topic("news", "", "")


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("/feeds/news.atom", Topic("news", "atom", "")),
        ("/feeds/news.rss", Topic("news", "rss", "")),
        pytest.param(
            "/feeds/news.jsonfeed?order=created",
            Topic("news", "jsonfeed", "order=created"),
            marks=pytest.mark.needs("documents"),
        ),
        ("/feeds/news.atom/", Topic("news.atom", "", "")),
        ("/feeds/news.txt", Topic("news.txt", "", "")),
        ("/feeds/a/b/?category=x", Topic("a/b", "", "category=x")),
        ("/feeds/a%2Fb/", Topic("a/b", "", "")),
        ("/feeds/%D1%82/", Topic("т", "", "")),
    ],
)
def test_topic_of_an_address(text: str, topic: Topic) -> None:
    assert read_topic(BASE + text, BASE) == topic


def test_order_of_parameters_does_not_change_the_view() -> None:
    """[WS-008]"""
    first, second = (
        read_topic(f"{BASE}/feeds/news/?{query}", BASE) for query in ("order=created&q=x", "q=x&order=created")
    )
    assert first.view_text == second.view_text == "order=created&q=x"


def test_view_of_a_topic_is_that_of_a_pull() -> None:
    """[WS-009] Without parameters the base URL shows deletions, and a document hides them."""
    assert read_topic(f"{BASE}/feeds/news/", BASE).view == SMART
    assert read_topic(f"{BASE}/feeds/news.atom", BASE).view == BARE
    assert read_topic(f"{BASE}/feeds/news/?order=created", BASE).view == CREATED


def test_address_of_a_topic_is_the_public_one() -> None:
    """[WS-055] [WS-083]"""
    assert read_topic("http://FEEDS.example/feeds/news", BASE).url(BASE) == f"{BASE}/feeds/news/"
    assert read_topic(f"{BASE}/feeds/news.atom?q=x", BASE).url(BASE) == f"{BASE}/feeds/news.atom?q=x"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://other.example/feeds/news/", "is not an address of this service"),
        ("https://feeds.example:8443/feeds/news/", "is not an address of this service"),
        ("feeds/news", "is not an address of this service"),
        ("ftp://feeds.example/feeds/news/", "is not an address of this service"),
        ("https://feeds.example/", "is not the address of a feed"),
        ("https://feeds.example/feeds/", "is not the address of a feed"),
        ("https://feeds.example/entries/news/", "is not the address of a feed"),
        ("https://feeds.example/feeds/news/#x", "has a fragment"),
        ("https://feeds.example/feeds/news.json", "is a document that is not pushed"),
        ("https://feeds.example/feeds/news/?x=y", "has a parameter or value that feeds do not have"),
        ("https://feeds.example/feeds/news/?order=up", "has a parameter or value that feeds do not have"),
        ("https://feeds.example/feeds/news/?q=!", "has a parameter that topics cannot have"),
        ("https://feeds.example/feeds/%FF/", "is not in UTF-8"),
        ("https://feeds.example/feeds/news.rss?sync=true", "has sync data"),
        ("https://feeds.example/feeds/" + "x" * 2_048, "is longer than 2048 bytes"),
        ("https://[feeds/", "is not an address of this service"),
    ],
)
def test_address_that_is_no_topic_is_refused(text: str, reason: str) -> None:
    """[WS-007] [WS-010]"""
    with pytest.raises(TopicError) as caught:
        read_topic(text, BASE)
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize("parameter", ["since=time:1", "until=", "max=1", "timeout=0", "callback=f"])
def test_parameters_of_a_page_are_refused(parameter: str) -> None:
    """[WS-009]"""
    with pytest.raises(TopicError, match="has a parameter that topics cannot have"):
        read_topic(f"{BASE}/feeds/news/?{parameter}", BASE)


def test_path_of_the_public_address_counts() -> None:
    assert read_topic("https://feeds.example/x/feeds/news/", f"{BASE}/x").name == "news"
    for text in ("https://feeds.example/feeds/news/", "https://feeds.example/xfeeds/news/"):
        with pytest.raises(TopicError):
            read_topic(text, f"{BASE}/x")


def test_address_below_the_service_is_recognised() -> None:
    """[WS-050]"""
    assert is_below("http://feeds.example/hub", BASE) and is_below("https://feeds.example", BASE)
    assert not is_below("https://feeds.example:1/hub", BASE) and not is_below("https://reader.example/", BASE)


@pytest.mark.needs("documents")
def test_every_document_is_a_topic_or_not() -> None:
    assert {*TOPIC_SUFFIXES, *OTHER_SUFFIXES} == set(feed_forms().suffixes)
