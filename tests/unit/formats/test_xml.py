"""The lxml boundary: canonical bytes, limits, refusals."""

import pytest
from lxml import etree

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import xml
from smartfeeds.formats.payload import means_the_same

XSI = "http://www.w3.org/2001/XMLSchema-instance"
STREAM = (
    "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>"
    "<iq xml:lang='de' {0}><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish><item>{1}</item>"
    "</publish></pubsub></iq></stream:stream>"
)


def payload_of(text, on_iq=""):
    """The payload as the stream's parser hands it over: deep inside a stanza."""
    (item,) = etree.fromstring(STREAM.format(on_iq, text)).iter("{*}item")
    return item[0]


def canonical(text, on_iq=""):
    return xml.canonical(payload_of(text, on_iq)).decode()


@pytest.mark.parametrize("name", ["vcard-temp", "?", "urn:x-smartfeeds-veiled:00", "a&amp;b"])
def test_canonical_takes_any_namespace_name(name):
    """[xep-map 144] libxml2's C14N knows absolute URIs only; XMPP has "vcard-temp"."""
    text = f"<vCard xmlns='{name}' xml:lang=''><x:b xmlns:x='{name}' xml:k='' x:k='1' k='2'>x:foo</x:b></vCard>"
    payload = canonical(text).encode()
    root, element = xml.parse_payload(payload), payload_of(text)
    assert [(node.tag, dict(node.attrib)) for node in root.iter()] == [
        (node.tag, dict(node.attrib)) for node in element.iter()
    ]
    assert xml.canonical(root) == payload


def veiled(data):
    return "urn:x-smartfeeds-veiled:" + data.encode().hex()


@pytest.mark.parametrize(
    "text",
    [
        f'<b>{veiled("</b></v></item><x>")}"</b>',
        f"<b k='{veiled(chr(34) + ' onload=' + chr(34))}'/>",
        '<b> xmlns="<c/><d e="text"/></b>',
    ],
    ids=["text", "attribute", "across tags"],
)
def test_no_text_becomes_markup_beside_a_namespace_name_that_is_no_uri(text):
    """[xep-map 144] one stanza that is not well-formed would end the link for everybody"""
    element = payload_of(f"<v xmlns='vcard-temp' xml:lang=''>{text}</v>")
    root = xml.parse_payload(xml.canonical(element))
    assert list(xml.names_and_texts(root)) == list(xml.names_and_texts(element))


def test_payload_that_could_not_be_read_again_is_refused():
    """[xep-map 144] libxml2 accepts "a b" where a relative name follows it, and canonical form drops unused names"""
    root = xml.parse_payload(b"<q:b xmlns:q='a b' xmlns='vcard-temp'/>")
    with pytest.raises(FeedError, match="namespace name that is no URI") as refused:
        xml.canonical(root)
    assert refused.value.condition is Condition.INVALID_PAYLOAD


def test_canonical_sorts_attributes_and_writes_empty_elements_out():
    """[xep-map 144]"""
    assert canonical("<a xmlns='u' z='1' b=\"2\" xml:lang=''/>") == '<a xmlns="u" b="2" z="1" xml:lang=""></a>'


def test_canonical_drops_the_stanza_s_own_namespaces():
    assert canonical("<a xmlns='u' xml:lang=''>stream</a>") == '<a xmlns="u" xml:lang="">stream</a>'


@pytest.mark.parametrize("content", ["i:type='x:foo'", "i:type='a x:foo'", "i:type='x:foo' x:foo='1'"])
def test_canonical_keeps_a_prefix_that_an_attribute_value_uses(content):
    """[xep-map 144] prefixes in content"""
    text = f"<a xmlns='u' xmlns:i='{XSI}' xmlns:x='urn:x-test:x' xml:lang='' {content}/>"
    assert ' xmlns:x="urn:x-test:x"' in canonical(text)
    assert xml.parse_payload(canonical(text).encode()).nsmap["x"] == "urn:x-test:x"


@pytest.mark.parametrize("text", ["x:foo", "//a/x:b", "see x:foo='1'", "<x:b/>x:c", "<b/> x:c", "(x:y)"])
def test_canonical_keeps_a_prefix_that_text_uses(text):
    """[xep-map 144] prefixes in content, declared on the payload or above it"""
    for own, above in ((" xmlns:x='urn:x-test:x'", ""), ("", " xmlns:x='urn:x-test:x'")):
        root = canonical(f"<a xmlns='u'{own}>{text}</a>", above).partition(">")[0]
        assert ' xmlns:x="urn:x-test:x"' in root


def test_canonical_keeps_a_prefix_that_an_inner_element_declares_for_its_content():
    result = canonical("<a xmlns='u'><b xmlns:x='urn:x-test:x'>x:foo</b></a>")
    assert '<b xmlns:x="urn:x-test:x">x:foo</b>' in result


