"""A change of a contact concerns the requests that follow in the same transaction."""

from dataclasses import replace

from smartfeeds.errors import Condition
from smartfeeds.features.presence.requests import ChangeContact
from smartfeeds.service import requests as r
from support.world import ALICE, FEED, SERVICE, World, jid


async def test_contact_may_read_at_once(world: World) -> None:
    world.set_policy(contacts=frozenset({ALICE}), options=replace(world.service.policy.options, presence_access=True))
    await world.create(access_model="presence")
    pull = r.Pull(jid(ALICE), SERVICE, FEED)
    arrive, leave = (ChangeContact(jid(ALICE), SERVICE, kind) for kind in ("subscribe", "unsubscribe"))
    outcomes = await world.in_one_transaction(pull, arrive, pull, leave, pull)
    required = Condition.PRESENCE_REQUIRED.value
    assert outcomes == [required, "ok", "ok", "ok", required]
