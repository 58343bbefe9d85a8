"""Changes that are to happen only to what the asker has seen (RFC 9110 section 13)."""

from hashlib import sha256

from smartfeeds.core.model import Item
from smartfeeds.core.options import NodeOptions
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import ItemPrecondition


def item_tag(item: Item) -> str:
    """What changes with every change of an item, and with nothing else; other items of the node never have it.

    A tombstone has one too, and a node that is made anew gives out others.
    """
    return f"{item.revision}.{item.modified_us}"


def check_expected(item: Item | None, expected: ItemPrecondition | None) -> None:
    """Raises FeedError(PRECONDITION_NOT_MET) where the item is not as expected. What may be known is checked before."""
    if expected is None:
        return
    if expected.tags is not None:
        met = item is not None and item_tag(item) in expected.tags
    else:
        met = expected.absent == (item is None or item.deleted)
    if not met:
        raise FeedError(Condition.PRECONDITION_NOT_MET, "the item has changed meanwhile")


def options_tag(options: NodeOptions) -> str:
    """Returns the tag of the options of a node. Options of the same kind with the same values have the same tag."""
    return sha256(repr((options.kind.value, sorted(options.stored.items()))).encode("utf-8", "replace")).hexdigest()[
        :24
    ]
