"""Versions from elsewhere: merged, never overwritten; refused one by one (FeedSync 3.3, A-43 to A-61)."""

from asyncio import gather
from collections.abc import Sequence
from functools import partial

import pytest
from lxml import etree

from smartfeeds.core.model import MAX_ID_BYTES, MAX_SYNC_BYTES, Item
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service import merging, publishing
from smartfeeds.service import requests as r
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.merging import MAX_COUNTER, IncomingItem, MergeResult, merge_items
from smartfeeds.service.steps import MoreSteps
from smartfeeds.service.syncing import EDITED_SYNC_BYTES, endpoint
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.merging import Outcome
from support.world import ALICE, BOB, FEED, MODIFIED, OWNER, SERVICE, World, draft, entry, jid, refusal

SYNC = f"{FEED}?sync=true"
MIRROR = "feeds.b.example"
ME = endpoint(SERVICE, OWNER)
B1 = "feeds.b.example%2Fbob@b.example"

Records = Sequence[tuple[int, str]]


def shared(
    *records: tuple[int, str],
    sync_id: str = "a",
    title: str = "",
    updates: int = 0,
    deleted: str = "",
    noconflicts: bool = False,
    conflicts: str = "",
) -> str:
    """An entry with sync data; `records` are sequence and endpoint, newest first, a second apart."""
    history = "".join(
        f"<x:history sequence='{sequence}' when='2011-05-09T11:00:{sequence % 60:02}Z' by='{by}'/>"
        for sequence, by in records
    )
    flags = (f" deleted='{deleted}'" if deleted else "") + (" noconflicts='true'" if noconflicts else "")
    inside = f"<x:conflicts>{conflicts}</x:conflicts>" if conflicts else ""
    count = updates or (records[0][0] if records else 1)
    sync = f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='{sync_id}' updates='{count}'{flags}>{history}{inside}</x:sync>"
    return entry(title or f"by {records[0][1] if records else ''}", inner=sync)


async def put(world: World, payload: str, item_id: str | None = None, actor: str = OWNER) -> r.Published:
    """Publishes an entry as a peer does."""
    answer = await world.service.handle(r.Publish(jid(actor), SERVICE, FEED, item_id, draft(payload)))
    assert isinstance(answer, r.Published)
    return answer


async def bring(world: World, *payloads: str, item_id: str = "", own: bool = False) -> tuple[MergeResult, ...]:
    """Merges entries as a mirror does."""
    items = []
    for payload in payloads:
        found = read_item(parse_payload(payload.encode()))
        assert found is not None
        items.append(IncomingItem(item_id, found))
    return await world.service.write(lambda tx, context: merge_items(tx, context, FEED, MIRROR, items, own=own))


async def outcomes(world: World, *payloads: str) -> list[Outcome | None]:
    return [result.outcome for result in await bring(world, *payloads)]


async def shown(world: World, item_id: str = "a") -> Item:
    return next(item for item in (await world.pull(SYNC)).items if item.id == item_id)


def title(item: Item) -> str:
    return etree.fromstring(item.payload).findtext("{*}title") or ""


def lines(item: Item) -> list[str]:
    """The history of an item, newest first, and `/` with the histories of its conflicts."""
    sync = etree.fromstring(item.payload).find("{*}sync")
    assert sync is not None
    own = [f"{one.get('sequence')} {one.get('by')}" for one in sync.findall("{*}history")]
    for conflict in sync.iterfind("{*}conflicts/{*}entry/{*}sync"):
        own += ["/", *(f"{one.get('sequence')} {one.get('by')}" for one in conflict.findall("{*}history"))]
    return own


# What becomes of a version.


async def test_unknown_item_is_added_as_it_is(feed: World) -> None:
    """[FS-061] [A-154] Its id is its sync id; it counts as made when its first record says."""
    assert await outcomes(feed, shared((2, B1), (1, B1), title="hello")) == [Outcome.ADDED]
    item = await shown(feed)
    assert (title(item), lines(item), item.publisher) == ("hello", [f"2 {B1}", f"1 {B1}"], MIRROR)
    assert item.created_us < feed.clock() == item.modified_us


