"""Node options: one table for forms, configuration, publish-options and defaults."""

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import (
    DETAILS,
    FULL_POLICIES,
    MAX_EXPIRE_S,
    MAX_TEXT,
    MAX_VALUES,
    OPTIONS,
    REFUSED,
    SOCIAL_FEED,
    AccessModel,
    FieldType,
    FormFields,
    NodeOptions,
    Option,
    OptionLimits,
    PublishModel,
    how_to_generic,
)
from smartfeeds.errors import Condition, FeedError

FEED, GENERIC = NodeKind.FEED, NodeKind.GENERIC
LIMITS = OptionLimits(max_payload_size_bytes=65_536, max_items=10_000)


def set_option(kind: NodeKind, var: str, *values: str) -> FormFields:
    return NodeOptions(kind).apply({f"pubsub#{var}": values}, LIMITS).stored


def refusal(kind: NodeKind, var: str, *values: str) -> Condition:
    with pytest.raises(FeedError) as caught:
        set_option(kind, var, *values)
    return caught.value.condition


@pytest.mark.parametrize("kind", NodeKind)
@pytest.mark.parametrize("var", sorted(OPTIONS))
def test_every_default_is_accepted_and_stored_as_nothing(var: str, kind: NodeKind) -> None:
    """[xep-map 77]"""
    assert set_option(kind, var, *OPTIONS[var].defaults[kind]) == {}


@pytest.mark.parametrize(
    ("var", "default"),
    [
        ("notify_retract", "true"),
        ("max_items", "max"),
        ("item_expire", "max"),
        ("persist_items", "true"),
        ("purge_offline", "false"),
        ("send_last_published_item", "never"),
        ("access_model", "open"),
        ("publish_model", "publishers"),
        ("deliver_notifications", "true"),
        ("deliver_payloads", "true"),
        ("notification_type", "headline"),
        ("notify_delete", "true"),
        ("notify_config", "false"),
        ("itemreply", "publisher"),
        ("node_type", "leaf"),
        ("type", "urn:xmpp:pubsub-social-feed:1"),
    ],
)
def test_default_of_a_feed_is_that_of_the_map(var: str, default: str) -> None:
    """[xep-map 233] [xep-map 165]"""
    assert NodeOptions(FEED).values_of(OPTIONS[var]) == (default,)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.var)
def test_list_single_options_carry_their_choices(option: Option[object]) -> None:
    """[xep-map 231] [xep-map 232]"""
    assert bool(option.choices(LIMITS)) is (option.type is FieldType.LIST_SINGLE)
    assert set(option.defaults) == set(NodeKind)
    assert (option.datatype == "pubsub:integer-or-max") is (option.var in {"max_items", "item_expire"})


@pytest.mark.parametrize(("written", "kept"), [("0", ("false",)), ("false", ("false",)), ("1", None), ("true", None)])
def test_apply_boolean_in_every_spelling(written: str, kept: tuple[str, ...] | None) -> None:
    """[xep-map 68]"""
    assert set_option(FEED, "notify_retract", written).get("notify_retract") == kept


@pytest.mark.parametrize("values", [("maybe",), (), ("",), ("1", "1")])
def test_apply_boolean_of_something_else_is_not_acceptable(values: tuple[str, ...]) -> None:
    assert refusal(FEED, "notify_retract", *values) is Condition.NOT_ACCEPTABLE


@pytest.mark.parametrize("value", ["max", "", "10000", "999999999", " 10000 "])
def test_apply_max_items_unlimited_is_max_on_a_feed(value: str) -> None:
    """[SF-012] [xep-map 71]"""
    assert set_option(FEED, "max_items", value) == {}


@pytest.mark.parametrize("value", ["0", "1", "9999", "-1", "ten", "1.5", "१"])
def test_apply_max_items_lower_is_not_acceptable_on_a_feed(value: str) -> None:
    """[SF-012] [xep-map 71]"""
    assert refusal(FEED, "max_items", value) is Condition.NOT_ACCEPTABLE


