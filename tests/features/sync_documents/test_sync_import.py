"""Documents with sync data into nodes, some items at a time."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from smartfeeds.errors import Condition
from smartfeeds.features.sync_documents import sync_import
from smartfeeds.features.sync_documents.sync_import import (
    DocumentItem,
    ImportReport,
    ImportTarget,
    lacks,
    merge_document,
)
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.service.syncing import endpoint
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.sharing import NO_SHARING, format_bound
from support.world import ALICE, ATOM_NS, CREATED, FEED, MODIFIED, OWNER, SERVICE, T0_US, S, World, jid, refusal

SYNC = f"{FEED}?sync=true"
TARGET = ImportTarget(FEED, jid(OWNER), FeedDocument("", title="Plans", description="what we do"))


def raw(sync_id: str, *, by: str = "A", title: str = "", updates: int = 1, more: str = "") -> bytes:
    return (
        f'<entry xmlns="{ATOM_NS}"><id>urn:x:{sync_id}</id><title>{title or sync_id}</title>{more}'
        f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="{sync_id}" updates="{updates}">'
        f'<sx:history sequence="{updates}" when="2005-05-21T1{updates}:00:00Z" by="{by}"/></sx:sync></entry>'
    ).encode()


def plain(item_id: str, title: str = "") -> bytes:
    text = f"<id>{item_id}</id><title>{title or item_id}</title><updated>2005-05-21T11:00:00Z</updated>"
    return f'<entry xmlns="{ATOM_NS}">{text}</entry>'.encode()


def synced(*items: bytes) -> list[DocumentItem]:
    return [DocumentItem(index, one, synced=b"history" in one) for index, one in enumerate(items)]


async def bring(world: World, *items: bytes, target: ImportTarget = TARGET) -> ImportReport:
    merge = ImportReport()
    await merge_document(world.service, target, synced(*items), merge)
    return merge


async def test_versions_are_merged_into_a_node_that_is_made(world: World) -> None:
    """[FS-057] [A-59] Added, then in conflict, then nothing: a change for followers is a change of the item."""
    first = await bring(world, raw("a"), raw("b"))
    second = await bring(world, raw("a", by="B", title="other"), raw("b"))
    after = (await world.node()).last_modified_us
    third = await bring(world, raw("a", by="B", title="other"), raw("b"))

    assert first.outcomes == {Outcome.ADDED: 2}
    assert second.outcomes == {Outcome.CONFLICT: 1, Outcome.UNCHANGED: 1}
    assert third.outcomes == {Outcome.UNCHANGED: 2} and not third.changed
    assert (await world.node()).last_modified_us == after
    assert (await world.node()).options.stored["title"] == ("Plans",)


async def test_items_without_sync_data_are_imported_beside_the_others(world: World) -> None:
    """[FS-022] [FS-024]"""
    done = await bring(world, raw("a"), plain("b"))
    again = await bring(world, raw("a"), plain("b"))

    assert (done.outcomes, done.plain.added, done.taken) == ({Outcome.ADDED: 1}, 1, 2)
    assert (again.plain.unchanged, again.changed) == (1, False)
    assert await world.ids_of() == "a b"


async def test_refused_item_changes_nothing_and_the_rest_goes_on(world: World) -> None:
    """[A-52] Whatever it is refused for: what it says, its size, what it claims."""
    long = "x" * 70_000
    lie = raw("lie", by=endpoint(SERVICE, ALICE))
    done = await bring(
        world,
        raw("a"),
        raw("b").replace(b'updates="1"', b'updates="0"'),
        raw("big", title=long),
        plain("big", title=long),
        lie,
        raw("c"),
    )

    assert await world.ids_of() == "a c"
    assert done.refused == 4 and sorted(one.index for one in done.reasons) == [1, 2, 3, 4]
    reasons = {one.index: one.reason for one in done.reasons}
    assert "updates is '0'" in reasons[1] and "limit" in reasons[2] and "limit" in reasons[3]
    assert reasons[4].startswith("lie: its history has change 1")


async def test_own_changes_that_were_lost_are_believed_where_that_is_asked(world: World) -> None:
    """[A-61] [A-43] A restored backup learns again what it had told others."""
    lost = raw("a", by=endpoint(SERVICE, ALICE))

    assert (await bring(world, lost)).refused == 1
    assert (await bring(world, lost, target=replace(TARGET, own=True))).outcomes == {Outcome.ADDED: 1}
    assert (await bring(world, lost)).outcomes == {Outcome.UNCHANGED: 1}


async def test_items_are_named_as_they_were_where_they_came_from(world: World) -> None:
    """[A-154] The item id where a Smart Feed tells it, else the sync id; a name that is taken is left to its owner."""
    told = '<id xmlns="http://fanout.org/protocol/atom">{}</id>'
    await bring(world, raw("s1", more=told.format("one")), raw("s2"), raw("s3", more=told.format("s2")))

    names = (await world.ids_of()).split()
    assert names[:2] == ["one", "s2"] and len(names) == 3 and names[2] not in ("s2", "s3")


async def test_import_runs_some_items_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document of any length: no transaction has more than some of it, and no more of it is read ahead."""
    monkeypatch.setattr(sync_import, "CHUNK", 3)
    monkeypatch.setattr(sync_import, "CHUNK_BYTES", 2_000)
    log: list[str] = []
    write = world.service.write

    async def logged(work, **options):  # type: ignore[no-untyped-def]
        answer = await write(work, **options)
        log.append("write")
        return answer

    monkeypatch.setattr(world.service, "write", logged)

    def items() -> Iterator[DocumentItem]:
        for index in range(7):
            log.append(str(index))
            yield DocumentItem(index, raw(f"i{index}", title="x" * (1_900 if index == 4 else 1)), synced=True)

    done: list[int] = []
    await merge_document(world.service, TARGET, items(), ImportReport(), done.append)

    assert done == [3, 1, 1, 2]
    assert " ".join(log) == "write 0 1 2 3 write 4 write 5 write 6 write"
    assert await world.ids_of() == "i0 i1 i2 i3 i4 i5 i6"


