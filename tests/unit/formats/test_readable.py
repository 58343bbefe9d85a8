"""Entries for feed readers: what RFC 4287 requires, written so that common parsers read it."""

import pytest
from lxml import etree

from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.readable import readable

CREATED_US = 1_700_000_000_000_000
A = f"{{{ATOM_NS}}}"


def simplified(inside: str, attributes: str = "") -> etree._Element:
    payload = f'<entry xmlns="{ATOM_NS}"{attributes}>{inside}</entry>'
    return etree.fromstring(readable(payload.encode(), CREATED_US))


def inside_of(inside: str, attributes: str = "") -> str:
    """What is in the entry, without the date of publication that each of these entries gets."""
    data = etree.tostring(simplified(inside, attributes), method="c14n").decode()
    published = "<published>2023-11-14T22:13:20Z</published>"
    assert data.count(published) == 1
    return data.removeprefix(f'<entry xmlns="{ATOM_NS}">').removesuffix("</entry>").replace(published, "")


def test_references_are_absolute_and_no_base_is_left() -> None:
    """RFC 3986 5.1, xml:base: few parsers know it."""
    entry = simplified(
        '<link href="p"></link><author><name>A</name><uri>a</uri></author><content type="html" xml:base="deep/">'
        "&lt;a href='x'>y&lt;/a></content>"
        '<in-reply-to xmlns="http://purl.org/syndication/thread/1.0" href="q" ref="urn:x:1"></in-reply-to>',
        ' xml:base="https://b.example/dir/"',
    )
    data = etree.tostring(entry).decode()
    assert "xml:base" not in data
    assert entry.find(f"{A}link").get("href") == "https://b.example/dir/p"
    assert entry.findtext(f"{A}author/{A}uri") == "https://b.example/dir/a"
    assert entry.findtext(f"{A}content") == '<a href="https://b.example/dir/deep/x">y</a>'
    assert 'href="https://b.example/dir/q"' in data


@pytest.mark.parametrize(
    ("inside", "written"),
    [
        # RFC 4287 4.1.2: each of these elements once.
        ("<title>a</title><title>b</title>", "<title>a</title>"),
        ("<updated>2020-01-01T00:00:00Z</updated><updated>x</updated>", "<updated>2020-01-01T00:00:00Z</updated>"),
        # A title is text, a body is HTML.
        ('<title type="html">a &lt;b>b&lt;/b> &amp;amp; c</title>', "<title>a b &amp; c</title>"),
        ("<content>1 &lt; 2\n3</content>", '<content type="html">1 &amp;lt; 2&lt;br/&gt;\n3</content>'),
        (
            '<content type="xhtml" xml:lang="de"><div xmlns="http://www.w3.org/1999/xhtml">a <b>b</b></div></content>',
            '<content type="html" xml:lang="de">a &lt;b&gt;b&lt;/b&gt;</content>',
        ),
        ('<content type="html"></content>', "<content></content>"),
        # Content that is elsewhere is a link.
        (
            '<content src="https://x.example/?a&amp;b" type="a/b"></content>',
            '<content type="html">&lt;a href="https://x.example/?a&amp;amp;b"&gt;https://x.example/?a&amp;amp;b&lt;/a&gt;'
            "</content>",
        ),
        # RFC 4287 3.2: a person has one name.
        (
            "<author><uri>https://x.example/</uri></author>",
            "<author><name>https://x.example/</name><uri>https://x.example/</uri></author>",
        ),
        ("<author><name> </name><email>a@b.example</email></author>",
         "<author><name>a@b.example</name><email>a@b.example</email></author>"),
        ("<author><name></name></author>", ""),
        ("<author><name>A</name><uri>javascript:x</uri></author>", "<author><name>A</name></author>"),
        # feedparser gives the second author the mail address of the first one.
        (
            "<author><name>A</name><email>a@b.example</email></author><author><name>B</name></author>",
            "<author><name>A</name></author><author><name>B</name></author>",
        ),
        # Links say their relation, and have no empty type.
        ('<link href="http://x/" type=""></link>', '<link href="http://x/" rel="alternate"></link>'),
        (
            '<link href="http://x/" rel="http://www.iana.org/assignments/relation/via"></link>',
            '<link href="http://x/" rel="via"></link>',
        ),
        # RFC 4287 4.1.2: one alternate link for each type and language.
        (
            '<link href="http://x/"></link><link href="http://y/"></link>',
            '<link href="http://x/" rel="alternate"></link>',
        ),
        ('<link href="javascript:x"></link><link rel="via" href=""></link><link href="relative"></link>', ""),
        ("<id> urn:x:1\n</id>", "<id>urn:x:1</id>"),
    ],
)  # fmt: skip
def test_element_is_written_so_that_parsers_read_it(inside: str, written: str) -> None:
    assert inside_of(inside) == written


def test_date_is_in_the_entry_without_attributes() -> None:
    """An attribute of another namespace on a date hides the date from parsers that ignore namespaces."""
    entry = simplified('<published xmlns:s="urn:smartfeeds:0" s:original="x">2020-01-01T00:00:00Z</published>')
    (published,) = entry.iterchildren(f"{A}published")
    assert (published.text, dict(published.attrib)) == ("2020-01-01T00:00:00Z", {})


def test_what_no_reader_knows_keeps_its_base_and_stays() -> None:
    inside = (
        '<x xmlns="urn:x" a="1"><y href="z"></y></x><content type="application/xml"><z xmlns="urn:z"></z></content>'
    )
    entry = simplified(inside, ' xml:base="https://b.example/"')
    assert [child.get("{http://www.w3.org/XML/1998/namespace}base") for child in entry][:2] == [
        "https://b.example/"
    ] * 2
    assert inside_of(inside) == inside
