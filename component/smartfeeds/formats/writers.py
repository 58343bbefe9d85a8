"""The formats that a feed can be written in: one table for export, convert and HTTP."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from smartfeeds.core.model import Item
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.documents.ess import NnoEntry, dumb_checksum, write_ess
from smartfeeds.features.documents.json_feed import write_json_feed
from smartfeeds.features.documents.rss092 import CHANNEL_PARTS as RSS092_PARTS
from smartfeeds.features.documents.rss092 import write_rss092
from smartfeeds.formats.activity import write_activities
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.entry import Entry, TextKind, read_entry
from smartfeeds.formats.items import FormatLoss, WrittenDocument
from smartfeeds.formats.opml_items import write_items
from smartfeeds.formats.rss_channel import CHANNEL_PARTS
from smartfeeds.formats.rss_writer import write_rss


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


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name for people, its writer, the parts of `Channel` that it represents, and its media type.

    `losses` returns what the format lacks of the rest of the feed's metadata, for people.
    """

    name: str
    pieces: Callable[[FeedExport], Iterator[bytes]]
    channel_parts: frozenset[str] = frozenset()
    losses: Callable[[FeedHead], str] = lambda _: ""
    media_type: str = ""

    def write(self, job: FeedExport) -> Iterator[bytes]:
        """The document in pieces. Raises ForbiddenCharacterError for texts that the format cannot represent."""
        report_channel(job, self.channel_parts)
        if text := self.losses(job.head):
            job.losses.append(FormatLoss("", text))
        yield from self.pieces(job)


def _whole(write: Callable[[FeedHead, Iterable[Item]], WrittenDocument]) -> Callable[[FeedExport], Iterator[bytes]]:
    """A writer whose document is one piece."""

    def pieces(job: FeedExport) -> Iterator[bytes]:
        document = write(job.head, job.items)
        job.losses += document.losses
        yield document.data

    return pieces


def _ess(job: FeedExport) -> Iterator[bytes]:
    """ESS has no deleted items, and the oldest items are left out if the file grows too large."""
    live: list[Entry] = []
    for entry in map(read_entry, job.items):
        if entry.deleted:
            job.losses.append(FormatLoss(entry.item_id, "a deleted item: ESS has no form for it"))
        else:
            live.append(entry)
    address = job.head.self_link or job.head.link or job.head.id
    file = write_ess(address, [(raw_title(entry), entry.issued_us) for entry in live], job.now_us)
    if file.count < len(live):
        missing = len(live) - file.count
        job.losses.append(FormatLoss("", f"the {missing} oldest items: the file would be larger than ESS allows"))
    yield file.data


def raw_title(entry: Entry) -> str:
    """A title as it stands in a document: what checksums are made of (A-106)."""
    return entry.title.plain if entry.title.kind is TextKind.XHTML else entry.title.value


def nno_entry(feed_url: str, entry: Entry) -> NnoEntry:
    """An entry of an NNO file for an entry of the feed at this address, as the ESS file of the feed has it."""
    return NnoEntry(feed_url, entry.issued_us // US_PER_S, dumb_checksum(raw_title(entry)))


ATOM_TYPE = "application/atom+xml; charset=utf-8"
RSS_TYPE = "application/rss+xml; charset=utf-8"
JSON_FEED_TYPE = "application/feed+json; charset=utf-8"
_IN_BOTH = frozenset({"language", "icon", "hub", "authors"})
_IN_JSON_FEED = _IN_BOTH | {"cloud_url"}
IN_ATOM = _IN_BOTH | {"copyright", "generator", "categories", "logo", "extensions"}


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


WRITERS: Mapping[str, Format] = MappingProxyType(
    {
        "atom": Format(
            "Atom 1.0", lambda job: write_feed(job.head, job.items, keys=job.keys), IN_ATOM, media_type=ATOM_TYPE
        ),
        "rss": Format("RSS 2.0", _whole(write_rss), frozenset(CHANNEL_PARTS), media_type=RSS_TYPE),
        "rss092": Format(
            "RSS 0.92",
            _whole(write_rss092),
            RSS092_PARTS,
            losses=lambda _: "the ids and the dates of the items",
            media_type=RSS_TYPE,
        ),
        "opml": Format(
            "OPML 2.0",
            lambda job: write_items(job.head, job.items, job.losses),
            losses=lambda head: "the description of the feed" if head.subtitle else "",
        ),
        "json": Format(
            "ActivityStreams 1.0",
            _whole(lambda head, items: write_activities(head, map(read_entry, items))),
            losses=lambda head: "the title and the description of the feed" if head.title or head.subtitle else "",
        ),
        "jsonfeed": Format(
            "JSON Feed 1.1",
            _whole(lambda head, items: write_json_feed(head, map(read_entry, items))),
            _IN_JSON_FEED,
            media_type=JSON_FEED_TYPE,
        ),
        "ess": Format(
            "ESS",
            _ess,
            losses=lambda _: "everything but the address of the feed, and time and checksum of each title",
        ),
    }
)
