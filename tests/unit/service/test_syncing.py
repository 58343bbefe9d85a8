"""The sync data that every item of a feed has (FeedSync 2.4, 3.1, 3.2), and the views that show it."""

import pytest
from lxml import etree

from smartfeeds.core.model import Item
from smartfeeds.core.options import KIND
from smartfeeds.errors import Condition
from smartfeeds.formats.atom import FEEDSYNC_NS, TITLE
from smartfeeds.service.requests import GetItem, PullFeed
from smartfeeds.service.syncing import endpoint, is_own_endpoint
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.merging import merge
from smartfeeds.sync.record import Version
from support.sync import parse_item
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, SERVICE, S, World, entry, jid, refusal

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


def by(address: str) -> str:
    return endpoint(SERVICE, address)


def read_version(item: Item) -> Version:
    """The item of a sync view as the merge sees it."""
    found = parse_item(item.payload)
    assert found is not None
    return found.version


def title_of(version: Version) -> str | None:
    return etree.fromstring(version.payload).findtext(TITLE)


async def shown(world: World, item_id: str = "a") -> Item:
    (item,) = (await world.pull(SYNC, ids=item_id, actor=OWNER)).items
    return item


def test_endpoint_is_the_publisher_at_this_service_percent_encoded() -> None:
    """[A-51] [FS-004] The same person at two services is two endpoints."""
    assert endpoint("feeds.example", "alice@example.net") == "feeds.example%2Falice@example.net"
    assert endpoint("feeds.example", "") == "feeds.example"
    assert is_own_endpoint("feeds.example", "feeds.example%2Falice@example.net")
    assert is_own_endpoint("feeds.example", "feeds.example")
    assert not is_own_endpoint("feeds.example", "feeds.example.net%2Falice@example.net")


@pytest.mark.parametrize(
    "by",
    [
        *(
            "%20feeds.example%2Fa@b",
            "feeds.example%20%2Fa@b",
            "feeds.example%2Fa@b%20",
            "%0Afeeds.example",
            "%E3%80%80feeds.example",
        ),
        *("feeds.example.%2Fa@b", "feeds.example.", "FEEDS.example%2Fa@b", "feeds.example%2F@2", "feeds.example/a@b"),
        *("%EF%BD%86eeds.example%2Fa@b", "feeds%EF%BC%8Eexample%2Fa@b", "feeds%E3%80%82example%2Fa@b"),
        *("fe%C2%ADeds.example%2Fa@b", "fe%E2%80%8Beds.example%2Fa@b", "%E2%80%AEfeeds.example%2Fa@b"),
        *("feeds%E3%85%A4.example%2Fa@b", "feeds%EF%B8%8F.example%2Fa@b", "/feeds.example/a@b"),
        *(
            "feeds.example%252Fa@b",
            "feeds.example%25252Fa@b",
            "feeds.example%2525252525252Fa@b",
            "%2525252566eeds.example/a@b",
        ),
        *("feeds.example%EF%BC%8Fa@b", "feeds.example%E2%88%95a@b", "feeds.example%E2%81%84a@b", "feeds.example%5Ca@b"),
        *("xmpp:feeds.example%2Fa@b", "XMPP:feeds.example", "xmpp%3Afeeds.example/a@b", "xmpp://feeds.example/a@b"),
        *("feeds.example?a@b", "feeds.example#a@b", "feeds.example%3F;node=x"),
    ],
)
def test_endpoint_that_reads_as_ours_is_ours(by: str) -> None:
    """[A-61] A page shows it as somebody at this service."""
    assert is_own_endpoint("feeds.example", by)


@pytest.mark.parametrize(
    "by",
    [
        *(
            "",
            "b",
            "example",
            "feeds.example.net",
            "feeds.example@net",
            "alice@feeds.example",
            "xmpp:alice@feeds.example",
        ),
        *(
            "other%2Ffeeds.example%2Fa@b",
            "feeds.examples%2Fa@b",
            "ffeeds.example",
            "feeds..example",
            "%FF",
            "%",
            "100%25",
        ),
    ],
)
def test_endpoint_of_another_service_is_not_ours(by: str) -> None:
    """[A-61] What FeedSync services elsewhere call themselves goes on to merge."""
    assert not is_own_endpoint("feeds.example", by)


