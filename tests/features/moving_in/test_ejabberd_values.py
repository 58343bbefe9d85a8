"""Options of ejabberd as fields of the configuration form."""

import pytest

from smartfeeds.features.moving_in.ejabberd_values import moved_subscription, read_options, subscribe_fields
from smartfeeds.features.moving_in.erlang_terms import Term, parse_term
from smartfeeds.features.moving_in.moved import MovedProblem, MovedSubscription


@pytest.mark.parametrize(
    ("name", "term", "values"),
    [
        ("access_model", b"whitelist", ("whitelist",)),
        ("max_items", b"10", ("10",)),
        ("max_items", b"max", ("max",)),
        ("max_items", b"infinity", ("max",)),
        ("max_items", b"unlimited", ("max",)),
        ("title", b"<<195,159>>", ("ß",)),
        ("title", b"<<>>", ("",)),
        ("title", b'"old text"', ("old text",)),
        ("roster_groups_allowed", b'[<<"a">>,<<"b">>]', ("a", "b")),
        ("roster_groups_allowed", b"[]", None),
        ("description", b"undefined", None),
        ("rsm", b"true", None),
    ],
)
def test_option_is_read(name: str, term: bytes, values: tuple[str, ...] | None) -> None:
    """[IMP-027] [IMP-030] Empty lists, and options of the plugins, are no fields."""
    assert read_options([(name, parse_term(term))]) == ({f"pubsub#{name}": values} if values is not None else {}, [])


@pytest.mark.parametrize("term", [(), [], 1.5, [b"a", ()], [[1.5]]])
def test_access_model_that_cannot_be_read_is_a_field_without_a_value(term: Term) -> None:
    """[IMP-027] [IMP-045] Without the field the node would be open."""
    options, problems = read_options([("access_model", term)])

    assert options == {"pubsub#access_model": ()}
    assert len(problems) == (term != [])


@pytest.mark.parametrize("term", [(), 1.5, [b"a", ()], [[1.5]]])
def test_other_option_is_reported(term: Term) -> None:
    """[IMP-027]"""
    assert read_options([("title", term)]) == ({}, [MovedProblem("option pubsub#title", "the value cannot be read")])


@pytest.mark.parametrize(
    ("name", "stored", "term", "values"),
    [
        ("deliver", "0", b"false", {"0": "false"}),
        ("include_body", "1", b"true", {"1": "true"}),
        ("digest_frequency", "60", b"60", {"60": "60"}),
        ("subscription_depth", "all", b"all", {"all": "all"}),
        ("expire", "2030-01-31T00:00:00Z", b"{1896,48000,0}", {"2030-01-31T00:00:00Z": "2030-01-31T00:00:00Z"}),
        ("expire", "soon", b"{1,2}", {"soon": "(1, 2)"}),
        ("expire", "late", b"{9999999999999,0,0}", {"late": "(9999999999999, 0, 0)"}),
    ],
)
def test_option_of_a_subscription_is_a_field_of_the_form(
    name: str, stored: str, term: bytes, values: dict[str, str]
) -> None:
    """[IMP-026] [IMP-029] As the columns of SQL and as the terms of mnesia have it."""
    ((of_sql, of_mnesia),) = values.items()
    assert subscribe_fields([(name, stored)]) == {f"pubsub#{name}": (of_sql,)}
    assert subscribe_fields([(name, parse_term(term))]) == {f"pubsub#{name}": (of_mnesia,)}


@pytest.mark.parametrize(
    ("term", "values"),
    [
        ("awayxa", ("away", "xa")),
        ([b"chat", b"online"], ("chat", "online")),
        ("", ()),
        ("never", ("never",)),
    ],
)
def test_states_of_presence_are_read_from_both_storages(term: Term, values: tuple[str, ...]) -> None:
    """[IMP-026] [IMP-029] SQL has them without a separator."""
    assert subscribe_fields([("show_values", term)]) == {"pubsub#show-values": values}


def test_several_subscriptions_of_a_jid_become_one() -> None:
    """[IMP-026] The best state decides. Options that are lost by it are reported."""
    options = {"1": {"pubsub#deliver": ("0",)}, "3": {"pubsub#deliver": ("0",)}}
    states = [("pending", "0"), ("subscribed", "1"), ("subscribed", "3"), ("none", "9")]

    assert moved_subscription("bob@x", states, options) == (
        MovedSubscription("bob@x", "subscribed", options["1"]),
        [MovedProblem("subscription 'bob@x'", "1 other subscription had other options")],
    )
    assert moved_subscription("bob@x", states[1:], options)[1] == []
    assert moved_subscription("bob@x", [("none", "9")], options) == (None, [])
