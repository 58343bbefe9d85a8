"""A look at the bytes of a payload excludes no word that its reader finds there."""

import html.entities
import sys
import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from property.test_plain_entry import CATEGORIES, OTHERS, PERSONS, escape
from smartfeeds.core.text import words
from smartfeeds.core.word_search import searcher
from smartfeeds.formats import xml
from smartfeeds.formats.atom import read_traits
from support.effort import runs

# Few letters, so that what markup takes apart or puts together is a word of the other ones.
LETTERS = st.sampled_from([*"aabbsf1A", "ss", "ff"])
LIKE_LETTERS = st.sampled_from([*"ßſﬀª²ａＡ𝐚ᵃⓐǰŉKä\u0308\u0301\u200d\u00adéя", "a\u0308"])
REFERENCES = st.sampled_from(
    [
        *(
            "&#97;",
            "&#x61;",
            "&#97",
            "&ordf;",
            "&ordf",
            "&sup1;",
            "&szlig",
            "&szlig;",
            "&copy",
            "&copya",
            "&amp;",
            "&amp",
        ),
        *(
            "&",
            "&nbsp;",
            "&rsquo;",
            "&#8217;",
            "&auml;",
            "&lt;",
            "&gt;a",
            "&a;",
            "&AMP;a",
            "&fflig;",
            "&#8490;",
            "&zwj;",
        ),
        *("&frac12;", "&;", "&#1;", "&#0;a", "&amp;#97;", "&shy;", "&#82;;;"),
    ]
)
MARKUP = st.sampled_from(
    [
        *("<b>", "</b>", "<i x='a>b'>", "</i>", "<p>", "</p>", "<br>", "<br/>", "<!--a-->", "<!---->", "<!-- ", "-->"),
        *("<![CDATA[", "]]>", "<?a?>", "<", ">", "</", "</>", "<b", "<a b=c", "<b<", "</b a", "</b<", "<script>"),
        *("</script>", "<a b='", "<title>", "</title>", "<textarea>", "</textarea>", "<!a>", "<!a", "<1", "< a"),
        *("<a:b>", "<wbr>", "\r"),
    ]
)
SPACES = st.sampled_from([" ", "\n", "-", ".", "_", "'", '"', "=", ";", "/", "]"])
PIECES = LETTERS | LETTERS | LIKE_LETTERS | REFERENCES | MARKUP | SPACES
HTML = st.lists(PIECES, max_size=12).map("".join)
XHTML = st.lists(
    st.tuples(
        st.sampled_from(["b", "p", "i", "x:y", "script"]), st.lists(LETTERS | SPACES | LIKE_LETTERS, max_size=3)
    ).map(lambda row: f"<{row[0]} title='ab'>{escape(''.join(row[1]))}</{row[0]}>")
    | st.lists(LETTERS | LIKE_LETTERS, max_size=3).map("".join)
    | st.sampled_from(["<!--a-->", "<?a b?>", "<![CDATA[a]]>", "<![CDATA[<b>]]>", "&#97;", "&#x301;", "&amp;"]),
    max_size=6,
).map("".join)
TYPES = st.sampled_from(["", "text", "html", "TEXT/HTML ", "text/plain", "image/png"])
TEXTS = st.tuples(st.sampled_from(["title", "summary", "content"]), TYPES, HTML).map(
    lambda row: f"<{row[0]} type='{row[1] or 'text'}'>{escape(row[2])}</{row[0]}>"
) | st.tuples(
    st.sampled_from(["title", "summary", "content"]), st.sampled_from(["xhtml", "text", "html", "a/xml"]), XHTML
).map(lambda row: f"<{row[0]} xmlns:x='urn:x' type='{row[1]}'>{row[2]}</{row[0]}>")
ENTRIES = st.tuples(
    st.sampled_from(["", " xml:lang='de'"]),
    st.lists(TEXTS | TEXTS | PERSONS | CATEGORIES | st.sampled_from(OTHERS), max_size=3),
).map(lambda row: f"<entry xmlns='http://www.w3.org/2005/Atom'{row[0]}>{''.join(row[1])}</entry>")


def entry(content: str) -> bytes:
    """The stored payload of an entry with this HTML."""
    return stored(
        f"<entry xmlns='http://www.w3.org/2005/Atom'><id>i</id><content type='html'>{escape(content)}</content></entry>"
    )


def stored(source: str) -> bytes:
    return xml.canonical(xml.parse_payload(source.encode()))


