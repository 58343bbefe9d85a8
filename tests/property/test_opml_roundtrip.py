"""Outlines written and read again are the same, whatever their texts, attributes, children and extensions."""

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.app.formats import read_document
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import opml
from smartfeeds.formats.opml import (
    ListedFeed,
    Outline,
    OutlineDocument,
    read_outline,
    write_list,
    write_outline,
)
from support.effort import runs
from support.outlines import listed_feeds

TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n\r"),
    max_size=20,
)
NAMES = st.sampled_from(["type", "url", "_note", "xmlUrl", "title", "{urn:x-test:a}b", "{urn:x-test:c}b", opml.ADDRESS])
NAMES |= st.sampled_from(["htmlUrl", "created", "category", "description", opml.ITEM_ID, opml.CHANGED])
EXTENSIONS = st.sampled_from([b'<x xmlns="urn:x-test:x"></x>', b'<sx:sync xmlns:sx="urn:s" id="1">t</sx:sync>'])
LINES = st.text(st.characters(categories=("L", "N", "S")), min_size=1, max_size=12)


def outlines(children):
    return st.builds(
        Outline,
        TEXTS,
        st.dictionaries(NAMES, TEXTS, max_size=4),
        st.lists(children, max_size=3).map(tuple),
        st.lists(EXTENSIONS, max_size=2).map(tuple),
    )


TREES = st.recursive(st.builds(Outline, TEXTS), outlines, max_leaves=12)


@given(st.lists(TREES, max_size=4).map(tuple), st.dictionaries(st.sampled_from(["title", "ownerName"]), LINES))
@settings(max_examples=runs(150))
def test_outline_written_and_read_again_is_the_same(trees, head):
    """[A-153] order, nesting, attributes of every namespace, unknown elements."""
    document = OutlineDocument(head, trees)
    data = b"".join(write_outline(document))
    assert read_outline(data) == document
    flat = list(opml.flattened(trees))
    assert [text for _, text in flat] == [one for tree in trees for one in _walk(tree)]


@given(st.lists(TREES, max_size=4).map(tuple))
@settings(max_examples=runs(150))
def test_every_line_is_an_item_or_skipped_with_a_reason(trees):
    """[SF-008] [A-122] whatever the lines say; and the same each time."""
    data = b"".join(write_outline(OutlineDocument({}, trees)))
    document = read_document(data)
    assert len(document.items) + len(document.skipped) == len(list(opml.flattened(trees)))
    assert len({item.id for item in document.items}) == len(document.items)
    assert read_document(data) == document


def _walk(outline):
    return [outline, *(one for child in outline.children for one in _walk(child))]


FEEDS = st.builds(ListedFeed, LINES, LINES.map("http://x.example/{}".format), description=LINES, language=LINES)


@given(LINES, st.lists(FEEDS, max_size=5))
def test_list_of_feeds_written_and_read_again_is_the_same(title, feeds):
    document = read_outline(b"".join(write_list(title, feeds)))
    assert (document.title, list(listed_feeds(document))) == (title, feeds)


@given(
    st.binary(max_size=100) | TREES.map(lambda tree: b"".join(write_outline(OutlineDocument({}, (tree,))))), st.data()
)
def test_broken_outlines_give_a_value_or_a_feed_error(data, draw):
    at = draw.draw(st.integers(0, len(data)))
    broken = data[:at] + draw.draw(st.sampled_from([b"", b"<", b"&x;", b"</body>", b"\x00"])) + data[at + 3 :]
    try:
        document = read_outline(broken)
    except FeedError as error:
        if error.condition is Condition.INTERNAL or not error.text:
            raise
        return
    assert read_outline(b"".join(write_outline(document))).outlines == document.outlines
