"""Administration by requests: the service checks the rights, whichever wire a request comes from."""

from dataclasses import replace

import pytest

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.tokens import TokenScope
from smartfeeds.errors import Condition
from smartfeeds.service import requests as r
from smartfeeds.service.admin_records import (
    AddMirror,
    AddToken,
    ConsumerList,
    ListConsumers,
    ListMirrors,
    RemoveMirror,
    RestartMirror,
    RetryConsumers,
    RevokeToken,
)
from smartfeeds.service.administration import (
    CountStore,
    GetStanding,
    ListAddresses,
    ListManagedNodes,
    ManagedNodes,
    Standing,
    StoreCounts,
)
from smartfeeds.service.tokens import new_token
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, jid, refusal

ADMIN_REQUESTS: dict[str, tuple[type[r.Request], tuple[object, ...]]] = {
    "count": (CountStore, ()),
    "addresses": (ListAddresses, (True, "", 9)),
    "mirrors": (ListMirrors, ()),
    "add mirror": (AddMirror, ("xmpp:b.example?;node=n", "n", "", "in", "", 300.0, False, False)),
    "remove mirror": (RemoveMirror, ("b",)),
    "restart mirror": (RestartMirror, ("b",)),
    "consumers": (ListConsumers, ()),
    "retry": (RetryConsumers, (None,)),
}


@pytest.fixture
async def administered(feed: World) -> World:
    """The service with an admin, BOB, and a feed of OWNER."""
    feed.service.policy = replace(feed.service.policy, admins=frozenset({BOB}), creators=frozenset({OWNER}))
    return feed


@pytest.mark.parametrize("name", ADMIN_REQUESTS)
@pytest.mark.parametrize("who", [OWNER, ALICE])
async def test_request_of_an_admin_is_forbidden_for_others(administered: World, name: str, who: str) -> None:
    kind, values = ADMIN_REQUESTS[name]

    refused = await refusal(administered.service.handle(kind(jid(who), SERVICE, *values)))

    assert refused is Condition.FORBIDDEN


@pytest.mark.parametrize(
    ("who", "standing"),
    [
        (OWNER, Standing(admin=False, owner=True, creator=True, restarts=False)),
        (ALICE, Standing(admin=False, owner=False, creator=False, restarts=False)),
        (BOB, Standing(admin=True, owner=False, creator=True, restarts=False)),
    ],
)
async def test_standing_says_what_a_user_administers(administered: World, who: str, standing: Standing) -> None:
    assert await administered.service.handle(GetStanding(jid(who), SERVICE)) == standing


async def test_managed_nodes_are_all_of_an_admin_and_the_own_of_an_owner(administered: World) -> None:
    """In pages in both directions, with the number of all."""
    for name in ("b", "a", "c"):
        await administered.create(name, actor=OWNER)

    async def names(who: str, **page: str) -> tuple[list[str], int | None]:
        request = ListManagedNodes(jid(who), SERVICE, ResultSetRequest(**page) if page else None)
        answer = await administered.service.handle(request)
        assert isinstance(answer, ManagedNodes)
        count = answer.result_set.count if answer.result_set else None
        return [entry.node.name for entry in answer.entries], count

    assert await names(BOB) == (["a", "b", "c", FEED], None)
    assert await names(BOB, max="2", after="a") == (["b", "c"], 4)
    assert await names(BOB, max="2", before="") == (["c", FEED], 4)
    assert await names(BOB, max="1", index="2") == (["c"], 4)
    assert await names(OWNER) == ([FEED, "b", "a", "c"], None)
    assert await names(OWNER, max="1", index="1") == (["b"], 4)
    assert await names(ALICE) == ([], None)


async def test_store_is_counted(administered: World) -> None:
    await administered.publish("one")
    await administered.subscribe(ALICE)

    counts = await administered.service.handle(CountStore(jid(BOB), SERVICE))

    assert counts == StoreCounts(nodes=1, items=1, deleted=0, subscriptions=1)


@pytest.mark.parametrize(("who", "of", "node"), [(OWNER, ALICE, FEED), (ALICE, ALICE, FEED), (OWNER, OWNER, "*")])
async def test_token_beyond_the_rights_of_the_actor_is_forbidden(
    administered: World, who: str, of: str, node: str
) -> None:
    token, _ = new_token(of, TokenScope.READ, node, "")

    assert await refusal(administered.service.handle(AddToken(jid(who), SERVICE, token, None))) is Condition.FORBIDDEN


async def test_token_of_another_user_does_not_exist(administered: World) -> None:
    token, _ = new_token(OWNER, TokenScope.READ, FEED, "")
    await administered.service.handle(AddToken(jid(OWNER), SERVICE, token, None))

    request = RevokeToken(jid(ALICE), SERVICE, token.token_id)
    assert await refusal(administered.service.handle(request)) is Condition.ITEM_NOT_FOUND
    await administered.service.handle(replace(request, actor=jid(OWNER)))
    assert await refusal(administered.service.handle(replace(request, actor=jid(BOB)))) is Condition.ITEM_NOT_FOUND


async def test_consumers_that_are_late_are_selected(administered: World) -> None:
    await administered.subscribe(ALICE)

    async def listed(*, behind: bool) -> int:
        answer = await administered.service.handle(ListConsumers(jid(BOB), SERVICE, behind))
        assert isinstance(answer, ConsumerList)
        return len(answer.statuses)

    assert (await listed(behind=False), await listed(behind=True)) == (1, 0)
