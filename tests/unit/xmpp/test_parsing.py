"""Stanza bytes to trees within limits (xep-map 246; design section 3)."""

import pytest
from lxml import etree

from smartfeeds.xmpp.parsing import (
    UNREADABLE,
    StanzaParser,
    StreamSyntaxError,
    as_component_stanza,
)

HEADER = (
    b"<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' "
    b"id='1' xml:lang='en'>"
)
ACCEPT = "{jabber:component:accept}"


def parser_of(header: bytes = HEADER) -> StanzaParser:
    return StanzaParser(header)


def test_parser_batch_gives_each_stanza_in_order() -> None:
    frames = [f"<iq id='{number}'><x xmlns='y'>{'z' * 300}</x></iq>".encode() for number in range(200)]

    found = list(parser_of().parse(frames))

    assert [element.get("id") for element in found] == [str(number) for number in range(200)]
    assert {element.tag for element in found} == {f"{ACCEPT}iq"}


def test_parser_payload_keeps_its_prefixes() -> None:
    """Formats can write the payload's canonical form with the prefixes it came with."""
    entry = (
        b"<entry xmlns='http://www.w3.org/2005/Atom' xmlns:thr='urn:t'><thr:total thr:count='1'>2</thr:total></entry>"
    )

    (iq,) = parser_of().parse([b"<iq>" + entry + b"</iq>"])

    assert iq[0].nsmap["thr"] == "urn:t"
    canonical = etree.tostring(iq[0], method="c14n", exclusive=True)
    assert canonical == (
        b'<entry xmlns="http://www.w3.org/2005/Atom"><thr:total xmlns:thr="urn:t" thr:count="1">2</thr:total></entry>'
    )


@pytest.mark.parametrize(
    "content",
    [
        b"<a>" * 300 + b"</a>" * 300,
        b"<a>" * 20_000 + b"</a>" * 20_000,
        b"<" + b"n" * 60_000 + b"/>",
        b"<a " + b"n" * 60_000 + b"='1'/>",
        b"<undeclared:a/>",
        b"<a undeclared:b='1'/>",
        b"<a xmlns:p='urn:x' xmlns:q='urn:x' p:b='1' q:b='2'/>",
    ],
    ids=["depth-300", "depth-20000", "long-name", "long-attribute", "no-prefix", "no-attribute-prefix", "twice"],
)
def test_parser_stanza_over_the_limits_comes_without_its_content(content: bytes) -> None:
    """One remote user's stanza closes the link for nobody: it can still be answered [xep-map 246]."""
    frames = [b"<iq id='1'/>", b"<iq id='2' from='a@b'>" + content + b"</iq>", b"<iq id='3'><ok/></iq>"]

    before, bad, after = parser_of().parse(frames)

    assert (before.get("id"), bad.get("id"), after.get("id")) == ("1", "2", "3")
    assert bad.get("from") == "a@b" and [child.text for child in bad] == [UNREADABLE]
    assert len(after) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        "xmlns:n='%zz' n:a='1'",
        "xmlns:n='http://[' n:a='1'",
        "xmlns:n='a&#9;b' n:a='1'",
        "xmlns:n='&lt;' n:a='1'",
        "xml:id='-'",
        "xml:id='1 2'",
        f"{'a' * 60_000}='1'",
        "n:a='1'",
        "xmlns:n='u' xmlns:m='u' n:a='1' m:a='2'",
        "xmlns:xml='u'",
        "xmlns:n=''",
    ],
    ids=lambda text: text[:20],
)
def test_parser_stanza_whose_own_attributes_cannot_be_read_is_cut_down(attributes: str) -> None:
    """Servers hand on attributes of the stanza itself too: no user may close the link with one [xep-map 246]."""
    before, bad, after = parser_of().parse(
        [b"<iq id='1'/>", f"<iq id='2' {attributes} from='a@b' type='get'><a/></iq>".encode(), b"<iq id='3'/>"]
    )

    assert (before.get("id"), after.get("id")) == ("1", "3")
    assert dict(bad.attrib) == {"id": "2", "from": "a@b", "type": "get"}
    assert [child.text for child in bad] == [UNREADABLE]


def test_parser_stanza_whose_name_cannot_be_read_is_left_out() -> None:
    before, bad, after = parser_of().parse([b"<iq id='1'/>", b"<undeclared:iq id='2'/>", b"<iq id='3'/>"])

    assert bad is None
    assert (before.get("id"), after.get("id")) == ("1", "3")


@pytest.mark.parametrize(
    "bad",
    [
        b"<iq>\x01</iq>",
        b"<iq><b></iq></b>",
        b"<iq><![CDATA[]]><b></a></iq>",
        b"<iq>&nbsp;</iq>",
        b"<iq a='1' a='2'/>",
        b"<iq x=x ></iq>",
        b"<iq>\xff</iq>",
    ],
)
def test_parser_what_is_not_xml_raises_after_the_good_ones(bad: bytes) -> None:
    elements = parser_of().parse([b"<iq id='1'/>", bad, b"<iq id='2'/>"])

    assert next(elements).get("id") == "1"
    with pytest.raises(StreamSyntaxError, match="not-well-formed"):
        next(elements)


@pytest.mark.parametrize(
    ("header", "condition"),
    [
        (b"<stream xmlns='jabber:component:accept'>", "invalid-namespace"),
        (b"<s:stream xmlns='jabber:server' xmlns:s='http://etherx.jabber.org/streams'>", "invalid-namespace"),
        (b"<s:stream xmlns='jabber:component:accept'>", "not-well-formed"),
    ],
)
def test_parser_other_stream_header_raises(header: bytes, condition: str) -> None:
    with pytest.raises(StreamSyntaxError, match=condition):
        parser_of(header)


def test_parser_client_namespace_on_the_root_is_the_component_namespace() -> None:
    header = HEADER.replace(b"jabber:component:accept", b"jabber:client")

    (iq,) = parser_of(header).parse([b"<iq><error/></iq>"])

    assert (iq.tag, iq[0].tag) == (f"{ACCEPT}iq", f"{ACCEPT}error")


def test_as_component_stanza_moves_the_stanza_and_its_own_children_only() -> None:
    forwarded = b"<f xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'/></f>"
    (message,) = parser_of().parse([b"<message xmlns='jabber:client'><error/>" + forwarded + b"</message>"])

    moved = as_component_stanza(message)

    assert (moved.tag, moved[0].tag) == (f"{ACCEPT}message", f"{ACCEPT}error")
    assert moved[1][0].tag == "{jabber:client}message"


def test_parser_header_attributes_are_unescaped() -> None:
    """[xep-map 2]"""
    parser = parser_of(HEADER.replace(b"id='1'", b"id='a&amp;b&#x41;&lt;'"))

    assert parser.attributes["id"] == "a&bA<"
