"""Works of one transaction share what they have found out about an actor: a change between them ends that.

What each request may do is asked before the change, too, so that an answer is there to share.
"""

from typing import Any

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, draft, entry, form, jid

FORBIDDEN, CLOSED = Condition.FORBIDDEN.value, Condition.CLOSED_NODE.value


def publish(item_id: str, actor: str = ALICE) -> r.Publish:
    return r.Publish(jid(actor), SERVICE, FEED, item_id, draft(entry(item_id)))


def affiliate(affiliation: str) -> r.SetAffiliations:
    return r.SetAffiliations(jid(OWNER), SERVICE, FEED, ((ALICE, affiliation),))


async def test_affiliation(world: World) -> None:
    await world.create(publish_model="publishers")
    outcomes = await world.in_one_transaction(
        publish("a"), affiliate("publisher"), publish("b"), affiliate("outcast"), publish("c"), publish("d", OWNER)
    )
    assert outcomes == [FORBIDDEN, "ok", "ok", "ok", FORBIDDEN, "ok"]
    assert await world.ids_of(FEED, actor=OWNER) == "b d"


async def test_reading(world: World) -> None:
    """Requests that read run among writes, too, if they need the filter index."""
    await world.create(access_model="whitelist")
    pull = r.Pull(jid(ALICE), SERVICE, FEED)
    outcomes = await world.in_one_transaction(pull, affiliate("member"), pull, affiliate("none"), pull)
    assert outcomes == [CLOSED, "ok", "ok", "ok", CLOSED]


async def test_options(world: World) -> None:
    await world.create(publish_model="open")
    closed = r.Configure(jid(OWNER), SERVICE, FEED, form(publish_model="publishers"))
    opened = r.Configure(jid(OWNER), SERVICE, FEED, form(publish_model="open"))
    outcomes = await world.in_one_transaction(publish("a"), closed, publish("b"), opened, publish("c"))
    assert outcomes == ["ok", "ok", FORBIDDEN, "ok", "ok"]


async def test_subscription(world: World) -> None:
    await world.create(publish_model="subscribers")
    subscribe = r.Subscribe(jid(ALICE), SERVICE, FEED, ALICE)
    unsubscribe = r.Unsubscribe(jid(ALICE), SERVICE, FEED, ALICE)
    outcomes = await world.in_one_transaction(publish("a"), subscribe, publish("b"), unsubscribe, publish("c"))
    assert outcomes == [FORBIDDEN, "ok", "ok", "ok", FORBIDDEN]


async def test_subscription_of_another_resource(world: World) -> None:
    await world.create(publish_model="subscribers")
    phone, desk = f"{ALICE}/phone", f"{ALICE}/desk"
    subscribe = r.Subscribe(jid(phone), SERVICE, FEED, phone)
    outcomes = await world.in_one_transaction(subscribe, publish("a", phone), publish("b", desk), publish("c", phone))
    assert outcomes == ["ok", "ok", FORBIDDEN, "ok"]


async def test_node_of_the_same_name(world: World) -> None:
    await world.create(publish_model="open")
    delete = r.DeleteNode(jid(OWNER), SERVICE, FEED)
    create = r.CreateNode(jid(OWNER), SERVICE, FEED, form(publish_model="publishers"))
    assert await world.in_one_transaction(publish("a"), delete, create, publish("b")) == ["ok", "ok", "ok", FORBIDDEN]


async def test_rollback(world: World) -> None:
    """A change that was not committed gives nobody anything."""
    await world.create(publish_model="publishers")

    def fail(tx: WriteTx, context: Context) -> Any:
        world.run(tx, context, affiliate("publisher"))
        world.run(tx, context, publish("a"))
        raise FeedError(Condition.CONFLICT)

    with pytest.raises(FeedError, match="conflict"):
        await world.service.write(fail)
    await world.affiliate(BOB, "publisher")  # the audience number is now the one of the change that was rolled back
    with pytest.raises(FeedError, match=FORBIDDEN):
        await world.service.handle(publish("b"))
