"""HTML of strangers in a page of ours."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.features.pages.sanitise import LINK_REL, SHORT, clean, link_of
from smartfeeds.formats.entry import EntryText, TextKind
from smartfeeds.formats.html_links import absolute_html
from smartfeeds.formats.links import rebase

REL = f'rel="{LINK_REL}"'
PICTURE = "http://e.example/a/b.png?c"
LINK = f'<a href="http://h.example/" {REL}>'
DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="


def html(value: str, base: str = "") -> str:
    return clean(EntryText(TextKind.HTML, absolute_html(value, rebase("", base)))).html


def plain(value: str) -> str:
    return clean(EntryText(TextKind.TEXT, value)).html


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ("<p>a <em>b</em> &amp; c</p>", "<p>a <em>b</em> &amp; c</p>"),
        ("a<script>alert(1)</script>b", "ab"),
        ("a<style>p{}</style>b", "ab"),
        ("<svg><script>1</script></svg>b", "b"),
        ("<p onclick='x()' style='color:red' class='y' id='z' data-a='b'>a</p>", "<p>a</p>"),
        ("<p tabindex='1'>a</p><pre tabindex='1'>b</pre>", '<p>a</p><pre tabindex="0">b</pre>'),
        ("<form action='/x'><input name=q><button>OK</button></form>", "OK"),
        ("<iframe src='http://e.example/'>x</iframe>", ""),
        ("<base href='http://e.example/'><meta http-equiv=refresh content=0><link rel=stylesheet href=x>", ""),
        ("<!-- a --><![CDATA[b]]>", ""),
        ("<h1>a</h1><h2 id=x>b</h2><h6>c</h6>", "<h3>a</h3><h4>b</h4><h5>c</h5>"),
        ("<h4>a</h4><h6>b</h6><h5>c</h5><h2>d</h2>", "<h3>a</h3><h4>b</h4><h4>c</h4><h3>d</h3>"),
        ("<h1>a<div><h2>b</h2></div>c</h1>", "<h3>a<div><h4>b</h4></div>c</h3>"),
        ("<pre lang='de'>a</pre>", '<pre tabindex="0" lang="de">a</pre>'),
        ("<p lang='de' dir='rtl'>a</p><p lang='\"x' dir='up'>b</p>", '<p lang="de" dir="rtl">a</p><p>b</p>'),
        ("<ol start='3'><li>a</ol><ol start='x'></ol>", '<ol start="3"><li>a</li></ol><ol></ol>'),
        ("<table><td colspan=2 rowspan=9999>a", None),
        ("<span class=k>a</span><font color='>'>b</font><spanner>c</spanner>", "abc"),
    ],
)
def test_only_what_is_listed_stays(given_: str, wanted: str | None) -> None:
    """Text and structure stay; script, style, forms, frames and names go; headings begin at the third level."""
    if wanted is None:
        wanted = '<div class="wide" tabindex="0"><table><tbody><tr><td colspan="2">a</td></tr></tbody></table></div>'
    assert html(given_) == wanted


@pytest.mark.parametrize(
    ("href", "base", "wanted"),
    [
        ("http://h.example/a?b=c&d", "", "http://h.example/a?b=c&amp;d"),
        ("HTTPS://h.example/", "", "HTTPS://h.example/"),
        ("mailto:a@b.example", "", "mailto:a@b.example"),
        ("xmpp:a@b.example?join", "", "xmpp:a@b.example?join"),
        ("../c", "https://h.example/a/b/", "https://h.example/a/c"),
        ("//k.example/x", "https://h.example/", "https://k.example/x"),
        ("#note", "https://h.example/a", ""),
        ("../c", "", ""),
        ("//k.example/x", "", ""),
        ("../c", "javascript:alert(1)", ""),
        ("../c", "http://", ""),
        ("../c", "/relative/", ""),
        ("javascript:alert(1)", "", ""),
        (" java\nscript:alert(1)", "", ""),
        ("java\0script:alert(1)", "https://h.example/", None),
        ("data:text/html,<script>1</script>", "", ""),
        ("DATA:text/html,x", "https://h.example/", ""),
        ("vbscript:x", "", ""),
        ("file:///etc/passwd", "", ""),
        ("http://h.example/<b>'\"", "", "http://h.example/%3Cb%3E'&quot;"),
    ],
)
def test_links_lead_to_addresses_only(href: str, base: str, wanted: str | None) -> None:
    """http, https, mailto and xmpp; relative ones are seen from the entry's base, and go where it has none."""
    quoted = href.replace("&", "&amp;").replace('"', "&quot;")
    found = html(f'<a href="{quoted}" target="_top" ping="http://e.example/">x</a>', base)
    if wanted is None:
        assert 'href="https://h.example/' in found
    else:
        assert found == (f'<a href="{wanted}" {REL}>x</a>' if wanted else f"<a {REL}>x</a>")


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        (
            "<img src='http://e.example/a/b.png?c' alt='A cat'>",
            f'<a class="picture" href="{PICTURE}" {REL}>[picture: A cat]</a>',
        ),
        ("<img src='http://e.example/a/b.png?c'>", f'<a class="picture" href="{PICTURE}" {REL}>[picture: b.png]</a>'),
        ("<a href='http://h.example/'><img src='http://e.example/a.png' alt='A'></a>", f"{LINK}[picture: A]</a>"),
        ("<a href='http://h.example/'>b</a><img src='http://e.example/a' alt='&lt;b&gt;\"'>", None),
        ("<img alt='nothing'>", "[picture: nothing]"),
        (f"<img src='{DOT}' onerror=x srcset='http://e.example/ 2x'>", f'<img src="{DOT}">'),
        ("<img src='data:image/svg+xml;base64,AAAA'>", "[picture]"),
        ("<img src='data:text/html;base64,AAAA'>", "[picture]"),
    ],
)  # fmt: skip
def test_pictures_of_others_are_links(given_: str, wanted: str | None) -> None:
    """Nothing is loaded from another host; only a picture that is in the entry itself is shown."""
    if wanted is None:
        link = f'<a class="picture" href="http://e.example/a" {REL}>[picture: ‹b›&quot;]</a>'
        wanted = f'<a href="http://h.example/" {REL}>b</a>{link}'
    assert html(given_) == wanted


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        (" one\ntwo\r\nthree ", "one<br>two<br>three"),
        ("see http://h.example/a_(b).", f'see <a href="http://h.example/a_(b)" {REL}>http://h.example/a_(b)</a>.'),
        ("(at http://h.example/a.)", f'(at <a href="http://h.example/a" {REL}>http://h.example/a</a>.)'),
        ("xmpp:a@b.example?join!", f'<a href="xmpp:a@b.example?join" {REL}>xmpp:a@b.example?join</a>!'),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://h.example/ä?a=1&b", f'<a href="https://h.example/%C3%A4?a=1&amp;b" {REL}>https://h.example/ä?a=1&amp;b</a>'),
        ('http://h.example/"onclick="x', f'<a href="http://h.example/" {REL}>http://h.example/</a>&quot;onclick=&quot;x'),
    ],
)  # fmt: skip
def test_plain_text_stays_text(given_: str, wanted: str) -> None:
    """Lines are kept, addresses become links, and nothing becomes markup."""
    assert plain(given_) == wanted


