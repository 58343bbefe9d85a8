"""Subscription options."""

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.core.suboptions import apply, flag, is_temporary, lease_end_us, values_of
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import Condition, FeedError

FEED, GENERIC = NodeKind.FEED, NodeKind.GENERIC
NOW_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("written", "kept"), [("0", {"deliver": ("false",)}), ("false", {"deliver": ("false",)}), ("1", {}), (" true ", {})]
)
def test_apply_boolean_keeps_only_what_differs_from_the_default(written: str, kept: dict[str, tuple[str, ...]]) -> None:
    """[xep-map 68] [xep-map 128]"""
    assert apply(FEED, {}, {"pubsub#deliver": (written,)}, NOW_US) == kept


def test_apply_changes_only_the_fields_in_the_form() -> None:
    """[xep-map 67]"""
    current = {"deliver": ("false",), "include_body": ("true",)}

    assert apply(FEED, current, {"pubsub#deliver": ("1",)}, NOW_US) == {"include_body": ("true",)}
    assert current["deliver"] == ("false",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deliver", "true"),
        ("pubsub#colour", "red"),
        ("FORM_TYPE", "http://jabber.org/protocol/pubsub#subscribe_options"),
        ("pubsub#digest", "false"),
        ("pubsub#digest", "0"),
        ("pubsub#expire", ""),
        ("pubsub#show-values", "0"),
        ("pubsub#show-values", ""),
    ],
)
def test_apply_of_an_unknown_or_idle_field_changes_nothing(name: str, value: str) -> None:
    assert apply(FEED, {}, {name: (value,)}, NOW_US) == {}


def test_apply_include_body_on_a_generic_node_is_ignored() -> None:
    """[xep-map 125]"""
    assert apply(GENERIC, {}, {"pubsub#include_body": ("true",)}, NOW_US) == {}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("pubsub#deliver", ("maybe",)),
        ("pubsub#deliver", ()),
        ("pubsub#deliver", ("1", "1")),
        ("pubsub#digest", ("true",)),
        ("pubsub#digest_frequency", ("1000",)),
        ("pubsub#expire", ("offline",)),
        ("pubsub#expire", ("presence", "presence")),
        ("pubsub#show-values", ("away", "asleep")),
        ("pubsub#subscription_depth", ("all",)),
    ],
)
def test_apply_of_an_invalid_value_is_refused(name: str, values: tuple[str, ...]) -> None:
    """[xep-map 127]"""
    with pytest.raises(FeedError) as caught:
        apply(FEED, {}, {name: values}, NOW_US)

    assert caught.value.condition is Condition.INVALID_OPTIONS


def test_flag_is_the_default_or_what_was_set() -> None:
    """[xep-map 128]"""
    assert flag({}, "deliver") and not flag({}, "include_body")
    assert not flag({"deliver": ("false",)}, "deliver")


def test_apply_reads_the_fields_behind_an_idle_one() -> None:
    """[xep-map 67]"""
    submitted = {"FORM_TYPE": ("x",), "pubsub#digest": ("false",), "pubsub#deliver": ("0",)}

    assert apply(FEED, {}, submitted, NOW_US) == {"deliver": ("false",)}


@pytest.mark.parametrize(
    ("name", "text"),
    [("pubsub#deliver", "pubsub#deliver must be true or false"), ("pubsub#digest", "pubsub#digest is not supported")],
)
def test_apply_names_the_field_that_it_refuses(name: str, text: str) -> None:
    with pytest.raises(FeedError) as caught:
        apply(FEED, {}, {name: ("maybe",)}, NOW_US)

    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z"),
        (" 2026-01-01T02:00:00.5+01:00 ", "2026-01-01T01:00:00.5Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_apply_stores_the_end_of_a_lease_in_utc(text: str, stored: str) -> None:
    """XEP-0060 12.19."""
    options = apply(GENERIC, {}, {"pubsub#expire": (text,)}, NOW_US)

    assert options == {"expire": (stored,)}
    assert lease_end_us(options) == parse_datetime(stored)
    assert lease_end_us({}) is None


@pytest.mark.parametrize("values", [(), ("",)])
def test_apply_of_an_empty_end_removes_the_lease(values: tuple[str, ...]) -> None:
    """XEP-0060 12.19."""
    assert apply(FEED, {"expire": ("2030-01-01T00:00:00Z",)}, {"pubsub#expire": values}, NOW_US) == {}


def test_apply_stores_an_end_by_presence() -> None:
    """XEP-0060 12.5."""
    options = apply(FEED, {}, {"pubsub#expire": ("presence",)}, NOW_US)

    assert is_temporary(options) and lease_end_us(options) is None
    assert not is_temporary(apply(FEED, options, {"pubsub#expire": ("2030-01-01T00:00:00Z",)}, NOW_US))


@pytest.mark.parametrize(
    ("submitted", "stored"),
    [(("xa", "away", "xa"), ("away", "xa")), (("away", "chat", "dnd", "online", "xa"), None), ((), None)],
)
def test_apply_stores_the_chosen_states_of_presence(submitted: tuple[str, ...], stored: tuple[str, ...] | None) -> None:
    """[xep-map 127]"""
    options = apply(FEED, {"show-values": ("dnd",)}, {"pubsub#show-values": submitted}, NOW_US)

    assert options.get("show-values") == stored
    assert values_of(options, "show-values") == (stored or ("away", "chat", "dnd", "online", "xa"))


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00Z", "2025-12-31T23:59:59Z"])
def test_apply_refuses_a_lease_that_is_over(text: str) -> None:
    """XEP-0060 12.19."""
    with pytest.raises(FeedError) as caught:
        apply(FEED, {}, {"pubsub#expire": (text,)}, NOW_US)

    assert caught.value.text == "pubsub#expire is in the past; send a later time"
