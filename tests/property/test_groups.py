"""Requests of a group, which share a transaction and what it has looked up, get the answers that each gets alone, and
leave the same database. The counts that quotas depend on are those that counting gives.
"""

# needs: privacy

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import SubscriptionState
from smartfeeds.core.person import Person
from smartfeeds.errors import FeedError
from smartfeeds.features.privacy.erasing import begin_erasure, continue_erasure
from smartfeeds.features.privacy.erasures import ErasureSettings
from smartfeeds.service import requests as r
from smartfeeds.service.context import Policy
from smartfeeds.service.leases import end_leases
from smartfeeds.service.steps import MoreSteps
from smartfeeds.store.base import ReadTx, WriteTx
from support.effort import runs
from support.sqlite_memory import GroupStore, SqliteMemoryStore
from support.world import SERVICE, World, form, jid

POLICY = Policy(
    SERVICE,
    nodes_per_jid=3,
    nodes_per_domain=4,
    subscriptions_per_jid=4,
    subscriptions_per_domain=6,
    subscriptions_per_jid_and_node=2,
)
PERSON = "u@x"
ACTORS = st.sampled_from([PERSON, PERSON, f"{PERSON}/r", "v@x", "v@y", "x", "u@x.y"])
# Names of views and of nodes that hide them, and what only looks like them.
NAMES = st.sampled_from(["a", "a", "b", "c", "a?order=created", "b?x", "a%3Forder=created", "b%3fx", "a?x&y", "\x7f"])
MODELS = st.sampled_from(["open", "open", "authorize", "whitelist"])
LEASE = "1970-01-01T00:30:00Z"


def creating(actor: str, name: str, model: str) -> r.Request:
    return r.CreateNode(jid(actor), SERVICE, name, None if model == "open" else form(access_model=model))


def subscribing(actor: str, name: str, bare: bool, leased: bool) -> r.Request:
    of = actor.partition("/")[0] if bare else actor
    return r.Subscribe(jid(actor), SERVICE, name, of, form(expire=LEASE) if leased else None)


CREATES = st.builds(creating, ACTORS, NAMES, MODELS)
SUBSCRIBES = st.builds(subscribing, ACTORS, NAMES, st.booleans(), st.sampled_from([False, False, True]))
UNSUBSCRIBES = st.builds(lambda actor, name: r.Unsubscribe(jid(actor), SERVICE, name, actor), ACTORS, NAMES)
DELETES = st.builds(
    lambda actor, name, to: r.DeleteNode(jid(actor), SERVICE, name, to),
    ACTORS,
    NAMES,
    st.sampled_from(["", "xmpp:n@x"]),
)
ENTRIES = st.tuples(ACTORS, st.sampled_from(["subscribed", "none"]))
LISTS = st.builds(
    lambda actor, name, entry: r.SetSubscriptions(jid(actor), SERVICE, name, (entry,)), ACTORS, NAMES, ENTRIES
)
PEOPLE = st.builds(
    lambda actor, name, who, what: r.SetAffiliations(jid(actor), SERVICE, name, ((who, what),)),
    *(ACTORS, NAMES, ACTORS.filter(lambda text: "/" not in text), st.sampled_from(["owner", "outcast", "none"])),
)
REQUESTS = st.one_of(CREATES, CREATES, SUBSCRIBES, SUBSCRIBES, SUBSCRIBES, UNSUBSCRIBES, DELETES, LISTS, PEOPLE)
GROUPS = st.lists(st.lists(REQUESTS, min_size=1, max_size=12), min_size=1, max_size=4)
BETWEEN = st.sampled_from(["nothing", "nothing", "leases", "reap", "take over", "erase"])


async def answers(world: World, requests: Sequence[r.Request]) -> list[object]:
    """The answers to a group of requests, or their errors."""
    found: dict[int, object] = {}

    def finish(answer: Any, error: BaseException | None, number: int) -> None:
        assert error is None or isinstance(error, FeedError), error
        found[number] = answer if error is None else (error.condition, error.text)

    for number, request in enumerate(requests):
        world.service.submit(request, partial(finish, number=number))
        if not isinstance(world.store, GroupStore):
            await asyncio.sleep(0)
    if isinstance(world.store, GroupStore):
        world.store.run_group()
    await asyncio.sleep(0)
    return [found[number] for number in range(len(requests))]


