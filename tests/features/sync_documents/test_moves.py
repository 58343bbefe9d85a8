"""Moves of items that a document brings to another service."""

import pytest

from smartfeeds.core.model import Slice
from smartfeeds.core.view import SHARED
from smartfeeds.features.sync_documents.sync_import import DocumentItem, ImportReport, ImportTarget, merge_document
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.service.context import Policy
from smartfeeds.service.placing import GetOutline, MoveItem, OutlineShown
from smartfeeds.service.requests import Published
from smartfeeds.service.syncing import item_in_view
from smartfeeds.sync.document_reader import FeedReader
from smartfeeds.sync.document_writer import SharedAtom, SharedDocument, SharedOutline
from smartfeeds.sync.moves import MoveStep
from smartfeeds.sync.sync_outline import pieces_of, read_sync_outline
from support.sqlite_memory import SqliteMemoryStore
from support.world import FEED, OWNER, SERVICE, World, jid, running_world

IDS = "a b c d"
ELSEWHERE = Policy("feeds.b.example")
UP, DOWN, INDENT, _ = MoveStep


async def move(
    world: World, item_id: str, step: MoveStep | None = None, actor: str = OWNER, **place: object
) -> Published:
    answer = await world.service.handle(MoveItem(jid(actor), SERVICE, FEED, item_id, step, **place))  # type: ignore[arg-type]
    assert isinstance(answer, Published)
    return answer


async def shape(world: World, actor: str = OWNER) -> str:
    """The ids in their order, indented by dashes."""
    answer = await world.service.handle(GetOutline(jid(actor), SERVICE, FEED))
    assert isinstance(answer, OutlineShown)
    return " ".join("-" * level + item_id for level, item_id in answer.lines)


@pytest.mark.parametrize("dialect", ["feedsync", "sse"])
async def test_move_reaches_another_service(dialect: str) -> None:
    """[SSE-028] In the outline that the feed publishes, and in Atom, where the place is a part of the sync data."""
    async with running_world(SqliteMemoryStore()) as here, running_world(SqliteMemoryStore(), ELSEWHERE) as there:
        await here.create(sync_dialect=dialect)
        await here.publish_all(IDS)
        for item_id, step in (("c", INDENT), ("d", UP), ("a", DOWN), ("a", INDENT), ("b", UP), ("d", UP)):
            await move(here, item_id, step)
            here.clock.move(1)
            await copy(here, there, SharedOutline if dialect == "sse" else SharedAtom)
            assert await shape(there) == await shape(here)


async def copy(here: World, there: World, kind: type[SharedDocument]) -> None:
    """Merges the document of the feed into the feed of another service."""
    node = await here.node()
    items = await here.store.read(lambda tx: tx.slice(node.node_no, Slice(SHARED, 100)))
    context = here.service.new_context()
    data = kind(FeedHead("urn:x:feed", FEED, 0)).whole([item_in_view(context, node, SHARED, item) for item in items])
    pieces = pieces_of(read_sync_outline(data)) if kind is SharedOutline else FeedReader().read([data])
    report = ImportReport()
    arrived = [DocumentItem(piece.index, piece.raw, synced=True) for piece in pieces]
    await merge_document(there.service, ImportTarget(FEED, jid(OWNER)), arrived, report)
    assert not report.reasons
