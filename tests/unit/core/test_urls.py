"""Where feeds are over XMPP."""

import pytest

from smartfeeds.client import FeedAddress, parse_address
from smartfeeds.core.urls import list_path, subscribe_uri, xmpp_uri


@pytest.mark.parametrize(
    ("service", "node", "wanted"),
    [
        ("feeds.example", "comments", "xmpp:feeds.example?;node=comments"),
        ("feeds.example", "comments?order=created", "xmpp:feeds.example?;node=comments%3Forder%3Dcreated"),
        ("bob@example.org", "urn:xmpp:microblog:0", "xmpp:bob@example.org?;node=urn%3Axmpp%3Amicroblog%3A0"),
        ("bücher.example", "a;b/ä", "xmpp:b%C3%BCcher.example?;node=a%3Bb%2F%C3%A4"),
        ("[::1]", "a", "xmpp:[::1]?;node=a"),
    ],
)
def test_address_of_a_feed_is_a_uri_that_the_client_reads(service: str, node: str, wanted: str) -> None:
    """[SF-085] [SF-086] Service and node are percent-encoded, and nothing of a name becomes another part of it."""
    assert xmpp_uri(service, node) == wanted
    assert parse_address(wanted, smart=False) == FeedAddress(service, node)
    assert str(FeedAddress(service, node)) == wanted


def test_address_to_subscribe_with_names_the_same_feed() -> None:
    """[SF-085] The view is a part of the node."""
    found = parse_address(subscribe_uri("feeds.example", "a?x=1", "order=created"), smart=False)
    assert found == FeedAddress("feeds.example", "a?x=1&order=created")


def test_address_to_subscribe_names_the_node_alone_where_no_view_is_given() -> None:
    """[SF-085] XEP-0147: the action, then the node."""
    expected = "xmpp:bob@feeds.example?pubsub;action=subscribe;node=a%2Fb"
    assert subscribe_uri("bob@feeds.example", "a/b") == expected
    assert subscribe_uri("bob@feeds.example", "a/b", "order=created") == expected + "%3Forder%3Dcreated"


@pytest.mark.parametrize(("suffix", "path"), [("", "/feeds/"), ("opml", "/feeds.opml")])
def test_path_of_the_list_of_feeds(suffix: str, path: str) -> None:
    """[SF-057]"""
    assert list_path(suffix) == path
    assert list_path() == "/feeds/"
