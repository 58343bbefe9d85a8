"""The cut of a stream into stanzas (RFC 6120 sections 4 and 11.1)."""

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.xmpp import framer as framer_module
from smartfeeds.xmpp.framer import CUT_NS, HEADER_LIMIT_BYTES, TOO_LONG, Framer, cut_down, is_well_formed, start_of

HEADER = b"<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' id='a>b'>"
STANZAS = [
    b"<iq type='get' id='1'><query xmlns='x'/></iq>",
    b'<presence from="a@b/>c"/>',
    b"<message><iq/><message>forwarded</message><messages/></message>",
    b"<iq ><iq><iq a='/'/><iq b='>'/></iq ></iq >",
    b"<message><body><![CDATA[</message> <message> <!-- no comment -->]]></body></message>",
    b"<iq\ttype='result'\n/>",
    b"<message><messages>x</messages></message>",
    b"<message><body>what? now! &lt;iq></body></message>",
    "<message><body>\u00fc\U0001f600</body></message>".encode(),
]


def frames_of(data: bytes, sizes: list[int], limit_bytes: int = 100_000) -> tuple[Framer, list[bytes]]:
    framer = Framer(limit_bytes)
    frames: list[bytes] = []
    at = 0
    for size in [*sizes, len(data)]:
        frames += [frame.data for frame in framer.feed(data[at : at + size])]
        at += size
    return framer, frames


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_framer_any_segments_gives_whole_stanzas_in_order(step: int) -> None:
    """Two stanzas in one segment, or one in many, are the same [xep-map 12]."""
    data = b"<?xml version='1.0'?>\n" + HEADER + b" \n".join(STANZAS) + b" </stream:stream>"

    framer, frames = frames_of(data, [step] * (len(data) // step))

    assert framer.header == HEADER
    assert frames == STANZAS
    assert framer.ended and not framer.error


@given(st.lists(st.sampled_from(STANZAS), max_size=8), st.lists(st.integers(1, 40), max_size=60))
def test_framer_random_segments_gives_whole_stanzas(stanzas: list[bytes], sizes: list[int]) -> None:
    framer, frames = frames_of(HEADER + b"".join(stanzas), sizes)

    assert frames == stanzas
    assert not framer.error


@given(st.lists(st.binary(max_size=80) | st.sampled_from([b"<iq>", b"</iq>", b"<!", b"<![CDATA[", b"]]>", b"<a b='"])))
def test_framer_any_bytes_never_raises(parts: list[bytes]) -> None:
    framer = Framer(200)
    framer.feed(HEADER)

    for part in parts:
        for frame in framer.feed(part):
            assert start_of(frame.data)[0] or not is_well_formed(frame.data)

    assert framer.error in ("", "not-well-formed", "restricted-xml", "policy-violation")


@given(st.recursive(st.just("t"), lambda inner: st.lists(inner, max_size=4).map(lambda x: f"<iq>{''.join(x)}</iq>")))
def test_framer_nested_names_agrees_with_a_parser(body: str) -> None:
    """The balance of tags finds the same end as XML itself."""
    stanza = f"<iq>{body}</iq>".encode()

    _, frames = frames_of(HEADER + stanza + b"<iq/>", [13, 50])

    assert frames == [stanza, b"<iq/>"]
    assert etree.fromstring(frames[0]).tag == "iq"


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]>", "restricted-xml"),
        (b"hello", "not-well-formed"),
        (b"\x00", "not-well-formed"),
        (HEADER + b"text between stanzas", "not-well-formed"),
        (HEADER + b"<!-- c -->", "restricted-xml"),
        (HEADER + b"<?target?>", "restricted-xml"),
        (HEADER + b"<!DOCTYPE x>", "restricted-xml"),
        (HEADER + b"<iq><!-- c --></iq>", "restricted-xml"),
        (HEADER + b"<iq><?target x?></iq>", "restricted-xml"),
        (HEADER + b"<iq><![CDATA[]]><!-- c --></iq>", "restricted-xml"),
        (HEADER + b"<iq " + b"x=x " * HEADER_LIMIT_BYTES + b"<", "not-well-formed"),
        (HEADER + b"<iq a='" + b"x" * HEADER_LIMIT_BYTES + b"' <", "not-well-formed"),
        (HEADER + b"<" + b"x" * (HEADER_LIMIT_BYTES + 1), "not-well-formed"),
        (b"<stream " + b"x" * (HEADER_LIMIT_BYTES + 1), "not-well-formed"),
    ],
)
def test_framer_what_a_stream_forbids_ends_it(data: bytes, condition: str) -> None:
    """DTDs, comments and instructions never reach a parser [xep-map 246]."""
    framer, frames = frames_of(data, [])

    assert framer.error == condition
    assert frames == []
    assert framer.feed(b"<iq/>") == []


