"""Payloads as values: what their root is, what an entry lacks, and how often they are read."""

import re

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom, xml
from smartfeeds.formats.payload import Shape, accept_payload, complete_entry, shape_of, with_author

NOON_US = 1304942400_000_000
HEAD = f'<entry xmlns="{atom.ATOM_NS}">'


def element(inside="", root="entry", namespace=atom.ATOM_NS):
    return xml.parse_payload(f'<{root} xmlns="{namespace}">{inside}</{root}>'.encode())


def accept(node, item_id="a"):
    return complete_entry(accept_payload(node), item_id, NOON_US).decode()


def test_entry_that_lacks_nothing_is_untouched():
    """[SF-091] [SF-009] the whole entry, foreign markup and all"""
    inside = '<title>T</title><x:y xmlns:x="urn:x-test:x">1</x:y><id>urn:x-test:1</id>'
    inside += "<updated>2011-05-09T12:00:00Z</updated>"
    assert accept(element(inside)) == f"{HEAD}{inside}</entry>"


def test_empty_entry_is_completed():
    """[xep-map 139] [SF-092] Movim's probe, with the id that golden.json derives"""
    assert accept(element()) == (
        f"{HEAD}<id>urn:x-smartfeeds:a</id><title></title><updated>2011-05-09T12:00:00Z</updated></entry>"
    )


@pytest.mark.parametrize(
    ("has", "added"),
    [
        ("<id>urn:x-test:1</id>", ["title", "updated"]),
        ("<title>T</title>", ["id", "updated"]),
        ("<updated>2011-05-09T12:00:00Z</updated><id>urn:x-test:1</id>", ["title"]),
        ("<source><id>x</id><title>x</title><updated>x</updated></source>", ["id", "title", "updated"]),
        ('<id xmlns="urn:x-test:x"></id>', ["id", "title", "updated"]),
    ],
)
def test_complete_entry_adds_only_what_an_entry_lacks(has, added):
    """[xep-map 139]"""
    payload = accept(element(has))
    assert payload.endswith(f"{has}</entry>")
    in_front = payload[len(HEAD) : -len(f"{has}</entry>")]
    assert re.findall(r"</(\w+)>", in_front) == added


def test_complete_entry_uses_the_prefix_of_the_root():
    node = xml.parse_payload(f'<x:entry k=">" xmlns:x="{atom.ATOM_NS}"><x:id>urn:x-test:1</x:id></x:entry>'.encode())
    payload = accept(node).encode()
    assert [child.tag for child in xml.parse_payload(payload)] == [atom.TITLE, atom.UPDATED, atom.ID]
    assert xml.canonical(xml.parse_payload(payload)) == payload


@pytest.mark.parametrize("prefix", ["", "a:"])
@pytest.mark.parametrize("inner", ["", "<{0}title>&lt;/x&gt;</{0}title>"])
def test_author_is_the_last_element_in_the_form_of_the_whole(prefix, inner):
    """The bytes are those of the tree with this author: a repeated publish compares them."""
    declared = f'xmlns{":a" if prefix else ""}="{atom.ATOM_NS}"'
    text = f"<{prefix}entry {declared}>{inner.format(prefix)}</{prefix}entry>"
    payload = accept_payload(xml.parse_payload(text.encode()))
    signed = with_author(payload, "a<b@example.org")

    (author,) = [child for child in signed.root if child.tag == atom.AUTHOR]
    assert author is signed.root[-1]
    assert [(child.tag, child.text) for child in author] == [(atom.NAME, "a<b"), (atom.URI, "xmpp:a<b@example.org")]
    assert signed == xml.canonical(xml.parse_payload(signed)) and signed.shape == payload.shape


def test_complete_entry_derives_a_uri_from_any_item_id():
    """[SF-092]"""
    assert "<id>urn:x-smartfeeds:a%2Fb%20%C3%BC%26</id>" in accept(element(), "a/b \u00fc&")


def test_complete_entry_completes_a_feed():
    """[xep-map 138] atom:feed for item "0" """
    assert accept(element("<title>Blog</title>", "feed"), "0").endswith("<title>Blog</title></feed>")


def test_accept_payload_takes_any_root():
    """[xep-map 144] generic nodes"""
    text = b'<geoloc xmlns="http://jabber.org/protocol/geoloc" xml:lang="en"><country>Italy</country></geoloc>'
    assert accept_payload(xml.parse_payload(text)) == text


def test_complete_entry_keeps_links_and_threading():
    """[xep-map 235]"""
    inside = "".join(
        f'<link href="xmpp:feeds.example.org?;node=a%2Fb&amp;x" rel="{rel}" title="comments"></link>'
        for rel in ("replies", "via", "enclosure", "alternate", "related")
    )
    inside += f'<thr:in-reply-to xmlns:thr="{atom.THREAD_NS}" href="xmpp:a" ref="urn:x-test:0"></thr:in-reply-to>'
    assert accept(element(inside)).endswith(f"{inside}</entry>")


def test_complete_entry_refuses_bytes_that_are_not_canonical():
    with pytest.raises(FeedError) as caught:
        complete_entry(f"<?xml version='1.0'?><entry xmlns='{atom.ATOM_NS}'/>".encode(), "a", NOON_US)
    assert caught.value.condition is Condition.INTERNAL


def test_shape_of_tells_roots_apart():
    """[xep-map 138]"""
    complete = "<id>urn:x-test:1</id><title/><updated>2011-05-09T12:00:00Z</updated>"
    required = frozenset({atom.ID, atom.TITLE, atom.UPDATED})
    assert shape_of(element(complete)) == Shape(entry=True)
    assert shape_of(element()) == Shape(entry=True, missing=required)
    assert shape_of(element(complete, "feed")) == Shape(feed=True)
    assert shape_of(element(complete, namespace="urn:x-test:x")) == Shape()


def test_shape_of_tells_what_has_to_be_repaired():
    """[xep-map 139]"""
    titled = "<id>urn:x-test:1</id><title/>"
    dated = shape_of(element(f"{titled}<updated>2011-05-09T12:00:00Z</updated><published>today</published>"))
    assert (dated.missing, dated.valid_dates, dated.complete) == (frozenset(), False, False)
    undated = shape_of(element(titled))
    assert (undated.missing, undated.valid_dates, undated.complete) == (frozenset({atom.UPDATED}), True, False)
    assert shape_of(element(f"{titled}<updated>2011-05-09T12:00:00Z</updated>")).complete
