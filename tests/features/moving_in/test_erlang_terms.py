"""Terms as text, as Erlang 25 wrote them with `~p`, and texts that are none."""

import random
import tracemalloc

import pytest

from features.moving_in.erlang import element_term, text_of_term, write_terms
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.moving_in.erlang_terms import (
    MAX_TERM_DEPTH,
    ErlangAtom,
    parse_head,
    parse_term,
    read_terms,
    term_name,
)
from smartfeeds.features.moving_in.erlang_xml import xml_of
from smartfeeds.formats.xml import parse_payload


@pytest.mark.parametrize(
    ("text", "term"),
    [
        (b"open", ErlangAtom("open")),
        (b"a@b", ErlangAtom("a@b")),
        (b"'Quoted atom'", ErlangAtom("Quoted atom")),
        (b"'a\\nb'", ErlangAtom("a\nb")),
        (b"\xf6\xe4\xfc", ErlangAtom("öäü")),
        (b"-17", -17),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"[1.5e300,-0.25,1.0e-7]", [1.5e300, -0.25, 1e-7]),
        (b"{}", ()),
        (b'[[],{},<<"x">>]', [[], (), b"x"]),
        (b"<<>>", b""),
        (b'<<"a.\\n{b}.\\n">>', b"a.\n{b}.\n"),
        (b'<<"\xc3\xa9">>', b"\xc3\xa9"),
        (b'<<"long text \\"quoted\\" \\\\ back. ">>', b'long text "quoted" \\ back. '),
        (b'<<"esc\\e\\b\\f\\v\\t\\d\\s">>', b"esc\x1b\x08\x0c\x0b\t\x7f "),
        (b'<<"\\101\\x42\\x{43}\\^D">>', b"ABC\x04"),
        (b"<<230,151,165,\n  230,156,172>>", "日本".encode()),
        (b'<<"ab"\n  "cd",10,\n  "e">>', b"abcd\ne"),
        (b'<<"\xfc"/utf8>>', b"\xc3\xbc"),
        (b'"characters"', "characters"),
        (b'"two "\n "lines"', "two lines"),
        (b" {a ,\n\t[ 1 ] } ", (ErlangAtom("a"), [1])),
    ],
)
def test_term_is_read(text: bytes, term: object) -> None:
    """[IMP-022]"""
    value = parse_term(text)

    assert (value, type(value)) == (term, type(term))


@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b",", b"a,b", b"a b", b"{a b}", b"{a,}", b"{,a}", b"[,]", b"{a", b"a}", b"{a]", b"[a}", b"{}{}",
        b"<<300>>", b"<<1 2>>", b"<<1,>>", b"<<,1>>", b"<<1:3>>", b"<<\"a>>", b"\"a", b"'a", b"<<\"\\x{100}\">>",
        b"<<\"\\x{110000}\">>", b"<<\"\\x{ffffffffffffffff}\">>", b"[1,2|3]", b"#{a => 1}", b"<0.9.0>", b"#Ref<0.1>",
        b"#Fun<erl_eval.43>", b"16#ff", b"1.", b"Variable", b"<<>", b"{a}.", b"9" * 5000, b"\x00",
    ],
)  # fmt: skip
def test_other_text_is_refused(text: bytes) -> None:
    """[IMP-022]"""
    with pytest.raises(FeedError, match=r"is no Erlang term|ends in the middle") as error:
        parse_term(text)

    assert error.value.condition is Condition.INVALID_PAYLOAD


def test_depth_is_bounded() -> None:
    """[IMP-022] [IMP-071] Nothing recurses over the input."""
    assert parse_term(b"[" * MAX_TERM_DEPTH + b"]" * MAX_TERM_DEPTH) != []
    for depth in (MAX_TERM_DEPTH + 1, 1_000_000):
        with pytest.raises(FeedError, match="nested deeper than 512 levels"):
            parse_term(b"[" * depth + b"]" * depth)


TEXT = write_terms([(ErlangAtom("a"), b"x.\n.\n"), (ErlangAtom("b"), [1, 2]), ErlangAtom("c")])


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_terms_are_cut_at_any_place(size: int) -> None:
    """[IMP-021] A chunk may end within a term and within its end."""
    terms = list(read_terms([TEXT[at : at + size] for at in range(0, len(TEXT), size)]))

    assert [parse_term(text) for _, text in terms] == [
        (ErlangAtom("a"), b"x.\n.\n"),
        (ErlangAtom("b"), [1, 2]),
        ErlangAtom("c"),
    ]
    assert all(TEXT.startswith(text, position) for position, text in terms)
    assert [term_name(text) for _, text in terms] == [b"a", b"b", b""]


