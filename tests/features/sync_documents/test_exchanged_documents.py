"""Feeds that are exchanged as documents: what was exported and imported elsewhere is the same, and stays the same.

`HYPOTHESIS_PROFILE=nightly` makes 10,000 runs of each.
"""

import asyncio
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from smartfeeds.core.model import Item, Slice
from smartfeeds.core.view import CREATED
from smartfeeds.features.conflicts.requests import ListConflicts, ResolveConflicts
from smartfeeds.features.sync_documents.sync_documents import write_shared
from smartfeeds.features.sync_documents.sync_import import DocumentItem, ImportReport, ImportTarget, merge_document
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.service import requests as r
from smartfeeds.service.context import Policy
from smartfeeds.service.syncing import item_in_view
from smartfeeds.sync.document_reader import FeedReader, PieceKind
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.sharing import NO_SHARING
from support.effort import runs
from support.sqlite_memory import SqliteMemoryStore
from support.world import ATOM_NS, FEED, OWNER, World, draft, jid

RUNS = runs(60, nightly=10_000)
PEOPLE = ("alice@example.org", "bob@example.org")
# Blanks between the elements of an entry, and an id that is no sync id.
IDS = ("one", "a b&c", "urn:x:1", "\u00e9")
SHARED = replace(CREATED, sync=True)

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["edit", "edit", "edit", "retract", "resolve", "send", "send"]),
        st.integers(0, len(IDS) - 1),
        st.integers(0, 1),
        st.booleans(),
    ),
    max_size=20,
)


@dataclass
class Place:
    """A service with the feed, and how it is told from others."""

    domain: str
    world: World = field(init=False)
    edits: int = 0

    async def begin(self) -> None:
        store = SqliteMemoryStore()
        await store.open()
        self.world = World(store, Policy(self.domain, admins=frozenset((*PEOPLE, OWNER))))
        await self.world.create()

    async def edit(self, item_id: str, who: str, *, pretty: bool) -> None:
        self.edits += 1
        text = f"<id>urn:x:e</id>\n  <title>{self.domain} {self.edits}</title>\n<x xmlns='urn:x'> kept </x>"
        text = text if pretty else text.replace("\n", "")
        payload = f"<entry xmlns='{ATOM_NS}'>{text}<updated>2011-05-09T12:00:00Z</updated></entry>"
        await self.world.service.handle(r.Publish(jid(who), self.domain, FEED, item_id, draft(payload)))

    async def retract(self, item_id: str, who: str) -> None:
        if any(one.id == item_id and not one.deleted for one in await self.items()):
            await self.world.service.handle(r.Retract(jid(who), self.domain, FEED, item_id))

    async def resolve(self, who: str) -> None:
        found = await self.world.service.handle(ListConflicts(jid(who), self.domain, FEED))
        for one in found.entries:  # type: ignore[union-attr]
            await self.world.service.handle(
                ResolveConflicts(jid(who), self.domain, FEED, one.item.id, one.tags[-1])  # type: ignore[union-attr]
            )

    async def items(self) -> list[Item]:
        """All items with their sync data, as an export takes them."""

        def work(tx, context):  # type: ignore[no-untyped-def]
            node = tx.node(FEED)
            return [item_in_view(context, node, SHARED, one) for one in tx.slice(node.node_no, Slice(SHARED, 1_000))]

        return await self.world.service.read(work)

    async def document(self) -> bytes:
        job = FeedExport(FeedHead(f"urn:x:{self.domain}", "Plans", 0), await self.items(), 0)
        return b"".join(write_shared(job, NO_SHARING))

    async def take(self, document: bytes) -> ImportReport:
        reader = FeedReader()
        pieces = [*reader.feed(document), *reader.close()]
        assert all(piece.kind is PieceKind.SYNCED for piece in pieces)
        merge = ImportReport()
        arrived = [DocumentItem(piece.index, piece.raw, synced=True) for piece in pieces]
        await merge_document(self.world.service, ImportTarget(FEED, jid(OWNER)), arrived, merge)
        assert not merge.refused, merge.reasons
        return merge

    async def state(self) -> dict[str, tuple[str, bool, bytes, int]]:
        """Of each item what every place has alike: payload with history and conflicts, by sync id."""
        return {one.sync_id or one.id: (one.id, one.deleted, one.payload, one.conflicts) for one in await self.items()}


async def run(steps: list[tuple[int, str, int, int, bool]]) -> tuple[Place, Place]:
    """Two services after these steps, in which each sends its document to the other now and then."""
    places = Place("feeds.a.example"), Place("feeds.b.example")
    for place in places:
        await place.begin()
    for which, what, item, who, pretty in steps:
        place, other = places[which], places[1 - which]
        for one in places:
            one.world.clock.move(1)
        if what == "edit":
            await place.edit(IDS[item], PEOPLE[who], pretty=pretty)
        elif what == "retract":
            await place.retract(IDS[item], PEOPLE[who])
        elif what == "resolve":
            await place.resolve(PEOPLE[who])
        else:
            await other.take(await place.document())
    return places


@settings(max_examples=RUNS)
@given(STEPS)
def test_import_of_an_export_gives_the_same_versions_and_twice_changes_nothing(
    steps: list[tuple[int, str, int, int, bool]],
) -> None:
    """[FS-057] [FS-027] [FS-012] [A-59] [A-154] Sync ids, item ids, payloads, histories and conflicts; no new key."""

    async def check() -> None:
        source, _ = await run(steps)
        document = await source.document()
        copy = Place("feeds.c.example")
        await copy.begin()
        done = await copy.take(document)
        assert done.outcomes == ({Outcome.ADDED: done.taken} if done.taken else {})
        assert await copy.state() == await source.state()
        before = await copy.world.node()
        again = await copy.take(document)
        assert not again.changed and await copy.world.node() == before
        # And a document of the copy is no news to where it came from.
        there = await source.world.node()
        assert not (await source.take(await copy.document())).changed
        assert await source.world.node() == there

    asyncio.run(check())


@settings(max_examples=RUNS)
@given(STEPS)
def test_services_that_exchange_documents_end_with_the_same(steps: list[tuple[int, str, int, int, bool]]) -> None:
    """[FS-068] Whatever was done where, and whichever documents met: one more each way, and both are equal."""

    async def check() -> None:
        one, other = await run(steps)
        await other.take(await one.document())
        await one.take(await other.document())
        assert _shared(await one.state()) == _shared(await other.state())
        assert not (await other.take(await one.document())).changed

    asyncio.run(check())


def _shared(state: dict[str, tuple[str, bool, bytes, int]]) -> dict[str, tuple[bool, bytes, int]]:
    """What is shared: what an item is called is each place's own where both had the name."""
    return {sync_id: rest for sync_id, (_, *rest) in state.items()}  # type: ignore[misc]
