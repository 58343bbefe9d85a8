"""The documents that readers of the web remember in the store, and their end."""

from pathlib import Path

import smartfeeds
from smartfeeds.core.validators import NO_VALIDATORS, KnownDocument, Validators
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import MirrorRow, make_mirror
from smartfeeds.features.mirrors.statuses import document_readers as of_mirrors
from smartfeeds.features.mirrors.statuses import mirror_reader
from smartfeeds.features.nno.planet import ess_reader, feeds_reader
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source import held_reader, new_source
from smartfeeds.features.polling.tools import ACCEPT_FEED
from smartfeeds.features.prefetch.held_items import document_readers as of_held_items
from smartfeeds.service.feed_pages import outline_reader
from smartfeeds.service.web_documents import remove_unread_documents
from smartfeeds.store.base import ReadTx, WriteTx
from support.world import World

URL = "https://a.example/feed"


async def test_documents_end_with_the_section_of_their_reader(world: World) -> None:
    """Those of sections and mirrors that exist stay; the command line may have added the mirror."""
    readers = {
        reader(node) for reader in (mirror_reader, ess_reader, feeds_reader, outline_reader) for node in ("a", "b")
    }

    def put(tx: WriteTx, _context: object) -> None:
        number = source_rows.add(tx, new_source("c", URL, 0))
        assert number == 1
        for source_no in (number, 2):
            tx.put_document(held_reader(source_no), "item", KnownDocument(NO_VALIDATORS, b"held"))
        stored_mirrors.put(tx, MirrorRow(make_mirror(node="a", address=URL)))
        for reader in readers:
            tx.put_document(reader, URL, KnownDocument(Validators(URL, "1")))

    def configured(_tx: ReadTx) -> set[str]:
        return {ess_reader("b"), feeds_reader("b"), outline_reader("b")}

    readers_of = (configured, of_mirrors, of_held_items)
    await world.service.write(put)
    await world.service.write(lambda tx, context: remove_unread_documents(tx, context, readers_of))

    left = await world.service.read(lambda tx, _context: tx.document_readers())
    assert left == {mirror_reader("a"), ess_reader("b"), feeds_reader("b"), outline_reader("b"), held_reader(1)}


def test_media_types_of_feeds_are_written_once() -> None:
    texts = [path.read_text() for path in Path(smartfeeds.__file__).parent.rglob("*.py")]
    assert sum(text.count(ACCEPT_FEED) for text in texts) == 1