async def test_first_change_of_an_item_is_when_it_was_made(world: World) -> None:
    """[SF-104] A-04: as far as its history goes back."""
    await bring(world, raw("a", updates=2), raw("b", updates=3))

    assert [one.created_us < T0_US for one in (await world.pull(CREATED)).items] == [True, True]


async def test_import_is_pushed_once_an_item(feed: World) -> None:
    """[A-59] [A-157]"""
    await feed.subscribe(ALICE, MODIFIED)
    await bring(feed, raw("a"), raw("b"))
    assert await feed.told(ALICE) == "+a +b"
    await bring(feed, raw("a"), raw("b", by="B", title="other"))
    assert await feed.told(ALICE) == "+b"


async def test_deletion_without_history_is_a_retraction(feed: World) -> None:
    """[A-18] The mark that an export without sync data leaves."""
    await bring(feed, raw("a"))
    mark = f'<sync xmlns="{FEEDSYNC_NS}" deleted="true" id="a"/>'
    gone = f'<entry xmlns="{ATOM_NS}"><id>a</id><title/><updated>2005-05-21T11:00:00Z</updated>{mark}</entry>'
    merge = ImportReport()
    await merge_document(feed.service, TARGET, [DocumentItem(0, gone.encode(), synced=False)], merge)

    assert merge.plain.deleted == 1
    assert [one.deleted for one in (await feed.pull()).items] == [True]


async def test_what_is_shared_of_a_pretty_printed_entry_is_what_others_keep_of_it(feed: World) -> None:
    """[FS-068] The item itself stays as it was published; its version has no blanks between elements, here or there."""
    pretty = f"<entry xmlns='{ATOM_NS}'>\n  <id>urn:x:a</id>\n  <title>a b</title>\n{{}}</entry>".format(
        "<updated>2011-05-09T12:00:00Z</updated>\n"
    )
    await feed.publish("a", pretty)
    (item,) = (await feed.pull()).items
    (shown,) = (await feed.pull(SYNC)).items
    key = (await feed.node()).last_modified_us

    assert b">\n  <id>" in item.payload and b">\n" not in shown.payload and b"<title>a b</title>" in shown.payload
    assert (await bring(feed, shown.payload)).outcomes == {Outcome.UNCHANGED: 1}
    assert (await feed.node()).last_modified_us == key


