"""The people of a node are those of the attachments of its items, also between requests of one transaction."""

from smartfeeds.errors import Condition
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import draft_of
from support.world import ALICE, FEED, OWNER, SERVICE, World, jid

SPACE = "urn:xmpp:pubsub-attachments:1"
NODE = f"{SPACE}/xmpp:{SERVICE}?;node={FEED};item=one"
NOTICED = draft_of(parse_payload(f"<attachments xmlns='{SPACE}'><noticed/></attachments>".encode()))


async def test_outcast_of_the_node_reads_no_attachments(world: World) -> None:
    await world.create(kind="generic")
    await world.publish("one")
    await world.service.handle(r.Publish(jid(ALICE), SERVICE, NODE, ALICE, NOTICED))
    pull = r.Pull(jid(ALICE), SERVICE, NODE)
    outcast, forgiven = (
        r.SetAffiliations(jid(OWNER), SERVICE, FEED, ((ALICE, affiliation),)) for affiliation in ("outcast", "none")
    )
    outcomes = await world.in_one_transaction(pull, outcast, pull, forgiven, pull)
    assert outcomes == ["ok", "ok", Condition.FORBIDDEN.value, "ok", "ok"]
