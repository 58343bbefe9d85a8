"""Enclosures that this service has loaded, for the readers of the feed (RSS-035, RSS-036; PRE-032 to PRE-035)."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from smartfeeds.core.feed_files import FeedFile, extension_of, safe_name
from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import AccessModel
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState
from smartfeeds.features.prefetch.enclosures import is_alive
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.formats.entry import enclosures_of
from smartfeeds.service.context import Context, locate_for
from smartfeeds.service.requests import FileShown, NodeRequest
from smartfeeds.service.requests.items import LocalFile
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class GetEnclosure(NodeRequest):
    """A complete enclosure of a feed, for the readers of the feed."""

    file_id: str


def get_enclosure(tx: ReadTx, context: Context, request: GetEnclosure) -> FileShown:
    """Returns a complete enclosure. Raises FeedError as the feed itself does for this reader, and ITEM_NOT_FOUND if the
    file is not complete or no item of the feed names it any more."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    node = located.node
    row = enclosure_rows.enclosure_of_digest(tx, request.file_id.partition(".")[0])
    if row is None or row.state is not EnclosureState.ARRIVED or _file_id(row) != request.file_id:
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such file")
    if not any(use.node == node.name and is_alive(tx, use) for use in enclosure_rows.uses(tx, row.enclosure_no)):
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such file")
    name = safe_name(unquote(urlsplit(row.url).path.rpartition("/")[2]))
    file = FeedFile(
        node.node_no, _file_id(row), row.digest, name, row.media_type, row.length_bytes or 0, "", row.since_us
    )
    # The digest is that of the address, so the tag has the time of the load.
    return FileShown(file, node.options.access_model is AccessModel.OPEN, f"{row.digest[:16]}.{row.since_us:x}")


def local_files_of(tx: ReadTx, context: Context, node: Node, items: tuple[Item, ...]) -> tuple[LocalFile, ...]:
    """The complete enclosures of items (PRE-034). The cost grows with the number of complete enclosures of the node."""
    rows = enclosure_rows.arrived_in(tx, node.name) if context.policy.find(PrefetchSettings) is not None else ()
    if not rows:
        return ()
    links = {item.id: {link.href for link in enclosures_of(item.payload)} for item in items if not item.deleted}
    return tuple(
        LocalFile(item_id, _file_id(row), row.url, row.media_type, row.length_bytes or 0)
        for row, item_id in rows
        if row.url in links.get(item_id, ())
    )


def _file_id(row: Enclosure) -> str:
    return row.digest + extension_of(row.media_type)