@pytest.mark.parametrize("content", ["", "axe:foo", "x", "x: y", "12x:1"])
def test_canonical_drops_a_prefix_that_nothing_uses(content):
    assert "urn:x-test:x" not in canonical(f"<a xmlns='u' xmlns:x='urn:x-test:x'>{content}</a>")


def test_canonical_does_not_take_an_attribute_name_for_content():
    """A prefix that only names use stays where it is used."""
    result = canonical("<a xmlns='u' xmlns:x='urn:x-test:x'><b x:k='1' z='>'/><x:c/></a>")
    assert result.startswith('<a xmlns="u"><b ')


def test_canonical_adds_no_attribute_of_the_stanza():
    """[xep-map 144] XMPP servers put an xml:lang on every stanza; it is not the payload's."""
    assert canonical("<a xmlns='u'/>", "xml:space='preserve' xml:base='http://example.org/'") == '<a xmlns="u"></a>'
    assert canonical("<a xmlns='u' xml:lang='fr'/>") == '<a xmlns="u" xml:lang="fr"></a>'


def test_canonical_leaves_the_element_as_it_was():
    element = payload_of("<a xmlns='u' k='1'>t</a>")
    before = etree.tostring(element)
    xml.canonical(element)
    assert etree.tostring(element) == before


def test_canonical_drops_comments_and_instructions_and_joins_their_texts():
    assert canonical("<a xmlns='u' xml:lang=''>1<!-- x -->2<?p i?>3<![CDATA[<&]]></a>") == (
        '<a xmlns="u" xml:lang="">123&lt;&amp;</a>'
    )


def test_canonical_leaves_the_tail_out():
    assert canonical("<a xmlns='u' xml:lang=''/> tail") == '<a xmlns="u" xml:lang=""></a>'


@pytest.mark.parametrize(
    "text", ["<x:a xmlns:x='u' xmlns=''><b/></x:a>", "<a xmlns=''/>", "<a xmlns=''><b xmlns='v'/></a>"]
)
def test_canonical_says_where_no_namespace_is_meant(text):
    """[xep-map 144] joined into a stanza, an element without a namespace stays without one."""
    element = payload_of(text)
    joined = etree.fromstring(b"<item xmlns='urn:x-test:else'>" + xml.canonical(element) + b"</item>")[0]
    assert [node.tag for node in joined.iter()] == [node.tag for node in element.iter()]


def refused(call, condition=Condition.INVALID_PAYLOAD):
    with pytest.raises(FeedError) as caught:
        call()
    assert caught.value.condition is condition
    return caught.value.text


def checked(text):
    element = xml.parse_payload(text.encode())
    xml.check_limits(xml.canonical(element), lambda: element)
    return element


BOMB = "<!DOCTYPE a [<!ENTITY b 'bbbbbbbbbb'>" + "".join(
    f"<!ENTITY {name} '{f'&{inner};' * 10}'>" for inner, name in zip("bcdefghi", "cdefghij", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
        "<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/x.dtd'><a>&b;</a>",
        BOMB + "]><a>&j;</a>",
        BOMB + "]><a k='&j;'/>",
        "<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/'> %p;]><a/>",
    ],
)
def test_parse_payload_refuses_every_dtd(text):
    """[xep-map 246]"""
    assert refused(lambda: xml.parse_payload(text.encode())).startswith("the payload ")


@pytest.mark.parametrize(
    "text", ["", " ", "x", "<a", "<a></b>", "<a>&b;</a>", "<p:a/>", "<a/><b/>", "<a>\0</a>", "<a>&#1;</a>"]
)
def test_parse_payload_refuses_what_is_no_xml(text):
    """[xep-map 138]"""
    assert refused(lambda: xml.parse_payload(text.encode())).startswith("the payload ")


def test_refusal_does_not_quote_the_input():
    assert "evil" not in refused(lambda: xml.parse_payload(b"<a>\n<evil></a>"))
    assert "(line 2)" in refused(lambda: xml.parse_payload(b"<a>\n<evil></a>"))


def test_canonical_refuses_an_unexpanded_entity():
    """[xep-map 246] also from a tree that another parser made."""
    parser = etree.XMLParser(resolve_entities=False)
    element = etree.fromstring("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", parser)
    refused(lambda: xml.canonical(element))


def nested(levels):
    return "<a>" * levels + "</a>" * levels


def test_nesting_is_bounded():
    """[xep-map 246]"""
    checked(nested(xml.MAX_DEPTH))
    assert "nested" in refused(lambda: checked(nested(xml.MAX_DEPTH + 1)))
    assert "nested" in refused(lambda: checked(nested(5_000)))


