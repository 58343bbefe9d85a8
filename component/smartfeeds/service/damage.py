"""Items whose content is damaged in the database: what readers get in place of it, and the log.

`store.rows` compares the content with its checksum when it reads a row. A page shows a damaged item by its id alone, so
that its count and its cursors stay true and a follower can go on. Documents of HTTP leave the item out. A request for
the item itself fails. Publishing the item again, or retracting it, ends the damage (docs/decisions.md).
"""

from collections.abc import Iterable
from functools import lru_cache

import structlog

from smartfeeds.core.model import Item, Node
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import tombstone

_ADVICE = "publish or retract the item again, or restore a backup; smartfeeds doctor lists all damaged items"

log = structlog.get_logger()


def log_damaged(node: Node, items: Iterable[Item]) -> None:
    """Logs the damaged ones among the items of a node, once for each version."""
    for item in items:
        if item.damaged:
            _log_once(node.name, item.id, item.modified_us)


def without_content(node: Node, item: Item) -> Item:
    """Returns a damaged item as pages show it. The content of a tombstone follows from its columns. The publisher may
    be damaged, too, and counts for the rights to replace the item only.
    """
    log_damaged(node, (item,))
    payload = tombstone(item.id, item.modified_us, b"") if item.deleted else b""
    return item._replace(payload=payload, publisher="")


def check_whole(node: Node, item: Item) -> None:
    """Raises FeedError(INTERNAL) if an item is damaged."""
    if item.damaged:
        log_damaged(node, (item,))
        raise FeedError(Condition.INTERNAL, f"the item {item.id} is damaged in the database of this service")


@lru_cache(1_024)
def _log_once(node: str, item: str, _modified_us: int) -> None:
    log.error("item_damaged", node=node, item=item, advice=_ADVICE)
