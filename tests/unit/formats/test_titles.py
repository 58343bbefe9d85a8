"""Titles of texts without one: every shape of a text, as plain text and HTML."""

import pytest

from smartfeeds.formats import atom
from smartfeeds.formats.entry import EntryText, TextKind
from smartfeeds.formats.post import Post, entry_of
from smartfeeds.formats.titles import is_repeated, shortened, split_html, split_text, unmarked, without_heading

LONG = "We walked along the river until it was dark, " * 5


@pytest.mark.parametrize(
    ("text", "title", "below"),
    [
        ("We are open", "We are open", ""),
        ("Disk full\n\non host a\n", "Disk full", "on host a\n"),
        ("Disk full\non host a", "Disk full", "on host a"),
        ("\n  Disk full  \n \n  indented\n", "Disk full", "  indented"),
        ("Rain. It rains.\n\nStill.", "Rain. It rains.", "Still."),
        ("To buy:\n- milk\n- tea", "To buy:", "- milk\n- tea"),
        ("- milk", "- milk", ""),
    ],
)
def test_first_line_of_a_text_becomes_the_title_and_leaves_it(text: str, title: str, below: str) -> None:
    assert split_text(text) == (title, below.rstrip() if below.strip() else "")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (LONG, "We walked along the river until it was dark, We walked…"),
        (f"{LONG}\nmore", "We walked along the river until it was dark, We walked…"),
        ("It rained for the whole day. " * 9, "It rained for the whole day."),
        ("- milk\n- tea\n- bread", "milk tea…"),
        ("1. milk\n2. tea\n3. bread", "milk tea…"),
        ("> a quotation of somebody\nYes", "a quotation of somebody…"),
        ("```\nls -l\n```\nlists the files", "ls -l lists the…"),
        ("def size():\n    return 1", "def size(): return…"),
        ("    four blanks\nand a line", "four blanks and a…"),
        ("x" * 200, "x" * 59 + "…"),
        ("一二三四五六七八九十。" * 40, "一二三四五六七八九十。一二三四五六七八九十。"),
    ],
)
def test_other_beginnings_stay_in_the_text(text: str, title: str) -> None:
    assert split_text(text) == (title, text)


@pytest.mark.parametrize(
    ("source", "title", "below"),
    [
        ("<h1>Our <i>new</i> shop</h1>\n<p>Come in</p>", "Our new shop", "<p>Come in</p>"),
        ("<H2 class='x'>Shop</H2 ><p>Come in</p>", "Shop", "<p>Come in</p>"),
        ("<p>One &amp; two</p><p>Three</p>", "One & two", "<p>Three</p>"),
        ("<p>One &amp; two</p>", "One & two", ""),
        ("<p>Look</p><p><img src='a.png'></p>", "Look", "<p><img src='a.png'></p>"),
    ],
)
def test_first_line_of_html_becomes_the_title_and_leaves_it(source: str, title: str, below: str) -> None:
    assert split_html(source) == (title, below)


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("<p>See <a href='https://x.example/'>the plan</a> now</p>", "See the plan…"),
        ("<p>It rains here. We stay at home.</p><p>More</p>", "It rains here. We stay at home."),
        (f"<p>{LONG}</p>", "We walked along the river until it was dark, We walked…"),
        (f"<h1>{LONG}</h1><p>x</p>", "We walked along the river until it was dark, We walked…"),
        ("<ul><li>milk</li><li>tea</li><li>bread</li></ul>", "milk tea…"),
        ("<pre><code>ls -l</code></pre><p>lists the files</p>", "lists the…"),
        ("<pre><code>ls -l -a</code></pre>", "ls -l…"),
        ("<p><img src='https://x.example/a/cat.jpg?w=1' alt=''></p>", "cat.jpg"),
        ("<p><img src='c.jpg' alt='Two  cats'></p>", "Two cats"),
        ("<p>one\ntwo</p>", "one…"),
        ("<b>Hello</b>", "Hello"),
    ],
)
def test_other_html_stays_whole(source: str, title: str) -> None:
    assert split_html(source) == (title, source)


