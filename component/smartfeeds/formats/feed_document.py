"""The result of reading a document of any format: items with Atom payloads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from smartfeeds.core.times import TIME_RANGE_US
from smartfeeds.errors import FeedError
from smartfeeds.formats.paging import NO_PAGING, Paging
from smartfeeds.formats.payload import Payload
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.formats.xml import Element

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """One item of a document.

    `id` becomes the item id: it is the same each time the document is read. `payload` is an Atom entry with a title,
    without its tree. It has no atom:id if the document has no URI for it, and no atom:updated if the document gives no
    time; `complete_entry` and `repaired_entry` add them. `deleted` marks a deletion (FeedSync, SSE or RFC 6721), whose
    payload may still have content; the import makes a tombstone of it. Times are microseconds since the epoch.
    `warnings` say what was dropped or remedied. `by_link`: the document has no id for the item, and `id` is its link,
    which other items may have too.
    """

    id: str
    published_us: int | None
    updated_us: int | None
    payload: Payload
    deleted: bool = False
    warnings: tuple[str, ...] = ()
    by_link: bool = False

    @property
    def time_us(self) -> int | None:
        """The time of the last change, if the document has one."""
        return self.published_us if self.updated_us is None else self.updated_us

    @property
    def made_us(self) -> int | None:
        """The time of the first publication, else of the last change, if the document has one."""
        return self.time_us if self.published_us is None else self.published_us


LEFT_REASON = "the item has left the view that the document shows; this says nothing of the item itself"


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """An item that was left out: its place in the document, counted from 0, and why."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """A feed as read: `format` is its name for people ("RSS 0.92"); texts are plain; items are in document order.

    `channel` is what an RSS channel says beside title, link and description. Feeds have their newest item on top;
    where `oldest_on_top` is true the document goes the other way, as an outline does. `repairs` are those of `warnings`
    that say how a faulty document was read. `partial`: it may have had more items than could be read.
    """

    format: str
    id: str = ""
    title: str = ""
    link: str = ""
    description: str = ""
    items: tuple[ImportedItem, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()
    warnings: tuple[str, ...] = ()
    channel: Channel | None = None
    oldest_on_top: bool = False
    paging: Paging = NO_PAGING
    repairs: tuple[str, ...] = ()
    partial: bool = False

    def oldest_first(self) -> list[ImportedItem]:
        """The items in the order in which a feed wants them published.

        By published date, else by date of change. Feeds have their newest item on top (A-153), so an item without
        any date counts as old as the one below it, or above it where the oldest is on top.
        """
        dated: list[tuple[int, ImportedItem]] = []
        last_us = -(2**63)
        for item in self.items if self.oldest_on_top else reversed(self.items):
            own_us = item.made_us
            last_us = last_us if own_us is None else own_us
            dated.append((last_us, item))
        dated.sort(key=lambda pair: pair[0])
        return [item for _, item in dated]


NO_DOCUMENT = FeedDocument("")


def dates_of(items: Sequence[ImportedItem]) -> list[int | None]:
    """A date for each of some items, oldest first, in microseconds.

    An item without a date has that of its older neighbour. Items before the first date lie just before it. All are None
    where no item has a date. Nothing else counts, not even the time of reading: so the dates are the same each time.
    """
    item_dates_us = [item.made_us for item in items]
    first = next((place for place, time_us in enumerate(item_dates_us) if time_us is not None), None)
    if first is None:
        return item_dates_us
    last_us = max(TIME_RANGE_US[0], (item_dates_us[first] or 0) - first)
    dates_us: list[int | None] = []
    for time_us in item_dates_us:
        last_us = last_us if time_us is None else time_us
        dates_us.append(last_us)
    return dates_us


@dataclass(frozen=True, slots=True)
class FormatLoss:
    """Data that a format cannot represent: the id of its item ("" for the feed itself) and a text for people."""

    item_id: str
    what: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A document in another format, and the data of the feed that it lacks."""

    data: bytes
    losses: tuple[FormatLoss, ...] = ()


@dataclass(slots=True)
class ItemDraft:
    """An item while it is being read: a new atom:entry, and the data of the document about it."""

    index: int
    entry: Element
    item_id: str = ""
    published_us: int | None = None
    updated_us: int | None = None
    deleted: bool = False
    warnings: list[str] = field(default_factory=list)
    by_link: bool = False


@dataclass(slots=True)
class FeedDraft:
    """A feed's own data while it is being read."""

    format: str
    id: str = ""
    title: str = ""
    link: str = ""
    description: str = ""
    channel: Channel | None = None
    oldest_on_top: bool = False
    paging: Paging = NO_PAGING
    warnings: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    partial: bool = False


def each(read: Callable[[T, int], ItemDraft | SkippedItem], values: Iterable[T]) -> Iterator[ItemDraft | SkippedItem]:
    """Yields the result of `read` for each value and its index, or a `SkippedItem` if it raises FeedError."""
    for index, value in enumerate(values):
        try:
            yield read(value, index)
        except FeedError as error:
            yield SkippedItem(index, error.text or error.condition.value)