async def test_newer_version_replaces_and_older_changes_nothing(feed: World) -> None:
    """[A-59] [FS-065] A merge is a modification if and only if the stored item changed: one push, or none."""
    await feed.start()
    await feed.subscribe(ALICE, MODIFIED)
    await bring(feed, shared((1, B1), title="old"))
    assert await feed.told() == "+a"
    assert await outcomes(feed, shared((2, B1), (1, B1), title="new")) == [Outcome.UPDATED]
    assert await feed.told() == "+a"
    before = await shown(feed)
    assert await outcomes(feed, shared((1, B1), title="old"), shared((2, B1), (1, B1), title="new")) == [
        Outcome.UNCHANGED,
        Outcome.UNCHANGED,
    ]
    assert await shown(feed) == before and title(before) == "new"
    assert await feed.told() == ""


@pytest.mark.parametrize("prefix", ["a", "z"])
async def test_version_that_comes_back_with_other_prefixes_changes_nothing(feed: World, prefix: str) -> None:
    """[A-59] Servers write prefixes anew; of the winner and of conflicts the bytes that are here stay."""

    def marked(text: str, prefix: str) -> str:
        mark = f"<{prefix}:geo xmlns:{prefix}='urn:g' {prefix}:at='here'>x</{prefix}:geo>"
        return text.replace("</entry>", f"{mark}</entry>")

    mine, lost = shared((3, B1), (1, ME), title="mine"), shared((2, "c"), (1, ME), title="lost")
    await feed.publish("a", title="first")
    await bring(feed, *(marked(one, prefix) for one in (mine, lost)))
    former = await shown(feed)
    assert former.conflicts == 1

    whole = shared((3, B1), (1, ME), title="mine", conflicts=lost)
    again = [marked(one, "n1") for one in (mine, lost, whole)]
    assert await outcomes(feed, *again) == [Outcome.UNCHANGED] * 3

    assert await shown(feed) == former


async def test_edit_on_both_sides_is_a_conflict_and_nothing_is_lost(feed: World) -> None:
    """[FS-060] [FS-066] [A-157] The loser stays with the winner; that counts as modified."""
    await feed.publish("a", title="first")
    await feed.publish("a", title="mine")
    former = await shown(feed)
    assert await outcomes(feed, shared((2, B1), (1, ME), title="theirs")) == [Outcome.CONFLICT]
    item = await shown(feed)
    assert item.modified_us > former.modified_us and item.conflicts == 1
    assert {"theirs", "mine"} == {one.text for one in etree.fromstring(item.payload).iter("{*}title")}
    assert lines(item) == [f"2 {ME}", f"1 {ME}", "/", f"2 {B1}", f"1 {ME}"]
    assert await outcomes(feed, shared((2, B1), (1, ME), title="theirs")) == [Outcome.UNCHANGED]


async def test_deletion_on_one_side_and_edit_on_the_other_is_a_conflict(feed: World) -> None:
    """[A-50] [FS-066] Whichever wins, the other is kept; a tombstone keeps its history and no content."""
    await feed.publish_all("a a")
    assert await outcomes(feed, shared((3, B1), (1, ME), title="gone", deleted="true")) == [Outcome.CONFLICT]
    item = await shown(feed)
    assert item.deleted and lines(item) == [f"3 {B1}", f"1 {ME}", "/", f"2 {ME}", f"1 {ME}"]
    await feed.publish_all("b b")
    theirs = shared((2, "0"), (1, ME), sync_id="b", title="gone", deleted="true")
    assert await outcomes(feed, theirs) == [Outcome.CONFLICT]
    item = await shown(feed, "b")
    assert not item.deleted and lines(item) == [f"2 {ME}", f"1 {ME}", "/", "2 0", f"1 {ME}"]


async def test_merged_deletion_is_a_tombstone_without_content(feed: World) -> None:
    """[A-50] [SF-013] What arrives deleted is stripped the same way everywhere."""
    await feed.publish("a", title="mine", content="secret")
    assert await outcomes(feed, shared((2, B1), (1, ME), title="still here", deleted="true")) == [Outcome.UPDATED]
    (item,) = (await feed.pull(MODIFIED)).items
    assert item.deleted and b"still here" not in item.payload and b"secret" not in item.payload
    assert (await feed.node()).live == 0
    assert await outcomes(feed, shared((3, B1), (1, ME), title="back", deleted="false")) == [Outcome.UPDATED]
    assert (await feed.node()).live == 1