def test_apply_max_items_on_a_generic_node_is_a_number_up_to_the_ceiling() -> None:
    """[xep-map 73]"""
    assert set_option(GENERIC, "max_items", "007") == {"max_items": ("7",)}
    assert set_option(GENERIC, "max_items", "max") == {}
    assert refusal(GENERIC, "max_items", "10001") is Condition.NOT_ACCEPTABLE
    assert refusal(GENERIC, "max_items", "0") is Condition.NOT_ACCEPTABLE
    assert refusal(GENERIC, "max_items") is Condition.NOT_ACCEPTABLE


@pytest.mark.parametrize(
    ("var", "value"),
    [
        ("purge_offline", "true"),
        ("presence_based_delivery", "online"),
        ("tempsub", "2"),
        ("max_payload_size", "65537"),
        ("max_payload_size", "0"),
        ("publish_model", "everybody"),
        ("publish_model", ""),
        ("notification_type", "chat"),
        ("send_last_published_item", "on_presence"),
        ("itemreply", "room"),
        ("item_expire", "-1"),
        ("persist_items", "maybe"),
        ("title", "a\x07b"),
        ("title", "x" * (MAX_TEXT + 1)),
        *[(var, "http://example.org/") for var in sorted(REFUSED)],
    ],
)
@pytest.mark.parametrize("kind", NodeKind)
def test_apply_of_what_may_not_be_set_is_not_acceptable(kind: NodeKind, var: str, value: str) -> None:
    """[xep-map 72] [xep-map 74]"""
    assert refusal(kind, var, value) is Condition.NOT_ACCEPTABLE


@pytest.mark.parametrize(
    ("var", "value", "stored"),
    [("item_expire", "086400", "86400"), ("persist_items", "0", "false")],
)
def test_apply_of_what_a_feed_refuses_and_a_generic_node_accepts(var: str, value: str, stored: str) -> None:
    """[xep-map 72]"""
    assert refusal(FEED, var, value) is Condition.NOT_ACCEPTABLE
    assert set_option(GENERIC, var, value) == {var: (stored,)}


@pytest.mark.parametrize("value", ["presence", "roster", "nonsense", ""])
def test_apply_access_model_unknown_is_its_own_error(value: str) -> None:
    """[xep-map 62]"""
    assert refusal(FEED, "access_model", value) is Condition.UNSUPPORTED_ACCESS_MODEL
    assert set_option(FEED, "access_model", "whitelist") == {"access_model": ("whitelist",)}


def test_apply_node_type_collection_is_unsupported() -> None:
    """[xep-map 63]"""
    with pytest.raises(FeedError) as caught:
        set_option(FEED, "node_type", "collection")

    assert (caught.value.condition, caught.value.feature) == (Condition.UNSUPPORTED, "collections")


def test_apply_jid_multi_normalises_and_refuses_malformed_addresses() -> None:
    """[xep-map 231]"""
    assert set_option(FEED, "contact", "Alice@X", "", "b@y/R") == {"contact": ("alice@x", "b@y/R")}
    assert set_option(FEED, "contact") == {}
    assert refusal(FEED, "contact", "a@@b") is Condition.JID_MALFORMED
    assert refusal(FEED, "contact", *["a@b"] * (MAX_VALUES + 1)) is Condition.NOT_ACCEPTABLE


def test_apply_text_without_value_is_empty_and_two_values_are_refused() -> None:
    assert set_option(FEED, "title") == {}
    assert set_option(FEED, "title", "News") == {"title": ("News",)}
    assert refusal(FEED, "title", "a", "b") is Condition.NOT_ACCEPTABLE


def test_apply_ignores_unknown_fields_and_changes_only_those_in_the_form() -> None:
    """[xep-map 64] [xep-map 67]"""
    current = {"title": ("Old",), "language": ("en",)}
    submitted = {
        "pubsub#title": ("New",),
        "pubsub#send_item_subscribe": ("1",),
        "title": ("Not ours",),
        "FORM_TYPE": ("http://jabber.org/protocol/pubsub#node_config",),
        "pubsub#body_xslt": ("",),
    }

    options = NodeOptions(FEED, current)
    assert options.apply(submitted, LIMITS).stored == {"title": ("New",), "language": ("en",)}
    assert options.apply({"pubsub#title": ("",)}, LIMITS).stored == {"language": ("en",)}
    assert current == {"title": ("Old",), "language": ("en",)}