async def test_publisher_stays_where_a_merge_leaves_the_content(feed: World) -> None:
    """[A-59] [FS-062] A conflict that came from elsewhere makes nobody else the publisher, blanks or not."""
    await feed.publish("a", f"<entry xmlns='{ATOM_NS}'>\n<title>zz</title></entry>", actor=OWNER)
    await feed.publish("a", f"<entry xmlns='{ATOM_NS}'>\n<title>zzz</title></entry>", actor=OWNER)
    done = await bring(feed, raw("a", by="B", title="other"), target=replace(TARGET, actor=jid(ALICE)))
    node = await feed.node()
    item = await feed.store.read(lambda tx: tx.item(node.node_no, "a"))

    assert item is not None
    assert done.outcomes == {Outcome.CONFLICT: 1}
    assert (item.publisher, item.conflicts) == (OWNER, 1)


async def test_sync_data_that_an_older_version_kept_in_a_payload_counts_no_more(feed: World) -> None:
    """[FS-022] Views show the history that is kept beside it, once."""
    await feed.publish("a")
    node = await feed.node()
    item = await feed.store.read(lambda tx: tx.item(node.node_no, "a"))
    assert item is not None
    old = item._replace(payload=raw("a", by="stale"), total=1, live=1)
    await feed.store.write(lambda tx: tx.put_item(node.node_no, old))
    (shown,) = (await feed.pull(SYNC)).items

    assert shown.payload.count(b":sync ") == 1 and b"stale" not in shown.payload


async def test_node_that_cannot_take_part_is_an_error(world: World) -> None:
    await world.create("talk", kind="generic")

    assert await refusal(bring(world, raw("a"), target=replace(TARGET, node="talk"))) is Condition.NOT_ALLOWED


async def test_node_that_goes_away_ends_the_import(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that were taken before stay taken; nobody makes the node again."""
    monkeypatch.setattr(sync_import, "CHUNK", 1)

    def items() -> Iterator[DocumentItem]:
        yield DocumentItem(0, raw("a"), synced=True)
        gone.append(True)
        yield DocumentItem(1, raw("b"), synced=True)

    gone: list[bool] = []
    bring_some = sync_import._bring

    def bring_or_not(tx: WriteTx, *rest, **options):  # type: ignore[no-untyped-def]
        if gone:
            node = tx.node(FEED)
            assert node is not None
            tx.retire_node(node.node_no)
        return bring_some(tx, *rest, **options)

    monkeypatch.setattr(sync_import, "_bring", bring_or_not)
    doing = merge_document(world.service, TARGET, items(), ImportReport())
    assert await refusal(doing) is Condition.ITEM_NOT_FOUND


async def test_partial_document_that_begins_later_than_anything_here_lacks_something(world: World) -> None:
    """[FS-079] Compared as the texts that bounds are."""

    async def lacking(since: str | None) -> bool:
        sharing = replace(NO_SHARING, since=since, until=since)
        return await world.service.read(lambda tx, context: lacks(tx, context, FEED, sharing))

    early, late = format_bound(T0_US - S), format_bound(T0_US + S)
    assert [await lacking(one) for one in (None, early)] == [False, True]
    await world.create()
    assert await lacking(early)
    await world.publish("a")
    assert [await lacking(one) for one in (None, early, late)] == [False, False, True]


def test_what_people_are_told_has_an_end() -> None:
    merge = ImportReport()
    for index in range(2_000):
        merge.refuse(index, "no")
        merge.note(["so"])

    assert (merge.refused, len(merge.reasons), len(merge.notes)) == (2_000, 1_000, 1_000)