@pytest.mark.parametrize("step", [37, 500, 100_000])
def test_framer_stanza_over_the_limit_comes_without_its_content(step: int) -> None:
    """Nobody can make the component hold more than its limit, or close the link for others by trying [xep-map 246]."""
    big = b"<iq id='big' type='set'><a><iq/>" + b"<![CDATA[</iq>]]>" + b"x" * 5_000 + b"<iq>y</iq></a></iq>"
    data = HEADER + b"<iq id='1'/>" + big + b"<iq id='2'/>"

    framer, frames = frames_of(data, [step] * (len(data) // step), limit_bytes=1_000)

    small_enough = step > len(data)
    cut = f'<iq id="big" type="set"><cut xmlns=\'{CUT_NS}\'>{TOO_LONG}</cut></iq>'.encode()
    assert frames == [b"<iq id='1'/>", big if small_enough else cut, b"<iq id='2'/>"]
    assert not framer.error


def test_framer_stream_closed_at_once_ends() -> None:
    framer, frames = frames_of(b"<stream:stream xmlns:stream='http://etherx.jabber.org/streams'/>", [])

    assert framer.ended and frames == []


LONG = b"x" * (HEADER_LIMIT_BYTES * 2)


@pytest.mark.parametrize("step", [4_000, 70_000, 1_000_000])
@pytest.mark.parametrize(
    "stanza",
    [
        b"<iq id='long' b='>" + LONG + b"'/>",
        b"<iq id='long' b='" + LONG + b"'></iq>",
        b"<iq id='long' b='" + LONG + b"'>/></iq >",
        b"<iq id='long' b='" + LONG + b"'><a/><iq/></iq\n>",
    ],
    ids=["empty", "closed", "text", "content"],
)
@pytest.mark.parametrize("limit_bytes", [100_000, 1_000_000])
def test_framer_start_tag_of_any_length_ends_nothing(stanza: bytes, step: int, limit_bytes: int) -> None:
    """What one user writes into the attributes of a stanza is no reason to end the stream [xep-map 246]."""
    data = HEADER + b"<iq id='1'/>" + stanza + b"<iq id='2'/></stream:stream>"

    framer, frames = frames_of(data, [step] * (len(data) // step), limit_bytes)

    assert not framer.error and framer.ended
    assert [start_of(frame)[1]["id"] for frame in frames] == ["1", "long", "2"]
    whole = limit_bytes > len(data) or step > limit_bytes // 2  # it is found whole before it is found too long
    assert frames[1] == (stanza if whole else f"<iq id=\"long\"><cut xmlns='{CUT_NS}'>{TOO_LONG}</cut></iq>".encode())


NAMES = st.sampled_from(["iq", "iqx", "message", "a", "i"])
VALUES = st.sampled_from(["", "x>y", "a@b/c", "/>", '=id="', "&lt;/iq>", "z" * 300])
ATTRIBUTES = st.dictionaries(st.sampled_from(["a", "id", "from", "xmlns:n"]), VALUES, max_size=3).map(
    lambda values: "".join(f" {name}='{value}'" for name, value in values.items())
)
TEXTS = st.sampled_from(["text> /> ", "x" * 500, "<![CDATA[</iq> <iq> <!-- ]] > <a ]]>", "<![CDATA[]]]>", "&lt;iq&gt;"])
ELEMENTS = st.recursive(
    st.tuples(NAMES, ATTRIBUTES).map(lambda parts: f"<{parts[0]}{parts[1]}/>"),
    lambda inner: st.tuples(
        NAMES, ATTRIBUTES, st.lists(inner | TEXTS, max_size=4), st.sampled_from(["", " ", "\n"])
    ).map(lambda parts: f"<{parts[0]}{parts[1]}>{''.join(parts[2])}</{parts[0]}{parts[3]}>"),
    max_leaves=12,
)


@pytest.mark.parametrize("many_tags", [3, 256], ids=["expat", "tags"])
@given(st.lists(ELEMENTS, min_size=1, max_size=4), st.sampled_from([1, 3, 50, 1_000, 1_000_000]))
def test_framer_cuts_random_stanzas_where_they_end(many_tags: int, elements: list[str], step: int) -> None:
    """Both ways to read nested names and CDATA find the end that XML has."""
    stanzas = [element.encode() for element in elements]
    data = HEADER + b" ".join(stanzas) + b"</stream:stream>"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framer_module, "_MANY_TAGS", many_tags)
        framer, frames = frames_of(data, [step] * (len(data) // step))

    assert frames == stanzas
    assert framer.ended and not framer.error


MANY = [
    b"<iq id='many'>" + b"<iq><message/></iq>" * 5_000 + b"</iq>",
    b"<iq id='many'>" + b"<iq>" * 3_000 + b"</iq>" * 3_000 + b"</iq >",
    b"<iq id='many'>" + b"<![CDATA[</iq>]]>" * 5_000 + b"</iq>",
    b"<iq id='many'>" + b"<iq/>" * 5_000 + b"</iq>",
]


@pytest.mark.parametrize("step", [700, 5_000, 1_000_000])
@pytest.mark.parametrize("stanza", MANY, ids=["pairs", "nested", "cdata", "empty"])
@pytest.mark.parametrize("follows", [b"<iq id='2'/>", b"</stream:stream>", b""])
def test_framer_stanza_with_many_tags_of_its_name_ends_where_it_ends(stanza: bytes, step: int, follows: bytes) -> None:
    data = HEADER + stanza + follows

    framer, frames = frames_of(data, [step] * (len(data) // step))

    assert frames == [stanza, follows] if follows.startswith(b"<iq") else [stanza]
    assert framer.ended == follows.startswith(b"</") and not framer.error


@pytest.mark.parametrize("stanza", MANY, ids=["pairs", "nested", "cdata", "empty"])
def test_framer_calls_python_for_a_few_tags_of_a_stanza_only(stanza: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nests thousands of elements, or CDATA, would cost a call for each."""
    steps: list[int] = []

    class Counted:
        def __init__(self, pattern: re.Pattern[bytes]) -> None:
            self._pattern = pattern

        def finditer(self, source: bytes, begin: int) -> Iterator[re.Match[bytes]]:
            for match in self._pattern.finditer(source, begin):
                steps.append(match.start())
                yield match

    tags_of = framer_module._tags_of
    monkeypatch.setattr(framer_module, "_tags_of", lambda name: Counted(tags_of(name)))
    _, frames = frames_of(HEADER + stanza, [])

    assert frames == [stanza]
    assert 0 < len(steps) < 300


@pytest.mark.parametrize(
    ("bad", "condition"),
    [
        (b"<iq>" * 300 + b"<!-- c -->", "restricted-xml"),
        (b"<iq>" * 300 + b"<?target?>", "restricted-xml"),
        (b"<iq>" * 300 + b"</a>", "not-well-formed"),
        (b"<iq>" * 300 + b"\x01", "not-well-formed"),
    ],
)
def test_framer_many_tags_hide_nothing_that_a_stream_forbids(bad: bytes, condition: str) -> None:
    framer, frames = frames_of(HEADER + bad, [])

    assert framer.error == condition and frames == []


def test_framer_frame_that_was_cut_has_the_size_of_the_whole() -> None:
    framer = Framer(1_000)
    stanza = b"<iq id='1'>" + b"x" * 5_000 + b"</iq>"

    frames = [frame for at in range(0, 6_000, 100) for frame in framer.feed((HEADER + stanza)[at : at + 100])]

    assert [frame.size_bytes for frame in frames] == [len(stanza)]
    assert len(frames[0].data) < 200


def test_cut_down_keeps_what_an_answer_needs() -> None:
    stanza = b"<iq to='t&gt;' id='&lt;&quot;1' type='get' from='a@b/c' x='1' xmlns:y='%'><x/></iq>"
    etree.fromstring(cut_down(stanza, "why"))

    assert start_of(cut_down(stanza, "why")) == ("iq", {"to": "t>", "id": '<"1', "type": "get", "from": "a@b/c"})
    assert etree.fromstring(cut_down(stanza, "why"))[0].text == "why"
    assert start_of(cut_down(b"<iq id='" + LONG + b"'/>", "why")) == ("iq", {})


def test_is_well_formed_has_no_limits_of_depth_or_names() -> None:
    assert is_well_formed(b"<a>" * 5_000 + b"</a>" * 5_000)
    assert is_well_formed(b"<" + b"a" * 100_000 + b"/>")
    assert not is_well_formed(b"<a>\x01</a>")
    assert not is_well_formed(b"<a>&undefined;</a>")


def test_framer_incomplete_tag_with_a_long_name_costs_no_more_than_reading_it() -> None:
    """The loop waits for it, and everybody with the loop [xep-map 246]."""
    began_s = time.process_time()
    framer, frames = frames_of(HEADER + b"<" + b"n" * (HEADER_LIMIT_BYTES - 10), [])

    assert not frames and not framer.error
    assert time.process_time() - began_s < 0.5


@given(st.lists(st.sampled_from([b"a", b" ", b"=", b"'", b'"', b"'>'", b'">"', b"'x'", b"/"])), st.integers(0, 40))
def test_framer_start_tag_ends_at_the_first_bracket_outside_of_quotes(parts: list[bytes], cut: int) -> None:
    """Also where what came so far ends in the middle of it [xep-map 246]."""
    tag = (b"<iq " + b"".join(parts) + b">")[: 4 + cut]
    quote = b""
    for place, value in enumerate(tag):
        character = bytes([value])
        if quote:
            quote = b"" if character == quote else quote
        elif character in b"'\"":
            quote = character
        elif character == b">":
            assert frames_of(HEADER + tag[:place] + b"/>", [])[1] == [tag[:place] + b"/>"]
            return
    assert frames_of(HEADER + tag, [])[1] == []


@pytest.mark.parametrize("space", [b"", b" ", b"\n\n"])
def test_framer_nested_stanza_ends_with_its_last_tag_whatever_follows(space: bytes) -> None:
    """White space is a keepalive (RFC 6120 4.6.1): it neither delays the stanza before it nor counts as part of it."""
    stanza = b"<message><forwarded><message xmlns='jabber:client'><body>x</body></message></forwarded></message>"
    framer = Framer(len(stanza))
    framer.feed(HEADER)
    (frame,) = framer.feed(stanza + space)

    assert (frame.data, frame.size_bytes) == (stanza, len(stanza))