def test_long_text_is_cut_and_says_so() -> None:
    """A text too long or with too many tags is shown from its beginning."""
    assert clean(EntryText(TextKind.TEXT, "x" * (SHORT.characters + 1))) == ("x" * SHORT.characters, True)
    assert clean(EntryText(TextKind.TEXT, "x" * SHORT.characters)).cut is False
    assert clean(EntryText(TextKind.HTML, "<br>" * (SHORT.tags + 1))) == ("<br>" * SHORT.tags, True)
    assert clean(EntryText(TextKind.HTML, "<br>" * SHORT.tags)).cut is False
    assert clean(EntryText(TextKind.HTML, "<span>x</span>" * 4_000)) == ("x" * 4_000, False)
    assert clean(EntryText(TextKind.HTML, "y" * (5 * SHORT.characters))).cut is True


@pytest.mark.parametrize(
    "piece", ["<div>", "<b>", "<a href=x>", "<table>", "<span ", "<b><p>", "<!--", "&lt", "<img alt='"]
)
def test_work_does_not_grow_with_the_text(piece: str) -> None:
    """Whatever a text is made of, only a beginning of bounded size is cleaned at all."""
    long, longer = (clean(EntryText(TextKind.HTML, piece * number)) for number in (60_000, 240_000))
    assert long == longer
    assert long.cut


PIECES = (
    *("<a href='", "<img src='", "<img alt='", "http://e.example/", "data:image/png;base64,", "'>", '">', "<", ">"),
    *("<abbr title='", "</a>", "<table>", "<td>", "</table>", "<h1>", "</h1>", "<svg>", "<style>", "<math>", "<!--"),
    *(
        "<script>",
        "</script>",
        "alert(1)",
        " onerror=x",
        "javascript:",
        "<p>",
        "<b>",
        "\0",
        "\n",
        "é",
        "=",
        "<noscript>",
    ),
    *("&lt;", "&quot;", "-->", "<xmp>", "<template>", "<span a='", "/>"),
)
FRAGMENTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
TAG = re.compile(r'</?([a-z0-9]+)((?: [a-z]+="[^"<>]*")*)>')
ALLOWED = {
    "href", "rel", "class", "src", "alt", "title", "lang", "dir", "start", "colspan", "rowspan", "datetime", "tabindex",
}  # fmt: skip


@given(FRAGMENTS, st.sampled_from(["", "https://h.example/a/"]))
def test_result_is_made_of_listed_tags_alone(text: str, base: str) -> None:
    """For every input: tags are well-formed and listed, attributes are listed, schemes too."""
    found = html(text, base)
    rest = TAG.sub("", found)
    assert "<" not in rest
    for name, attributes in TAG.findall(found):
        assert name not in ("script", "style", "svg", "math", "form", "iframe", "h1", "h2")
        for attribute, value in re.findall(r' ([a-z]+)="([^"]*)"', attributes):
            assert attribute in ALLOWED
            if attribute == "href":
                assert re.match(r"(?:https?|mailto|xmpp):", value)
            if attribute == "src":
                assert value.startswith("data:image/")
            if attribute == "tabindex":
                assert value == "0"


@given(FRAGMENTS)
def test_plain_text_holds_no_tag_but_ours(text: str) -> None:
    """For every input: line breaks and links are the only tags."""
    assert {name for name, _ in TAG.findall(plain(text))} <= {"a", "br"}
    assert "<" not in TAG.sub("", plain(text))


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://h.example/", True),
        ("xmpp:a@b.example", True),
        ("mailto:a@b.example", True),
        ("javascript:alert(1)", False),
        ("/path", False),
        ("http:", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_where_a_link_may_lead(address: str, link: bool) -> None:
    """Absolute addresses of the schemes that are listed."""
    assert link_of(address) == (address if link else "")