async def test_deletion_of_what_was_never_here_is_kept(feed: World) -> None:
    """[FS-061] A tombstone that comes first keeps an older version from coming back."""
    assert await outcomes(feed, shared((2, B1), (1, B1), deleted="true"), shared((1, B1))) == [
        Outcome.ADDED,
        Outcome.UNCHANGED,
    ]
    node = await feed.node()
    assert (node.total, node.live) == (1, 0)
    assert await feed.ids_of(FEED) == ""


async def test_two_services_end_with_the_same_bytes(world: World, feed: World) -> None:
    """[A-43] [FS-068] Incomplete entries are completed from the version alone."""
    bare = entry("x", inner="").replace("<title>x</title>", "")
    sync = shared((1, B1))
    sync = sync[sync.index("<x:sync") : sync.index("</entry>")]
    await bring(feed, bare.replace("</entry>", sync + "</entry>"))
    first = await shown(feed)
    feed.clock.move(86_400)
    await feed.delete()
    await feed.create(FEED)
    await bring(feed, bare.replace("</entry>", sync + "</entry>"))
    assert (await shown(feed)).payload == first.payload
    assert b"<updated>2011-05-09T11:00:01Z</updated>" in first.payload


async def test_version_does_not_depend_on_what_it_stood_in(feed: World) -> None:
    """[FS-068] A loser without a language stays so in a winner that has one, else replicas would never be equal."""
    plain = shared((2, "c"), (1, B1), title="plain")
    english = shared((2, B1), (1, B1), title="english").replace("<entry", "<entry xml:lang='en'", 1)
    await bring(feed, plain, english)
    item = await shown(feed)
    await feed.delete()
    await feed.create(FEED)
    await bring(feed, item.payload.decode())
    assert (await shown(feed)).payload == item.payload
    assert await outcomes(feed, plain, english) == [Outcome.UNCHANGED, Outcome.UNCHANGED]


async def test_noconflicts_keeps_the_winner_alone(feed: World) -> None:
    """[FS-031] [FS-032] [FS-061] The loser is dropped, in whichever order they come; `noconflicts` is carried by the
    merge and by a local edit."""
    versions = [
        shared((2, B1), (1, B1), noconflicts=True, title="loser"),
        shared((3, "c"), (1, B1), noconflicts=True, title="winner"),
    ]
    for arrivals in (versions, versions[::-1]):
        await bring(feed, *arrivals)
        item = await shown(feed)
        assert (item.conflicts, title(item)) == (0, "winner")
        assert b"loser" not in item.payload + item.sync
        await feed.publish("a", title="edited")
        item = await shown(feed)
        sync = etree.fromstring(item.payload).find("{*}sync")
        assert sync is not None
        assert (title(item), sync.get("noconflicts"), sync.get("updates")) == ("edited", "true", "4")
        await feed.delete()
        await feed.create(FEED)


async def test_sse_stays_sse_and_dialects_do_not_mix(feed: World) -> None:
    """[SSE-031] [A-83] What an item is kept as decides how it goes on; the other dialect is refused with the reason."""
    ns = "http://www.microsoft.com/schemas/rss/sse"
    payload = entry("s", inner=f"<s:sync xmlns:s='{ns}' id='s' version='1'><s:history by='x'/></s:sync>")
    assert await outcomes(feed, payload) == [Outcome.ADDED]
    await feed.publish("s", title="again")
    sync = etree.fromstring((await shown(feed, "s")).payload).find(f"{{{ns}}}sync")
    assert sync is not None and sync.get("version") == "2"
    (refused,) = await bring(feed, shared((3, B1), sync_id="s"))
    assert refused.outcome is None and "SSE" in refused.reason


# Over the wire.


async def test_entry_published_with_sync_data_is_merged(feed: World) -> None:
    """[A-59] The answer says the id, and whether it was not there before."""
    first = await put(feed, shared((1, B1), title="one"))
    assert (first.item_id, first.created) == ("a", True)
    await feed.publish("a", title="mine")
    again = await put(feed, shared((1, B1), title="one"), "a")
    assert not again.created and title(await shown(feed)) == "mine"


async def test_item_may_have_another_id_than_its_sync_id(feed: World) -> None:
    """[A-154] The sync id decides which item it is, whatever it is called elsewhere."""
    assert (await put(feed, shared((1, B1), sync_id="s"), "mine")).item_id == "mine"
    assert (await put(feed, shared((2, B1), (1, B1), sync_id="s"), "theirs")).item_id == "mine"
    assert await refusal(put(feed, shared((1, B1), sync_id="t"), "mine")) is Condition.CONFLICT
    assert [one.item_id for one in await bring(feed, shared((1, B1), sync_id="u"), item_id="mine")] == ["id-1"]