async def test_item_has_sync_data_from_its_first_publish(feed: World) -> None:
    """[FS-041] [FS-044] One update, by its publisher, now."""
    await feed.publish("a")
    found = sync_of(await shown(feed))
    assert dict(found.attrib) == {"id": "a", "updates": "1"}
    (record,) = found
    assert dict(record.attrib) == {"sequence": "1", "when": "2011-05-09T12:00:00Z", "by": by(OWNER)}


async def test_each_publish_is_an_update_by_its_publisher(feed: World) -> None:
    """[FS-046] [FS-047] [FS-048] Over XMPP an item is published again; its history says by whom."""
    await feed.affiliate(BOB, "publisher")
    await feed.publish("a")
    feed.clock.move(5)
    await feed.publish("a", title="b", actor=BOB)
    assert history(await shown(feed)) == [("2", by(BOB)), ("1", by(OWNER))]


async def test_retraction_is_an_update_and_publishing_again_brings_back(feed: World) -> None:
    """[A-18] [A-49] [FS-030] A tombstone has its whole history; deleted="false" says that it is live again."""
    await feed.publish("a")
    await feed.retract("a")
    gone = await shown(feed)
    assert gone.deleted and sync_of(gone).get("deleted") == "true"
    assert history(gone) == [("2", by(OWNER)), ("1", by(OWNER))]
    await feed.publish("a")
    back = await shown(feed)
    assert not back.deleted and dict(sync_of(back).attrib) == {"id": "a", "updates": "3", "deleted": "false"}


async def test_other_views_show_no_history(feed: World) -> None:
    """[FS-022] Only who asks for sync data gets it; the mark of a tombstone stays."""
    await feed.publish("a")
    await feed.publish("b")
    await feed.retract("b")
    one, other = (await feed.pull()).items
    assert etree.fromstring(one.payload).find(f"{SX}sync") is None
    assert dict(sync_of(other).attrib) == {"deleted": "true", "id": "b"}


async def test_sync_view_is_pulled_and_pushed_alike(feed: World) -> None:
    """[SF-087] What is pushed to a subscriber of a view is what a pull of it gives, headers included."""
    await feed.start()
    await feed.subscribe(ALICE, SYNC)
    await feed.publish("a")
    (first,) = await feed.events(ALICE)
    assert first.total == 1 and history_of(first.xml) == [("1", by(OWNER))]
    await feed.retract("a")
    (last,) = await feed.events(ALICE)
    assert (last.deleted, last.previous) == (True, first.last)
    (item,) = (await feed.pull(SYNC)).items
    assert history_of(last.xml) == history(item) == [("2", by(OWNER)), ("1", by(OWNER))]


async def test_item_that_cannot_be_a_sync_id_is_shared_under_an_encoded_one(feed: World) -> None:
    """[A-51] [A-154] [FS-028] The item id stays what it is; two items never share a sync id."""
    await feed.publish("a b&c")
    await feed.publish("a%20b%26c")
    assert sync_of(await shown_by_id(feed, "a b&c")).get("id") == "a%20b%26c"
    other = sync_of(await shown_by_id(feed, "a%20b%26c")).get("id")
    assert other not in ("a%20b%26c", None)


async def shown_by_id(world: World, item_id: str) -> Item:
    return next(item for item in (await world.pull(SYNC)).items if item.id == item_id)


async def test_node_that_hides_its_publishers_names_the_service(world: World) -> None:
    """[A-61] The history must not tell what itemreply=none keeps to itself."""
    await world.create(FEED, itemreply="none", **{KIND.removeprefix("pubsub#"): "feed"})
    await world.publish("a")
    assert history(await shown(world)) == [("1", endpoint(SERVICE, ""))]


