"""Which representation an Accept header gets, and whether it may be compressed."""

import pytest

from smartfeeds.app.site import feed_forms
from smartfeeds.formats.representation import Representation
from smartfeeds.http import negotiation as n

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

FORMS = feed_forms()
FEEDS: dict[str, Representation | None] = {
    "": n.JSON,
    "   ": n.JSON,
    "*/*": n.JSON,
    "application/*": n.JSON,
    "application/json": n.JSON,
    "APPLICATION/JSON": n.JSON,
    "application/json; charset=utf-8": n.JSON,
    "application/activity+json": n.JSON,
    'application/ld+json; profile="https://www.w3.org/ns/activitystreams", application/activity+json': n.JSON,
    "application/atom+xml": n.ATOM,
    "application/atom+xml;type=feed": n.ATOM,
    "application/rss+xml": n.RSS,
    "application/rss+xml, application/atom+xml": n.ATOM,
    "application/rss+xml, application/atom+xml;q=0.9": n.RSS,
    "text/x-opml": n.OPML,
    "text/html": n.HTML,
    BROWSER: n.HTML,
    "text/*": n.HTML,
    "text/event-stream": n.EVENTS,
    "text/event-stream, */*": n.JSON,
    "text/event-stream, */*;q=0.1": n.EVENTS,
    "text/event-stream;q=0": None,
    "application/json;q=0.1, application/atom+xml;q=0.2": n.ATOM,
    "application/json;q=0, */*": n.ATOM,
    "application/json;q=0, application/activity+json;q=0, application/*;q=0.5": n.ATOM,
    "*/*;q=0": None,
    "image/png": None,
    "image/*": None,
    "json": None,
    ",": None,
    ";q=1": None,
    "application/json;q=nan": None,
    "application/json;q=inf": None,
    "application/json;q=1e0": None,
    "application/json;q=1_0": None,
    "application/json;q=-1": None,
    "application/json;q=2": None,
    "application/json;q=": None,
    "application/json;q=0.0001": None,
    "application/json;q = 0.1": None,
    "application/json;q =0.1": None,
    "application/json;q= 0.1": None,
    "application/json;q": None,
    "application/json;q = 0.1, application/atom+xml;q=0.2": n.ATOM,
    "application/json;q=1.000": n.JSON,
    "application/json;q=0.001": n.JSON,
    "application/json;q=٠": None,
    "application/json;q=nan, application/atom+xml;q=0.1": n.ATOM,
    "a/b," * 40 + "application/json": None,  # too many to look at
    "application/json" + "," + "x" * 10_000: n.JSON,
}


@pytest.mark.parametrize("accept", FEEDS, ids=lambda accept: accept[:60] or "empty")
def test_the_form_of_a_feed(accept: str) -> None:
    """[SF-058] [A-12] [A-13] The best liked one, JSON among equals; a stream only for who names it."""
    assert n.choose(accept, FORMS.of_feed) is FEEDS[accept]


def test_a_range_that_is_more_exact_decides() -> None:
    """RFC 9110 12.5.1."""
    assert n.choose("application/*;q=0.9, application/json;q=0.1, text/html;q=0.5", FORMS.of_feed) is n.ATOM
    assert n.choose("*/*;q=0.1, text/html;q=0", FORMS.of_list) is n.JSON


def test_only_what_is_offered_is_chosen() -> None:
    assert n.choose("text/html", n.OF_ENTRY) is None
    assert n.choose("", n.OF_ENTRY) is n.ATOM


def test_suffixes_are_of_documents_only() -> None:
    """A page and a stream have no address of their own."""
    assert {"json", "atom", "rss", "opml"} <= set(FORMS.suffixes)
    assert not {n.HTML, n.EVENTS} & set(FORMS.suffixes.values())


def test_rss_of_any_kind_is_rss_20() -> None:
    """RSS 0.92 has the same media type, so only its suffix selects it."""
    assert n.choose("application/rss+xml", FORMS.of_feed) is n.RSS


GZIP = {
    "": False,
    "gzip": True,
    "GZIP": True,
    "x-gzip": True,
    "*": True,
    "gzip, deflate, br": True,
    "br": False,
    "identity": False,
    "gzip;q=0": False,
    "gzip;q=0, *": False,
    "*;q=0": False,
    "br;q=1, gzip;q=0.001": True,
    "identity;q=1, gzip;q=0.001": False,
    "identity, gzip;q=0.5": False,
    "identity, gzip": True,
    "identity;q=0.5, gzip": True,
    "identity;q=0, gzip;q=0.001": True,
    "gzip;q=0.5, *": False,
    "gzip, *;q=0.5": True,
    "identity;q=1, *;q=0.5": False,
    "gzip;q = 1": False,
    "gzip;q=nan": False,
    "notgzip": False,
    "gzipped": False,
}


@pytest.mark.parametrize("header", GZIP, ids=lambda header: header or "empty")
def test_compressed_only_for_who_takes_it(header: str) -> None:
    """RFC 9110 12.5.3."""
    assert n.takes_gzip(header) is GZIP[header]
