"""Options of ejabberd as fields of the configuration form."""

import pytest

from smartfeeds.formats.erlang_terms import Term, parse_term
from smartfeeds.service.moved import MovedProblem
from smartfeeds.sources.ejabberd_values import read_options


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


@pytest.mark.parametrize("term", [(), 1.5, [b"a", ()], [[1.5]]])
def test_other_option_is_reported(term: Term) -> None:
    """[IMP-027]"""
    assert read_options([("title", term)]) == ({}, [MovedProblem("option pubsub#title", "the value cannot be read")])
