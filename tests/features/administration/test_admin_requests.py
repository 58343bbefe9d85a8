"""What admins read of the store, by requests."""

from dataclasses import replace

import pytest

from smartfeeds.errors import Condition
from smartfeeds.features.administration.requests import CountItems, CountStore, ListAddresses, StoreCounts
from smartfeeds.service import requests as r
from support.world import ALICE, BOB, OWNER, SERVICE, World, jid, refusal


@pytest.fixture
async def administered(feed: World) -> World:
    """The service with an admin, BOB, and a feed of OWNER."""
    feed.service.policy = replace(feed.service.policy, admins=frozenset({BOB}))
    return feed


@pytest.mark.parametrize(
    ("kind", "values"), [(CountStore, ()), (ListAddresses, (True, "", 9)), (CountItems, (OWNER, 0))]
)
@pytest.mark.parametrize("who", [OWNER, ALICE])
async def test_request_is_forbidden_for_others(
    administered: World, kind: type[r.Request], values: tuple[object, ...], who: str
) -> None:
    request = kind(jid(who), SERVICE, *values)

    assert await refusal(administered.service.handle(request)) is Condition.FORBIDDEN


async def test_store_is_counted(administered: World) -> None:
    await administered.publish("one")
    await administered.subscribe(ALICE)

    counts = await administered.service.handle(CountStore(jid(BOB), SERVICE))

    assert counts == StoreCounts(nodes=1, items=1, deleted=0, subscriptions=1)


async def test_expired_items_are_counted_as_deleted(world: World) -> None:
    """[xep-map 73]: no sweep runs here."""
    await world.create("box", item_expire="60")
    await world.publish("old", "<n xmlns='urn:example:n'/>", node="box")
    world.clock.move(59)
    await world.publish("new", "<n xmlns='urn:example:n'/>", node="box")
    world.clock.move(1)
    world.set_policy(admins=frozenset({OWNER}))

    counts = await world.service.handle(CountStore(jid(OWNER), SERVICE))

    assert isinstance(counts, StoreCounts)
    assert (counts.items, counts.deleted) == (1, 1)