async def test_merging_needs_the_rights_of_publishing(feed: World) -> None:
    """[A-61] [xep-map 155] A version with a long history gives no right to other people's items."""
    await feed.configure(publish_model="open")
    await feed.publish("a", title="mine")
    assert await refusal(put(feed, shared((9, B1), (1, ME)), "a", actor=BOB)) is Condition.FORBIDDEN
    gone = shared((9, B1), (1, ME), deleted="true")
    assert await refusal(put(feed, gone, "a", actor=BOB)) is Condition.FORBIDDEN
    assert (await put(feed, shared((1, B1), sync_id="bobs"), actor=BOB)).created
    assert (await put(feed, shared((2, B1), (1, B1), sync_id="bobs"), actor=BOB)).item_id == "bobs"


async def test_mark_without_a_version_is_a_retraction_or_nothing(feed: World) -> None:
    """[A-18] Only sync data that speaks of a version is one; a bare mark is taken off."""
    await feed.publish("a", entry("a", inner=f"<sync xmlns='{FEEDSYNC_NS}' id='z'/>"))
    (item,) = (await feed.pull(FEED)).items
    assert b"sync" not in item.payload
    await feed.publish("a", entry("", deleted=True))
    assert (await feed.node()).live == 0


# Refusals.

REFUSED = {
    "counter 0": (shared((1, B1)).replace("updates='1'", "updates='0'"), "updates"),
    "counter below 0": (shared((1, B1)).replace("updates='1'", "updates='-1'"), "updates"),
    "counter too great": (shared((1, B1)).replace("updates='1'", "updates='2147483648'"), "updates"),
    "no history": (shared(), "history"),
    "id with a blank": (shared((1, B1), sync_id="a b"), "Specific String"),
    "endpoint with a blank": (shared((1, "John Smith")), "Specific String"),
    "neither when nor by": (shared((1, B1)).replace("by=", "x=").replace("when=", "y="), "neither"),
    "1,001 records": (shared(*((n, f"e{n}") for n in range(1001, 0, -1))), "1000 history"),
    "conflicts in conflicts in conflicts": (
        shared((1, B1), conflicts=shared((1, "c"), conflicts=shared((1, "d"), conflicts=shared((1, "e"))))),
        "nested",
    ),
    "101 conflicts": (shared((1, B1), conflicts="".join(shared((1, f"c{n}")) for n in range(101))), "100 conflicts"),
}


@pytest.mark.parametrize(("payload", "reason"), REFUSED.values(), ids=REFUSED.keys())
async def test_bad_sync_data_is_refused_with_the_reason(feed: World, payload: str, reason: str) -> None:
    """[A-52] [A-54] [A-55] [A-56] [FS-004] [FS-007] [FS-025] What is here stays as it is."""
    await feed.publish("a", title="mine")
    before = await shown(feed)
    made = draft_of(parse_payload(payload.encode()))
    assert reason in made.fault
    assert await refusal(put(feed, payload, "a")) is Condition.INVALID_PAYLOAD
    assert await shown(feed) == before


async def test_bad_item_does_not_stop_the_others(feed: World) -> None:
    """[A-52] One refusal is told with its reason, the rest goes on."""
    too_long = shared((1, B1), sync_id="b", title="x" * 65_536)
    results = await bring(feed, shared((1, B1)), too_long, shared((1, B1), sync_id="c"))
    assert [one.outcome for one in results] == [Outcome.ADDED, None, Outcome.ADDED]
    assert "limit" in results[1].reason
    assert await feed.ids_of() == "a c"


async def test_version_that_is_no_entry_is_refused(feed: World) -> None:
    """[A-50] Sync data may be in any element, but the items of a feed are entries."""
    note = shared((1, B1)).replace("<entry", "<note").replace("</entry", "</note")
    results = await bring(feed, note, shared((1, B1), sync_id="c"))
    assert [one.outcome for one in results] == [None, Outcome.ADDED]
    assert "items of a feed are Atom entries" in results[0].reason
    assert await feed.ids_of() == "c"


