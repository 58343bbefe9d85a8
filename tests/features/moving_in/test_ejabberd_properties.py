"""Nodes that are written as ejabberd stores them are read as they were."""

import sqlite3
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from features.moving_in.erlang import HEADER, item_term, node_term, state_term, text_of_term, write_terms
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd
from smartfeeds.features.moving_in.erlang_terms import ErlangAtom, Term, parse_term, read_terms
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode, MovedProblem, MovedSubscription
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import parse_payload
from support.effort import runs

HOST = "pubsub.example.org"
ROOT = Path(__file__).parents[3]
SCHEMA = (ROOT / "tests/features/moving_in/data/ejabberd-23.01.sqlite.sql").read_text("utf-8")
# Characters that XML allows, with those whose UTF-8 Latin-1 can print and those whose UTF-8 it cannot.
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], include_characters="\t\n\"\\'<>&{}.,")
TEXTS = st.text(CHARACTERS.filter(lambda character: character not in "\ufffe\uffff"), max_size=12)
NAMES = TEXTS.filter(lambda text: text != "")
JIDS = st.sampled_from(["alice@example.org", "bob@example.org/ü {home}.", "müller@example.org", "bot.example.org"])
LETTERS = {"owner": "o", "publisher": "p", "member": "m", "outcast": "c", "none": "n"}
TIMES = st.integers(1_000_000_000_000_000, 1_999_999_999_999_999)
OPTIONS = st.fixed_dictionaries(
    {
        "access_model": st.sampled_from(["open", "whitelist"]).map(ErlangAtom),
        "persist_items": st.just(ErlangAtom("true")),
    },
    optional={
        "title": TEXTS.map(str.encode),
        "max_items": st.integers(1, 10**9),
        "roster_groups_allowed": st.lists(NAMES.map(str.encode), min_size=1, max_size=3),
    },
)
TERMS = st.recursive(
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: "." in repr(number))
    | st.binary(max_size=20)
    | TEXTS.map(str.encode)
    | st.from_regex(r"[a-z][A-Za-z0-9_@]{0,8}", fullmatch=True).map(ErlangAtom)
    | st.text(st.characters(max_codepoint=255), min_size=1, max_size=8).map(ErlangAtom),
    lambda terms: st.lists(terms, max_size=4) | st.lists(terms, max_size=4).map(tuple),
    max_leaves=12,
)


class Part(NamedTuple):
    """An element to build."""

    name: str
    space: str
    attributes: dict[str, str]
    text: str
    children: "list[Part]"
    tail: str


def parts(children: st.SearchStrategy[Part] | None) -> st.SearchStrategy[Part]:
    return st.builds(
        Part,
        st.sampled_from(["entry", "title", "é"]),
        st.sampled_from(["", "http://www.w3.org/2005/Atom", "urn:x"]),
        st.dictionaries(st.sampled_from(["a", "b-c"]), TEXTS, max_size=2),
        TEXTS,
        st.lists(children, max_size=2) if children is not None else st.just([]),
        TEXTS,
    )


def xml(part: Part) -> bytes:
    return etree.tostring(built(part), encoding="utf-8", with_tail=False)


def built(part: Part) -> etree._Element:
    tag = f"{{{part.space}}}{part.name}" if part.space else part.name
    element = etree.Element(tag, attrib=part.attributes, nsmap={None: part.space} if part.space else None)
    element.text, element.tail = part.text, part.tail
    element.extend(built(child) for child in part.children)
    return element


PAYLOADS = parts(parts(parts(None))).map(xml)


@st.composite
def items(draw: st.DrawFn) -> list[MovedItem]:
    """Items with different ids, oldest first."""
    ids = draw(st.lists(NAMES, max_size=4, unique=True))
    return [
        MovedItem(item_id, draw(JIDS), created, created + draw(st.integers(0, 10**12)), draw(PAYLOADS))
        for item_id, created in zip(ids, sorted(draw(TIMES) for _ in ids), strict=True)
    ]


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, tuple[MovedNode, dict[str, Term]]]:
    """Nodes by name, each with the terms of its options."""
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    return {name: (draw(node(name, terms)), terms) for name in names for terms in [draw(OPTIONS)]}


@st.composite
def node(draw: st.DrawFn, name: str, terms: dict[str, Term]) -> MovedNode:
    affiliations = draw(st.dictionaries(JIDS, st.sampled_from(["owner", "publisher", "member", "outcast"]), max_size=3))
    states = draw(st.dictionaries(JIDS, st.sampled_from(["subscribed", "pending"]), max_size=3))
    options = {f"pubsub#{option}": values(term) for option, term in terms.items()}
    return MovedNode(
        name,
        options,
        affiliations,
        [MovedSubscription(jid, state) for jid, state in sorted(states.items())],
        draw(items()),
    )


