"""The formats of documents that a request may choose."""

import pytest

from smartfeeds.app.site import feed_forms
from smartfeeds.features.documents.ess import ESS
from smartfeeds.features.documents.json_feed import JSON_FEED
from smartfeeds.formats.representation import Representation
from smartfeeds.http import negotiation


@pytest.mark.parametrize(
    ("accept", "representation"),
    [
        ("application/feed+json, application/json;q=0.1", JSON_FEED.representation),
        ("application/ess", ESS.representation),
    ],
)
def test_accept_chooses_a_format(accept: str, representation: Representation) -> None:
    """[SF-058] [A-12]"""
    assert negotiation.choose(accept, feed_forms().of_feed) is representation


def test_formats_have_suffixes() -> None:
    assert {"rss092", "jsonfeed", "ess", "nno"} <= set(feed_forms().suffixes)