def test_apply_refused_leaves_the_current_options_alone() -> None:
    """[xep-map 62]"""
    current = {"title": ("Old",)}
    with pytest.raises(FeedError):
        NodeOptions(FEED, current).apply({"pubsub#title": ("New",), "pubsub#persist_items": ("0",)}, LIMITS)

    assert current == {"title": ("Old",)}


def test_defaults_of_a_feed_as_typed_values() -> None:
    options = NodeOptions(FEED)

    assert (options.title, options.contact, options.type) == ("", (), SOCIAL_FEED)
    assert (options.access_model, options.publish_model) == (AccessModel.OPEN, PublishModel.PUBLISHERS)
    assert (options.max_items, options.item_expire, options.max_payload_size) == (None, None, 65_536)
    assert options.notify_delete is True and options.notify_sub is False
    assert (options.listed, options.shows_publisher, options.details) == (True, True, "")
    assert NodeOptions(GENERIC).type == ""


def test_stored_options_as_typed_values() -> None:
    stored = {
        "title": ("News",),
        "contact": ("a@b", "c@d"),
        "access_model": ("whitelist",),
        "publish_model": ("open",),
        "max_items": ("7",),
        "max_payload_size": ("1000",),
        "notify_delete": ("false",),
        "itemreply": ("none",),
        DETAILS: ("{}",),
    }
    options = NodeOptions(GENERIC, stored)

    assert (options.title, options.contact) == ("News", ("a@b", "c@d"))
    assert (options.access_model, options.publish_model) == (AccessModel.WHITELIST, PublishModel.OPEN)
    assert (options.max_items, options.max_payload_size, options.notify_delete) == (7, 1_000, False)
    assert (options.listed, options.shows_publisher, options.details) == (False, False, "{}")


def test_typed_value_is_read_from_its_texts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    options = NodeOptions(FEED, {"title": ("News",)})
    assert options.title == "News"

    monkeypatch.setattr(NodeOptions, "values_of", None)

    assert options.title == "News"
    with pytest.raises(TypeError):
        _ = options.description


def test_options_are_equal_by_kind_and_stored_values() -> None:
    assert NodeOptions(FEED, {"title": ("A",)}) == NodeOptions(FEED).apply({"pubsub#title": ("A",)}, LIMITS)
    assert NodeOptions(FEED) != NodeOptions(GENERIC)
    assert NodeOptions(FEED) != NodeOptions(FEED, {"title": ("A",)})
    assert repr(NodeOptions(FEED, {"title": ("A",)})) == "NodeOptions(NodeKind.FEED, {'title': ('A',)})"


def test_with_details_keeps_the_other_options() -> None:
    options = NodeOptions(FEED, {"title": ("A",)}).with_details("{}")

    assert (options.title, options.details) == ("A", "{}")


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"pubsub#max_items": ("max",)},
        {"pubsub#max_items": ("10000",)},
        {"pubsub#notify_retract": ("1",)},
        {"pubsub#notify_retract": ("true",), "pubsub#access_model": ("open",)},
    ],
)
def test_unmet_of_options_that_match_is_none(wanted: dict[str, tuple[str, ...]]) -> None:
    """[xep-map 145] [xep-map 149]"""
    assert NodeOptions(FEED).unmet(wanted, LIMITS) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pubsub#access_model", "whitelist"),
        ("pubsub#access_model", "presence"),
        ("pubsub#max_items", "1"),
        ("pubsub#colour", "red"),
        ("max_items", "max"),
        ("pubsub#collection", "x"),
    ],
)
def test_unmet_of_an_option_that_differs_or_is_unknown_names_it(name: str, value: str) -> None:
    """[xep-map 146] [xep-map 147]"""
    assert NodeOptions(FEED).unmet({"pubsub#title": ("",), name: (value,)}, LIMITS) == name


