"""The fields of ad-hoc commands: what each accepts, and how it is shown (XEP-0004 3.3, XEP-0122)."""

import pytest

from smartfeeds.core.options import FormFields
from smartfeeds.service import requests as r
from smartfeeds.xmpp.command_fields import (
    CommandField,
    choice_field,
    flag_field,
    jid_field,
    jids_field,
    lines_field,
    number_field,
    text_field,
)
from smartfeeds.xmpp.commands import StepInput
from smartfeeds.xmpp.forms import encode_form
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault
from unit.xmpp.wire import ACTOR, SERVICE

FIELDS: dict[str, CommandField[object]] = {  # type: ignore[dict-item]
    "text": text_field("f", "F", 5),
    "optional text": text_field("f", "F", 5, required=False),
    "any text": text_field("f", "F", 5, any_character=True),
    "lines": lines_field("f", "F", 5),
    "choice": choice_field("f", "F", {"a": "A", "b": ""}),
    "flag": flag_field("f", "F", default=True),
    "number": number_field("f", "F", 5, 120, default=60),
    "jid": jid_field("f", "F"),
    "optional jid": jid_field("f", "F", required=False),
    "jids": jids_field("f", "F"),
}


async def handle(_request: r.Request) -> object:
    raise AssertionError("a field sends no request")


def step(values: FormFields) -> StepInput:
    return StepInput(ACTOR, SERVICE, values, handle)


@pytest.mark.parametrize(
    ("name", "values", "value"),
    [
        ("text", ("éa",), "éa"),
        ("optional text", (), ""),
        ("optional text", ("",), ""),
        ("any text", ("a\nb",), "a\nb"),
        ("lines", ("a", "b"), "a\nb"),
        ("choice", ("b",), "b"),
        ("choice", (), "a"),
        ("flag", (), True),
        ("flag", ("0",), False),
        ("number", ("5",), 5),
        ("number", ("120",), 120),
        ("number", (), 60),
        ("jid", ("Bob@Example.ORG",), "bob@example.org"),
        ("optional jid", ("",), ""),
        ("jids", ("a@x", "", "A@x", "b@x/my phone"), ("a@x", "b@x/my phone")),
        ("jids", ("a@x\n b@x \n",), ("a@x", "b@x")),
        ("lines", ("a\nb",), "a\nb"),
    ],
)
def test_field_reads_its_value(name: str, values: tuple[str, ...], value: object) -> None:
    assert FIELDS[name].read(step({"f": values} if values else {})) == value


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("text", ()),
        ("text", ("",)),
        ("text", ("éééa",)),
        ("text", ("a\nb",)),
        ("text", ("a", "b")),
        ("any text", ("aaaaaa",)),
        ("lines", ()),
        ("lines", (" ", "\n")),
        ("lines", ("abc", "def")),
        ("choice", ("c",)),
        ("choice", ("a", "b")),
        ("choice", ("",)),
        ("flag", ("yes",)),
        ("number", ("4",)),
        ("number", ("121",)),
        ("number", ("٦٠",)),
        ("number", ("9" * 5_000,)),
        ("number", ("6.0",)),
        ("jid", ()),
        ("jid", ("bob@example.org/home",)),
        ("jid", ("a@b@c",)),
        ("optional jid", ("@",)),
        ("jids", ()),
        ("jids", ("a@x", "@")),
        ("jids", tuple(f"u{number}@x" for number in range(101))),
    ],
)
def test_field_rejects_other_values_and_names_itself(name: str, values: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as error:
        FIELDS[name].read(step({"f": values}))

    assert error.value.fault is CommandFault.BAD_PAYLOAD
    assert error.value.text.startswith("the field f must have ")


def test_number_is_shown_with_its_bounds() -> None:
    """XEP-0122 3.2 and 3.3.2, XEP-0004 3.2: the elements in the order of the schema."""
    field = number_field("delay", "Delay", 0, 9, default=3)

    assert (
        "<field var='delay' type='text-single' label='Delay'>"
        "<validate xmlns='http://jabber.org/protocol/xdata-validate' datatype='xs:integer'>"
        "<range min='0' max='9'/></validate><required/><value>3</value></field>"
    ) in encode_form("form", "urn:x", (field.show(),))


def test_text_is_shown_with_its_description() -> None:
    field = text_field("f", "F", 5, description="A & B")

    assert "<field var='f' type='text-single' label='F'><desc>A &amp; B</desc>" in encode_form(
        "form", "urn:x", (field.again(step({"f": ("old",)})),)
    )
