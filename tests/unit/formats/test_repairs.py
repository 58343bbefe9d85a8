"""Feeds that are not well-formed: what is repaired, what is said of it, and what stays refused [SRC-051] [SRC-052]."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.errors import FeedError
from smartfeeds.formats import atom, loader
from smartfeeds.formats.balancing import balanced
from smartfeeds.formats.loader import load
from smartfeeds.formats.opml import read_outline
from smartfeeds.formats.repairs import REPAIRS

HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<rss version="2.0"><channel><title>T</title><link>http://a.example/</link><description>D</description>'
)
LAST = "<item><guid>2</guid><title>two</title><description>last</description></item>"
END = "</channel></rss>"


def rss(title: str = "one", text: str = "first", extra: str = "", end: str = "</item>") -> str:
    first = f"<item><guid>1</guid><title>{title}</title><description>{text}</description>{extra}{end}"
    return f"{HEAD}{first}{LAST}{END}"


WHOLE = rss()
CDATA = "<![CDATA[{}]]>"
# document, title and text of its first item, part of a note
FAULTS = {
    "control character in CDATA": (rss(text=CDATA.format("a\x08b")), "one", "ab", "does not allow"),
    "control characters": (rss("a\x00\x0b\x1fb\ufffe\uffff"), "ab", "first", "does not allow"),
    "reference to a control": (rss("a&#8;b&#x1F;c&#0;"), "abc", "first", "references to characters"),
    "reference beyond Unicode": (rss(f"a&#xFFFF;b&#x110000;c&#{'9' * 5_000};"), "abc", "first", "references to"),
    "halves of a pair": (rss("a&#xD83D;&#xDE00;b&#55357;&#56832;c&#xD83D;"), "a😀b😀c", "first", "references to"),
    "reference without semicolon": (rss("a&#8217 b"), "a\u2019 b", "first", "references to characters"),
    "capital X": (rss("a&#X41;b"), "aAb", "first", "references to characters"),
    "D&D": (rss("D&D & more"), "D&D & more", "first", '"&" was read'),
    "address with &": (rss(text="http://a/?b=1&copy=2&lt=3"), "one", "http://a/?b=1&copy=2&lt=3", '"&" was read'),
    "& in an attribute": (
        rss(extra='<enclosure url="http://a/?b&c=d" type="a/b" length="1"/>'), "one", "first", '"&" was read',
    ),
    "HTML names": (rss("a&nbsp;b&hellip;"), "a\u00a0b\u2026", "first", "names of HTML"),
    "HTML name without semicolon": (rss("a&nbsp b &copy 2024"), "a\u00a0b © 2024".replace("b", " b"), "first", "HTML"),
    "entity that nobody knows": (rss("a &nobody; b"), "a &nobody; b", "first", "not known"),
    "prefixes of modules": (
        rss(extra="<dc:creator>X</dc:creator><media:thumbnail url='u'/><itunes:author>Y</itunes:author>"),
        "one", "first", "prefixes",
    ),
    "unknown prefix": (rss(extra="<abc:x y:z='1'>X</abc:x>"), "one", "first", "prefixes"),
    "prefix declared in another item": (
        rss(extra="<x:a xmlns:x='urn:x'/>").replace("last", "last</description><x:b/><description>"),
        "one", "first", "prefixes",
    ),
    "unclosed tag in a text": (rss(text="a <b>bold"), "one", "a <b>bold", "text of its element"),
    "br": (rss(text="a<br>b<hr>c"), "one", "a<br>b<hr>c", "text of its element"),
    "wrongly nested": (rss(text="<b><i>a</b></i> &amp; c"), "one", "<b><i>a</b></i> &amp; c", "text of its element"),
    "img": (rss(text='<img src="a.png">text'), "one", '<img src="a.png">text', "text of its element"),
    "end tag alone": (rss(text="a</p>b"), "one", "a</p>b", "text of its element"),
    "< in a title": (rss("I <3 you, a < b, x<y"), "I <3 you, a < b, x<y", "first", '"<" in a text'),
    "type in a title": (rss("List<String> in Java"), "List&lt;String> in Java", "first", "text of its element"),
    "address in angles": (rss("by <joe@a.example>"), "by &lt;joe@a.example>", "first", '"<" in a text'),
    "unclosed title": (rss().replace("one</title>", "one"), "one", "first", "without their end tag"),
    "unclosed title and markup": (rss().replace("one</title>", "one <b>x"), "one <b>x", "first", "text of its element"),
    "unclosed item": (rss(end=""), "one", "first", "without their end tag"),
    "unclosed item and extension": (
        rss(extra="<x:a xmlns:x='urn:x'><x:b>", end=""), "one", "first", "without their end tag",
    ),
    "document type inside": (rss(extra="<!DOCTYPE x><b>"), "one", "first", "without their end tag"),
    "end tag of another case": (rss().replace("one</title>", "one</Title>"), "one", "first", "repaired"),
    "misspelt end tag": (rss().replace("one</title>", "one</titel>"), "one", "first", "without their end tag"),
    "duplicate attribute": (rss().replace("<guid>", '<guid a="1" a="2">'), "one", "first", "attributes"),
    "attribute without quotes": (rss().replace("<guid>", "<guid isPermaLink=false x>"), "one", "first", "attributes"),
    "two colons": (rss(extra="<a:b:c>x</a:b:c>"), "one", "first", "element names"),
    "]]> in a text": (rss("a ]]> b"), "a ]]> b", "first", '"]]>"'),
    "CDATA in CDATA": (
        rss("<![CDATA[<![CDATA[one]]>]]>", "<![CDATA[a <![CDATA[<b>b</b>]]> c<br>]]>"),
        "one", "a <b>b</b> c<br>", "CDATA sections inside",
    ),
    "CDATA without end": (rss(text="<![CDATA[<b>x"), "one", "<b>x", "CDATA"),
    "comment with --": (rss(text="a<!-- b -- c --->d"), "one", "ad", "comments"),
    "no root element": (
        rss(extra="<br>").replace('<rss version="2.0">', "").replace("</rss>", ""),
        "one", "first", "without their end tag",
    ),
    "blank in an end tag": (rss().replace("one</title>", "one</ title>"), "one", "first", "repaired"),
    "declaration without its end": (WHOLE.replace("?>", ">", 1), "one", "first", "before the feed"),
    "declaration without quotes": (WHOLE.replace('"1.0"', "1.0", 1), "one", "first", "before the feed"),
    "empty namespace": (
        rss(extra="<dc:creator>X</dc:creator>").replace("<rss ", '<rss xmlns:dc="" '), "one", "first", "attributes",
    ),
    "namespace with a blank": (WHOLE.replace("<rss ", '<rss xmlns:x="a b" '), "one", "first", "attributes"),
    "XML 1.1": (rss("a&#1;b").replace('"1.0"', '"1.1"', 1), "ab", "first", "references to characters"),
    "messages of PHP": (
        "<br />\n<b>Warning</b>:  foo() in <b>/var/www/x.php</b> on line <b>3</b><br />\n" + WHOLE,
        "one", "first", "before the feed",
    ),
    "comment before the declaration": ("<!-- cached -->\n" + WHOLE, "one", "first", "before the feed"),
    "length of a chunk": ("1a3f\r\n" + WHOLE + "\r\n0\r\n\r\n", "one", "first", "before the feed"),
    "two declarations": ("<?xml version='1.0'?>\n" + WHOLE, "one", "first", "before the feed"),
    "script behind the end": (WHOLE + "<script>a && b</script>", "one", "first", "after the end"),
    "second document": (WHOLE + WHOLE.replace("one", "three"), "one", "first", "after the end"),
    "text behind the end": (WHOLE + "\nFatal error: memory", "one", "first", "after the end"),
    "NULs behind the end": (WHOLE + "\0" * 9, "one", "first", "does not allow"),
    "end tags missing": (WHOLE.removesuffix(END), "one", "first", "ends in the middle"),
    "several faults": (
        rss("D&D\x08 &nobody; <3", "a<br>b", "<dc:date>2024-03-05</dc:date>"),
        "D&D &nobody; <3", "a<br>b", "prefixes",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "title", "text", "note"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_costs_no_item(document: str, title: str, text: str, note: str) -> None:
    feed = read_document(document.encode())

    assert [item.id for item in feed.items] == ["1", "2"]
    first, last = (item.payload.root for item in feed.items)
    assert (first.findtext(atom.TITLE), first.findtext(atom.CONTENT)) == (title, text)
    assert (last.findtext(atom.TITLE), (last.findtext(atom.CONTENT) or "")[:4]) == ("two", "last")
    assert any(note in repair for repair in feed.repairs), feed.repairs
    assert set(feed.repairs) <= set(feed.warnings)


@pytest.mark.parametrize(("document", "title", "text", "note"), FAULTS.values(), ids=FAULTS.keys())
def test_strict_reader_refuses_each_of_them(document: str, title: str, text: str, note: str) -> None:
    """Requests, and outlines whose lines are merged, must be what their senders wrote."""
    with pytest.raises(FeedError):
        load(document.encode(), repair=False)


@pytest.mark.parametrize(
    "document",
    [
        WHOLE,
        WHOLE.upper().replace("<?XML VERSION", "<?xml version").replace("ENCODING", "encoding"),
        "<!-- c -->" + WHOLE.partition("?>")[2],
        rss(text="<p>well-formed &amp; <i>fine</i></p>"),
        rss(text=CDATA.format("a & b <br> &nobody;")),
    ],
)
def test_well_formed_feed_is_not_touched(document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_repaired", None)
    assert read_document(document.encode()).repairs == ()


UNICODE = ("a&#129;b", "a&#160;b&#8217;", "&#1460;")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("it&#146;s", "it\u2019s"),
        ("it&#0146;s", "it\u2019s"),
        ("&#x93;so&#X94;", "\u201cso\u201d"),
        ("a \x96 b", "a \u2013 b"),
        ("5&#128;", "5\u20ac"),
        (CDATA.format("it&#146;s"), "it\u2019s"),
        ("a&#129;b", "a\x81b"),
        ("a&#160;b&#8217;", "a\u00a0b\u2019"),
        ("&#1460;", "\u05b4"),
    ],
)
def test_number_of_windows_1252_is_the_character_that_its_writer_saw(written: str, read: str) -> None:
    """XML allows these controls, so the document is well-formed. Browsers read them so, too (HTML 13.2.5.80)."""
    root, warnings, partial = load(rss(text=written).encode())
    assert (root.findtext("channel/item/description"), partial) == (read, False)
    assert any("windows-1252" in warning for warning in warnings) is (written not in UNICODE)
    strict = load(rss(text="it&#146;s").encode(), repair=False).root
    assert strict.findtext("channel/item/description") == "it\x92s"


def test_cut_feed_has_the_items_that_are_whole() -> None:
    document = WHOLE[: WHOLE.index("last")]
    feed = read_document(document.encode())
    assert ([item.id for item in feed.items], feed.partial) == (["1"], True)
    with pytest.raises(FeedError, match="no item is whole"):
        read_document(WHOLE[: WHOLE.index("<title>one")].encode())


@pytest.mark.parametrize("place", range(len(HEAD), len(WHOLE), 7))
def test_cut_anywhere(place: int) -> None:
    """What is read of a cut feed is what the whole one has."""
    whole = {item.id: item.payload for item in read_document(WHOLE.encode()).items}
    try:
        feed = read_document(WHOLE[:place].encode())
    except FeedError:
        assert place < len(WHOLE) - len(END) - len(LAST)
        return
    assert {item.id: item.payload for item in feed.items}.items() <= whole.items()


ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>urn:f</id><updated>2024-03-05T10:15:00Z</updated>'
    '<entry><id>urn:1</id><title>one</title><updated>2024-03-05T10:15:00Z</updated>{}</entry>'
    "<entry><id>urn:2</id><title>two</title><updated>2024-03-05T10:15:00Z</updated></entry></feed>"
)  # fmt: skip


@pytest.mark.parametrize(
    ("inside", "kind", "text"),
    [
        ('<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<br>b</div></content>', "html", "a<br>b"),
        ("<published>2024-03-05T10:15:00Z<x:y xmlns:x='urn:x'>z</x:y><content>c</content>", None, "c"),
        ('<content type="html">a &lt;b> & c</content>', "html", "a <b> & c"),
        ("<summary>a <b>c</summary>", "html", "a <b>c"),
        ('<link rel="alternate" href="http://a/"><content>c</content>', None, "c"),
    ],
)
def test_atom(inside: str, kind: str | None, text: str) -> None:
    feed = read_document(ATOM.format(inside).encode())
    assert [item.id for item in feed.items] == ["urn:1", "urn:2"]
    entry = feed.items[0].payload.root
    body = next(entry.iterchildren(atom.CONTENT, atom.SUMMARY))
    assert body.get("type") == kind and text in atom.string_of(body)


def test_outline_is_repaired_but_never_cut() -> None:
    """A feed that a followed list lacks is no longer followed."""
    outline = (
        '<opml version=1.0><head/><body><outline text="A & B" xmlUrl="http://a/"/><outline text="C"/></body></opml>'
    )
    document = read_outline(outline.encode())
    assert ([line.text for line in document.outlines], len(document.warnings)) == (["A & B", "C"], 2)
    with pytest.raises(FeedError, match="not whole"):
        read_outline(outline[: outline.index('<outline text="C"')].encode())


@pytest.mark.parametrize(
    "document",
    [
        "<!DOCTYPE html><html><body><p>x<br></body></html>",
        "<html><body>" + WHOLE + "</body></html>",
        "<!DOCTYPE html>\n" + WHOLE,
        "<foo><bar></foo>",
        "<config><feed>x</config>",
        "Service unavailable",
        "<br><b>Fatal error</b>: x",
        "\x00\x01\x02",
        "{<rss>",
        "<rss-less><item></rss-less>",
        "<!-- <rss> --><foo><bar></foo>",
    ],
)
def test_what_is_no_feed_is_not_repaired(document: str) -> None:
    with pytest.raises(FeedError):
        read_document(document.encode())


@pytest.mark.parametrize(
    ("subset", "reason"),
    [
        ("<!ENTITY a SYSTEM 'file:///etc/passwd'>", "external"),
        ("<!ENTITY a 'x'><!ENTITY b '&a;&a;'>", "short text"),
    ],
)
def test_repair_does_not_open_entities(subset: str, reason: str) -> None:
    """[xep-map 246]"""
    document = f"<!DOCTYPE rss [{subset}]>" + rss("&a; & &b;").partition("?>")[2]
    with pytest.raises(FeedError, match=reason):
        read_document(document.encode())


def test_declared_entity_is_still_one() -> None:
    document = "junk <!DOCTYPE rss [<!ENTITY co 'Company'>]>" + rss("&co; & x").partition("?>")[2]
    assert read_document(document.encode()).items[0].payload.root.findtext(atom.TITLE) == "Company & x"


def test_declared_entity_is_still_one_where_tags_are_balanced() -> None:
    document = "<!DOCTYPE rss [<!ENTITY co 'Company'>]>" + rss("&co; x", text="a <b>c").partition("?>")[2]
    entry = read_document(document.encode()).items[0].payload.root
    assert (entry.findtext(atom.TITLE), entry.findtext(atom.CONTENT)) == ("Company x", "a <b>c")


def test_too_deep_stays_refused() -> None:
    with pytest.raises(FeedError, match="too deeply"):
        read_document(rss(extra="<x>" * 3_000 + "&").encode())


def test_last_resort_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """libxml2 guesses where nothing else helps."""
    monkeypatch.setattr(loader, "balanced", lambda text: balanced(text)._replace(text=text))
    feed = read_document(rss(text="a <b>c").encode())
    assert feed.partial and feed.repairs[-1].startswith("last resort: ")


@pytest.mark.parametrize("rest", ["no element", ""])
def test_repaired_feed_that_libxml2_cannot_read_either_is_refused(rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left that a reader could guess from."""
    monkeypatch.setattr(loader, "balanced", lambda text: balanced(text)._replace(text=rest))
    with pytest.raises(FeedError, match="begins with something that is no markup"):
        read_document(rss(text="a <b>c").encode())