def test_distinct_names_are_bounded():
    """Elements and attributes count together; the same name again does not."""
    half = xml.MAX_NAMES // 2
    many = "".join(f"<e{n} a{n}=''/>" for n in range(half))
    checked(f"<e0>{many}{many}</e0>")
    assert "names" in refused(lambda: checked(f"<more>{many}</more>"))


def test_attributes_of_an_element_are_bounded():
    def element(count):
        return "<a " + " ".join(f"k{n}=''" for n in range(count)) + "/>"

    checked(element(xml.MAX_ATTRIBUTES))
    assert "attributes" in refused(lambda: checked(element(xml.MAX_ATTRIBUTES + 1)))


@pytest.mark.parametrize("form", ["<{0}/>", "<a {0}=''/>", "<a b='=' {0}=''/>", "<p:a xmlns:p='u' p:{0}=''/>"])
def test_length_of_names_is_bounded(form):
    checked(form.format("n" * (xml.MAX_NAME_BYTES - 2)))
    assert "longer" in refused(lambda: checked(form.format("n" * (xml.MAX_NAME_BYTES + 1))))


def test_long_text_is_no_long_name():
    checked(f"<a k='{'x' * 5000}'>{'y' * 5000} =\"z</a>")


@pytest.mark.parametrize(
    "form",
    ['<a> xmlns="{}</a>', "<a k=' xmlns=\"{}'/>", '<a><!-- xmlns="{}--></a>', "<a xmlns:p='urn:x'> xmlns:p=\"{}</a>"],
)
def test_long_text_is_no_long_namespace_name(form):
    checked(form.format("x" * 300))


@pytest.mark.parametrize(
    "form", ["<a xmlns='{0}'/>", "<a><b><p:c xmlns:p='{0}'/></b></a>", "<a> xmlns=\"<b xmlns='{0}'/></a>"]
)
def test_length_of_namespace_names_is_bounded(form):
    checked(form.format("urn:" + "n" * (xml.MAX_NAME_BYTES - 4)))
    assert "longer" in refused(lambda: checked(form.format("urn:" + "n" * (xml.MAX_NAME_BYTES - 3))))


def test_length_of_inherited_namespace_names_is_bounded():
    stanza = xml.parse_payload(f"<a xmlns:p='urn:{'n' * 300}'><b><p:c/></b></a>".encode())
    assert "longer" in refused(lambda: xml.canonical(stanza[0]))


def test_prefixes_are_bounded():
    def element(count):
        return "<a " + " ".join(f"xmlns:p{n}='u'" for n in range(count)) + "/>"

    checked(element(xml.MAX_PREFIXES))
    assert "prefixes" in refused(lambda: checked(element(xml.MAX_PREFIXES + 1)))


def test_size_is_bounded():
    """[xep-map 137]"""
    refused(lambda: xml.parse_payload(b"<a>" + b"x" * xml.MAX_PAYLOAD_BYTES), Condition.PAYLOAD_TOO_BIG)
    element = xml.parse_payload(b"<a/>")
    refused(lambda: xml.check_limits(b" " * (xml.MAX_PAYLOAD_BYTES + 1), lambda: element), Condition.PAYLOAD_TOO_BIG)


def test_stored_bytes_that_are_no_xml_are_an_internal_error():
    assert refused(lambda: xml.parse_stored(b"<a"), Condition.INTERNAL) == "a stored payload cannot be read"


def test_replace_by_text_joins_the_texts_around():
    root = etree.fromstring("<a>1<b/>2<c/>3</a>")
    xml.replace_by_text(root[1], "x")
    xml.replace_by_text(root[0], "y")
    assert etree.tostring(root) == b"<a>1y2x3</a>"
    xml.replace_by_text(root, "z")
    assert etree.tostring(root) == b"<a>1y2x3</a>"


SAME = b'<a xmlns="u" xmlns:p="v" p:k="1">x<b></b>y<p:c></p:c></a>'


@pytest.mark.parametrize("prefix", [b"p", b"other"])
def test_prefixes_mean_nothing(prefix):
    assert means_the_same(SAME, SAME.replace(b"p:", prefix + b":").replace(b":p=", b":" + prefix + b"="))
    assert means_the_same(SAME, SAME.replace(b"<p:c></p:c>", b'<c xmlns="v"></c>'))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"x<b>", b"<b>"),
        (b"y", b"z"),
        (b"<b></b>y", b"<b>y</b>"),
        (b'p:k="1"', b'k="1"'),
        (b'"v"', b'"w"'),
        (b"<b></b>y<p:c></p:c>", b"<b><p:c></p:c></b>y"),
    ],
)
def test_everything_else_means_something(old, new):
    assert old in SAME
    assert not means_the_same(SAME, SAME.replace(old, new))