def test_unmet_ignores_what_only_owners_notice() -> None:
    """Movim sends notify_sub with each post; a value that is none is still refused."""
    assert NodeOptions(FEED).unmet({"pubsub#notify_sub": ("true",)}, LIMITS) is None
    assert NodeOptions(FEED).unmet({"pubsub#notify_sub": ("maybe",)}, LIMITS) == "pubsub#notify_sub"


def test_normalise_of_a_choice_gives_it_back() -> None:
    assert NodeOptions.publish_model.normalise(FEED, ("open",), LIMITS) == ("open",)


def test_initial_options_lower_the_payload_size_where_the_service_has_less() -> None:
    """[xep-map 74]"""
    lower, higher = (OptionLimits(max_payload_size_bytes=size_bytes) for size_bytes in (1_000, 10_000_000))

    assert NodeOptions.initial(FEED, lower).max_payload_size == 1_000
    assert NodeOptions.initial(FEED, higher) == NodeOptions(FEED)


@pytest.mark.parametrize(
    ("kind", "var", "value", "text"),
    [
        *[
            (
                FEED,
                "max_items",
                value,
                "pubsub#max_items: a feed never expires items; send max, or a whole number from 10000, which means max,"
                f" or {how_to_generic(LIMITS)}",
            )
            for value in ("5", "-1", "many")
        ],
        (
            FEED,
            "language",
            "en_GB",
            "pubsub#language: 'en_GB' is not a language tag; send one such as en or pt-BR",
        ),
        (GENERIC, "max_items", "0", f"pubsub#max_items: a whole number from 1 to {LIMITS.max_items}"),
        (
            FEED,
            "item_expire",
            "60",
            f"pubsub#item_expire: the items of a feed do not expire; send max, or {how_to_generic(LIMITS)}",
        ),
        (GENERIC, "item_expire", "soon", f"pubsub#item_expire: a whole number from 1 to {MAX_EXPIRE_S}"),
        (GENERIC, "publish_node_full", "burst", "pubsub#publish_node_full: the values are " + ", ".join(FULL_POLICIES)),
        (
            FEED,
            "max_payload_size",
            "0",
            f"pubsub#max_payload_size: a whole number from 1 to {LIMITS.max_payload_size_bytes}",
        ),
        (
            FEED,
            "persist_items",
            "false",
            f"pubsub#persist_items: a feed stores its items; send true, or {how_to_generic(LIMITS)}",
        ),
        (FEED, "notification_type", "shout", "pubsub#notification_type: the values are headline, normal"),
        (FEED, "notify_sub", "maybe", "pubsub#notify_sub: true or false"),
    ],
)
def test_apply_names_the_field_that_it_refuses_and_why(kind: NodeKind, var: str, value: str, text: str) -> None:
    """[xep-map 64]"""
    with pytest.raises(FeedError) as caught:
        set_option(kind, var, value)

    assert caught.value.text == text


@pytest.mark.parametrize(
    "value", ["en", "pt-BR", "zh-cmn-Hans-CN", "de-CH-1996", "sl-rozaj-biske", "x-klingon", "i-hak"]
)
@pytest.mark.parametrize("kind", NodeKind)
def test_apply_language_of_a_language_tag_is_stored(kind: NodeKind, value: str) -> None:
    assert set_option(kind, "language", value) == {"language": (value,)}
    assert set_option(kind, "language", "") == {}


@pytest.mark.parametrize(
    "value", ["e", "en_GB", "en-", "-en", "de DE", "English (UK)", "x", "en-a", "a" * 9, "de-x-" + "a" * 40]
)
@pytest.mark.parametrize("kind", NodeKind)
def test_apply_language_of_another_text_is_not_acceptable(kind: NodeKind, value: str) -> None:
    assert refusal(kind, "language", value) is Condition.NOT_ACCEPTABLE


@pytest.mark.parametrize(("value", "accepted"), [("1", True), ("0", False)])
def test_apply_max_items_of_a_generic_node_starts_at_one(value: str, accepted: bool) -> None:
    """[xep-map 73]"""
    if accepted:
        assert set_option(GENERIC, "max_items", value) == {"max_items": (value,)}
    else:
        with pytest.raises(FeedError):
            set_option(GENERIC, "max_items", value)