def test_list_whose_encoding_can_only_be_guessed_is_refused() -> None:
    """Its names would differ from those that its sender wrote; a feed is read as windows-1252."""
    data = WHOLE.replace("one", "caf\u00e9").encode("latin-1")
    assert read_document(data).items[0].payload.root.findtext(atom.TITLE) == "caf\u00e9"
    with pytest.raises(FeedError, match="bytes that its encoding does not have"):
        load(data, repair=False)


UNITS = (
    *("<a ", '<a b="', "<![CDATA[", "<!--", "<?", "<!DOCTYPE[", "<!DOCTYPE[>", "<!DOCTYPE[<!ENTITY a>", "</a", "&"),
    *("<item>", "<a b=c ", "<b><i></b>", "<title>", "<![CDATA[</", "<description><![CDATA[x</description>", "<: "),
    *("<a" + " " * 50, "<title><b></title>", "<!-- -", "]]>", "&#xD83D;", "<a:b ", "= ' ", "&#"),
)


@pytest.mark.parametrize("unit", UNITS)
def test_repairs_are_linear(unit: str) -> None:
    """Each character is looked at a bounded number of times: with a quadratic search this would not end."""
    text = HEAD + "&" + unit * (200_000 // len(unit))
    for repair in REPAIRS:
        repair.run(text)
    assert balanced(text).notes
