"""The type of a format of documents. Each format is one value, in the module of the format, with a line in a table.

The kernel and each feature may have several. `app.formats` joins them in one table.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from smartfeeds.core.model import Item
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.feed_document import FeedDraft, FormatLoss, ItemDraft, SkippedItem, WrittenDocument
from smartfeeds.formats.json_text import Json, JsonObject
from smartfeeds.formats.representation import Representation
from smartfeeds.formats.rss_channel import CHANNEL_PARTS
from smartfeeds.formats.xml import Element

T = TypeVar("T")
R = TypeVar("R")

# The head and the items of a document that is being read.
Drafts = tuple[FeedDraft, Iterator[ItemDraft | SkippedItem]]


@dataclass(slots=True)
class FeedExport:
    """A feed that is to be written: its items in the order of the feed, the newest last.

    `now_us` is the time of writing. With `keys` a format that is able to keeps the ordering keys, so that an import
    gives the same feed again. What the format cannot carry is in `losses` when the last piece has been taken.
    """

    head: FeedHead
    items: Iterable[Item]
    now_us: int
    keys: bool = False
    losses: list[FormatLoss] = field(default_factory=list)


class Reader(NamedTuple, Generic[T, R]):
    """Reads documents of a format. `claims` says whether a document is in the format; `read` gets the document and its
    address."""

    claims: Callable[[T], bool]
    read: Callable[[R, str], Drafts]


def _nothing(_head: FeedHead) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A format: its key in commands and addresses, its name for people, its writer, and the parts of `Channel` that it
    represents.

    `losses` returns what the format lacks of the rest of the feed's metadata, for people. `xml` reads documents by
    their root, `json` by their value, and `text` by their bytes. `item` reads an item that stands alone in JSON.
    `representation` is that of the documents over HTTP; None if there are none.
    """

    key: str
    name: str
    pieces: Callable[[FeedExport], Iterator[bytes]]
    channel_parts: frozenset[str] = frozenset()
    losses: Callable[[FeedHead], str] = _nothing
    xml: Reader[Element, Element] | None = None
    json: Reader[Json, JsonObject] | None = None
    text: Reader[bytes, bytes] | None = None
    item: Callable[[JsonObject], ItemDraft | SkippedItem] | None = None
    representation: Representation | None = None

    def write(self, job: FeedExport) -> Iterator[bytes]:
        """The document in pieces. Raises ForbiddenCharacterError for texts that the format cannot represent."""
        report_channel(job, self.channel_parts)
        if text := self.losses(job.head):
            job.losses.append(FormatLoss("", text))
        yield from self.pieces(job)


def whole(write: Callable[[FeedHead, Iterable[Item]], WrittenDocument]) -> Callable[[FeedExport], Iterator[bytes]]:
    """A writer whose document is one piece."""

    def pieces(job: FeedExport) -> Iterator[bytes]:
        document = write(job.head, job.items)
        job.losses += document.losses
        yield document.data

    return pieces


def report_channel(job: FeedExport, parts: frozenset[str]) -> None:
    """Adds to the losses what the feed has in its `Channel` and a format with these parts has no place for."""
    channel = job.head.channel
    lost = list(channel.left_out)
    lost += [
        name
        for attribute, name in CHANNEL_PARTS.items()
        if attribute not in parts and getattr(channel, attribute) not in ("", None, ())
    ]
    if lost:
        job.losses.append(FormatLoss("", f"of the feed itself: {', '.join(lost)}"))
