"""Items as RSS and read again: the same ids, texts, people, files, dates and unknown elements."""

from xml.sax.saxutils import escape, quoteattr

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import Item
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.documents import read_document
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.rss_writer import write_rss

# Written by hand rather than by a parser of ours: control characters and surrogates are none of XML's.
CHARACTERS = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=30),
    st.lists(
        st.sampled_from(["<b>", "</b>", "&amp;", "&", "<", ">", "a", " ", "&lt;p&gt;", "]]>", "\u00e9", '"', "&#65;"]),
        max_size=8,
    ).map("".join),
)
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=12)
TIMES = st.integers(-(10**15), 4 * 10**15)
ADDRESSES = st.builds(
    "{}://x.example/{}".format,
    st.sampled_from(["http", "https", "ftp", "xmpp"]),
    st.text("abcABC019-._~%?&=#", max_size=10),
)


def attributes(**values):
    return "".join(f" {name}={quoteattr(value)}" for name, value in values.items() if value is not None)


@st.composite
def texts(draw, tag):
    """A text construct of any kind."""
    kind = draw(st.sampled_from([None, "text", "html", "xhtml"]))
    inside = escape(draw(TEXTS))
    if kind == "xhtml":
        inside = f'<div xmlns="http://www.w3.org/1999/xhtml"><p>{inside}</p></div>'
    return f"<{tag}{attributes(type=kind)}>{inside}</{tag}>"


@st.composite
def people(draw):
    name, uri = draw(WORDS), draw(st.none() | ADDRESSES)
    email = draw(st.none() | WORDS.map(lambda text: f"{text}@x.example") | WORDS)
    parts = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in (("uri", uri), ("email", email)) if text)
    return name.casefold(), f"<author><name>{name}</name>{parts}</author>"


@st.composite
def links(draw):
    values = {
        "rel": draw(st.sampled_from([None, "alternate", "enclosure", "replies", "related", "via"])),
        "href": draw(ADDRESSES),
        "type": draw(st.none() | st.sampled_from(["text/html", "audio/mpeg", "application/atom+xml"])),
        "title": draw(st.none() | WORDS),
        "hreflang": draw(st.sampled_from([None, None, "de"])),
        "length": draw(st.none() | st.integers(1, 10**12).map(str)),
    }
    return (values["rel"] or "alternate", values["href"]), f"<link{attributes(**values)}/>"


@st.composite
def categories(draw):
    values = {"term": draw(WORDS), "scheme": draw(st.none() | ADDRESSES), "label": draw(st.none() | WORDS)}
    return (values["term"], values["scheme"]), f"<category{attributes(**values)}/>"


@st.composite
def extensions(draw):
    namespace, name = draw(st.sampled_from(["urn:x-test:a", "urn:x-test:b"])), draw(st.sampled_from(["x", "link", "y"]))
    inner = draw(st.sampled_from(["", '<inner xmlns="urn:x-test:c"/>', "<inner/>"]))
    return f'<e:{name} xmlns:e="{namespace}" n={quoteattr(draw(TEXTS))}>{escape(draw(TEXTS))}{inner}</e:{name}>'


@st.composite
def sources(draw):
    parts = [f"<title>{draw(WORDS)}</title>"]
    if draw(st.booleans()):
        parts.append(f"<link{attributes(rel=draw(st.sampled_from([None, 'self'])), href=draw(ADDRESSES))}/>")
    if draw(st.booleans()):
        parts.append("<updated>2011-05-09T12:00:00Z</updated>")
    return f"<source>{''.join(parts)}</source>"


@st.composite
def items(draw, number):
    """An item with an entry of anything that Atom has."""
    published_us, updated_us = draw(TIMES), draw(TIMES)
    inside = [
        draw(texts("title")),
        f"<published>{format_datetime(published_us)}</published>",
        f"<updated>{format_datetime(updated_us)}</updated>",
        *(text for _, text in draw(st.lists(people(), max_size=3, unique_by=lambda pair: pair[0]))),
        *(text for _, text in draw(st.lists(links(), max_size=4, unique_by=lambda pair: pair[0]))),
        *(text for _, text in draw(st.lists(categories(), max_size=3, unique_by=lambda pair: pair[0]))),
        *draw(st.lists(extensions(), max_size=2)),
        draw(st.just("") | sources()),
        draw(st.just("") | texts("content")),
        draw(st.just("") | texts("summary")),
    ]
    item_id = f"{number}{draw(st.text(CHARACTERS, max_size=12))}".strip()
    root = xml.parse_payload(f'<entry xmlns="{atom.ATOM_NS}">{"".join(inside)}</entry>'.encode())
    payload = atom.accept_entry(root, item_id, 0, allow_feed=False)
    return Item(number, item_id, published_us, updated_us, payload, "")


def bodies(entry):
    """The plain texts of summary and content; with one alone it does not matter which it is."""
    return [text.plain for text in (entry.summary, entry.content) if text is not None and text.value.strip()]


def meaning(item):
    """What must survive, from the payload of an item."""
    entry = read_entry(item)
    return {
        "id": item.id,
        "atom_id": entry.atom_id,
        "title": entry.title.plain,
        "bodies": bodies(entry),
        "authors": {(one.label, one.email, one.uri) for one in entry.authors},
        "categories": {(one.term, one.scheme, one.label) for one in entry.categories},
        "links": {(one.rel, one.href, one.type, one.title, one.length) for one in entry.links if not _is_page(one)},
        "pages": {(one.href, one.title) for one in entry.links if _is_page(one)},
        "source": entry.source,
        "published_s": entry.published_us // US_PER_S,
        "updated_s": entry.updated_us // US_PER_S,
        "extensions": sorted(entry.extensions),
    }


def _is_page(link):
    """That a page is HTML goes without saying."""
    return link.rel == "alternate" and link.type in ("", "text/html")


@given(st.integers(0, 3).flatmap(lambda count: st.tuples(*(items(number) for number in range(count)))))
@settings(max_examples=120)
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
