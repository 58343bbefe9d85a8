"""Conflicts: listed for readers, settled by whoever may replace the item (FeedSync 3.4, SSE 5; A-62)."""

from lxml import etree

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition
from smartfeeds.features.conflicts.requests import (
    ConflictedItem,
    ConflictList,
    ListConflicts,
    ResolveConflicts,
    ResolvedItem,
)
from smartfeeds.service.syncing import endpoint
from smartfeeds.sync.merging import Outcome
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, jid, refusal
from unit.service.test_merging import B1, ME, bring, lines, outcomes, shared, shown, title


async def quarrel(world: World, *ids: str) -> None:
    """Items that were changed here and elsewhere; the change made here wins."""
    for item_id in ids:
        await world.publish_all(f"{item_id} {item_id}")
        theirs = shared((2, B1), (1, ME), sync_id=item_id, title=f"their {item_id}")
        assert await outcomes(world, theirs) == [Outcome.CONFLICT]


async def listed(world: World, actor: str = ALICE, **page: int | str) -> ConflictList:
    wanted = ResultSetRequest(**{name: str(value) for name, value in page.items()}) if page else None
    answer = await world.service.handle(ListConflicts(jid(actor), SERVICE, FEED, wanted))
    assert isinstance(answer, ConflictList)
    return answer


async def only(world: World) -> ConflictedItem:
    (entry,) = (await listed(world)).entries
    return entry


async def resolve(
    world: World,
    item_id: str = "a",
    *,
    actor: str = OWNER,
    keep: str = "",
    decided: tuple[str, ...] | None = None,
    seen: tuple[str, ...] | None = None,
) -> ResolvedItem:
    answer = await world.service.handle(ResolveConflicts(jid(actor), SERVICE, FEED, item_id, keep, decided, seen))
    assert isinstance(answer, ResolvedItem)
    return answer


async def test_conflicts_are_listed_with_every_version(feed: World) -> None:
    """[A-62] [FS-066] The winner first; each version has a tag that names it."""
    assert (await listed(feed)).entries == ()
    await quarrel(feed, "a")
    await feed.publish("b")
    entry = await only(feed)
    assert (entry.item.id, len(entry.version.conflicts), len(set(entry.tags))) == ("a", 1, 2)
    assert b"their a" in entry.version.conflicts[0].payload and b"their a" not in entry.version.payload


async def test_conflicts_are_listed_in_pages(feed: World) -> None:
    """[xep-map 196] As other lists: with the UID of the last one as the place to go on from."""
    await quarrel(feed, *"abc")
    first = await listed(feed, max=2)
    assert first.result_set is not None and first.result_set.count == 3
    rest = await listed(feed, max=2, after=first.result_set.last or "")
    assert [entry.item.id for entry in (*first.entries, *rest.entries)] == ["a", "b", "c"]


async def test_conflicts_do_not_show_publishers_that_the_node_hides(feed: World) -> None:
    """[A-61] [A-62] The tags stay, because they name the stored versions, and a decision finds them."""
    await quarrel(feed, "a")
    before = await only(feed)
    await feed.configure(itemreply="none")

    entry = await only(feed)

    assert {record.by for record in before.version.records} == {ME, B1}
    assert {record.by for record in entry.version.records} == {endpoint(SERVICE, ""), B1}
    assert entry.tags == before.tags
    assert (await resolve(feed, seen=entry.tags)).left == 0


async def test_conflicts_of_a_closed_feed_are_for_its_readers(feed: World) -> None:
    await quarrel(feed, "a")
    await feed.configure(access_model="whitelist")
    assert await refusal(listed(feed)) is not None
    assert len((await listed(feed, OWNER)).entries) == 1


async def test_settling_for_the_winner_keeps_its_content_and_ends_the_conflict(feed: World) -> None:
    """[FS-069] [FS-070] [FS-071] [FS-072] Settling is an update; what was decided on is part of the history now."""
    await quarrel(feed, "a")
    before = await shown(feed)
    assert (await resolve(feed)).left == 0
    item = await shown(feed)
    assert (title(item), item.conflicts) == ("a", 0) and item.modified_us > before.modified_us
    assert lines(item) == [f"3 {ME}", f"2 {B1}", f"2 {ME}", f"1 {ME}"]
    assert await outcomes(feed, shared((2, B1), (1, ME), title="their a")) == [Outcome.UNCHANGED]
    assert (await listed(feed)).entries == ()


async def test_settling_for_the_other_version_brings_its_content(feed: World) -> None:
    """[FS-073] [A-62] Its text stays; who decided is the publisher of the item now."""
    await quarrel(feed, "a")
    await resolve(feed, keep=(await only(feed)).tags[1])
    item = await shown(feed)
    assert (title(item), item.publisher, item.conflicts) == ("their a", OWNER, 0)


async def test_settling_for_a_deletion_deletes_and_against_one_brings_back(feed: World) -> None:
    """[FS-073] [A-49] A deletion is a version like others, on either side of a conflict."""
    for item_id, updates in (("a", 2), ("b", 3)):
        await feed.publish_all(f"{item_id} {item_id}")
        await bring(feed, shared((updates, B1), (1, ME), sync_id=item_id, deleted="true"))
    one, other = (await listed(feed)).entries
    assert (one.item.deleted, other.item.deleted) == (False, True)
    await resolve(feed, "a", keep=one.tags[1])
    await resolve(feed, "b", keep=other.tags[1])
    assert ((await shown(feed, "a")).deleted, (await shown(feed, "b")).deleted) == (True, False)
    assert (await feed.node()).live == 1


