"""Services that copied a feed with and without its sync data, and exchange it, end alike."""

import asyncio
from itertools import count

from hypothesis import example, given, settings
from hypothesis import strategies as st

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item, Slice
from smartfeeds.core.view import SHARED
from smartfeeds.features.sync_documents.sync_import import DocumentItem, ImportReport, ImportTarget, merge_document
from smartfeeds.formats.atom import FEEDSYNC_NS, id_and_updated
from smartfeeds.formats.xml import parse_stored
from smartfeeds.service import requests as r
from smartfeeds.service.context import Policy
from smartfeeds.service.importing import import_document
from smartfeeds.service.merging import IncomingItem, merge_items
from smartfeeds.service.syncing import item_in_view
from smartfeeds.sync.markup import read_item
from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import ATOM_NS, FEED, OWNER, World, draft, entry, jid

RUNS = runs(150, nightly=5_000)
WHAT = ("plain", "plain", "sync", "edit", "retract", "send", "send")
STEPS = st.lists(
    st.one_of(st.tuples(st.integers(0, 1), st.sampled_from(WHAT)), st.just((0, "origin edits"))), max_size=14
)


class Place:
    """A service with its copy of the feed, which has one item."""

    def __init__(self, domain: str) -> None:
        self.world = World(SqliteMemoryStore(), Policy(domain, admins=frozenset((OWNER,))))
        self.domain = domain

    async def items(self) -> list[Item]:
        def read(tx, context):  # type: ignore[no-untyped-def]
            node = tx.node(FEED)
            return [item_in_view(context, node, SHARED, one) for one in tx.slice(node.node_no, Slice(SHARED, 100))]

        return await self.world.service.read(read)

    async def send(self, other: "Place") -> bool:
        """Sends every version, as a mirror does. Returns whether the other service changed."""
        items = []
        for item in await self.items():
            sync_item = read_item(parse_stored(item.payload))
            assert sync_item is not None
            items.append(IncomingItem(item.id, sync_item, names=()))
        before = await other.items()
        results = await other.world.service.write(
            lambda tx, context: merge_items(tx, context, FEED, self.domain, items)
        )
        assert not [one.reason for one in results if one.reason]
        return await other.items() != before


def documents(versions: int) -> tuple[bytes, bytes]:
    """The feed of the origin after so many versions, with and without sync data."""
    history = "".join(
        f"<x:history sequence='{number}' when='2011-05-01T10:00:{number:02}Z' by='ed'/>"
        for number in range(versions, 0, -1)
    )
    sync = f"<x:sync xmlns:x='{FEEDSYNC_NS}' id='s1' updates='{versions}'>{history}</x:sync>"
    head = f"<feed xmlns='{ATOM_NS}'><id>urn:x:f</id><title>F</title><updated>2011-05-01T10:00:00Z</updated>"
    item = f"<id>urn:x:entry</id><title>origin {versions}</title><updated>2011-05-01T10:00:00Z</updated>"
    synced, bare = (f"{head}<entry>{item}{data}</entry></feed>".encode() for data in (sync, ""))
    return synced, bare


async def play(steps: list[tuple[int, str]]) -> None:
    places = [Place("feeds.a.example"), Place("feeds.b.example")]
    for place in places:
        await place.world.store.open()
        await place.world.service.handle(r.CreateNode(jid(OWNER), place.domain, FEED, None))
    versions, edits = 1, count(1)
    for which, what in steps:
        place, other = places[which], places[1 - which]
        for one in places:
            one.world.clock.move(60)
        items = await place.items()
        synced, bare = documents(versions)
        if what == "origin edits":
            versions += 1
        elif what in ("plain", "bare"):
            document = read_document(synced if what == "plain" else bare)
            await import_document(place.world.service, FEED, document, jid(OWNER))
        elif what == "sync":
            raw = b"<entry" + synced.partition(b"<entry")[2].replace(b"</feed>", b"")
            raw = raw.replace(b"<entry>", f"<entry xmlns='{ATOM_NS}'>".encode())
            report = ImportReport()
            target = ImportTarget(FEED, jid(OWNER))
            await merge_document(place.world.service, target, [DocumentItem(0, raw, synced=True)], report)
            assert not report.refused, report.reasons
        elif what == "send":
            await place.send(other)
        elif items and what == "edit":
            payload = entry(f"edit {next(edits)}", inner=f"<id>{id_and_updated(items[0].payload)[0]}</id>")
            publish = r.Publish(jid(OWNER), place.domain, FEED, items[0].id, draft(payload))
            await place.world.service.handle(publish)
        elif items and what == "retract" and not items[0].deleted:
            await place.world.service.handle(r.Retract(jid(OWNER), place.domain, FEED, items[0].id))
    for _ in range(6):
        if not await places[0].send(places[1]) and not await places[1].send(places[0]):
            break
    else:
        raise AssertionError("the services never agree")
    ends = [{one.sync_id or one.id: (one.deleted, one.payload) for one in await place.items()} for place in places]
    assert ends[0] == ends[1]


@settings(max_examples=RUNS)
@given(STEPS)
@example([(0, "plain"), (1, "plain"), (1, "send"), (1, "sync")])
@example([(0, "plain"), (0, "edit"), (0, "plain"), (0, "send"), (0, "sync")])
@example([(0, "origin edits"), (1, "plain"), (1, "edit"), (1, "send"), (0, "sync")])
@example([(1, "sync"), (0, "origin edits"), (0, "plain")])
@example([(0, "plain"), (1, "sync"), (0, "send"), (0, "sync"), (1, "edit"), (1, "send")])
@example([(0, "sync"), (1, "plain"), (0, "origin edits"), (0, "plain"), (0, "send"), (0, "sync")])
@example([(1, "sync"), (0, "origin edits"), (1, "plain"), (1, "send"), (1, "sync")])
def test_copies_end_alike(steps: list[tuple[int, str]]) -> None:
    """[FS-068] [A-43] [A-61] Whoever copied what in which way: no refusal, and the same versions everywhere."""
    asyncio.run(play(steps))