def values(term: Term) -> tuple[str, ...]:
    if isinstance(term, list):
        return tuple(part.decode() for part in term if isinstance(part, bytes))
    return (term.decode() if isinstance(term, bytes) else str(term),)


Model = dict[str, tuple[MovedNode, dict[str, Term]]]


def people(node: MovedNode) -> Iterable[tuple[str, str, list[str]]]:
    """Rows of pubsub_state: JID, affiliation and states."""
    states = {subscription.jid: [subscription.state] for subscription in node.subscriptions}
    for jid in {**node.affiliations, **states}:
        yield jid, node.affiliations.get(jid, "none"), states.get(jid, [])


def moved_items(node: MovedNode) -> list[MovedItem]:
    return [item for item in node.items if isinstance(item, MovedItem)]


def write_dump(model: Model, folder: Path) -> str:
    """As mnesia: items before their nodes, in another order than their dates."""
    terms: list[Term] = []
    for number, (node, _) in enumerate(model.values()):
        terms += [item_term(number, item, parse_payload(item.payload)) for item in reversed(moved_items(node))]
    for number, (node, options) in enumerate(model.values()):
        terms += [state_term(jid, number, *person) for jid, *person in people(node)]
        terms.append(node_term(HOST, node.name, number, options))
    terms.append((ErlangAtom("pubsub_node"), ((b"alice", b"example.org", b""), b"urn:x"), 99, [], b"pep", [], []))
    path = folder / "mnesia.dump"
    path.write_bytes(HEADER + write_terms(terms))
    return str(path)


@cache
def empty_database() -> bytes:
    """The sample without its rows. To run its statements takes longer than the rest of the test."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for table in ("item", "node", "node_option", "state"):
        connection.execute(f"DELETE FROM pubsub_{table}")
    connection.commit()
    return bytes(connection.serialize())


def write_sqlite(model: Model, folder: Path) -> str:
    path = folder / "ejabberd.db"
    path.write_bytes(empty_database())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    with connection:
        for number, (node, options) in enumerate(model.values()):
            connection.execute("INSERT INTO pubsub_node VALUES (?, ?, '', 'flat', ?)", (HOST, node.name, number))
            connection.executemany(
                "INSERT INTO pubsub_node_option VALUES (?, ?, ?)",
                [(number, name, text_of_term(term).decode("utf-8")) for name, term in options.items()],
            )
            connection.executemany(
                "INSERT INTO pubsub_state VALUES (?, ?, ?, ?, NULL)",
                [
                    (number, jid, LETTERS[affiliation], ",".join(f"{state[0]}:7034" for state in states))
                    for jid, affiliation, states in people(node)
                ],
            )
            connection.executemany(
                "INSERT INTO pubsub_item VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (number, item.id, item.publisher, *map(date, item[2:4]), item.payload.decode())
                    for item in moved_items(node)
                ],
            )
    connection.close()
    return str(path)


def date(time_us: int | None) -> str:
    assert time_us is not None
    seconds, micro = divmod(time_us, 1_000_000)
    return f"{seconds // 1_000_000:06}:{seconds % 1_000_000:06}:{micro:06}"


def comparable(node: MovedNode) -> MovedNode:
    """A node with its items in canonical form, oldest first."""
    canonical = [
        item._replace(payload=bytes(accept_payload(parse_payload(item.payload)))) for item in moved_items(node)
    ]
    subscriptions = sorted(node.subscriptions, key=lambda subscription: subscription.jid)
    return MovedNode(
        node.name, node.options, dict(node.affiliations), subscriptions, sorted(canonical), list(node.problems)
    )


@pytest.mark.parametrize("write", [write_dump, write_sqlite])
def test_nodes_are_read_as_they_were_written(write: Callable[[Model, Path], str]) -> None:
    """[IMP-071] [IMP-021] [IMP-022] [IMP-024] [IMP-025] [IMP-026] [IMP-027] [IMP-029] [IMP-030]"""

    @settings(max_examples=runs(40))
    @given(nodes().filter(bool))
    def check(model: Model) -> None:
        with TemporaryDirectory() as folder:
            read = [
                comparable(value)
                for value in read_ejabberd(write(model, Path(folder)), HOST)
                if not isinstance(value, MovedProblem)
            ]
        assert read == [comparable(model[name][0]) for name in sorted(model, key=str.encode)]

    check()


@settings(max_examples=runs(200))
@given(st.lists(TERMS, max_size=4), st.integers(1, 40))
def test_terms_are_read_as_they_were_written(terms: list[Term], size: int) -> None:
    """[IMP-071] [IMP-022]"""
    text = write_terms(terms)
    chunks = [text[at : at + size] for at in range(0, len(text), size)]

    assert [parse_term(part) for _, part in read_terms(chunks)] == terms
