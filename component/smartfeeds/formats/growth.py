"""Bounds on what a document becomes: the work and memory of reading it grow with its size, not with its square.

Items repeat what they have from their feed: authors, language, base address, namespaces. A small document that has much
to repeat, and many items to repeat it in, would otherwise fill the memory.
"""

from dataclasses import dataclass

from smartfeeds.core.text import counted
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.xml import MAX_PAYLOAD_BYTES, MAX_PREFIXES, Element

# Tiny items of real feeds grow sixfold: ids made of digests, namespaces, dates that are written twice.
MAX_FACTOR = 16
ITEM_BYTES = 512
# What one item may have from its feed. The authors of a large team take 10,000 bytes.
MAX_INHERITED_BYTES = 65_536
# Podcasts declare 15 namespaces in 700 bytes.
MAX_SCOPE_BYTES = 4_096


@dataclass(slots=True)
class ItemGrowth:
    """The total size of the items of one document; `source_bytes` is the size of the document so far."""

    source_bytes: int = 0
    items: int = 0
    items_bytes: int = 0

    def add(self, item_bytes: int) -> None:
        """Counts an item. Raises FeedError(PAYLOAD_TOO_BIG) where the items outgrow the document."""
        self.items += 1
        self.items_bytes += item_bytes
        if self.items_bytes > MAX_FACTOR * self.source_bytes + ITEM_BYTES * self.items:
            raise FeedError(
                Condition.PAYLOAD_TOO_BIG,
                f"the first {counted(self.items, 'item')} of the document would take {self.items_bytes} bytes: the "
                "authors, base address or namespaces of the feed are too long to be repeated in each of its items",
            )


def check_size(item_bytes: int) -> None:
    """Raises FeedError(PAYLOAD_TOO_BIG) for an item that is larger than a payload may be."""
    if item_bytes > MAX_PAYLOAD_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the item is larger than {MAX_PAYLOAD_BYTES} bytes")


def check_scope(node: Element) -> None:
    """Raises FeedError(INVALID_PAYLOAD) where so much is declared at a node that each element below it is costly: all
    declarations in force are looked at for each."""
    namespaces = node.nsmap
    if len(namespaces) > MAX_PREFIXES:
        raise FeedError(Condition.INVALID_PAYLOAD, f"the document declares more than {MAX_PREFIXES} prefixes")
    if sum(len(prefix or "") + len(uri) for prefix, uri in namespaces.items()) > MAX_SCOPE_BYTES:
        raise FeedError(
            Condition.INVALID_PAYLOAD, f"the document declares namespaces of more than {MAX_SCOPE_BYTES} characters"
        )
