"""Data forms (XEP-0004, XEP-0068, XEP-0122)."""

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import KIND, OPTIONS, PUBSUB, FieldType, FormFields, NodeOptions, OptionLimits
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.encode import ENCODERS
from smartfeeds.xmpp.forms import config_fields, encode_form, parse_submit
from unit.xmpp.wire import DATA, OW, PS, field, parse, submit

TYPE = f"{PS}#node_config"
BAD_FORMS = {
    "type form": f"<x xmlns='{DATA}' type='form'/>",
    "type result": f"<x xmlns='{DATA}' type='result'/>",
    "another FORM_TYPE": submit("urn:other"),
    "two FORM_TYPEs": submit(TYPE, field("FORM_TYPE", "urn:other")),
    "FORM_TYPE without a value": f"<x xmlns='{DATA}' type='submit'><field var='FORM_TYPE'/></x>",
}


def parsed(form: str) -> FormFields | None:
    return parse_submit(parse(f"<configure>{form}</configure>"), TYPE)


def test_form_submitted_gives_fields() -> None:
    """Several values, none, and empty ones stay what they are [xep-map 231]."""
    form = submit(TYPE, field("a", "1", "2") + field("b") + field("c", "") + field("d", " x "))

    assert parsed(form) == {"a": ("1", "2"), "b": (), "c": ("",), "d": (" x ",)}


@pytest.mark.parametrize("form_type", ["", " type='hidden'", " type='text-single'"])
def test_form_with_untyped_form_type_is_accepted(form_type: str) -> None:
    """[xep-map 230]"""
    form = f"<x xmlns='{DATA}' type='submit'><field var='FORM_TYPE'{form_type}><value>{TYPE}</value></field></x>"

    assert parsed(form) == {}


def test_form_without_form_type_is_accepted() -> None:
    assert parsed(f"<x xmlns='{DATA}' type='submit'>{field('a', '1')}</x>") == {"a": ("1",)}


def test_form_without_type_counts_as_submitted() -> None:
    assert parsed(f"<x xmlns='{DATA}'>{field('a', '1')}</x>") == {"a": ("1",)}


def test_form_cancelled_gives_none() -> None:
    assert parsed(submit("urn:other", kind="cancel")) is None


def test_form_ignores_what_it_does_not_know() -> None:
    """XEP-0004 3.1."""
    strange = "<field><value>x</value></field><title>t</title><reported/><field var='' /><a xmlns='urn:a'/>"

    assert parsed(submit(TYPE, strange + "<field var='a'><value>1<b/></value><c/></field>")) == {"a": ("1",)}


def test_form_field_twice_holds_all_values() -> None:
    """A single value that comes twice is refused where the field is read, never guessed."""
    assert parsed(submit(TYPE, field("a", "1") + field("a", "2"))) == {"a": ("1", "2")}


@pytest.mark.parametrize("form", BAD_FORMS.values(), ids=BAD_FORMS.keys())
def test_form_of_wrong_type_is_refused(form: str) -> None:
    """[xep-map 70]"""
    with pytest.raises(FeedError) as refused:
        parsed(form)
    assert refused.value.condition is Condition.BAD_REQUEST


def test_form_missing_is_refused() -> None:
    with pytest.raises(FeedError):
        parse_submit(parse("<configure/>"), TYPE)


@pytest.mark.parametrize("kind", NodeKind)
def test_configuration_form_has_all_offered_options(kind: NodeKind) -> None:
    """A hidden FORM_TYPE, current values, option lists [xep-map 65] [xep-map 230] [xep-map 231]."""
    stored = {"title": ("A & <B>",), "contact": ("a@b", "c@d"), "publish_model": ("open",)}
    answer = r.Configuration("n", NodeOptions(kind, stored))
    configure = parse(ENCODERS[r.Configuration](answer))[0]
    form = configure[0]
    fields = {each.get("var"): each for each in form}

    assert configure.tag == f"{{{OW}}}configure" and configure.get("node") == "n"
    assert form.tag == f"{{{DATA}}}x" and form.get("type") == "form"
    assert fields["FORM_TYPE"].get("type") == "hidden" and values_of(fields["FORM_TYPE"]) == [TYPE]
    assert set(fields) - {"FORM_TYPE"} == {f"{PUBSUB}{var}" for var in OPTIONS}
    assert values_of(fields["pubsub#title"]) == ["A & <B>"]
    assert values_of(fields["pubsub#contact"]) == ["a@b", "c@d"]
    assert values_of(fields["pubsub#publish_model"]) == ["open"]
    for each in fields.values():
        if each.get("type") == "list-single":
            choices = [value for option in each.iterchildren(f"{{{DATA}}}option") for value in values_of(option)]
            assert values_of(each)[0] in choices


@pytest.mark.parametrize("kind", NodeKind)
def test_configuration_form_hints_integer_or_max(kind: NodeKind) -> None:
    """[xep-map 232]"""
    form = parse(encode_form("form", TYPE, config_fields(NodeOptions(kind), OptionLimits(), creating=False)))
    hinted = {
        each.get("var"): hint.get("datatype")
        for each in form
        for hint in each.iterchildren("{http://jabber.org/protocol/xdata-validate}validate")
    }

    assert hinted == {"pubsub#max_items": "pubsub:integer-or-max", "pubsub#item_expire": "pubsub:integer-or-max"}


@pytest.mark.parametrize("kind", NodeKind)
def test_default_form_submitted_unchanged_gives_default_options(kind: NodeKind) -> None:
    """[xep-map 77]"""
    answer = ENCODERS[r.Configuration](r.Configuration(None, NodeOptions(kind)))
    answer = answer.replace(b"type='form'", b"type='submit'")
    default = parse(answer)[0]
    form = parse_submit(default, TYPE)

    assert default.tag == f"{{{OW}}}default" and default.get("node") is None
    assert form is not None and form[KIND] == ("",)
    assert NodeOptions(kind).apply(form, OptionLimits()) == NodeOptions(kind)


def test_field_types_are_those_of_xep_0004() -> None:
    written = {each.type for each in config_fields(NodeOptions(NodeKind.FEED), OptionLimits(), creating=True)}

    assert written <= {kind.value for kind in FieldType}


def values_of(element: object) -> list[str]:
    return [value.text or "" for value in element.iterchildren(f"{{{DATA}}}value")]  # type: ignore[attr-defined]
