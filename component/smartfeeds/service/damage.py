"""Items whose content is damaged in the database: what readers get in place of it, and the log.

`store.rows` compares the content with its checksum when it reads a row. A page shows a damaged item by its id alone, so
that its count and its cursors stay true and a follower can go on. Documents of HTTP leave the item out. A request for
the item itself fails. Publishing the item again, or retracting it, ends the damage (docs/decisions.md).
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from smartfeeds.core.model import Item, Node
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import tombstone
from smartfeeds.service.context import Context

_ADVICE: Final = "publish or retract the item again, or restore a backup; smartfeeds doctor lists all damaged items"
_REMEMBERED: Final = 1_024  # versions that were logged


class DamageLog:
    """Logs damaged items, each version once: a reader who repeats a request must not fill the log."""

    def __init__(self) -> None:
        self._logged: deque[tuple[str, str, int]] = deque(maxlen=_REMEMBERED)

    def write(self, damaged: Iterable[tuple[str, str, int]]) -> None:
        """Logs what use cases have read (`Context.damaged`)."""
        import structlog  # with the first damage: help texts of commands import this module, and log nothing

        log = structlog.get_logger()
        for version in damaged:
            if version not in self._logged:
                self._logged.append(version)
                node, item, _modified_us = version
                log.error("item_damaged", node=node, item=item, advice=_ADVICE)


def note_damaged(context: Context, node: Node, items: Iterable[Item]) -> None:
    """Notes the damaged ones among the items of a node for the log."""
    context.damaged += tuple([(node.name, item.id, item.modified_us) for item in items if item.damaged])


def without_content(context: Context, node: Node, item: Item) -> Item:
    """Returns a damaged item as pages show it. The content of a tombstone follows from its columns. The publisher may
    be damaged, too, and counts for the rights to replace the item only.
    """
    note_damaged(context, node, (item,))
    payload = tombstone(item.id, item.modified_us, b"") if item.deleted else b""
    return item._replace(payload=payload, publisher="")


def check_whole(context: Context, node: Node, item: Item) -> None:
    """Raises FeedError(INTERNAL) if an item is damaged."""
    if item.damaged:
        note_damaged(context, node, (item,))
        raise FeedError(Condition.INTERNAL, f"the item {item.id} is damaged in the database of this service")
