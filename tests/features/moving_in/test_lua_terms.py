"""Lua data as Prosody writes it, and payloads in it."""

import random
import string

import pytest

from smartfeeds.errors import FeedError
from smartfeeds.features.moving_in import lua_terms
from smartfeeds.features.moving_in.lua_terms import MAX_DEPTH, LuaError, LuaTable, LuaValue, parse_table
from smartfeeds.features.moving_in.prosody_stanzas import stanza_xml
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload


def table(text: str) -> LuaTable:
    return parse_table(text.encode())[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\195\188"', "ü"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ('"one\\\ntwo\\nthree"', "one\ntwo\nthree"),
        (r'"\x41\u{e9}\z   B\t"', "AéB\t"),
        (r'"urn:y\001b"', "urn:y\1b"),
        (r'"\255"', "\udcff"),
        ("1795312371", 1795312371),
        ("-2.5e1", -25.0),
        ("0x1F", 31),
        ("true", True),
        ("false", False),
        ("nil", None),
        ("9" * 400, float("inf")),
    ],
)
def test_scalar_is_read(text: str, value: LuaValue) -> None:
    """[IMP-006]"""
    assert table(f"{{ {text}; }}") == LuaTable({}, [value])
    assert table(f'{{ ["k"] = {text}, }}') == LuaTable({"k": value}, [])


def test_fields_and_entries_are_separate_in_any_order_and_notation() -> None:
    """[IMP-002] [IMP-006]"""
    text = '-- written by Prosody\n{ "a"; ["name"] = "x"; { ["deep"] = { 1, 2 } }, other = "y"; [3] = "c"; [9] = 0 };'

    assert table(text) == LuaTable(
        {"name": "x", "other": "y", 9: 0}, ["a", LuaTable({"deep": LuaTable({}, [1, 2])}, []), "c"]
    )
    assert parse_table(b"{}; {}", 4)[1] == 6


@pytest.mark.parametrize(
    "tokens",
    [
        ["{", '"t";', '["a"] = "1";', '["attr"] = {', '["x"] = "2";', '["y"] = "3",', "};", "}"],
        ["{", '["attr"] = {', r'["x"] = "\"2\\";', "},", '["name"] = "n"', "}"],
        ["{", '["attr"] = {', '["x"] = "2";', '["deep"] = {', "};", "};", '"behind";', "}"],
        ["{", '"t";', '["n"] = 1;', '["a"] = "1";', "}"],
        ["{", '["a"] = "1";', '["a"] = "2";', "}"],
    ],
)
def test_table_of_texts_is_the_same_as_one_token_and_as_several(tokens: list[str]) -> None:
    """[IMP-002] [IMP-006] A comment keeps the tokens apart."""
    together, apart = (table(f"{{ {between.join(tokens)}; [2] = 5 }}") for between in (" ", "--\n"))

    assert together == apart
    assert together.entries[1] == 5


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_table_may_have_more_fields_than_one_token(count: int) -> None:
    """[IMP-002] [IMP-006]"""
    fields = {f"k{number}": f"v{number}" for number in range(count)}
    text = " ".join(f'["{key}"] = "{value}";' for key, value in fields.items())

    assert table(f"{{ {text} }}") == LuaTable({**fields}, [])
    assert table(f'{{ {{ "t"; ["attr"] = {{ {text} }}; {text} }} }}').entries == [
        LuaTable({"attr": LuaTable({**fields}, []), **fields}, ["t"])
    ]


@pytest.mark.parametrize(
    "piece", ['["a"]="b";', '["a"]={["b"]="c";};', '{["a"]="b";', '{"t";["a"]={["b"]="c";', "--\n", '"']
)
def test_time_grows_with_the_size_only(piece: str) -> None:
    """[IMP-071] A backtracking pattern would take hours for these texts."""
    with pytest.raises(LuaError):
        table("{" + piece * 50_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{",
        "{ [",
        '{ "open',
        '{ ["k"] = }',
        '{ { ["k"] = "v"; ["l"] = }; }',
        '{ { ["k"] = "v"; ["l"] = { ["m"] = "v"; ["n"] = }; }; }',
        "{ k = }",
        '{ k = ["l"] = 1 }',
        "{ os.exit() }",
        "{ function() end }",
        r'{ "\300" }',
        r'{ "\u{d800ff}" }',
        "{ [nil] = 1 }",
        "{ 1 2 } }"[:5],
    ],
)
def test_other_text_is_an_error_with_its_position(text: str) -> None:
    """[IMP-006] Nothing is run."""
    with pytest.raises(LuaError) as caught:
        table(text)
    assert 0 <= caught.value.position <= len(text)


def test_depth_is_bounded_without_recursion() -> None:
    """[IMP-071]"""
    deepest, _ = parse_table(b"{" * MAX_DEPTH + b"}" * MAX_DEPTH)
    depth = 1
    while deepest.entries:
        (inner,) = deepest.entries
        assert isinstance(inner, LuaTable)
        deepest, depth = inner, depth + 1
    assert depth == MAX_DEPTH

    for opening in (b"{", b'{["a"]='):
        with pytest.raises(LuaError, match="nested more than 512 times"):
            parse_table(opening * 100_000)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """[IMP-071]"""
    monkeypatch.setattr(lua_terms, "MAX_VALUE_BYTES", 1_000)
    fitting = b'{ "' + b"x" * 990 + b'" }'
    assert parse_table(fitting)[0].entries == ["x" * 990]

    with pytest.raises(LuaError, match="longer than 1000 bytes"):
        parse_table(b'{ "' + b"x" * 1_000 + b'" }')
    with pytest.raises(LuaError, match="longer than 1000 bytes"):
        parse_table(b'{ "' + b"x" * 100_000)


