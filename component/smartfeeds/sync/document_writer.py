"""Documents with sync data that a publisher offers: Atom, RSS 2.0 and OPML (FeedSync 1.4, SSE 1 and 2).

A document is written in pieces, so that a long feed is never in memory as a whole. OPML is the exception: an outline is
a tree, and an item that was read last may belong at the top.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from smartfeeds.core.model import Item
from smartfeeds.formats import atom
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.opml_items import outline_head
from smartfeeds.formats.rss_writer import RSS_END, rss_head
from smartfeeds.formats.xml import parse_stored
from smartfeeds.sync.document_reader import FeedFormat
from smartfeeds.sync.item_forms import in_form
from smartfeeds.sync.markup import SyncItem, read_item
from smartfeeds.sync.places import Place, place_of, tree_of, with_place
from smartfeeds.sync.sharing import NO_SHARING, Sharing
from smartfeeds.sync.sharing_markup import write_sharing
from smartfeeds.sync.sync_outline import SyncOutline, write_sync_outline
from smartfeeds.sync.trees import ROOT, walk
from smartfeeds.sync.writing import write_item


@dataclass(slots=True)
class SharedDocument(ABC):
    """One document. Call `begin`, `add` for the items in their order, and `end`; each returns the next bytes.

    Payloads of items are entries with sx:sync (`service.syncing.item_in_view`). Items that have left a view are left
    out. `slow`: items are parsed, which takes too long for the event loop.
    """

    slow: ClassVar[bool] = True

    head: FeedHead
    sharing: Sharing = NO_SHARING

    @abstractmethod
    def begin(self) -> bytes:
        """Returns the document up to its first item. Raises ForbiddenCharacterError."""

    @abstractmethod
    def add(self, items: Iterable[Item]) -> bytes:
        """Returns the next items."""

    @abstractmethod
    def end(self) -> bytes:
        """Returns the end of the document."""

    def whole(self, items: Iterable[Item]) -> bytes:
        """Returns the complete document with these items."""
        return b"".join((self.begin(), self.add(items), self.end()))

    @property
    def sharing_markup(self) -> bytes:
        """The sx:sharing on a line of its own, empty if there is nothing to say (A-47)."""
        return b"" if self.sharing == NO_SHARING else write_sharing(self.sharing) + b"\n"


class SharedAtom(SharedDocument):
    """Atom with the entries as they are stored, those that have left a view included."""

    slow: ClassVar[bool] = False

    def begin(self) -> bytes:
        start, _ = write_feed(self.head, (), whole=False)
        return start + self.sharing_markup

    def add(self, items: Iterable[Item]) -> bytes:
        _, *entries, _ = write_feed(self.head, items, keys=False, whole=False)
        return b"".join(entries)

    def end(self) -> bytes:
        return b"</feed>\n"


class SharedRss(SharedDocument):
    """RSS 2.0, for FeedSync and SSE."""

    def begin(self) -> bytes:
        return rss_head(self.head) + self.sharing_markup

    def add(self, items: Iterable[Item]) -> bytes:
        return b"".join(
            write_item(in_form(sync_item.version, FeedFormat.RSS, item.id), sync_item.dialect, sync_item.namespace)
            + b"\n"
            for item, sync_item in _synced(items)
        )

    def end(self) -> bytes:
        return RSS_END


@dataclass(slots=True)
class SharedOutline(SharedDocument):
    """OPML, for SSE and for programs that know FeedSync in outlines. Items have the order of their outline (SSE-027);
    those that never were in one come last, the oldest first."""

    _items: dict[str, tuple[int, SyncItem, Place | None]] = field(default_factory=dict)

    def begin(self) -> bytes:
        return b""

    def add(self, items: Iterable[Item]) -> bytes:
        for item, sync_item in _synced(items):
            version = in_form(sync_item.version, FeedFormat.OPML, item.id)
            place = place_of(version)
            order_us = item.created_us if place is None else item.modified_us
            self._items[version.sync_id] = order_us, sync_item._replace(version=version), place
        return b""

    def end(self) -> bytes:
        order = sorted(self._items, key=lambda sync_id: self._items[sync_id][0])
        tree = tree_of((sync_id, self._items[sync_id][2]) for sync_id in order)
        items = {sync_id: self._written(sync_id) for _, sync_id in walk(tree)}
        outline = SyncOutline(outline_head(self.head), items, tree=tree, full=tree)
        return b"".join(write_sync_outline(outline, self.sharing_markup.strip()))

    def _written(self, sync_id: str) -> SyncItem:
        """Returns an item without its place, because the document shows it. A part of an outline may lack the parent or
        the sibling; then the item has its place.
        """
        _order, item, place = self._items[sync_id]
        known = place is None or not {place.parent, place.after} - {ROOT} - self._items.keys()
        return item._replace(version=with_place(item.version, None)) if known else item


def _synced(items: Iterable[Item]) -> Iterator[tuple[Item, SyncItem]]:
    for item in items:
        root = parse_stored(item.payload)
        one = None if atom.is_left(root) else read_item(root)
        if one is not None:
            yield item, one


DOCUMENTS: Mapping[FeedFormat, type[SharedDocument]] = {
    FeedFormat.ATOM: SharedAtom,
    FeedFormat.RSS: SharedRss,
    FeedFormat.OPML: SharedOutline,
}