@pytest.mark.parametrize(("text", "terms"), [(b"a.\nb.", [b"a", b"b"]), (b"a.\r\nb", [b"a", b"b"]), (b"\n", [])])
def test_last_term_may_lack_its_end(text: bytes, terms: list[bytes]) -> None:
    """[IMP-021]"""
    assert [term for _, term in read_terms([text])] == terms


def test_size_of_a_term_is_bounded() -> None:
    """[IMP-021] [IMP-071] A file without the end of a term is not read into memory."""

    def chunks():
        for _ in range(10_000):
            yield b"a" * 1000

    tracemalloc.start()
    try:
        with pytest.raises(FeedError, match="the term at byte 0 has more than 20000 bytes"):
            list(read_terms(chunks(), max_bytes=20_000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_damaged_dump_gives_terms_or_errors() -> None:
    """[IMP-071] Any damage of a text is an error or another term, in a time that grows with its size only."""
    chance = random.Random(14)
    sample = write_terms(
        [(ErlangAtom("pubsub_item"), (b"i\xc3\xa9", 1), [b"\x00\x01", "text", -5, 1.5, ErlangAtom("Q")])] * 3
    )
    pieces = [b"<<", b">>", b'"', b"\\", b"'", b"{", b"}", b"[", b"]", b",", b".\n", b"1", b"/utf8", b"\xff"]
    outcomes = {"term": 0, "error": 0}
    for _ in range(3_000):
        data = bytearray(sample)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            data[at : at + chance.randint(0, 3)] = chance.choice(pieces)
        for _, text in read_terms([bytes(data)]):
            try:
                parse_term(text)
                outcomes["term"] += 1
            except FeedError:
                outcomes["error"] += 1

    assert min(outcomes.values()) > 1_000


@pytest.mark.parametrize("piece", [b'"', b"\\", b'"\\', b"<<", b'<<"', b"<<1", b"1", b"1,", b"'", b"a", b" ", b'"a" '])
def test_time_grows_with_the_size_only(piece: bytes) -> None:
    """[IMP-071] A backtracking pattern would take hours for these texts."""
    with pytest.raises(FeedError):
        parse_term(b"{<<" + piece * 200_000)
    with pytest.raises(FeedError):
        parse_term(b"{" + piece * 200_000)


XML = (
    '<entry xmlns="urn:a" xml:lang="de" a="&quot;&lt;&amp;&#10;&#9;&#13;\'"><b>Straße &amp; &lt;x&gt; ]]&gt;</b>\n'
    '<c xmlns="urn:c"><d/>tail&#13;</c>😀</entry>'
)


def test_payload_is_written_as_xml() -> None:
    """[IMP-025]"""
    root = parse_payload(XML.encode())

    again = parse_payload(xml_of(text_of_term([element_term(root)])))

    assert [(node.tag, dict(node.attrib), node.text, node.tail) for node in again.iter()] == [
        (node.tag, dict(node.attrib), node.text, node.tail) for node in root.iter()
    ]


@pytest.mark.parametrize("count", [0, 1, 128])
def test_element_has_as_many_attributes_as_a_payload_may_have(count: int) -> None:
    """[IMP-025]"""
    pairs = b",".join(b'{<<"a%d">>,<<"%d">>}' % (number, number) for number in range(count))
    root = parse_payload(xml_of(b'[{xmlel,<<"e">>,[%b],[]}]' % pairs))

    assert dict(root.attrib) == {f"a{number}": str(number) for number in range(count)}
    with pytest.raises(FeedError, match="no element of ejabberd"):
        xml_of(b'[{xmlel,<<"e">>,[%b{<<"a">>]},[]}]' % pairs)


@pytest.mark.parametrize(
    "piece", [b"[", b'{xmlel,<<"a">>,[', b'{<<"a">>,<<"b">>},', b'{xmlel,<<"a">>,[],[', b'{xmlcdata,<<"a">>},', b"]}"]
)
@pytest.mark.parametrize("start", [b"[", b'[{xmlel,<<"a">>,['])
def test_time_of_a_payload_grows_with_its_size_only(start: bytes, piece: bytes) -> None:
    """[IMP-071]"""
    with pytest.raises(FeedError):
        xml_of(start + piece * 50_000)


def test_prefixes_stay_as_they_were_written() -> None:
    """[IMP-025]"""
    text = b'{xmlel,<<"x:a">>,[{<<"xmlns:x">>,<<"urn:x">>},{<<"x:k">>,<<"v">>}],[{xmlel,<<"x:b">>,[],[]}]}'

    assert xml_of(b"[%b]" % text) == b'<x:a xmlns:x="urn:x" x:k="v"><x:b></x:b></x:a>'


def test_several_roots_are_written_one_after_the_other() -> None:
    """[IMP-025] `features.moving_in.moving` reports them, because a payload is one element."""
    text = b'[{xmlel,<<"a">>,[],[]},{xmlel,<<"b">>,[],[{xmlcdata,<<"t">>}]}]'

    assert xml_of(text) == b"<a></a><b>t</b>"
    assert xml_of(b"{ignored, []}", len(b"{ignored, ")) == b""


@pytest.mark.parametrize(
    "text",
    [
        b"a", b'<<"a">>', b'{xmlel,<<"a">>,[]}', b'{xmlel,a,[],[]}', b'{xmlel,<<"a b">>,[],[]}', b'{xmlel,<<>>,[],[]}',
        b'{xmlel,<<"a">>,[{<<"b">>}],[]}', b'{xmlel,<<"a">>,[{<<"b=">>,<<"c">>}],[]}',
        b'{xmlel,<<"a">>,[],[<<"b">>]}', b'{xmlel,<<"a">>,[],[[<<"</a>">>]]}', b"{xmlcdata,a}",
        b'{xmlelement,"a",[],[]}', b'{xmlel,<<"a">>,[],[]', b'{xmlel,<<"a">>,[],[],}',
        b'{xmlel,<<"a">>,[],[]}{xmlcdata,<<>>}',
        b'{xmlel,<<"a">>,[{<<"b">>,<<"c">>},],[]}', b'{xmlel,<<"a">>,[{<<"b">>,<<"c">>}{<<"d">>,<<"e">>}],[]}',
        b',{xmlcdata,<<"a">>}', b'{xmlcdata,<<"a">>},', b"{xmlcdata,<<300>>}", b"]}", b"],[", b"",
    ],
)  # fmt: skip
def test_other_payload_is_refused(text: bytes) -> None:
    """[IMP-025]"""
    with pytest.raises(FeedError, match=r"no element of ejabberd|no name of XML"):
        xml_of(b"[%b]" % text if text else b"a")


def test_depth_of_a_payload_is_bounded() -> None:
    """[IMP-025] [IMP-071]"""
    start, end = b'{xmlel,<<"a">>,[],[', b"]}"

    assert xml_of(b"[%b]" % (start * 256 + end * 256)).count(b"<a>") == 256
    with pytest.raises(FeedError, match="deeper than 256"):
        xml_of(b"[%b]" % (start * 257 + end * 257))


def test_head_of_a_tuple_ends_before_the_element_behind_it() -> None:
    """[IMP-021]"""
    text = b'{a, {b, c}, [d], "rest"}'

    assert parse_head(text, 2) == ([ErlangAtom("a"), (ErlangAtom("b"), ErlangAtom("c"))], text.index(b" [d]"))
    for count, message in ((4, "no more than 4"), (5, "no more than 5")):
        with pytest.raises(FeedError, match=message):
            parse_head(text, count)
    with pytest.raises(FeedError, match="no Erlang term"):
        parse_head(b"{a, ], b}", 2)


@pytest.mark.parametrize("blank", [b"", b" ", b"\n   "])
def test_blanks_between_the_parts_of_a_payload_do_not_matter(blank: bytes) -> None:
    """[IMP-025] ejabberd breaks long lines anywhere between two tokens."""
    parts = [
        b"[",
        b"{",
        b"xmlel",
        b",",
        b'<<"a">>',
        b",",
        b"[",
        b"{",
        b'<<"k">>',
        b",",
        b"<<195,\n 159>>",
        b"}",
        b"]",
        b",",
        b"[",
    ]
    parts += [b"{", b"xmlcdata", b",", b'<<"b\\n"\n "c">>', b"}", b"]", b"}", b"]"]

    assert xml_of(blank.join(parts)) == '<a k="ß">b&#10;c</a>'.encode()


def test_damaged_payload_is_read_or_refused() -> None:
    """[IMP-025] [IMP-071] Nothing but FeedError is raised, whatever is missing, repeated or changed."""
    chance = random.Random(70)
    text = text_of_term([element_term(parse_payload(XML.encode()))])
    outcomes: set[object] = set()
    for _ in range(400):
        at, size = chance.randrange(len(text)), chance.randrange(1, 6)
        piece = chance.choice([b"", text[at : at + size] * 2, bytes(chance.randrange(256) for _ in range(size))])
        try:
            outcomes.add(type(xml_of(text[:at] + piece + text[at + size :])))
        except FeedError as error:
            outcomes.add(error.condition)

    assert outcomes == {bytes, Condition.INVALID_PAYLOAD}
