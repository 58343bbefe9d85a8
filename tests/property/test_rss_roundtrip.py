"""Items as RSS and read again: the same ids, texts, people, files, dates and unknown elements."""

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import US_PER_S
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.rss_writer import write_rss
from support.effort import runs
from support.entries import items


def bodies(entry):
    """Text and language of summary and content; with one alone it does not matter which it is."""
    texts = (entry.summary, entry.content)
    return [(text.plain, text.language) for text in texts if text is not None and text.value.strip()]


def meaning(item):
    """What must survive, from the payload of an item."""
    entry = read_entry(item)
    return {
        "id": item.id,
        "atom_id": entry.atom_id,
        "title": (entry.title.plain, entry.title.language if entry.title.plain else ""),
        "bodies": bodies(entry),
        "authors": {(one.label, one.email, one.uri, one.more) for one in entry.authors},
        "categories": set(entry.categories),
        "links": {one for one in entry.links if not _is_page(one)},
        "pages": {(one.href, one.title, one.more) for one in entry.links if _is_page(one)},
        "source": entry.source,
        "published_s": entry.published_us // US_PER_S,
        "updated_s": entry.updated_us // US_PER_S,
        "extensions": sorted(entry.extensions),
    }


def _is_page(link):
    """That a page is HTML goes without saying."""
    return link.rel == "alternate" and link.type in ("", "text/html")


@given(st.integers(0, 3).flatmap(lambda count: st.tuples(*(items(number) for number in range(count)))))
@settings(max_examples=runs(120))
def test_items_written_as_rss_and_read_again_say_the_same(rows):
    """[RSS-001] [RSS-006] [RSS-007] [RSS-010] [RSS-013] [RSS-014] [A-125] [A-153]"""
    done = write_rss(FeedHead("urn:x-test:f", "T", 0), rows)
    document = read_document(done.data)
    assert not document.skipped
    assert done.losses == ()
    read = [Item(n, one.id, 0, 0, one.payload, "") for n, one in enumerate(reversed(document.items))]
    assert [meaning(one) for one in read] == [meaning(one) for one in rows]
    again = write_rss(FeedHead("urn:x-test:f", "T", 0), read)
    assert [one.id for one in read_document(again.data).items] == [one.id for one in document.items]