@settings(max_examples=runs(1_000, 100_000))
@given(ENTRIES)
@example(
    "<entry xmlns='http://www.w3.org/2005/Atom'><title type='html'>&amp;<b>#97;</b>b &amp;o<b>rdf;</b></title></entry>"
)
@example("<entry xmlns='http://www.w3.org/2005/Atom'><title>&amp;lt;b&lt;i>c a<b>b</b>c</title></entry>")
@example(f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{'a' * 40} x</title></entry>")
def test_word_that_is_read_is_never_excluded(source: str) -> None:
    payload = stored(source)
    found = read_traits(payload).words
    assert searcher(found)(payload)
    for word in found:
        assert searcher(frozenset({word}))(payload), word


@settings(max_examples=runs(500, 50_000))
@given(HTML)
@example("ab</>ab")
@example("<title>")
@example("<title>a")
@example("<b<ab>ab")
def test_word_of_html_is_never_excluded(content: str) -> None:
    payload = entry(content)
    for word in read_traits(payload).words:
        assert searcher(frozenset({word}))(payload), word


def test_every_character_that_folds_to_a_letter_or_digit_of_ascii_is_known() -> None:
    for code in range(0x80, sys.maxunicode + 1):
        character = chr(code)
        folded = unicodedata.normalize("NFKC", character).casefold()
        if 0xD800 <= code < 0xE000 or not any(one.isascii() and one.isalnum() for one in folded):
            continue
        assert all(searcher(frozenset({word}))(character.encode()) for word in words(character)), hex(code)


def test_every_reference_that_may_be_a_letter_of_ascii_is_known() -> None:
    names = [*html.entities.html5, *(f"#{code};" for code in range(0x80, 0x3000))]
    for name in names:
        for text in (f"b&{name}c", f"b &{name} c"):
            payload = entry(text)
            for word in read_traits(payload).words | words(html.unescape(text)):
                assert searcher(frozenset({word}))(payload), (name, word)


@pytest.mark.parametrize(
    "content",
    [
        "<p>In the <b>west</b> of <a href='http://a.example/?b=1&amp;c=2'>Rome</a></p><p>no &amp; yes</p>",
        "<p>&bdquo;Gr&uuml;ße&ldquo; &#8211; it&rsquo;s &nbsp; so&hellip;</p>",
        "<p>Zürich – „Grüße“, naïve façade; Дождь идёт, 雨です。 5 € 😀 ❤️ ęąść</p>",
    ],
)
def test_usual_entries_without_the_word_are_excluded(content: str) -> None:
    """The look at the bytes is worth its time: letters, references and markup of usual texts do not defeat it."""
    payload = entry(content)
    assert not any(
        searcher(frozenset({word}))(payload) for word in ("rain", "wes", "est", "entry1", "zebra", "rhododendron")
    )
    assert not searcher(frozenset({"in", "rain"}))(payload)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a" * 7900, [f"abcdefg{number:03}z" for number in range(32)]),
        ("abcdefg " * 950, [f"abcdefg{number:03}z" for number in range(32)]),
        ("a " * 3500, [f"abcdefg{number:03}z" for number in range(32)]),
        ("&amp;" * 1200, [f"abcdefg{number:03}z" for number in range(32)]),
        ("xabcdefg&lt;" * 650, [f"abcdefg{number:03}z" for number in range(32)]),
        ("a" * 7900, ["a"]),
        ("a" * 7900, ["aaa"]),
        ("é" * 3900, ["zebra"]),
    ],
    ids=["one word", "beginnings", "letters", "references", "interruptions", "letter", "in itself", "not ASCII"],
)
def test_look_at_a_hostile_text_takes_no_longer_than_reading_it(text: str, query: list[str]) -> None:
    payload = stored(f"<entry xmlns='http://www.w3.org/2005/Atom'><id>i</id><title>{text}</title></entry>")
    may_contain = searcher(frozenset(query))
    may_contain(payload)
    # The least of several interleaved times of the processor, so that what other processes do is not in it.
    looking, reading = [], []
    for _ in range(20):
        before = time.thread_time_ns()
        may_contain(payload)
        between = time.thread_time_ns()
        read_traits(payload)
        looking.append(between - before)
        reading.append(time.thread_time_ns() - between)
    assert min(looking) < 2 * min(reading)


def test_look_ends_at_the_first_missing_word() -> None:
    """A missing word decides, whichever other words are there or are parts of other words."""
    payload = entry("<p>In the train to R<b>ome</b>, west of Zürich</p>")
    may_contain = searcher(frozenset({"sycophant", "in", "train", "west", "rome", "to", "of"}))
    assert not may_contain(payload)
    assert searcher(frozenset({"in", "train", "west", "rome", "to", "of"}))(payload)
    assert searcher(frozenset({"r"}))(payload)
    assert not searcher(frozenset({"x"}))(payload)
