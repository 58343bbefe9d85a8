"""Texts of all kinds are stored, compared and found in the same way by every store, or refused.

The wires let neither NUL nor a lone surrogate through (`core.text.FORBIDDEN`, `core.urls`). What a store does with them
matters all the same, because a refused text must leave no trace.
"""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import MAX_ID_BYTES, Affiliation, KeyRange, Slice
from smartfeeds.core.stores import parse_store
from smartfeeds.core.text import is_xml_text, words
from smartfeeds.core.touches import Touch
from smartfeeds.core.view import SMART, Order, View
from smartfeeds.errors import StoreError
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore
from store.model import Model
from store.values import item, node, read_payload, subscription
from support.effort import runs
from support.postgres import PostgresServer
from support.postgres_store import EmptyDatabase

# Characters of every plane and direction, and those that SQL, LIKE, FTS5 and tsquery treat in their own way.
SPECIAL = (
    "'\"\\%_?$:*&|!()<>-/0@ \t\n\u00a0\u00ad\u0130\u0131\u00df\u0301\u05d0\u0627\u06f1\u200d\u200f\u202e\ufb01\uffff"
)
PLANES = st.characters(min_codepoint=0x10000)
CHARACTERS = st.one_of(st.sampled_from(SPECIAL), PLANES, st.characters(exclude_characters="\0", codec="utf-8"))
TEXTS = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=12),
    st.sampled_from(["a", "a/", "a/1", "a0", "A", "\u00e4", "a\u0308", "a\U0001f600", "\ufffd", "Z", "_"]),
    # As long as a name or an id may be, and hard to compress.
    st.randoms(use_true_random=False).map(
        lambda random: "".join(map(chr, random.choices(range(0x4E00, 0x9FFF), k=341)))
    ),
)
REFUSED = st.tuples(TEXTS, st.sampled_from(["\ud800", "\udfff", "\ud83dx"])).map("".join)
MEGABYTE = "".join(chr(0x4E00 + number % 20_000) for number in range(350_000))

Stores = dict[str, Store]
FEED = "feed"


class Runner:
    """The two stores, open on one event loop, each with the node that the examples fill."""

    def __init__(self, stores: Stores) -> None:
        self._runner = asyncio.Runner()
        self.stores = stores
        self.numbers = itertools.count()

    def run(self, work: Any) -> Any:
        return self._runner.run(work)

    def close(self) -> None:
        for store in self.stores.values():
            self.run(store.close())
        self._runner.close()