@pytest.mark.parametrize(("line", "alone"), [("Dear all,", False), ("It rains.", False), ("Rain", True)])
def test_form_of_a_text_decides_which_first_line_is_its_title(line: str, alone: bool) -> None:
    """In plain text every short one, in HTML only what is no part of the text below it."""
    assert split_text(f"{line}\n\nWe stay.") == (line, "We stay.")
    source = f"<p>{line}</p><p>We stay.</p>"
    below = "<p>We stay.</p>" if alone else source
    assert split_html(source).text == below


@pytest.mark.parametrize("text", ["<h1>", "<p>", "<pre", "<img", "<h1><h1 ", "<p>a</p", "&#x0;", "<img alt="])
def test_broken_html_takes_no_long_time(text: str) -> None:
    """Each character is looked at a few times, however often a tag begins."""
    title, below = split_html(text * 20_000)
    assert len(title) <= 140 and len(below) <= len(text) * 20_000


def test_entry_without_text_and_title_gets_the_name_of_its_file() -> None:
    html = EntryText(TextKind.HTML, "<p><img src='a/b.png'></p>")
    assert entry_of(Post(content=html)).findtext(atom.TITLE) == "b.png"


def test_markdown_is_stored_in_the_element_of_rss() -> None:
    entry = entry_of(Post("T", EntryText(TextKind.HTML, "<p>x</p>"), markdown="x"))
    (markdown,) = entry.findall("{http://source.scripting.com/}markdown")
    assert markdown.text == "x"


@pytest.mark.parametrize(
    ("title", "text", "repeated"),
    [
        ("One", "One", True),
        ("One two.", "One two. Three", True),
        ("One two.", "One two.Three", True),
        ("Really?", "Really? Yes.", True),
        ("今天天气很好。", "今天天气很好。我们去河边。", True),
        ("One…", "One two", True),
        ("One t…", "One two", True),
        ("One t...", "One two", True),
        ("One [...]", "One two", True),
        ("One […]", "One two", True),
        ("One (…)", "One two", True),
        ("One …", "One two", True),
        ("One...", "One... two", True),
        # Titles of articles, whose text begins with the subject.
        ("Berlin", "Berlin is a town", False),
        ("One", "One. Two", False),
        ("One", "One, two and three", False),
        ("今天", "今天天气很好。", False),
        ("On", "One two", False),
        ("Two", "One", False),
        ("Two…", "One", False),
        ("", "One", False),
        ("…", "One", False),
        ("...", "... two", False),
    ],
)
def test_title_that_was_made_of_the_beginning_of_a_text(title: str, text: str, repeated: bool) -> None:
    assert is_repeated(title, text) is repeated


@pytest.mark.parametrize(
    ("source", "title", "below"),
    [
        ("<h1>One &amp; <i>two</i></h1>\n<p>three</p>", "One & two", "<p>three</p>"),
        (" <H2 id='a'>One</H2>three", "One", "three"),
        ("<h1>One</h1>", "One", ""),
        ("<h1>One two</h1><p>three</p>", "One", "<h1>One two</h1><p>three</p>"),
        ("<p>One</p><h1>One</h1>", "One", "<p>One</p><h1>One</h1>"),
        ("<h1>One<h2>two</h2>", "One", "<h1>One<h2>two</h2>"),
        ("<h1></h1><p>One</p>", "One", "<h1></h1><p>One</p>"),
    ],
)
def test_heading_that_says_the_same_as_the_title_leaves_the_html(source: str, title: str, below: str) -> None:
    assert without_heading(source, title) == below


def test_marks_of_lists_and_quotations_are_no_part_of_a_text() -> None:
    assert unmarked("> One\n- two\n  3. three\n# four") == "One two three four"


def test_shortened_text_is_never_the_whole_text() -> None:
    for words in range(2, 40):
        text = " ".join(["word"] * words)
        assert shortened(text).endswith("…") and len(shortened(text)) <= 60
