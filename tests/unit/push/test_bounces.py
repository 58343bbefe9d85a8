"""Events that come back as errors (xep-map 241 to 244)."""

import pytest

from smartfeeds.push import bounces as module
from smartfeeds.push.bounces import BOUND, PERIOD_S, Bounces
from smartfeeds.service.subscriptions import Bounce
from support.world import ALICE, BOB, FEED, SERVICE, World, jid


def bounce(condition: str, who: str = ALICE, sub_no: int = 1) -> Bounce:
    return Bounce(jid(who), SERVICE, sub_no, condition)


async def subscribers(world: World) -> int:
    return await world.store.read(lambda tx: tx.subscription_count(1))


@pytest.fixture
async def subscribed(feed: World) -> World:
    await feed.subscribe(ALICE, FEED)
    return feed


async def test_gone_ends_the_subscription_at_once(subscribed: World) -> None:
    """[xep-map 242]"""
    await Bounces(subscribed.service, clock=subscribed.clock).note(bounce("gone"))

    assert await subscribers(subscribed) == 0


async def test_other_errors_end_it_past_the_bound_only(subscribed: World) -> None:
    """[xep-map 243] [xep-map 244]"""
    counted = Bounces(subscribed.service, clock=subscribed.clock, bound=3)
    for _ in range(3):
        await counted.note(bounce("service-unavailable"))
    assert await subscribers(subscribed) == 1
    await counted.note(bounce("remote-server-not-found"))

    assert await subscribers(subscribed) == 0
    assert BOUND > 100


async def test_period_without_an_end_starts_anew(subscribed: World) -> None:
    """[xep-map 243]"""
    counted = Bounces(subscribed.service, clock=subscribed.clock, bound=2)
    for _ in range(5):
        await counted.note(bounce("service-unavailable"))
        await counted.note(bounce("service-unavailable"))
        subscribed.clock.move(PERIOD_S + 1)

    assert await subscribers(subscribed) == 1


async def test_bounces_of_somebody_else_end_nothing(subscribed: World) -> None:
    """[xep-map 241]"""
    counted = Bounces(subscribed.service, clock=subscribed.clock, bound=1)
    for _ in range(5):
        await counted.note(bounce("gone", BOB))
        await counted.note(bounce("service-unavailable", BOB))
        await counted.note(bounce("gone", ALICE, 77))

    assert await subscribers(subscribed) == 1


async def test_counts_are_bounded_and_the_oldest_is_forgotten(
    subscribed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COUNTS", 2)
    counted = Bounces(subscribed.service, clock=subscribed.clock, bound=1)
    for sub_no in (1, 2, 3):
        await counted.note(bounce("service-unavailable", sub_no=sub_no))
    await counted.note(bounce("service-unavailable"))

    assert await subscribers(subscribed) == 1