def written(value: LuaValue, chance: random.Random) -> str:
    """A value as Lua text, in one of its notations."""
    if isinstance(value, LuaTable):
        entries = [written(entry, chance) for entry in value.entries]
        for key, field in value.fields.items():
            plain = isinstance(key, str) and key.isidentifier() and key.isascii() and chance.random() < 0.3
            name = key if plain else f"[{written(key, chance)}]"
            entries.insert(chance.randint(0, len(entries)), f"{name} = {written(field, chance)}")
        return (
            "{" + "".join(f"{chance.choice(('', ' ', chr(10)))}{entry}{chance.choice(';,')}" for entry in entries) + "}"
        )
    if isinstance(value, str):
        data = value.encode()
        return '"' + "".join(_escaped(byte, chance) for byte in data) + '"' if data else '""'
    return (
        {None: "nil", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)
    )


def _escaped(byte: int, chance: random.Random) -> str:
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    if byte == 10:
        return chance.choice(("\\n", "\\\n"))
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03d}"


def model(chance: random.Random, depth: int = 0) -> LuaValue:
    """A value. Tables have no numbered fields, which could be entries."""
    kind = chance.choice(("text", "number", "constant", "table", "table") if depth < 5 else ("text", "number"))
    if kind == "table" or depth == 0:
        keys = {text(chance) for _ in range(chance.randint(0, 3))}
        entries = [model(chance, depth + 1) for _ in range(chance.randint(0, 3))]
        return LuaTable({key: model(chance, depth + 1) for key in keys}, entries)
    if kind == "number":
        return chance.choice((chance.randint(-(2**40), 2**40), chance.uniform(-1e6, 1e6)))
    return chance.choice((True, False, None)) if kind == "constant" else text(chance)


def text(chance: random.Random) -> str:
    alphabet = string.ascii_letters + string.digits + '"\\\n\t ;,{}[]=-ü\u20ac\U0001f600\0'
    return "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 12)))


def test_what_is_written_is_read_again() -> None:
    """[IMP-071]"""
    for seed in range(300):
        chance = random.Random(seed)
        value = model(chance)
        assert parse_table(written(value, chance).encode())[0] == value, seed


def test_damaged_data_is_a_value_or_an_error() -> None:
    """[IMP-071] Bytes are removed, doubled and changed."""
    refusals = 0
    for seed in range(600):
        chance = random.Random(seed)
        data = bytearray(written(model(chance), chance).encode())
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            noise = bytes(chance.choices(b'{}[]="\\;,0a\n', k=chance.randint(0, 3)))
            data[place : place + chance.randint(0, 2)] = noise or b"{"
        try:
            position = parse_table(bytes(data))[1]
        except LuaError as error:
            refusals += 1
            position = error.position
        assert 0 <= position <= len(data), seed
    assert 100 < refusals < 600


def payload(text: str) -> str:
    return accept_payload(parse_payload(stanza_xml(table(text)))).decode()


ATTR = '["attr"] = {["xmlns"] = "urn:x"; %s}'


def test_stamp_of_the_root_is_removed_and_that_of_a_child_stays() -> None:
    """[IMP-005]"""
    child = '{["name"] = "c"; ' + ATTR % '["stamp"] = "mine";' + "}"
    assert (
        payload('{["name"] = "e"; ' + ATTR % '["stamp"] = "2026-11-22T02:42:39Z";' + child + "}")
        == '<e xmlns="urn:x"><c stamp="mine"></c></e>'
    )


def test_namespaces_are_declared_where_they_change() -> None:
    """[IMP-006]"""
    children = (
        '{["name"] = "same"; ["attr"] = {["xmlns"] = "urn:x"}};'
        '{["name"] = "none"; ["attr"] = {["xmlns"] = ""}; {["name"] = "inner"; ["attr"] = {["xmlns"] = ""}}};'
        '{["name"] = "heir"; ["attr"] = {}};'
    )
    attributes = '["urn:y\\001b"] = "2<&\\"\'"; ["xml:lang"] = "de"; ["c"] = "tab\\t";'

    assert payload('{["name"] = "e"; ' + ATTR % attributes + ";" + children + "}") == (
        '<e xmlns="urn:x" xmlns:ns0="urn:y" c="tab&#x9;" xml:lang="de" ns0:b="2&lt;&amp;&quot;\'">'
        '<same></same><none xmlns=""><inner></inner></none><heir></heir></e>'
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{["attr"] = {}}', "has no name"),
        ('{["name"] = "e"; ["attr"] = "x"}', "no table of attributes"),
        ('{["name"] = "e"; ["attr"] = {["a"] = {}}}', "attribute 'a' of the payload is no text"),
        ('{["name"] = "e"; true}', "neither an element nor a text"),
        ('{["name"] = "e"; "\\000"}', "character that XML forbids"),
        ('{["name"] = "e"; "\\255"}', "character that XML forbids"),
        ('{["name"] = "e\\255"}', "character that XML forbids"),
        ('{["name"] = "e"; ["attr"] = {["b\\255"] = "x"}}', "character that XML forbids"),
        ('{["name"] = "e b=\\"1\\""}', "is no name of XML"),
        ('{["name"] = ""}', "is no name of XML"),
        ('{["name"] = "e"; ["attr"] = {["b=\\"1\\" c"] = "x"}}', "is no name of XML"),
        ('{["name"] = "e"; ["attr"] = {["urn:y\\001b c"] = "x"}}', "is no name of XML"),
    ],
)
def test_table_that_is_no_stanza_is_an_error(text: str, reason: str) -> None:
    """[IMP-067]"""
    with pytest.raises(FeedError, match=reason):
        stanza_xml(table(text))
