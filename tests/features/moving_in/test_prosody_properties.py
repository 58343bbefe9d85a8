"""Any nodes of Prosody, written in each of its storages and moved, have the same ids, payloads, order and people."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from features.moving_in.prosody_data import ProsodyItem, ProsodyModel, write_files, write_sqlite
from smartfeeds.cli.reading import file_spool
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.view import names_view
from smartfeeds.features.moving_in.moved import MovedNode
from smartfeeds.features.moving_in.moving import MoveSettings, move_node
from smartfeeds.features.moving_in.prosody_sql import read_prosody
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx
from support.effort import runs
from support.pulls import infoset
from support.sqlite_memory import SqliteMemoryStore
from support.world import SERVICE, T0_US, S, running_world

HOST = "pubsub.localhost"
Stored = tuple[list[tuple[str, str, int, object]], dict[str, str], set[str]]

texts = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t\"\\'&<>;"), max_size=8).filter(
    is_xml_text
)
names = texts.filter(lambda text: bool(text) and not names_view(text))
people = st.sampled_from(["alice@localhost", "bob@localhost", "carol@x.example"])


@st.composite
def elements(draw: st.DrawFn, depth: int = 0) -> etree._Element:
    """An element of an unknown vocabulary, with namespaces, attributes, texts and children."""
    namespaces = ("urn:x", "urn:y") if depth == 0 else ("urn:x", "urn:y", "")
    namespace, name = draw(st.sampled_from(namespaces)), draw(st.sampled_from("abc"))
    # Prefixes of their own: lxml writes some trees wrongly if it chooses the prefixes.
    prefixes = {"x": "urn:x", "y": "urn:y", "z": "urn:z"}
    element = etree.Element(f"{{{namespace}}}{name}" if namespace else name, nsmap=prefixes)
    attributes = st.sampled_from(["k", "{urn:y}k", "{urn:z}k", "{http://www.w3.org/XML/1998/namespace}space"])
    for attribute, value in draw(st.dictionaries(attributes, texts, max_size=3)).items():
        element.set(attribute, value)
    element.text = draw(texts)
    if depth < 2:
        for child in draw(st.lists(elements(depth + 1), max_size=2)):
            child.tail = draw(texts)
            element.append(child)
    return element


@st.composite
def models(draw: st.DrawFn) -> list[ProsodyModel]:
    """Nodes with different names, and items with different ids in the order of their changes."""
    nodes = []
    for name in draw(st.lists(names, unique=True, min_size=1, max_size=2)):
        whens = sorted(draw(st.lists(st.integers(0, T0_US // S), max_size=4)))
        ids = draw(st.lists(names, unique=True, min_size=len(whens), max_size=len(whens)))
        items = [
            ProsodyItem(item_id, when, draw(people), draw(elements())) for item_id, when in zip(ids, whens, strict=True)
        ]
        kinds = st.sampled_from(["publisher", "member", "outcast"])
        affiliations = {**draw(st.dictionaries(people, kinds)), "owner@localhost": "owner"}
        readers = [jid for jid, kind in affiliations.items() if kind != "outcast"]
        subscribers = draw(st.dictionaries(st.sampled_from(readers), st.just(True)))
        config = draw(st.fixed_dictionaries({}, optional={"title": texts, "max_items": st.just("max")}))
        nodes.append(ProsodyModel(name, items, config, affiliations, subscribers))
    return nodes


def expected(model: ProsodyModel) -> Stored:
    keys, last_us = [], -1
    for item in model.items:
        last_us = max(item.when * S, last_us + 1)
        keys.append((item.item_id, item.publisher, last_us, infoset(item.payload)))
    return keys, dict(model.affiliations), set(model.subscribers)


async def moved(source: Path, models: list[ProsodyModel]) -> dict[str, Stored]:
    """What the store has after moving all nodes of a source."""
    found: dict[str, Stored] = {}
    async with running_world(SqliteMemoryStore()) as world:
        for node in read_prosody(str(source), HOST):
            assert isinstance(node, MovedNode)
            with file_spool() as spool:
                report = await move_node(world.service, node, MoveSettings(SERVICE), spool, T0_US)
            assert (report.outcome, report.problems, report.counts.skipped) == ("created", [], ())

            def read(tx: ReadTx, context: Context, name: str = node.name) -> Stored:
                stored = tx.node(name)
                assert stored is not None
                model = next(one for one in models if one.name == name)
                items = tx.items(stored.node_no, [item.item_id for item in model.items])
                rows = [
                    (one.id, one.publisher, one.created_us, infoset(etree.fromstring(one.payload))) for one in items
                ]
                people = {jid: kind.value for jid, kind in tx.affiliations(stored.node_no)}
                assert all(one.created_us == one.modified_us for one in items)
                return sorted(rows, key=lambda row: row[2]), people, set(tx.subscribers(stored.node_no, now_us=None))

            found[node.name] = await world.service.read(read)
    return found


@pytest.mark.parametrize("write", [write_files, write_sqlite])
def test_moved_nodes_are_those_of_the_source(write: Callable[[Path, str, list[ProsodyModel]], Path]) -> None:
    """[IMP-071] [IMP-001] [IMP-006] [IMP-009]"""

    @settings(max_examples=runs(20), deadline=None)
    @given(models())
    def check(nodes: list[ProsodyModel]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = write(Path(folder) / "prosody", HOST, nodes)
            assert asyncio.run(moved(source, nodes)) == {node.name: expected(node) for node in nodes}

    check()
