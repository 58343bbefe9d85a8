"""One document with and without sync data, by imports, sources and mirrors, in any order: one item for each entry."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime as rfc_822
from functools import partial
from itertools import product

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item, Slice
from smartfeeds.core.person import Person
from smartfeeds.core.view import SHARED
from smartfeeds.features.polling.polls import AnswerKind, PollAnswer
from smartfeeds.features.polling.reading import read_source
from smartfeeds.features.polling.source import Source, new_source
from smartfeeds.features.polling.source_import import SourceContent, store_poll
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.privacy.erasing_items import erase_item
from smartfeeds.features.sync_documents.sync_import import DocumentItem, ImportReport, ImportTarget, merge_document
from smartfeeds.formats.atom import FEEDSYNC_NS, id_and_updated
from smartfeeds.service import requests as r
from smartfeeds.service.context import Policy
from smartfeeds.service.importing import import_document
from smartfeeds.service.merging import IncomingItem, merge_items
from smartfeeds.service.syncing import read_shared
from smartfeeds.sync.arriving import read_arrived
from smartfeeds.sync.document_reader import FeedReader, PieceKind
from smartfeeds.sync.lexis import SSE_NS
from smartfeeds.sync.record import COPIED, Edit
from support.sqlite_memory import SqliteMemoryStore
from support.world import ALICE, ATOM_NS, FEED, OWNER, SERVICE, S, World, draft, entry, jid

pytestmark = pytest.mark.needs("mirrors")

URL = "https://o.example/feed"


@dataclass
class Origin:
    """The publisher of one item elsewhere: its versions, and the documents that it serves."""

    world: World
    form: str = "atom"
    dialect: str = "feedsync"
    sync_id: str = "s1"
    name: str = "urn:x:entry"
    versions: list[tuple[str, int, bool]] = field(default_factory=list)

    def change(self, title: str, *, deleted: bool = False) -> None:
        self.versions.append((title, self.world.clock() // S, deleted))

    def document(self, *, synced: bool = True) -> bytes:
        """The feed as it is now."""
        title, seconds, deleted = self.versions[-1]
        sync = self._sync() if synced else ""
        moment = datetime.fromtimestamp(seconds, UTC)
        if deleted and not synced:
            items = ""
        elif self.form == "atom":
            updated = f"<updated>{moment:%Y-%m-%dT%H:%M:%SZ}</updated>"
            items = f"<entry><id>{self.name}</id><title>{title}</title>{updated}{sync}</entry>"
        else:
            guid = f"<guid isPermaLink='false'>{self.name}</guid>" if self.name else ""
            link = "<link>https://o.example/1</link>"
            items = f"<item><title>{title}</title>{link}{guid}<pubDate>{rfc_822(moment)}</pubDate>{sync}</item>"
        if self.form == "atom":
            head = "<id>urn:x:f</id><title>F</title><updated>2011-05-09T12:00:00Z</updated>"
            return f"<feed xmlns='{ATOM_NS}'>{head}{items}</feed>".encode()
        head = "<title>F</title><link>https://o.example/</link><description>D</description>"
        return f"<rss version='2.0'><channel>{head}{items}</channel></rss>".encode()

    def _sync(self) -> str:
        newest = len(self.versions)
        deleted = " deleted='true'" if self.versions[-1][2] else ""
        times = [datetime.fromtimestamp(seconds, UTC) for _, seconds, _ in reversed(self.versions)]
        if self.dialect == "sse":
            top, *older = [f"when='{rfc_822(one, usegmt=True)}' by='ed'" for one in times]
            updates = "".join(f"<x:update {one}/>" for one in older)
            data = f"<x:history {top}>{updates}</x:history>"
            return f"<x:sync xmlns:x='{SSE_NS}' id='{self.sync_id}' version='{newest}'{deleted}>{data}</x:sync>"
        data = "".join(
            f"<x:history sequence='{newest - place}' when='{one:%Y-%m-%dT%H:%M:%SZ}' by='ed'/>"
            for place, one in enumerate(times)
        )
        return f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='{self.sync_id}' updates='{newest}'{deleted}>{data}</x:sync>"


@dataclass
class Place:
    """The node here, and the steps of the table."""

    world: World
    origin: Origin
    source: Source | None = None

    async def step(self, name: str) -> None:
        self.world.clock.move(60)
        await getattr(self, name.replace(" ", "_"))()

    async def origin_edits(self) -> None:
        self.origin.change(f"origin {len(self.origin.versions) + 1}")

    async def origin_deletes(self) -> None:
        self.origin.change("", deleted=True)

    async def plain(self, *, synced: bool = True) -> None:
        document = read_document(self.origin.document(synced=synced))
        await import_document(self.world.service, FEED, document, jid(OWNER))

    async def bare(self) -> None:
        """The same feed, served without sync data."""
        await self.plain(synced=False)

    async def sync(self) -> None:
        reader, body = FeedReader(), self.origin.document()
        pieces = [*reader.feed(body), *reader.close()]
        items = [DocumentItem(one.index, one.raw, one.kind is PieceKind.SYNCED) for one in pieces]
        report = ImportReport()
        await merge_document(self.world.service, ImportTarget(FEED, jid(OWNER)), items, report)
        assert not report.refused, report.reasons

    async def mirror(self) -> None:
        """As a mirror over HTTP merges what it has read."""
        reader, body = FeedReader(), self.origin.document()
        items = [
            IncomingItem(*read_arrived(one.raw, lenient=True), ()) for one in (*reader.feed(body), *reader.close())
        ]
        results = await self.world.service.write(lambda tx, context: merge_items(tx, context, FEED, "o.example", items))
        assert not any(one.reason for one in results)

    async def poll(self) -> None:
        """A poll of a source with this document."""
        if self.source is None:
            self.source = await self.world.service.write(partial(add_source, source=new_source(FEED, URL, 0)))
        source = self.source
        document = read_source(self.origin.document(), "", URL, source)
        content = SourceContent(document.feed, document.items)
        stored = await self.world.service.write(
            lambda tx, context: store_poll(tx, context, source.source_no, PollAnswer(AnswerKind.READ), 0.5, content)
        )
        assert stored is not None

    async def here_edits(self) -> None:
        (item,) = await self.items()
        payload = entry("here", inner=f"<id>{id_and_updated(item.payload)[0]}</id>")
        await self.world.service.handle(r.Publish(jid(OWNER), SERVICE, FEED, item.id, draft(payload)))

    async def here_deletes(self) -> None:
        (item,) = await self.items()
        await self.world.service.handle(r.Retract(jid(OWNER), SERVICE, FEED, item.id))

    async def here_erases(self) -> None:
        """As if the person who imported the item were erased."""

        def work(tx, context):  # type: ignore[no-untyped-def]
            node = tx.node(FEED)
            (item,) = tx.slice(node.node_no, Slice(SHARED, 1))
            erase_item(tx, context, node, item, Person(OWNER))

        await self.world.service.write(work)

    async def items(self) -> list[Item]:
        def read(tx, _context):  # type: ignore[no-untyped-def]
            return tx.slice(tx.node(FEED).node_no, Slice(SHARED, 100))

        return await self.world.service.read(read)

    async def ends(self) -> tuple[int, int, str]:
        """How many items there are, how many conflicts they have, and the title of the first one, "-" if deleted."""
        items = await self.items()
        (first, *_) = items
        title = first.payload.partition(b"<title>")[2].partition(b"</title>")[0].decode()
        return len(items), sum(item.conflicts for item in items), "-" if first.deleted else title


Start = Callable[..., Awaitable[Place]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts services with an empty node, and an origin with one item."""
    async with AsyncExitStack() as stack:

        async def started(**origin: str) -> Place:
            store = SqliteMemoryStore()
            await store.open()
            stack.push_async_callback(store.close)
            world = World(store)
            await world.create()
            place = Place(world, Origin(world, **origin))
            place.origin.change("origin 1")
            return place

        yield started