async def test_version_that_lies_about_changes_made_here_is_refused(feed: World) -> None:
    """[A-61] A history that tells of a change by this service which was never made is a lie, or a lost store."""
    await feed.publish("a", title="mine")
    for lie in ((2, ME), (1, endpoint(SERVICE, BOB)), (5, endpoint(SERVICE, ""))):
        (result,) = await bring(feed, shared((9, B1), lie, (1, ME), title="lie"))
        assert result.outcome is None and lie[1] in result.reason
    (result,) = await bring(feed, shared((1, B1), sync_id="b", conflicts=shared((4, ME), sync_id="b")))
    assert result.outcome is None
    assert title(await shown(feed)) == "mine" and await feed.ids_of() == "a"
    (result,) = await bring(feed, shared((9, B1), (2, ME), (1, ME), title="restored"), own=True)
    assert result.outcome is Outcome.UPDATED


async def test_publisher_cannot_lie_about_changes_made_here_either(feed: World) -> None:
    """[A-61] A service that sends its changes here is a publisher like others."""
    await feed.publish("a", title="mine")
    assert await refusal(put(feed, shared((9, B1), (2, ME), (1, ME), title="lie"))) is Condition.POLICY_VIOLATION
    assert title(await shown(feed)) == "mine"


async def test_versions_that_were_seen_here_are_no_lie(feed: World) -> None:
    """[A-61] What was made here comes back in many ways: as the past of others, and in their conflicts."""
    await feed.publish("a", title="one")
    await feed.publish("a", title="two")
    await bring(feed, shared((3, B1), (1, ME), title="theirs"))
    back = shared((4, B1), (3, B1), (2, ME), (1, ME), title="resolved")
    assert await outcomes(feed, back) == [Outcome.UPDATED]
    assert (await shown(feed)).conflicts == 0


async def test_conflicts_that_would_not_fit_into_a_stanza_are_refused(feed: World) -> None:
    """[A-55] The item stays and the feed stays readable: it can be settled and deleted, then edited again."""
    await feed.publish("a", title="mine")
    parts = [shared((2, f"e{n}"), (1, ME), title="x" * 30_000) for n in range(6)]
    results = await bring(feed, *parts)
    assert [one.outcome for one in results][:4] == [Outcome.UPDATED, *[Outcome.CONFLICT] * 3]
    assert results[-1].outcome is None and "longer" in results[-1].reason
    item = await shown(feed)
    assert EDITED_SYNC_BYTES < len(item.sync or b"") <= MAX_SYNC_BYTES
    assert await refusal(feed.publish("a", title="again")) is Condition.POLICY_VIOLATION
    await feed.retract("a")
    assert (await shown(feed)).conflicts == 0
    await feed.publish("a", title="again")
    assert title(await shown(feed)) == "again"