@pytest.mark.parametrize("itemreply", ["none", "owner"])
async def test_sync_data_of_a_node_that_hides_its_publishers_are_for_its_publishers(
    feed: World, itemreply: str
) -> None:
    """[A-61] [SF-111] Changes from before the option name their publishers: in pulls, events and single items."""
    await feed.affiliate(ALICE, "publisher")
    await feed.affiliate(BOB, "member")
    await feed.subscribe(ALICE, SYNC)
    await feed.subscribe(BOB, SYNC)
    await feed.subscribe(BOB, MODIFIED)
    recipients = []
    for reply, title in (("publisher", "first"), (itemreply, "edited")):
        await feed.configure(itemreply=reply)
        await feed.publish("a", title=title)
        recipients.append(sorted((event.to, event.node) for event in await feed.events()))

    everybody = [(ALICE, SYNC), (BOB, MODIFIED), (BOB, SYNC)]
    assert recipients == [everybody, everybody[:2]]
    for actor in (BOB, "stranger@elsewhere.example"):
        assert await refusal(feed.pull(SYNC, actor=actor)) is Condition.FORBIDDEN
        assert await refusal(feed.subscribe(actor, f"{SYNC}&order=created")) is Condition.FORBIDDEN
        item = GetItem(jid(actor), SERVICE, FEED, "a", sync=True)
        assert await refusal(feed.service.handle(item)) is Condition.FORBIDDEN
        page = PullFeed(jid(actor), SERVICE, FEED, "sync=true")
        assert await refusal(feed.service.handle(page)) is Condition.FORBIDDEN
        assert (await feed.pull(MODIFIED, actor=actor)).ids == "a"
    await feed.unsubscribe(BOB, SYNC)
    names = [name for _, name in history((await feed.pull(SYNC, actor=ALICE)).items[0])]
    assert names == [endpoint(SERVICE, ""), by(OWNER)]
    await feed.configure(itemreply="publisher")
    assert (await feed.pull(SYNC, actor=BOB)).ids == "a"


async def test_item_from_before_sync_data_counts_as_changed_by_its_publisher(feed: World) -> None:
    """[A-59] What an older version stored is shown, and edited, as any other item."""
    await feed.put(("a", 1304942400 * S))
    assert history(await shown(feed)) == [("1", by(OWNER))]
    await feed.publish("a")
    assert history(await shown(feed)) == [("2", by(OWNER)), ("1", by(OWNER))]


async def test_generic_node_has_no_sync_data(world: World) -> None:
    """Items of generic nodes are left as they came, whatever sync data they hold."""
    await world.create("g", kind="generic")
    payload = entry("a", inner=f"<sync xmlns='{FEEDSYNC_NS}' updates='0'/>")
    await world.publish("a", payload, node="g")
    (item,) = (await world.pull("g")).items
    assert sync_of(item).get("updates") == "0" and not item.sync


async def test_hidden_publishers_do_not_settle_each_others_conflicts(world: World) -> None:
    """[A-62] [FS-049] [FS-064] Several people share the service's name, and have not seen what the others lost."""
    await world.create(FEED, itemreply="none")
    me = endpoint(SERVICE, "")
    await world.publish_all("a a")
    theirs = f"<x:history sequence='3' by='b'/><x:history sequence='1' by='{me}'/>"
    sync = f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='a' updates='3'>{theirs}</x:sync>"
    await world.publish("a", entry("theirs", inner=sync))
    elsewhere = await shown(world)
    assert elsewhere.conflicts == 1

    await world.publish("a", title="typo")
    await world.publish("a", title="another typo")

    edited = await shown(world)
    branch = f"{me}%2F@2"
    assert [one for one in history(edited) if one[1] == branch] == [("5", branch), ("4", branch)]
    assert is_own_endpoint(SERVICE, branch)
    for one, other in [(elsewhere, edited), (edited, elsewhere)]:
        merged = merge(FEEDSYNC, read_version(one), read_version(other)).version
        assert {title_of(version) for version in (merged, *merged.conflicts)} == {"another typo", "a"}
    await world.publish("a", elsewhere.payload.decode())
    assert (await shown(world)).conflicts == 1


async def test_publisher_with_a_long_address_shares_no_endpoint() -> None:
    """[FS-005] Addresses that are too long for an endpoint have a digest there."""
    names = {endpoint(SERVICE, f"{'é' * 500}{number}@people.example") for number in range(2)}
    assert len(names) == 2 and all(is_own_endpoint(SERVICE, name) and len(name) < 1_023 for name in names)
