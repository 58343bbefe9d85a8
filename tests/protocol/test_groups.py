"""Writes of many senders that share a transaction have the results that they have one after the other.

The works of a transaction share what was read for the first of them: nodes, items, affiliations, what an actor may do
and who may use the service. Each change among them must reach the works behind it.
"""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from math import inf

import pytest
from lxml import etree

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, SubscriptionState
from smartfeeds.errors import FeedError
from smartfeeds.features.privacy.blocking import SetBlockList
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import draft_of
from smartfeeds.store import batches, sql_store
from smartfeeds.store.base import ReadTx
from smartfeeds.store.sql_store import SqlStore
from smartfeeds.telemetry import REGISTRY
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, Starter
from support.waiting import wait_for

ADMIN = Jid("admin", "example.org")
USERS = [Jid(user.partition("@")[0], "example.org") for user in (ALICE, BOB, CAROL)]
FEED, GENERIC, OTHER, ABSENT = "feed", "generic", "other", "absent"
NODES = [FEED, FEED, GENERIC, GENERIC, OTHER, ABSENT]
IDS = ["1", "2", "'", 'x"]', "😀"]
REQUESTS = 150
Outcome = tuple[int, str]  # the number of a request, and "ok" or the condition of its error
STATE = (
    "SELECT name, kind, creator, options, total, live FROM node WHERE state = 'live'",
    "SELECT n.name, i.id, i.payload, i.publisher, i.change FROM item i JOIN node n USING (node_no)"
    " WHERE n.state = 'live'",
    "SELECT n.name, a.jid, a.affiliation FROM affiliation a JOIN node n USING (node_no) WHERE n.state = 'live'",
    "SELECT n.name, s.jid, s.state FROM subscription s JOIN node n USING (node_no) WHERE n.state = 'live'",
    "SELECT kind, name FROM block",
)


def requests_of(seed: int) -> list[r.Request]:
    """Returns random writes of three users and an admin to a few nodes and items."""
    choice = random.Random(seed).choice
    payloads = [draft_of(etree.fromstring(f"<x xmlns='urn:x'>{number}</x>")) for number in range(REQUESTS)]
    requests: list[r.Request] = []
    for payload in payloads:
        actor, user, node, item_id = choice(USERS), choice(USERS).bare_text, choice(NODES), choice(IDS)
        models = {
            "pubsub#access_model": (choice(["open", "whitelist", "authorize"]),),
            "pubsub#publish_model": (choice(["open", "publishers", "subscribers"]),),
        }
        publish = r.Publish(actor, DOMAIN, node, item_id, payload)
        affiliate = r.SetAffiliations(actor, DOMAIN, node, ((user, choice(list(Affiliation)).value),))
        subscription = (user, choice(list(SubscriptionState)).value)
        requests.append(
            choice(
                [
                    *[publish] * 6,
                    *[affiliate] * 3,
                    *[r.Retract(actor, DOMAIN, node, item_id)] * 2,
                    r.Purge(actor, DOMAIN, node),
                    r.Configure(actor, DOMAIN, node, models),
                    r.Subscribe(actor, DOMAIN, node, actor.bare_text),
                    r.Unsubscribe(actor, DOMAIN, node, actor.bare_text),
                    r.SetSubscriptions(actor, DOMAIN, node, (subscription,)),
                    r.CreateNode(actor, DOMAIN, node),
                    r.DeleteNode(actor, DOMAIN, node),
                    SetBlockList(ADMIN, DOMAIN, ListKind.DENY, choice([(), (), (user,)])),
                ]
            )
        )
    return requests


async def prepared(component: Component) -> Component:
    everybody = {"access_model": "open", "publish_model": "open"}
    await component.create(ALICE, FEED, **everybody)
    await component.create(ALICE, GENERIC, kind="generic", max_items="3", **everybody)
    await component.create(BOB, OTHER, kind="generic", access_model="open", publish_model="subscribers")
    return component


async def state_of(component: Component) -> list[list[str]]:
    def read(tx: ReadTx) -> list[list[str]]:
        return [sorted(map(repr, tx.db.rows(statement))) for statement in STATE]

    return await component.app.service.store.read(read)


async def at_once(component: Component, requests: Sequence[r.Request]) -> list[Outcome]:
    """Returns the outcomes in the order in which the requests took effect."""
    outcomes: list[Outcome] = []
    ended = asyncio.Event()

    def finish(number: int, _answer: object, error: BaseException | None) -> None:
        outcomes.append((number, outcome_of(error)))
        if len(outcomes) == len(requests):
            ended.set()

    for number, request in enumerate(requests):
        component.app.service.submit(request, partial(finish, number))
    await wait_for(ended.wait(), "the answers to all requests")
    return outcomes


async def one_by_one(component: Component, requests: Sequence[r.Request], order: Sequence[int]) -> list[Outcome]:
    outcomes = []
    for number in order:
        error = None
        try:
            await component.app.service.handle(requests[number])
        except FeedError as refusal:
            error = refusal
        outcomes.append((number, outcome_of(error)))
    return outcomes


def groups() -> float:
    """Returns the number of transactions of writes so far."""
    return REGISTRY.get_sample_value("smartfeeds_store_group_size_count") or 0.0


def outcome_of(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    assert isinstance(error, FeedError), error
    return error.condition.value


@pytest.mark.both_engines
@pytest.mark.parametrize("seed", range(4))
async def test_writes_of_a_group_have_the_results_that_they_have_one_by_one(
    start: Starter, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine these times would end the groups early.
    monkeypatch.setattr(batches, "WRITE_BUDGET_S", inf)
    monkeypatch.setattr(sql_store, "SLOW_WRITE_S", inf)
    requests = requests_of(seed)
    component = await prepared(await start(pubsub={"creators": ["example.org"], "admins": [ADMIN.bare_text]}))
    await component.settle()
    store = component.app.service.store
    assert isinstance(store, SqlStore)
    assert store._writes is not None
    store._writes._waiting._accounts.clear()  # what the users have cost decides who is next
    before = groups()
    outcomes = await at_once(component, requests)
    assert groups() - before == 1
    state = await state_of(component)

    await component.app.service.handle(SetBlockList(ADMIN, DOMAIN, ListKind.DENY, ()))
    await component.clear()
    await prepared(component)
    assert await one_by_one(component, requests, [number for number, _ in outcomes]) == outcomes
    assert await state_of(component) == state
