"""The archive reads what pulls read, and nothing else."""

import pytest

from smartfeeds.errors import Condition
from smartfeeds.features.archive.requests import ArchivePage, QueryArchive
from support.world import ALICE, BOB, SERVICE, World, jid, refusal
from unit.service.test_expiry import NODE, PLAIN, live_ids
from unit.service.test_syncing import SYNC


async def test_archive_has_no_expired_item(world: World) -> None:
    """[xep-map 73]: no sweep runs here."""
    await world.create(NODE, item_expire="60")
    await world.publish("old", PLAIN, node=NODE)
    world.clock.move(59)
    await world.publish("new", PLAIN, node=NODE)
    world.clock.move(1)

    answer = await world.service.handle(QueryArchive(jid(ALICE), SERVICE, NODE, {}))
    assert isinstance(answer, ArchivePage)
    assert live_ids(result.item for result in answer.results) == ["new"]


@pytest.mark.parametrize("itemreply", ["none", "owner"])
async def test_sync_data_of_a_node_that_hides_its_publishers_are_for_its_publishers(
    feed: World, itemreply: str
) -> None:
    """[A-61] [SF-111]"""
    await feed.affiliate(BOB, "member")
    await feed.publish("a")
    await feed.configure(itemreply=itemreply)

    for actor in (BOB, "stranger@elsewhere.example"):
        query = QueryArchive(jid(actor), SERVICE, SYNC, {})
        assert await refusal(feed.service.handle(query)) is Condition.FORBIDDEN
