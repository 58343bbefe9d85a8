"""Administration by requests: the service checks the rights, whichever wire a request comes from."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from smartfeeds.core.consumers import Consumer, Failure
from smartfeeds.core.model import Mark
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import Order
from smartfeeds.errors import Condition
from smartfeeds.service import consumer_requests as admin_consumers
from smartfeeds.service.consumer_requests import ConsumerList, ListConsumers, RetryConsumers
from smartfeeds.service.managed_nodes import ListManagedNodes
from smartfeeds.service.resources import ListAnswer
from smartfeeds.service.standing import GetStanding, Standing
from smartfeeds.store.base import ReadTx, WriteTx
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, jid, refusal


@pytest.fixture
async def administered(feed: World) -> World:
    """The service with an admin, BOB, and a feed of OWNER."""
    feed.service.policy = replace(feed.service.policy, admins=frozenset({BOB}), creators=frozenset({OWNER}))
    return feed


@pytest.mark.parametrize("who", [OWNER, ALICE])
async def test_consumers_are_retried_by_admins_only(administered: World, who: str) -> None:
    assert await refusal(administered.service.handle(RetryConsumers(jid(who), SERVICE, None))) is Condition.FORBIDDEN


@pytest.mark.parametrize(
    ("who", "standing"),
    [
        (OWNER, Standing(admin=False, owner=True, publisher=True, creator=True, restarts=False)),
        (ALICE, Standing(admin=False, owner=False, publisher=False, creator=False, restarts=False)),
        (BOB, Standing(admin=True, owner=False, publisher=False, creator=True, restarts=False)),
    ],
)
async def test_standing_says_what_a_user_administers(administered: World, who: str, standing: Standing) -> None:
    assert await administered.service.handle(GetStanding(jid(who), SERVICE)) == standing


@pytest.mark.parametrize(
    ("affiliation", "is_publisher"), [("publisher", True), ("publish-only", False), ("member", False)]
)
async def test_publisher_of_a_node_has_a_standing_of_its_own(
    administered: World, affiliation: str, is_publisher: bool
) -> None:
    await administered.affiliate(ALICE, affiliation)
    standing = Standing(admin=False, owner=False, publisher=is_publisher, creator=False, restarts=False)
    assert await administered.service.handle(GetStanding(jid(ALICE), SERVICE)) == standing


async def test_managed_nodes_are_all_of_an_admin_and_the_own_of_an_owner(administered: World) -> None:
    """In pages in both directions, with the number of all."""
    for name in ("b", "a", "c"):
        await administered.create(name, actor=OWNER)

    async def names(who: str, **page: str) -> tuple[list[str], int | None]:
        request = ListManagedNodes(jid(who), SERVICE, ResultSetRequest(**page) if page else None)
        answer = await administered.service.handle(request)
        assert isinstance(answer, ListAnswer)
        count = answer.result_set.count if answer.result_set else None
        return [entry.node.name for entry in answer.entries], count

    assert await names(BOB) == (["a", "b", "c", FEED], None)
    assert await names(BOB, max="2", after="a") == (["b", "c"], 4)
    assert await names(BOB, max="2", before="") == (["c", FEED], 4)
    assert await names(BOB, max="1", index="2") == (["c"], 4)
    assert await names(OWNER) == ([FEED, "b", "a", "c"], None)
    assert await names(OWNER, max="1", index="1") == (["b"], 4)
    assert await names(ALICE) == ([], None)


async def test_consumers_are_those_of_the_own_nodes(administered: World) -> None:
    """An admin sees all. Late consumers can be selected."""
    await administered.create("other", actor=BOB)
    for node in (FEED, "other"):
        await administered.subscribe(ALICE, node)

    async def consumers(who: str, *, behind: bool = False) -> list[str]:
        answer = await administered.service.handle(ListConsumers(jid(who), SERVICE, behind))
        assert isinstance(answer, ConsumerList)
        return [status.node for status in answer.statuses]

    assert (await consumers(BOB), await consumers(OWNER), await consumers(ALICE)) == ([FEED, "other"], [FEED], [])
    assert await consumers(BOB, behind=True) == []


@pytest.mark.parametrize("who", [OWNER, BOB])
@pytest.mark.parametrize("behind", [False, True])
async def test_consumers_are_listed_whole_in_pages(
    administered: World, monkeypatch: pytest.MonkeyPatch, who: str, *, behind: bool
) -> None:
    """Each once, whether a page ends within a node or between nodes."""
    monkeypatch.setattr(admin_consumers, "NODES_READ", 2)
    monkeypatch.setattr(admin_consumers, "CONSUMERS_READ", 4)
    names = [f"n{number}" for number in range(5)]
    for name in names:
        await administered.create(name, actor=OWNER)
    nodes = [await administered.node(name) for name in names]

    def work(tx: WriteTx) -> None:
        for node, count in zip(nodes, (1, 7, 0, 2, 3), strict=True):
            for number in range(count):
                consumer = Consumer(node.node_no, f"hub:{number}")
                tx.set_mark(node.node_no, Order.MODIFIED, consumer.name, Mark(-1, ""))
                tx.set_wait(consumer, Failure(1, 5, None, "away"))

    await administered.store.write(work)
    places: list[tuple[str, str]] = []
    after: tuple[int, str, str] | None = (0, "", "")
    while after is not None:
        answer = await administered.service.handle(ListConsumers(jid(who), SERVICE, behind, after, 3))
        assert isinstance(answer, ConsumerList)
        assert len(answer.statuses) <= 3
        places += [(status.node, status.consumer.name) for status in answer.statuses]
        after = answer.after

    counts = {"n0": 1, "n1": 7, "n3": 2, "n4": 3}
    assert places == [(name, f"hub:{number}") for name, count in counts.items() for number in range(count)]


def record(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[int]:
    """The number of rows of each call of a list of the store, or of a feature, from now on."""
    counts: list[int] = []

    def recorded(read: Callable[..., list[object]]) -> Callable[..., list[object]]:
        def call(*args: object) -> list[object]:
            rows = read(*args)
            counts.append(len(rows))
            return rows

        return call

    monkeypatch.setattr(owner, name, recorded(getattr(owner, name)))
    return counts


@pytest.mark.parametrize("behind", [False, True])
async def test_list_of_consumers_reads_a_bounded_number_of_rows(
    administered: World, monkeypatch: pytest.MonkeyPatch, *, behind: bool
) -> None:
    """An owner of many nodes reads no more than an owner of few, and no consumers of others."""
    monkeypatch.setattr(admin_consumers, "CONSUMERS_READ", 20)
    names = [f"n{number}" for number in range(10)]
    for name in names:
        await administered.create(name, actor=OWNER)
        await administered.create(f"{name}-of-bob", actor=BOB)
    nodes = [await administered.node(name) for name in (*names, *(f"{name}-of-bob" for name in names))]

    def work(tx: WriteTx) -> None:
        for node in nodes:
            for number in range(3):
                tx.set_mark(node.node_no, Order.MODIFIED, f"hub:{number}", Mark(1, ""))

    await administered.store.write(work)
    own, of_all = record(monkeypatch, ReadTx, "consumers_of"), record(monkeypatch, ReadTx, "consumers")

    await administered.service.handle(ListConsumers(jid(OWNER), SERVICE, behind, limit=20))

    assert (own, of_all) == ([0, 3, 3, 3, 3, 3, 3, 2], [])
