"""A change of the lists of addresses concerns the requests that follow in the same transaction."""

from smartfeeds.core.blocklist import ListKind
from smartfeeds.errors import Condition
from smartfeeds.features.privacy.blocking import SetBlockList
from smartfeeds.service import requests as r
from support.world import ALICE, FEED, OWNER, SERVICE, World, draft, entry, jid

ADMIN = "admin@example.org"


def publish(item_id: str, actor: str) -> r.Publish:
    return r.Publish(jid(actor), SERVICE, FEED, item_id, draft(entry(item_id)))


def blocks(kind: ListKind, *names: str) -> SetBlockList:
    return SetBlockList(jid(ADMIN), SERVICE, kind, names)


async def test_denied_address(world: World) -> None:
    world.set_policy(admins=frozenset({ADMIN}))
    await world.create(publish_model="open")
    outcomes = await world.in_one_transaction(
        publish("a", ALICE),
        blocks(ListKind.DENY, ALICE),
        publish("b", ALICE),
        publish("c", OWNER),
        blocks(ListKind.DENY),
        publish("d", ALICE),
    )
    assert outcomes == ["ok", "ok", Condition.FORBIDDEN.value, "ok", "ok", "ok"]


async def test_list_of_those_who_are_allowed(world: World) -> None:
    world.set_policy(admins=frozenset({ADMIN}))
    await world.create(publish_model="open")
    outcomes = await world.in_one_transaction(
        publish("a", ALICE), blocks(ListKind.ALLOW, OWNER), publish("b", ALICE), publish("c", OWNER)
    )
    assert outcomes == ["ok", "ok", Condition.FORBIDDEN.value, "ok"]
