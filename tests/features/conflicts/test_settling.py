"""What settling conflicts leaves in the sync data."""

from lxml import etree

from smartfeeds.core.model import Item
from smartfeeds.features.conflicts.requests import ResolveConflicts
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.service.syncing import endpoint
from support.world import BOB, FEED, OWNER, SERVICE, World, entry, jid

SYNC = f"{FEED}?sync=true"
SX = f"{{{FEEDSYNC_NS}}}"


def sync_of(item: Item) -> etree._Element:
    """The sync data in a payload as a sync view shows it."""
    (found,) = etree.fromstring(item.payload).findall(f"{SX}sync")
    return found


def history(item: Item) -> list[tuple[str, str]]:
    """Sequence and endpoint of each record, newest first."""
    return history_of(sync_of(item))


def history_of(element: etree._Element) -> list[tuple[str, str]]:
    return [(one.get("sequence", ""), one.get("by", "")) for one in element.iter(f"{SX}history")]


async def shown(world: World, item_id: str = "a") -> Item:
    (item,) = (await world.pull(SYNC, ids=item_id, actor=OWNER)).items
    return item


async def test_settled_branch_is_used_again(world: World) -> None:
    """[FS-054] The number of names does not grow with the number of edits."""
    await world.create(FEED, itemreply="none")
    me = endpoint(SERVICE, "")
    await world.publish_all("a a")
    theirs = f"<x:history sequence='3' by='b'/><x:history sequence='1' by='{me}'/>"
    await world.publish(
        "a", entry("theirs", inner=f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='a' updates='3'>{theirs}</x:sync>")
    )
    await world.publish("a", title="typo")

    await world.service.handle(ResolveConflicts(jid(OWNER), SERVICE, FEED, "a"))
    await world.publish("a", title="new")

    assert (await shown(world)).conflicts == 0
    assert [name for _, name in history(await shown(world))[:2]] == [me, me]


async def test_former_publisher_retracts_without_settling_conflicts(feed: World) -> None:
    """[A-62] Whoever may not publish decides on nobody's lost version; the owner still can."""
    await feed.affiliate(BOB, "publisher")
    await feed.publish("a", actor=BOB)
    await feed.publish(
        "a",
        entry(
            "theirs",
            inner=f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='a' updates='1'><x:history sequence='1' by='b'/></x:sync>",
        ),
        actor=BOB,
    )
    await feed.affiliate(BOB, "none")

    await feed.retract("a", actor=BOB)

    item = await shown(feed)
    assert item.deleted and item.conflicts == 1
    await feed.service.handle(ResolveConflicts(jid(OWNER), SERVICE, FEED, "a"))
    assert (await shown(feed)).conflicts == 0