async def test_what_one_service_stores_another_one_takes(feed: World) -> None:
    """[A-55] Edits stop before merges do: else an item would be stuck at one of two services."""
    conflict = shared((1, "c"), title="y" * 60_000)
    await bring(feed, shared((2, B1), title="x", conflicts=conflict + shared((1, "d"), title="z" * 50_000)))
    room = EDITED_SYNC_BYTES - len((await shown(feed)).sync or b"")
    await feed.affiliate(BOB, "publisher")
    edits = [feed.publish("a", title=f"edit {n}", actor=(OWNER, BOB)[n % 2]) for n in range(room // 80)]
    refused = [one for one in await gather(*edits, return_exceptions=True) if isinstance(one, FeedError)]
    assert refused and len(refused) < len(edits)
    last = await shown(feed)
    await feed.delete()
    await feed.create(FEED)
    (result,) = await bring(feed, last.payload.decode(), own=True)
    assert result.outcome is Outcome.ADDED and (await shown(feed)).payload == last.payload


async def test_generic_nodes_and_missing_ones_take_no_versions(world: World) -> None:
    """[FS-024] What is shared goes into feeds."""
    assert await refusal(bring(world, shared((1, B1)))) is Condition.ITEM_NOT_FOUND
    await world.create(FEED, kind="generic")
    assert await refusal(bring(world, shared((1, B1)))) is Condition.NOT_ALLOWED


BOUNDS = {
    "counter": (shared((1, B1), updates=2_147_483_647), "few more"),
    "sequence": (shared((2_147_483_647, B1), updates=5), "few more"),
    "counter of a conflict": (shared((1, B1), conflicts=shared((1, "c"), updates=2_147_000_000)), "few more"),
    "501 endpoints": (shared(*((1, f"e{n}") for n in range(501))), "500 endpoints"),
    "501 endpoints in conflicts": (
        shared((1, B1), conflicts="".join(shared(*((1, f"{c}{n}") for n in range(126))) for c in "abcd")),
        "500 endpoints",
    ),
    "deep markup in the history": (
        shared((1, B1)).replace("</x:sync>", "<d xmlns='u'>" * 130 + "</d>" * 130 + "</x:sync>"),
        "deep",
    ),
    "many names in the history": (
        shared((1, B1)).replace("</x:sync>", "".join(f"<d{n} xmlns='u'/>" for n in range(300)) + "</x:sync>"),
        "names",
    ),
    "quotation marks": (shared((1, B1), title='"' * 64_000), "limit"),
    "a date after the last one": (
        shared((1, B1)).replace("2011-05-09T11:00:01Z", "9999-12-31T23:59:60Z"),
        "not a time",
    ),
}


@pytest.mark.parametrize(("payload", "reason"), BOUNDS.values(), ids=BOUNDS.keys())
async def test_what_would_leave_no_room_for_changes_here_is_refused(feed: World, payload: str, reason: str) -> None:
    """[A-55] [A-63] Nobody can make an item that its owner can neither edit nor retract nor settle."""
    try:
        (result,) = await bring(feed, payload)
        said = result.reason
    except FeedError as error:
        said = error.text
    assert reason in said
    assert (await feed.node()).total == 0


async def test_item_at_every_bound_can_still_be_edited_and_purged(feed: World) -> None:
    """[A-63] The owner has the last word, whatever came from elsewhere."""
    most = MAX_COUNTER
    await bring(feed, shared((most, B1), *((1, f"e{n}") for n in range(499)), updates=most))
    await feed.publish("a", title="mine")
    assert title(await shown(feed)) == "mine"
    await feed.purge()
    assert (await feed.node()).live == 0


async def test_item_that_was_changed_too_often_is_left_as_it_is(feed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """[A-63] The counter has no next value: said clearly, nothing lost."""
    monkeypatch.setattr(merging, "MAX_COUNTER", 2_147_483_647)
    await bring(feed, shared((2_147_483_647, B1), title="last"))
    assert await refusal(feed.publish("a", title="one more")) is Condition.NOT_ALLOWED
    assert title(await shown(feed)) == "last"


async def test_retraction_takes_the_content_of_conflicts_along(feed: World) -> None:
    """[SF-013] [FS-069] Who retracts an item retracts all of it: nothing of it stays readable."""
    await feed.publish_all("a a")
    await bring(feed, shared((2, B1), (1, ME), title="their secret"))
    await feed.retract("a")
    item = await shown(feed)
    assert item.deleted and item.conflicts == 0 and b"secret" not in item.payload
    assert await outcomes(feed, shared((2, B1), (1, ME), title="their secret")) == [Outcome.UNCHANGED]


async def test_noconflicts_cannot_be_put_on_an_item_from_elsewhere(feed: World) -> None:
    """[FS-032] [A-44] It never changes; a version that says so would wipe out what is here."""
    await feed.publish("a", title="mine")
    (result,) = await bring(feed, shared((9, B1), noconflicts=True))
    assert "noconflicts" in result.reason and title(await shown(feed)) == "mine"


async def test_other_content_under_a_change_made_here_is_refused(feed: World) -> None:
    """[A-61] Else it would pass for its author's, with their history and without a conflict."""
    await feed.publish("a", title="Pay 10")
    forged = (await shown(feed)).payload.decode().replace("Pay 10", "Pay 9000")
    (result,) = await bring(feed, forged)
    assert "other content" in result.reason and title(await shown(feed)) == "Pay 10"
    assert await refusal(put(feed, forged)) is Condition.POLICY_VIOLATION


@pytest.mark.parametrize("by", [ME.replace("%2F", "%2f"), ME.replace("f", "%66", 1), ME.upper().replace("%2F", "%2F")])
async def test_endpoint_of_ours_is_known_however_it_is_spelt(feed: World, by: str) -> None:
    """[A-61] [A-51]"""
    (result,) = await bring(feed, shared((1, by)))
    assert "of this service" in result.reason


async def test_sse_is_taken_from_publishers_alone(feed: World) -> None:
    """[A-83] Else anybody could take an id, so that no version of FeedSync gets through any more."""
    await feed.configure(publish_model="open")
    ns = "http://www.microsoft.com/schemas/rss/sse"
    payload = entry("s", inner=f"<s:sync xmlns:s='{ns}' id='s' version='1'><s:history by='x'/></s:sync>")
    assert await refusal(put(feed, payload, actor=BOB)) is Condition.FORBIDDEN
    assert (await put(feed, payload)).created


async def test_who_may_not_read_learns_no_sync_ids(feed: World) -> None:
    """[xep-map 155] As with item ids: the answer would tell which are there."""
    await feed.publish("w1")
    await feed.configure(publish_model="open", access_model="whitelist")
    for sync_id in ("w1", "nope"):
        assert await refusal(put(feed, shared((1, "c"), sync_id=sync_id), actor=BOB)) is Condition.FORBIDDEN


async def test_entry_with_sync_data_twice_is_no_change_the_second_time(feed: World) -> None:
    """[A-87] [A-59]"""
    once = shared((1, B1))
    sync = once[once.index("<x:sync") : once.index("</entry>")]
    twice = once.replace("</entry>", f"{sync}</entry>")
    assert await outcomes(feed, twice, twice) == [Outcome.ADDED, Outcome.UNCHANGED]


async def test_what_xmpp_does_not_carry_is_the_same_here_and_there(feed: World) -> None:
    """[FS-068] Line ends, white space in attributes: else an entry would differ once it went through a server."""
    await feed.publish("a", entry("T", inner="<link href='a&#xA;b&#x9;c'/>").replace("T", "x&#xD;\ny&#xD;z", 1))
    item = await shown(feed)
    assert b"&#x" not in item.payload and title(item) == "x\ny\nz" and b'href="a b c"' in item.payload
    assert await outcomes(feed, item.payload.decode()) == [Outcome.UNCHANGED]


async def test_version_may_be_larger_than_its_content_may_be(feed: World) -> None:
    """[A-55] History and conflicts have bounds of their own, so that whatever one service has another one takes."""
    await put(feed, shared((2, B1), title="x" * 60_000, conflicts=shared((2, "c"), title="y" * 60_000)))
    assert (await shown(feed)).conflicts == 1
    assert await refusal(put(feed, shared((3, B1), (2, B1), title="x" * 70_000))) is Condition.PAYLOAD_TOO_BIG


async def test_item_ids_of_others_are_bounded(feed: World) -> None:
    """[xep-map 55] What cannot be an item id is left out; the item is called as it is shared."""
    (result,) = await bring(feed, shared((1, B1)), item_id="i" * (MAX_ID_BYTES + 1))
    assert result.item_id == "a"


async def test_conflict_without_an_entry_is_refused_as_what_it_is(feed: World) -> None:
    """[SSE-048] [A-52] Text in sx:conflict is bad data of the sender, not a fault of the service."""
    ns = "http://www.microsoft.com/schemas/rss/sse"
    inner = (
        f"<s:sync xmlns:s='{ns}' id='s' version='2'><s:history by='x'/>"
        "<s:conflicts><s:conflict version='1' by='y'>just text</s:conflict></s:conflicts></s:sync>"
    )
    assert await refusal(put(feed, entry("s", inner=inner))) is Condition.INVALID_PAYLOAD


async def test_pages_without_sync_data_do_not_read_it(feed: World) -> None:
    """[xep-map 200] Conflicts may be longer than everything else of an item: only who asks for them pays for them."""
    await feed.publish("a")
    for view in (FEED, MODIFIED, f"{FEED}?order=created", f"{FEED}?q=a"):
        (item,) = (await feed.pull(view)).items
        assert item.sync is None
    assert (await shown(feed)).sync is not None


async def test_purge_of_items_with_long_histories_goes_in_small_chunks(
    feed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 81] Nobody else's writes wait for it, whatever the items have beside their content."""
    monkeypatch.setattr(publishing, "PURGE_STEP", 2)
    monkeypatch.setattr(publishing, "PURGE_BYTES", 500)
    for number in range(5):
        await bring(feed, shared((2, B1), (1, B1), sync_id=f"i{number}"))
    result = await feed.step(partial(publishing.purge, request=r.Purge(jid(OWNER), SERVICE, FEED)))
    lives = [(await feed.node()).live]
    while isinstance(result, MoreSteps):
        result = await feed.step(result.step)
        lives.append((await feed.node()).live)
    assert lives == [3, 1, 0, 0]