async def test_some_conflicts_can_be_settled_and_others_left(feed: World) -> None:
    """[FS-069] What is not decided on stays a conflict."""
    await quarrel(feed, "a")
    await bring(feed, shared((2, "0"), (1, ME), title="third"))
    entry = await only(feed)
    assert (await resolve(feed, decided=entry.tags[1:2])).left == 1
    assert (await only(feed)).version.conflicts == entry.version.conflicts[1:]


async def test_settling_what_has_changed_meanwhile_is_refused(feed: World) -> None:
    """[A-62] Nobody decides on what they have not seen."""
    await quarrel(feed, "a")
    seen = (await only(feed)).tags
    await bring(feed, shared((2, "0"), (1, ME), title="third"))
    assert await refusal(resolve(feed, seen=seen)) is Condition.CONFLICT
    assert (await only(feed)).item.conflicts == 2
    assert (await resolve(feed, seen=(await only(feed)).tags)).left == 0


async def test_settling_needs_the_right_to_replace_the_item(feed: World) -> None:
    """[xep-map 155]"""
    await quarrel(feed, "a")
    await feed.configure(publish_model="open")
    assert await refusal(resolve(feed, actor=BOB)) is Condition.FORBIDDEN
    await feed.affiliate(BOB, "publisher")
    assert (await resolve(feed, actor=BOB)).left == 0


async def test_settling_nothing_or_the_unknown_is_refused(feed: World) -> None:
    await quarrel(feed, "a")
    await feed.publish("b")
    for doing in (
        resolve(feed, "b"),
        resolve(feed, "c"),
        resolve(feed, keep="0" * 16),
        resolve(feed, decided=("0" * 16,)),
        resolve(feed, decided=()),
    ):
        assert await refusal(doing) is Condition.ITEM_NOT_FOUND
    assert await refusal(resolve(feed, "")) is Condition.ITEM_REQUIRED
    assert (await only(feed)).item.conflicts == 1


async def test_settling_is_pushed_once(feed: World) -> None:
    """[A-59] It is a change of the item like any other."""
    await quarrel(feed, "a")
    await feed.start()
    await feed.subscribe(ALICE, f"{FEED}?sync=true")
    await resolve(feed)
    (event,) = await feed.events(ALICE)
    assert (event.item_id, event.xml.find(".//{*}conflicts")) == ("a", None)


async def test_own_conflict_ends_with_the_next_publish(feed: World) -> None:
    """[FS-049] What an endpoint itself lost to somebody else, it has seen when it publishes again."""
    await feed.publish_all("a a")
    await bring(feed, shared((3, B1), (1, ME), title="theirs"))
    assert (await shown(feed)).conflicts == 1
    await feed.publish("a", title="again")
    item = await shown(feed)
    assert (title(item), item.conflicts) == ("again", 0)


async def test_conflict_of_sse_is_settled_by_one_more_update(feed: World) -> None:
    """[SSE-044] [SSE-036]"""
    ns = "http://www.microsoft.com/schemas/rss/sse"

    def version(by: str) -> str:
        sync = f"<s:sync xmlns:s='{ns}' id='s' version='2'><s:history by='{by}'><s:update by='x'/></s:history></s:sync>"
        return f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{by}</title>{sync}</entry>"

    assert await outcomes(feed, version("b"), version("c")) == [Outcome.ADDED, Outcome.CONFLICT]
    entry = await only(feed)
    await resolve(feed, "s", keep=entry.tags[1])
    item = await shown(feed, "s")
    sync = etree.fromstring(item.payload).find(f"{{{ns}}}sync")
    assert sync is not None
    assert (title(item), sync.get("version"), sync.get("conflict"), item.conflicts) == ("b", "3", None, 0)


async def test_who_may_not_publish_any_more_settles_nothing(feed: World) -> None:
    """[A-62] [xep-map 151] Not even an item of their own: settling replaces content like publishing."""
    await feed.affiliate(BOB, "publisher")
    await feed.publish_all("a")
    await feed.publish("b", actor=BOB)
    theirs = shared((2, "c"), (1, "d"), sync_id="b")
    await bring(feed, theirs)
    (entry,) = (await listed(feed)).entries
    await feed.affiliate(BOB, "none")
    assert await refusal(resolve(feed, "b", actor=BOB, keep=entry.tags[1])) is Condition.FORBIDDEN


async def test_views_and_generic_nodes_have_no_conflicts_of_their_own(feed: World) -> None:
    """[xep-map 52] What is decided on is an item of the feed."""
    await quarrel(feed, "a")
    await feed.create("g", kind="generic")
    for name in (f"{FEED}?author=nobody", "g"):
        request = ListConflicts(jid(OWNER), SERVICE, name)
        assert await refusal(feed.service.handle(request)) is Condition.NOT_ALLOWED
        settle = ResolveConflicts(jid(OWNER), SERVICE, name, "a")
        assert await refusal(feed.service.handle(settle)) is Condition.NOT_ALLOWED
    assert (await only(feed)).item.conflicts == 1