async def change(world: World, what: str) -> None:
    """What happens between two groups, without a request of a user."""
    if what == "leases":
        world.clock.move(3_600)
        await world.step(end_leases)
    elif what == "erase":
        settings_ = ErasureSettings(nodes="w@z", now=True)
        await world.step(lambda tx, context: begin_erasure(tx, context, Person(PERSON), settings_))
        while isinstance(await world.step(partial(continue_erasure, jid=PERSON)), MoreSteps):
            pass
    elif what != "nothing":
        await world.store.write(reap if what == "reap" else take_over)


def reap(tx: WriteTx) -> None:
    for node_no in tx.deleted_nodes():
        while not tx.reap(node_no, 1):
            pass


def take_over(tx: WriteTx) -> None:
    """The first node gets another creator and another name, and a subscription another address."""
    for node in tx.nodes("", 1):
        tx.set_creator(node.node_no, "w@z")
        if not tx.affiliation_count(node.node_no):
            tx.rename_node(node.node_no, "renamed", "z")
        for subscription in tx.subscriptions(node.node_no, 0, 1):
            if tx.subscription(node.node_no, "w@z", subscription.view, now_us=None) is None:
                tx.put_subscription(subscription._replace(jid="w@z", state=SubscriptionState.SUBSCRIBED))


def rows(tx: ReadTx) -> list[object]:
    tables = ("node", "subscription", "affiliation", "redirect", "mark", "event")
    tallies = tx.db.rows("SELECT * FROM tally WHERE value <> 0 ORDER BY 1")
    return [*(tx.db.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables), tallies]


def counted(tx: ReadTx) -> dict[str, int]:
    """What the tallies should be."""
    domain = "substr({0}, instr({0}, '@') + 1)"
    counts = {
        "nodes of ": "creator FROM node WHERE state = 'live'",
        "nodes@": f"{domain.format('creator')} FROM node WHERE state = 'live'",
        "subscriptions of ": "bare FROM subscription WHERE TRUE",
        "subscriptions@": f"{domain.format('bare')} FROM subscription WHERE TRUE",
    }
    found: dict[str, int] = {}
    for prefix, rest in counts.items():
        found |= {f"{prefix}{name}": number for number, name in tx.db.rows(f"SELECT count(*), {rest} GROUP BY 2")}
    return found


def kept(tx: ReadTx) -> dict[str, int]:
    return dict(tx.db.rows("SELECT name, value FROM tally WHERE name NOT IN ('nodes', 'listed', 'blocks')"))


async def in_store(store: SqliteMemoryStore, doing: Callable[[World], Any]) -> Any:
    await store.open()
    try:
        return await doing(World(store, POLICY))
    finally:
        await store.close()


async def history(world: World, groups: list[list[r.Request]], between: list[str]) -> list[object]:
    """The answers to all requests and the database after each group."""
    seen: list[object] = []
    for requests, what in zip(groups, between, strict=False):
        seen += [await answers(world, requests), await world.store.read(rows)]
        assert await world.store.read(kept) == await world.store.read(counted)
        await change(world, what)
        assert await world.store.read(kept) == await world.store.read(counted)
    return [*seen, await world.store.read(rows)]


@settings(max_examples=runs(500, nightly=10_000))
@given(groups=GROUPS, between=st.lists(BETWEEN, min_size=4, max_size=4))
def test_group_changes_no_answer_and_counts_are_right(groups: list[list[r.Request]], between: list[str]) -> None:
    """[xep-map 249] Nodes and views, quotas, leases, redirects, and people who are erased."""
    doing = partial(history, groups=groups, between=between)
    alone, in_groups = (asyncio.run(in_store(store, doing)) for store in (SqliteMemoryStore(), GroupStore()))
    assert in_groups == alone
