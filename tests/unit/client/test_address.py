"""Addresses of feeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.client import AddressError, FeedAddress, parse_address
from smartfeeds.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "service", "node"),
    [
        ("xmpp:feeds.example?;node=comments", "feeds.example", "comments?order=modified"),
        ("xmpp:feeds.example?;node=comments%3Forder=created", "feeds.example", "comments?order=created"),
        ("xmpp:feeds.example?;node=comments?order=created", "feeds.example", "comments?order=created"),
        ("xmpp:feeds.example?;node=comments%3Forder%3Dcreated%26author%3Dbob", "feeds.example",
         "comments?order=created&author=bob"),
        ("XMPP:Feeds.Example?;node=a%3Bb", "feeds.example", "a;b?order=modified"),
        ("xmpp:feeds.example?pubsub;action=subscribe;node=news", "feeds.example", "news?order=modified"),
        ("xmpp:article_1@example.com?;node=comments", "article_1@example.com", "comments?order=modified"),
        ("xmpp://guest@example.com/feeds.example?;node=x", None, None),
        ("xmpp:feeds.example?;node=urn:xmpp:microblog:0", "feeds.example", "urn:xmpp:microblog:0?order=modified"),
        (" xmpp:feeds.example?;node=caf%C3%A9 ", "feeds.example", "café?order=modified"),
    ],
)  # fmt: skip
def test_parse_address_forms(text: str, service: str | None, node: str | None) -> None:
    """[SF-085] [SF-086]"""
    if service is None or node is None:
        with pytest.raises(AddressError):
            parse_address(text)
    else:
        assert parse_address(text) == FeedAddress(service, node)


def test_parse_address_not_smart_keeps_the_node() -> None:
    """[SF-086]"""
    assert parse_address("xmpp:feeds.example?;node=comments", smart=False).node == "comments"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "feeds.example/comments",
        "feeds.example",
        "https://feeds.example/feeds/comments",
        "xmpp:feeds.example",
        "xmpp:feeds.example/comments",
        "xmpp:feeds.example?",
        "xmpp:feeds.example?;node=",
        "xmpp:feeds.example?;nodes=comments",
        "xmpp:?;node=comments",
        "xmpp:a b?;node=comments",
        "xmpp:feeds.example?;node=%00",
        "xmpp:feeds.example?;node=%ff",
    ],
)
def test_parse_address_of_nothing_says_how_to_write_one(text: str) -> None:
    """[SF-085]"""
    with pytest.raises(AddressError, match=r"xmpp:feeds\.example\?;node=comments") as caught:
        parse_address(text)

    assert isinstance(caught.value, ConfigError)


@given(st.text())
def test_parse_address_any_text_raises_nothing_else(text: str) -> None:
    """[SF-085]"""
    try:
        parse_address("xmpp:feeds.example?;node=" + text)
        parse_address("xmpp:" + text)
    except AddressError:
        return


@pytest.mark.parametrize("node", ["comments?order=created&q=a b", "a;b?x=1", "é%/?order=modified", "a&b=c?d"])
def test_address_written_is_read_again(node: str) -> None:
    """[SF-085]"""
    address = FeedAddress("feeds.example", node)

    assert parse_address(str(address)) == address
