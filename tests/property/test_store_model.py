"""Any sequence of works gives the same answers from a store as from the model (SF-007, SF-107).

After every step everything that can be read is compared: pages of every kind, counts, subscriptions, marks, what is
still to be pushed.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.core.model import (
    Affiliation,
    Edge,
    Item,
    KeyRange,
    Mark,
    NodeEvent,
    Slice,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.node_place import NodePlace
from smartfeeds.core.stores import parse_store
from smartfeeds.core.view import BARE, CREATED, SMART, Order, View
from smartfeeds.errors import StoreError
from smartfeeds.features.pages import river_rows
from smartfeeds.store.base import ReadTx, Store, WriteTx
from smartfeeds.store.postgres import PostgresStore
from smartfeeds.store.sqlite import SqliteStore
from store.model import Model
from store.values import node, read_payload, view
from support.effort import runs
from support.postgres import PostgresServer
from support.postgres_store import EmptyDatabase

NODES = st.sampled_from([1, 1, 1, 1, 2, 2, 3, 4])
KEYS = st.integers(0, 5)
JIDS = st.sampled_from(["a@x", "a@x/1", "b@x", ""])
VIEWS = st.sampled_from(["", "order=created", "order=modified"])
PAYLOADS = st.sampled_from(["by=a in=x | one two", "by=b re=i1 | two", "in=x in=y | ünï three", "", "by=a by=b | one"])


@dataclass(frozen=True)
class Op:
    """One call of a writing method."""

    method: str
    arguments: tuple[Any, ...]

    def __call__(self, tx: WriteTx) -> object:
        return getattr(tx, self.method)(*self.arguments)


@dataclass(frozen=True)
class Publish:
    """Stores an item under its id, as a new one or as the new state of the one that is there."""

    node_no: int
    item: Item

    def __call__(self, tx: WriteTx) -> object:
        old = tx.item(self.node_no, self.item.id)
        return tx.put_item(self.node_no, self.item._replace(item_no=old.item_no if old else 0))


@dataclass(frozen=True)
class Subscribe:
    """Stores a subscription, as a new one or as the new state of the one that is there."""

    subscription: Subscription

    def __call__(self, tx: WriteTx) -> object:
        wanted = self.subscription
        old = tx.subscription(wanted.node_no, wanted.jid, wanted.view, now_us=None)
        return tx.put_subscription(wanted._replace(sub_no=old.sub_no if old else 0))


class RefusedError(Exception):
    """What a work raises that changes its mind."""


def op(method: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Op]:
    return st.builds(Op, st.just(method), st.tuples(*arguments))


# The fields that are only stored and read are drawn together, because each drawn field costs as much as a write.
STORED = [(1, False, 0, 0), (1, True, 1, 1), (2, False, 3, 2), (2, True, 2, 0), (1, True, 3, 3), (2, False, 0, 1)]
SHARED = [("", 0, b""), ("", 2, b"<sync/>"), ("", 0, b"<sync/>"), ("", 1, b""), ("i7", 0, b""), ("i7", 1, b"<sync/>")]
SHARED += [("s", 2, b""), ("s", 0, b"<sync/>")]


def to_item(stored: tuple[int, bool, int, int], shared: tuple[str, int, bytes], **fields: Any) -> Item:
    (revision, notify, total, live), (sync_id, conflicts, sync) = stored, shared
    fields |= {"revision": revision, "notify": notify, "total": total, "live": live}
    return Item(**fields, sync_id=sync_id, conflicts=conflicts, sync=sync)


ITEMS = st.builds(
    to_item,
    stored=st.sampled_from(STORED),
    shared=st.sampled_from(SHARED),
    item_no=st.one_of(st.just(0), st.integers(0, 9)),
    id=st.sampled_from([f"i{n}" for n in range(8)]),
    created_us=KEYS,
    modified_us=KEYS,
    payload=PAYLOADS.map(str.encode),
    publisher=JIDS,
    deleted=st.booleans(),
)
SUBSCRIPTIONS = st.builds(
    Subscription,
    sub_no=st.one_of(st.just(0), st.integers(0, 5)),
    node_no=NODES,
    jid=JIDS,
    view=VIEWS,
    node_text=st.just("feed"),
    service=st.just("feeds.example.org"),
    state=st.sampled_from(SubscriptionState),
    since_us=KEYS,
    since_created_us=KEYS,
    created_us=KEYS,
    options=st.sampled_from([{}, {"deliver": ("false",)}]),
)
ORDERS = st.sampled_from(Order)
OPTIONS = st.sampled_from(
    [{"k": ("v", "w")}, {"access_model": ("whitelist",)}, {"access_model": ("whitelist",), "itemreply": ("none",)}]
)
PUBLISH = st.builds(Publish, NODES, ITEMS)
INDEX = st.one_of(op("index_node", NODES), op("index_some", st.just(10**6)))
ITEM_OP = st.one_of(op("put_item", NODES, ITEMS), PUBLISH)
NODE_OP = st.one_of(
    op("add_node", st.sampled_from("abc").map(node)),
    op("set_options", NODES, OPTIONS),
    op("set_keys", NODES, KEYS, KEYS),
    op("retire_node", st.sampled_from([2, 3, 4, 1])),
    op("reap", NODES, st.just(10**6)),
    op("lock", st.sampled_from("abc")),
    op("lock_no", NODES),
)
PEOPLE_OP = st.one_of(
    op("set_affiliation", NODES, JIDS, st.sampled_from(Affiliation)),
    st.builds(Subscribe, SUBSCRIPTIONS),
    op("put_subscription", SUBSCRIPTIONS),
    op("remove_subscription", st.integers(1, 5)),
)
NAMES = st.sampled_from([PUSH, "hub:x"])
CONSUMERS = st.builds(Consumer, NODES, NAMES)
PUSH_OP = st.one_of(
    op("add_event", st.builds(NodeEvent, st.just(0), NODES, KEYS, st.just("purge"))),
    op("remove_events", st.lists(st.integers(1, 4), max_size=2)),
    op("set_mark", NODES, ORDERS, NAMES, st.builds(Mark, KEYS, st.just("c"))),
    op("set_wait", CONSUMERS, st.none() | st.builds(Failure, st.just(2), KEYS, st.none() | KEYS, st.just("e"))),
    op("remove_consumer", CONSUMERS),
)


@dataclass(frozen=True)
class Work:
    """A few calls in one transaction, which may be given up at the end."""

    ops: tuple[Op, ...]
    give_up: bool

    def __call__(self, tx: WriteTx) -> list[object]:
        answers = [one(tx) for one in self.ops]
        if self.give_up:
            raise RefusedError
        return [*answers, tx.node_count(), tx.behind(), tx.backlog()]


def group_of(ops: st.SearchStrategy[Any], most_ops: int) -> st.SearchStrategy[list[Work]]:
    works = st.builds(
        Work, st.lists(ops, min_size=1, max_size=most_ops).map(tuple), st.sampled_from([False] * 5 + [True])
    )
    return st.lists(works, min_size=1, max_size=6)


RESTART = st.sampled_from([False, False, False, True])
VIEWS_READ = [BARE, SMART, CREATED, View(order=Order.CREATED), view("kind=new")]
VIEWS_READ += [view("kind=deleted&kind=edited&order=created"), view("kind=deleted&author=a%40x")]
VIEWS_READ += [replace(view("category=x"), smart=False), replace(view("q=two&author=a"), smart=False)]
VIEWS_READ += [view("kind=new&q=one"), view("kind=new&kind=edited&q=two&in-reply-to=i1"), view("q=one+two&author=b")]
VIEWS_READ += [
    view(f"{query}&order={order.value}")
    for order in Order
    for query in ("author=a%40x", "author=b&author=a", "category=x&author=a", "q=two", "q=%C3%BCn%C3%AF&category=y")
]
EDGES = [Edge(2, -1), Edge(2, 3), Edge(2, 2**62), Edge(4, 5), Edge(9, 0)]
RANGES = [(None, None), *((edge, None) for edge in EDGES), *((None, edge) for edge in EDGES)]
RANGES += [(one, two) for one in EDGES for two in EDGES]
SHAPES = [(limit, newest, offset) for limit in (2, 9) for newest in (False, True) for offset in (0, 1)]


def of_river(tx: ReadTx | Model, name: str, *arguments: object) -> Any:
    """Runs a statement of the river, which the model has as a method."""
    return getattr(tx, name)(*arguments) if isinstance(tx, Model) else getattr(river_rows, name)(tx, *arguments)


@dataclass(frozen=True)
class Look:
    """Reads everything once. `step` chooses the ranges and the shapes of the pages.

    It consists of several reads, because the SQLite store runs a read of more than `LIGHT_STEPS` twice.
    """

    step: int

    def works(self) -> list[Callable[[Any], list[object]]]:
        """Returns all reads."""
        node_nos = range(1, 5)
        nodes = [partial(self.node, node_no=node_no) for node_no in node_nos]
        pages = [partial(self.pages, node_no=node_no, half=half) for node_no in node_nos for half in (0, 1)]
        return [self.service, *nodes, *pages]

    def pages(self, tx: ReadTx, node_no: int, half: int) -> list[object]:
        if tx.node_by_no(node_no) is None:
            return []
        found: list[object] = []
        for position, wanted in list(enumerate(VIEWS_READ))[half::2]:
            after, before = RANGES[(self.step + 7 * position) % len(RANGES)]
            limit, newest, offset = SHAPES[(self.step + position) % len(SHAPES)]
            found += [tx.count(node_no, wanted), tx.count(node_no, wanted, before=before)]
            found.append(tx.slice(node_no, Slice(wanted, limit, after, before, newest, offset)))
            found.append(tx.slice(node_no, Slice(wanted, 99)))
        stored = tx.item(node_no, f"i{self.step % 8}")
        found.append(tx.standings(node_no, stored, VIEWS_READ[half::2]) if stored else None)
        return found

    def node(self, tx: ReadTx, node_no: int) -> list[object]:
        people = [tx.affiliations(node_no), tx.subscriptions(node_no, 0, 9), tx.subscriptions(node_no, 2, 1)]
        people += [tx.affiliations(node_no, KeyRange(2, "a", newest=True), kind=held) for held in Affiliation]
        people += [
            tx.subscribers(node_no, now_us=None),
            tx.subscribers(node_no, KeyRange(1, before="b@x", newest=True), now_us=None),
        ]
        people += [tx.affiliation_count(node_no), tx.subscribers(node_no, KeyRange(2, offset=1), now_us=None)]
        push = [*(tx.mark(node_no, order, name) for order in Order for name in (PUSH, "hub:x")), tx.events(node_no, 9)]
        push += [tx.wait(Consumer(node_no, PUSH)), tx.consumers((node_no, "created", PUSH), 3)]
        push += [tx.consumers_of(node_no, ("", ""), 9), tx.consumers_of(node_no, ("created", PUSH), 1)]
        push += [tx.push_start(node_no, 2)[:3], tx.subscriber_use(node_no, "a@x", now_us=None)]
        groups = [tx.group(node_no, order, self.step % 6, 2) for order in Order]
        counts = [tx.subscription_count(node_no), tx.subscribed_views(node_no), tx.item(node_no, "i1")]
        shared = [tx.item_of_sync(node_no, name) for name in ("i7", "i1", "s")]
        shared += [tx.conflict_count(node_no), tx.conflicted(node_no), tx.conflicted(node_no, KeyRange(1, newest=True))]
        return [tx.node_by_no(node_no), *people, *push, *groups, *counts, *shared]

    def service(self, tx: ReadTx) -> list[object]:
        found = [tx.node_count(), tx.nodes("", 9), tx.nodes("a", 1, before="c", newest=True), tx.behind(), tx.backlog()]
        found += [tx.failures(), tx.consumers((0, "", ""), 99)]
        found += [
            tx.created_by("alice@example.org"),
            tx.affiliations_of("a@x"),
            tx.subscriptions_of("a@x", now_us=None),
        ]
        found += [
            tx.affiliated("a@x"),
            tx.affiliations_of("a@x", KeyRange(2, after=1)),
            tx.subscriptions_of("a@x", KeyRange(1), now_us=None),
        ]
        found += [tx.created_in("example.org"), *(tx.subscriber_use(1, jid, now_us=None) for jid in ("a@x", ""))]
        found += [tx.listed_count("a@x"), tx.listed_nodes("a@x", "", 9), tx.listed_nodes("b@x", "a", 2, newest=True)]
        nodes = tx.changed_nodes(None, 9)
        places = [NodePlace(node.last_modified_us, node.name) for node in nodes]
        found += [nodes, tx.changed_nodes("a@x", 2), *(tx.changed_nodes("a@x", 9, place) for place in places[:2])]
        items = of_river(tx, "changed_items", 99)
        found += [items, *(of_river(tx, "item_by_no", edge.item_no) for edge, _ in items[:2])]
        found += [of_river(tx, "changed_items", 2, edge) for edge, _ in items[1:3]]
        return found


class StoreModel(RuleBasedStateMachine):
    """The SQLite store, or another empty one, beside the model."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__()
        self.step = 0
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.model = Model()
        self.store = store or SqliteStore(Path(self.folder.name) / "s.db", read_payload)
        self.runner.run(self.store.open())

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()

    def answer(self, work: Work, outcome: object) -> object:
        """What a work of a group answers, or which error it ends with."""
        if not isinstance(outcome, BaseException):
            return outcome
        assert isinstance(outcome, StoreError | RefusedError), outcome
        # A work that gives up may do so before the database has refused its writes.
        if isinstance(outcome, RefusedError) or work.give_up:
            return RefusedError
        return StoreError  # which subclass it is depends on the database

    def expected(self, work: Work) -> object:
        try:
            return self.model.attempt(work)
        except (StoreError, RefusedError) as error:
            return error

    async def all_of(self, calls: Iterable[Awaitable[object]]) -> list[object]:
        return await asyncio.gather(*calls, return_exceptions=True)

    @initialize()
    def two_nodes(self) -> None:
        self.group([Work((Op("add_node", (node("a"),)), Op("add_node", (node("b"),))), give_up=False)])

    def group(self, works: list[Work]) -> None:
        expected = [self.expected(work) for work in works]
        outcomes = self.runner.run(self.all_of(map(self.store.write, works)))
        assert list(map(self.answer, works, outcomes)) == list(map(self.answer, works, expected))

    @rule(works=group_of(PUBLISH, 6))
    def publish(self, works: list[Work]) -> None:
        self.group(works)

    @rule(works=group_of(PUBLISH, 2), index=INDEX)
    def publish_and_index(self, works: list[Work], index: Op) -> None:
        self.group([*works, Work((index,), give_up=False)])

    @rule(works=group_of(st.one_of(PEOPLE_OP, PUSH_OP, NODE_OP), 1))
    def manage(self, works: list[Work]) -> None:
        self.group(works)

    @rule(
        works=group_of(st.one_of(ITEM_OP, PEOPLE_OP, PUSH_OP, NODE_OP, INDEX), 3),
        restart=st.sampled_from([False] * 3 + [True]),
    )
    def mix(self, works: list[Work], restart: bool) -> None:
        if restart:
            self.runner.run(self.store.close())
            self.runner.run(self.store.open())
        self.group(works)

    @invariant()
    def same(self) -> None:
        self.step += 1
        works = Look(self.step).works()
        assert self.runner.run(self.all_of(map(self.store.read, works))) == [work(self.model) for work in works]


StoreModel.TestCase.settings = settings(max_examples=runs(24), stateful_step_count=20, deadline=None)
TestStoreModel = StoreModel.TestCase


def test_postgres_store_follows_the_model(postgres: PostgresServer) -> None:
    """[PG-001] [PG-050]"""
    with closing(EmptyDatabase(postgres, gapless=True)) as database, database.emptied() as url:

        def machine() -> StoreModel:
            database.empty()
            return StoreModel(PostgresStore(parse_store(url), read_payload))

        run_state_machine_as_test(
            machine,
            settings=settings(max_examples=4, stateful_step_count=8, deadline=None, phases=[Phase.generate]),
        )
