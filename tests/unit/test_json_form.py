"""The JSON of stored values: what is written, and what is refused."""

import json
from dataclasses import dataclass
from enum import Enum

import pytest

from smartfeeds.core.jid import Jid
from smartfeeds.json_form import JsonForm


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    at_us: int
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    name: str
    colour: Colour
    part: Part | None = None
    counts: dict[int, int] | None = None
    person: Jid | None = None


WHOLE = Whole("näme", Colour.RED, Part(1, ("a", "b")), {7: 8}, Jid("ann", "a.example", "x"))
FORM = JsonForm(Whole)


def test_value_is_read_as_it_was_written() -> None:
    text = FORM.write(WHOLE)
    assert "näme" in text
    assert FORM.read(text) == FORM.read(text.encode()) == WHOLE
    assert str(FORM.read(text).person) == "ann@a.example/x"
    many = JsonForm(dict[Colour, Part])
    assert many.read(many.write({Colour.RED: Part(1)})) == {Colour.RED: Part(1)}


def test_columns_are_beside_the_json() -> None:
    form = JsonForm(Whole, columns={"name", "colour"})
    text = form.write(WHOLE)
    assert json.loads(text).keys() == {"part", "counts", "person"}
    assert form.read(text, name="other", colour="red") == Whole(
        "other", Colour.RED, WHOLE.part, WHOLE.counts, WHOLE.person
    )


def test_sparse_form_has_no_defaults() -> None:
    form = JsonForm(Whole, sparse=True)
    text = form.write(Whole("n", Colour.RED, Part(1)))
    assert json.loads(text) == {"name": "n", "colour": "red", "part": {"at_us": 1}}
    assert form.read(text) == Whole("n", Colour.RED, Part(1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Invalid JSON"),
        ("{", "Invalid JSON"),
        ("[]", "^Input should be"),
        ('{"name":"n","colour":"red","size":1}', "size: Unexpected"),
        ('{"name":"n","colour":"red","part":{"at_us":1,"size":1}}', "part.size: Unexpected"),
        ("{}", "name: Field required"),
        ('{"name":7,"colour":"red"}', "name: "),
        ('{"name":"n","colour":"blue"}', "colour: "),
        ('{"name":"n","colour":"red","part":{}}', "part.at_us: Field required"),
        *(
            (
                f'{{"name":"n","colour":"red","part":{{"at_us":{number}}}}}',
                "part.at_us: Input should be a valid integer",
            )
            for number in ('"1"', "1.0", "true", "null")
        ),
        ('{"name":"n","colour":"red","part":{"at_us":1,"tags":"ab"}}', "part.tags: "),
        ("[" * 100_000, "Invalid JSON"),
    ],
)
def test_damaged_text_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        FORM.read(text)


def test_lenient_form_ignores_what_it_does_not_know() -> None:
    form = JsonForm(Whole, lenient=True)
    assert form.read('{"name":"n","colour":"red","size":1,"part":{"at_us":1,"size":1}}') == Whole(
        "n", Colour.RED, Part(1)
    )
    with pytest.raises(ValueError, match="colour: Field required"):
        form.read('{"name":"n"}')


@pytest.mark.parametrize("text", ["{", "[]", '{"part":7}', '{"part":{}}', '{"part":{"at_us":"1"}}'])
def test_damaged_text_beside_columns_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        JsonForm(Whole, columns={"name", "colour"}).read(text, name="n", colour="red")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"part":' * 100_000, "\udcff", b"\xff"])
def test_hostile_text_beside_columns_is_an_error_of_the_value(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        JsonForm(Whole, columns={"name", "colour"}).read(text, name="n", colour="red")
    with pytest.raises(ValueError):
        FORM.read(text)


def test_column_of_another_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="name: Input should be a valid string"):
        JsonForm(Whole, columns={"name", "colour"}).read("{}", name=7, colour="red")


@dataclass(frozen=True, slots=True)
class Digest:
    name: str
    digest: bytes


def test_column_of_bytes_is_beside_the_json() -> None:
    form = JsonForm(Digest, columns={"digest"})
    assert form.read('{"name":"n"}', digest=b"\xff\x00") == Digest("n", b"\xff\x00")
    with pytest.raises(ValueError, match="name: Input should not be bytes"):
        form.read("{}", name=b"n", digest=b"")
    with pytest.raises(ValueError, match="digest: "):
        form.read('{"name":"n"}', digest=7)


def test_error_does_not_quote_the_value() -> None:
    with pytest.raises(ValueError) as caught:
        FORM.read('{"name":{"secret":"s3cret"},"colour":"s3cret"}')
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_value_of_another_type_is_not_written() -> None:
    with pytest.raises(ValueError):
        FORM.write(Whole(7, Colour.RED))  # type: ignore[arg-type]