@pytest.fixture(scope="module")
def runner(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    path: Path = tmp_path_factory.mktemp("texts") / "s.db"
    with closing(EmptyDatabase(postgres)) as database, database.emptied() as url:
        stores: Stores = {
            "sqlite": SqliteStore(path, read_payload),
            "postgres": PostgresStore(parse_store(url), read_payload),
        }
        with closing(Runner(stores)) as runner:
            for store in stores.values():
                runner.run(store.open())
            yield runner


def fill(prefix: str, texts: list[str]) -> Any:
    """A work that stores each text wherever users' texts are stored."""

    def work(tx: WriteTx) -> int:
        feed = tx.add_node(node(f"{prefix}{FEED}"))
        for number, text in enumerate(texts):
            tx.add_node(node(f"{prefix}/{text}"))
            # One key for all, so that cursors and groups compare the ids. A database may refuse the name later.
            payload = f"by=a | {text}" if is_xml_text(text) else "by=a | "
            tx.put_item(feed.node_no, item(text, 7, payload, publisher=text, sync_id=f"s{number}"))
            tx.set_affiliation(feed.node_no, text, Affiliation.MEMBER)
            # No JID has a character that XML forbids: a store reads it as damaged.
            if is_xml_text(text):
                tx.put_subscription(subscription(feed.node_no, text))
        tx.index_node(feed.node_no)
        return feed.node_no

    return work


def look(prefix: str, node_no: int, texts: list[str]) -> Any:
    """A work that reads everything back, without the numbers that a store assigns."""

    def work(tx: ReadTx) -> list[object]:
        read: list[object] = [[made.name for made in tx.nodes(f"{prefix}/", 99, before=f"{prefix}0")]]
        read.append([made._replace(item_no=0) for made in tx.slice(node_no, Slice(SMART, 99))])
        read.append([item_id for _, item_id in tx.group(node_no, Order.MODIFIED, 7, 99)])
        read.append([tx.affiliations(node_no), tx.affiliations(node_no, KeyRange(2, after=texts[0]))])
        read.append(tx.subscribers(node_no, now_us=None))
        for text in texts:
            name = f"{prefix}/{text}"
            stored = tx.node(name)
            read.append((text, stored is not None and stored.name == name, tx.affiliation(node_no, text)))
            made = tx.item(node_no, text)
            read.append(None if made is None else (made.id, made.payload, made.publisher))
            if "/" not in text:  # a bare JID
                read.append([sub.jid for sub in tx.subscriptions_on(node_no, text, now_us=None)])
            read.append([made.id for made in tx.items(node_no, [text, "absent"])])
            views = [View(True, filters=(("author", frozenset({text})),))]
            views += [View(True, filters=(("q", frozenset({word})),)) for word in sorted(words(text))[:2]]
            read += [[made.id for made in tx.slice(node_no, Slice(view, 99))] for view in views]
        return read

    return work


@given(texts=st.lists(TEXTS, min_size=1, max_size=5, unique=True))
@settings(max_examples=runs(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_are_stored_and_compared_the_same_by_every_store(runner: Runner, texts: list[str]) -> None:
    """[PG-003] [PG-050]"""
    prefix = f"n{next(runner.numbers)}"
    texts = [text.encode()[:MAX_ID_BYTES].decode(errors="ignore") for text in texts]
    assume(not any(text.endswith("/") for text in texts))  # no JID has an empty resource
    model = Model()
    expected = look(prefix, fill(prefix, texts)(model), texts)(model)
    for name, store in runner.stores.items():
        node_no = runner.run(store.write(fill(prefix, texts)))
        touch = Touch(f"{prefix}{FEED}", texts[0], tuple(texts))
        assert runner.run(store.read(look(prefix, node_no, texts), touch=touch)) == expected, name
        assert runner.run(store.read(look(prefix, node_no, texts))) == expected, name


@given(text=REFUSED)
@settings(max_examples=runs(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lone_surrogates_are_refused_by_both_databases_and_leave_no_trace(runner: Runner, text: str) -> None:
    """[PG-005] [PG-050] A write in the same group is stored."""
    prefix = f"n{next(runner.numbers)}"

    async def write(store: Store) -> list[object]:
        touch = Touch(f"{prefix}/{text}", text, (text,), 1)
        works = [store.write(fill(prefix, ["a", text]), touch=touch), store.write(fill(f"{prefix}b", ["b"]))]
        return list(await asyncio.gather(*works, return_exceptions=True))

    for name in ("sqlite", "postgres"):
        store = runner.stores[name]
        refusal, node_no = runner.run(write(store))
        assert isinstance(refusal, StoreError)
        assert isinstance(node_no, int)
        names = runner.run(store.read(lambda tx: [made.name for made in tx.nodes(prefix, 9, before=f"{prefix}c")]))
        assert names == [f"{prefix}b/b", f"{prefix}b{FEED}"]


def test_text_of_a_megabyte_is_stored_and_found_by_every_store(runner: Runner) -> None:
    """[PG-050] Its distinct words exceed what one tsvector can hold."""
    spaced = " ".join(f"w{number}" for number in range(150_000))
    results = {}
    for name, store in runner.stores.items():

        def work(tx: WriteTx) -> int:
            feed = tx.add_node(node("large"))
            for number, text in enumerate((MEGABYTE, spaced)):
                tx.put_item(feed.node_no, item(f"i{number}", number, f"| {text}"))
            tx.index_node(feed.node_no)
            return feed.node_no

        node_no = runner.run(store.write(work))

        def read(tx: ReadTx, node_no: int = node_no) -> list[object]:
            view = View(True, filters=(("q", frozenset({"w149999"})),))
            items = tx.slice(node_no, Slice(SMART, 9))
            return [[made.payload for made in items], [made.id for made in tx.slice(node_no, Slice(view, 9))]]

        results[name] = runner.run(store.read(read))

    assert results["postgres"] == results["sqlite"]
    assert results["sqlite"][0] == [f"| {MEGABYTE}".encode(), f"| {spaced}".encode()]
    assert "i1" in results["sqlite"][1]
