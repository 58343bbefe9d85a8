"""Entries of anything that Atom has, for properties of the formats (hypothesis)."""

from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st

from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.formats import atom, xml
from smartfeeds.formats.payload import accept_payload, complete_entry


def accept_entry(root, item_id, now_us):
    """The payload of an entry as a feed stores it."""
    return complete_entry(accept_payload(root), item_id, now_us)


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


MORE = st.sampled_from(["", "", "", '<x:more xmlns:x="urn:x-test:more" n="1">m</x:more>'])
LANGUAGES = st.sampled_from([None, None, "de", "en-GB"])


@st.composite
def texts(draw, tag):
    """A text construct of any kind."""
    kind = draw(st.sampled_from([None, "text", "html", "xhtml"]))
    inside = escape(draw(TEXTS))
    if kind == "xhtml":
        more = draw(st.sampled_from(["", ' class="c"', ' xmlns:x="urn:x-test:more" x:n="1"']))
        inside = f'<div xmlns="http://www.w3.org/1999/xhtml"{more}><p{more}>{inside}</p></div>'
    language = draw(LANGUAGES)
    return f"<{tag}{attributes(**{'type': kind, 'xml:lang': language})}>{inside}</{tag}>"


@st.composite
def people(draw):
    name, uri = draw(WORDS), draw(st.none() | ADDRESSES)
    email = draw(st.none() | WORDS.map(lambda text: f"{text}@x.example") | WORDS)
    parts = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in (("uri", uri), ("email", email)) if text)
    return name.casefold(), f"<author><name>{name}</name>{parts}{draw(MORE)}</author>"


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
    return (values["rel"] or "alternate", values["href"]), f"<link{attributes(**values)}>{draw(MORE)}</link>"


@st.composite
def categories(draw):
    values = {"term": draw(WORDS), "scheme": draw(st.none() | ADDRESSES), "label": draw(st.none() | WORDS)}
    return (values["term"], values["scheme"]), f"<category{attributes(**values)}>{draw(MORE)}</category>"


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
    payload = accept_entry(root, item_id, 0)
    return Item(number, item_id, published_us, updated_us, payload, "")