def steps_of(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")]


# Steps; the title in the end, "-" if deleted; the number of conflicts.
TABLE = [
    ("plain, sync", "origin 1", 0),
    ("sync, plain", "origin 1", 0),
    ("bare, sync", "origin 1", 0),
    ("poll, sync", "origin 1", 0),
    ("sync, poll", "origin 1", 0),
    ("plain, mirror", "origin 1", 0),
    ("bare, mirror", "origin 1", 0),
    ("poll, mirror", "origin 1", 0),
    ("mirror, plain, poll, sync", "origin 1", 0),
    ("plain, plain, sync, sync", "origin 1", 0),
    ("plain, sync, plain, sync", "origin 1", 0),
    ("poll, poll, sync, poll, sync", "origin 1", 0),
    ("plain, poll", "origin 1", 0),
    # The origin changes in between.
    ("plain, origin edits, sync", "origin 2", 0),
    ("bare, origin edits, sync", "origin 2", 0),
    ("poll, origin edits, sync", "origin 2", 0),
    ("plain, origin edits, plain, sync", "origin 2", 0),
    ("plain, origin edits, plain, origin edits, sync", "origin 3", 0),
    ("poll, origin edits, poll, origin edits, mirror", "origin 3", 0),
    ("sync, origin edits, plain, sync", "origin 2", 0),
    ("sync, origin edits, plain, origin edits, sync", "origin 3", 0),
    ("poll, sync, origin edits, poll, sync", "origin 2", 0),
    ("origin edits, origin edits, plain, sync, origin edits, sync", "origin 4", 0),
    ("sync, origin edits, poll", "origin 1", 0),
    # People here change the copy.
    ("plain, here edits, sync", "here", 0),
    ("bare, here edits, sync", "here", 0),
    ("poll, here edits, mirror", "here", 0),
    ("origin edits, plain, here edits, sync", "here", 0),
    ("origin edits, bare, here edits, sync, sync", "here", 0),
    ("plain, here edits, here edits, mirror", "here", 0),
    ("sync, here edits, plain", "here", 0),
    ("sync, here edits, poll", "here", 0),
    ("plain, here edits, sync, plain, sync", "here", 0),
    ("sync, origin edits, plain, here edits, sync", "here", 0),
    ("plain, here edits, sync, origin edits, sync", "", 1),
    # Both do: a conflict, and no change is lost.
    ("plain, here edits, origin edits, sync", "", 1),
    ("bare, here edits, origin edits, sync", "", 1),
    ("poll, origin edits, here edits, mirror", "", 1),
    # Deletions.
    ("plain, origin deletes, sync", "-", 0),
    ("bare, origin deletes, sync", "-", 0),
    ("poll, origin deletes, mirror", "-", 0),
    ("plain, origin deletes, plain, sync", "-", 0),
    ("sync, origin deletes, plain, sync", "-", 0),
    ("plain, here deletes, sync", "-", 0),
    ("poll, here deletes, mirror", "-", 0),
    ("plain, here deletes, sync, plain, sync", "-", 0),
    ("sync, here deletes, plain", "-", 0),
    ("sync, here deletes, poll", "-", 0),
    ("plain, here erases, sync", "-", 0),
    ("bare, here erases, sync, sync", "-", 0),
    ("poll, here erases, mirror", "-", 0),
    ("plain, here erases, origin edits, sync", "-", 0),
    ("plain, here erases, origin deletes, sync", "-", 0),
    ("sync, here erases, plain, sync", "-", 0),
]
FORMS = tuple(product(("atom", "rss"), ("feedsync", "sse"), ("urn:x:entry", "s1", "o.example:s 1")))


@pytest.mark.parametrize(("steps", "title", "conflicts"), TABLE, ids=[row[0] for row in TABLE])
async def test_document_is_one_item_in_any_order(start: Start, steps: str, title: str, conflicts: int) -> None:
    """[FS-022] [FS-026] [FS-041] [A-154] [SRC-069] No duplicate, and a conflict only where both sides changed the item
    apart. The name of the entry equals its sync id, or differs from it."""
    for form, dialect, name in FORMS:
        place = await start(form=form, dialect=dialect, name=name)
        for step in steps_of(steps):
            await place.step(step)
        number, found, end = await place.ends()
        assert (number, found) == (1, conflicts), (form, dialect, name)
        assert not title or end == title, (form, dialect, name)
        if "sync" in steps or "mirror" in steps:
            (item,) = await place.items()
            assert "s1" in (item.sync_id, item.id)


@pytest.mark.parametrize(
    "steps", ["plain, sync", "bare, sync", "poll, sync", "sync, plain", "plain, sync, origin edits, sync"]
)
async def test_item_without_guid_is_found_too(start: Start, steps: str) -> None:
    """[A-154] An RSS item without guid has its id from its link, and its sync id when it is shared."""
    place = await start(form="rss", name="")
    for step in steps_of(steps):
        await place.step(step)
    assert (await place.ends())[:2] == (1, 0)


async def test_copy_becomes_the_item_with_the_history_of_its_origin(start: Start) -> None:
    """[FS-057] [A-59] Nothing remains of the import: the item is the same as where it came with its sync data."""
    place = await start()
    await place.step("plain")
    (copy,) = await place.items()
    await place.step("sync")
    (item,) = await place.items()
    assert (copy.id, item.id, item.sync_id) == ("urn:x:entry", "urn:x:entry", "s1")
    assert copy.sync is not None and b"copied" in copy.sync
    assert item.sync is not None and b"copied" not in item.sync and item.sync.count(b"<sx:history") == 1


async def test_item_of_another_entry_is_left_alone(start: Start) -> None:
    """[FS-066] [A-61] What somebody published here under the same name is no copy: a conflict, as ever."""
    place = await start(name="s1")
    await place.world.publish("s1", entry("mine", inner="<id>s1</id>"))
    await place.step("sync")
    assert (await place.ends())[:2] == (1, 1)


async def test_document_of_a_source_changes_no_shared_item(start: Start) -> None:
    """[SRC-069] [A-61] A stranger's document may name the sync id of any item."""
    place = await start()
    await place.step("sync")
    before = await place.items()
    place.origin.name, place.origin.form = "urn:x:stranger", "rss"
    await place.step("origin edits")
    await place.step("poll")
    assert await place.items() == before


async def test_copy_that_another_service_made_changes_nothing_where_the_item_is_known(start: Start) -> None:
    """[FS-068] The other service becomes the same when it gets the item itself."""
    place = await start()
    await place.step("sync")
    before = await place.items()
    copy = (
        f"<entry xmlns='{ATOM_NS}'><id>urn:x:entry</id><title>copy</title><x:sync xmlns:x='{FEEDSYNC_NS}' id='s1' "
        f"updates='1' xmlns:o='{COPIED[1:].partition('}')[0]}'><x:history sequence='1' when='2011-05-09T13:00:00Z' "
        "by='feeds.c.example' o:copied='1'/></x:sync></entry>"
    ).encode()
    (result,) = await place.world.service.write(
        lambda tx, context: merge_items(tx, context, FEED, "c.example", [IncomingItem(*read_arrived(copy))])
    )
    assert result.reason == "" and await place.items() == before


async def test_mark_of_a_copy_excuses_no_forged_change(start: Start) -> None:
    """[A-61] Somebody who writes the mark beside an endpoint of this service publishes nothing in its name."""
    place = await start()
    await place.step("sync")
    by = f"{SERVICE}%2F{ALICE}"
    mark = COPIED[1:].partition("}")[0]
    forged = (
        f"<entry xmlns='{ATOM_NS}'><id>urn:x:entry</id><title>forged</title><x:sync xmlns:x='{FEEDSYNC_NS}' id='s1' "
        f"updates='2' xmlns:o='{mark}'><x:history sequence='2' when='2011-05-09T13:00:00Z' by='{by}' o:copied='1'/>"
        "<x:history sequence='1' when='2011-05-09T12:00:00Z' by='ed'/></x:sync></entry>"
    ).encode()
    (result,) = await place.world.service.write(
        lambda tx, context: merge_items(tx, context, FEED, "c.example", [IncomingItem(*read_arrived(forged))])
    )
    assert "which did not make it" in result.reason


async def test_forged_copy_replaces_no_copy(start: Start) -> None:
    """[A-61] A copy that names this service, which did not make it, does not win over the copy here."""
    place = await start()
    await place.step("plain")
    before = await place.items()
    forged = (
        f"<entry xmlns='{ATOM_NS}'><id>urn:x:entry</id><title>forged</title><x:sync xmlns:x='{FEEDSYNC_NS}' id='s1' "
        f"updates='9' xmlns:o='{COPIED[1:].partition('}')[0]}'><x:history sequence='9' when='2031-05-09T13:00:00Z' "
        f"by='{SERVICE}%2F{ALICE}' o:copied='9'/></x:sync></entry>"
    ).encode()
    await place.world.service.write(
        lambda tx, context: merge_items(tx, context, FEED, "c.example", [IncomingItem(*read_arrived(forged))])
    )
    assert await place.items() == before


async def test_change_of_a_copy_that_was_mirrored_comes_back(start: Start) -> None:
    """[A-61] Another service got the copy and changed it; meanwhile the copy became the item. Its record, which is not
    in the history here any more, is no forgery: both changes stay."""
    place = await start()
    await place.step("plain")

    def read(tx, context):  # type: ignore[no-untyped-def]
        node = tx.node(FEED)
        (item,) = tx.slice(node.node_no, Slice(SHARED, 1))
        return read_shared(context, node, item)

    copy = await place.world.service.read(read)
    await place.step("sync")
    edited = copy.dialect.update(copy.version, Edit(0, "feeds.c.example%2Fcarol@c.example"), None)
    (result,) = await place.world.service.write(
        lambda tx, context: merge_items(
            tx, context, FEED, "c.example", [IncomingItem("", copy._replace(version=edited))]
        )
    )
    assert result.reason == ""
    assert (await place.ends())[:2] == (1, 1)


async def test_mirror_of_a_copy_becomes_the_item_too(start: Start) -> None:
    """[A-154] A node that a source fills is mirrored elsewhere. Then it becomes a mirror of the origin. The other place
    has the item once, under the same id."""
    place, other = await start(), await start()
    other.world.service.policy = Policy("feeds.b.example")

    async def send() -> None:
        def read(tx, context):  # type: ignore[no-untyped-def]
            node = tx.node(FEED)
            items = tx.slice(node.node_no, Slice(SHARED, 100))
            return [IncomingItem(item.id, read_shared(context, node, item), names=()) for item in items]

        items = await place.world.service.read(read)
        results = await other.world.service.write(lambda tx, context: merge_items(tx, context, FEED, SERVICE, items))
        assert not any(one.reason for one in results)

    await place.step("poll")
    await send()
    await place.step("mirror")
    await send()
    here, there = await place.items(), await other.items()
    assert [(item.id, item.sync_id, item.sync) for item in here] == [
        (item.id, item.sync_id, item.sync) for item in there
    ]
    assert len(here) == 1
