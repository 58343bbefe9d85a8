"""The formats that a feed can be written in: one table for export, convert and HTTP."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from smartfeeds.core.model import Item
from smartfeeds.formats.activity import write_activities
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.entry import Entry, TextKind, read_entry
from smartfeeds.formats.ess import write_ess
from smartfeeds.formats.items import FormatLoss
from smartfeeds.formats.json_feed import write_json_feed
from smartfeeds.formats.opml_items import write_items
from smartfeeds.formats.rss_channel import CHANNEL_PARTS, Channel
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


Writer = Callable[[FeedExport], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name for people, and who writes it.

    `write` gives the document in pieces and raises ForbiddenCharacterError for texts that it cannot carry.
    """

    name: str
    write: Writer


def _atom(job: FeedExport) -> Iterator[bytes]:
    tell_channel(job, IN_ATOM)
    yield from write_feed(job.head, job.items, keys=job.keys)


def _rss(job: FeedExport) -> Iterator[bytes]:
    tell_channel(job, frozenset(CHANNEL_PARTS))
    written = write_rss(job.head, job.items)
    job.losses += written.losses
    yield written.data


def _opml(job: FeedExport) -> Iterator[bytes]:
    tell_channel(job)
    if job.head.subtitle:
        job.losses.append(FormatLoss("", "the description of the feed"))
    yield from write_items(job.head, job.items, job.losses)


def _json(job: FeedExport) -> Iterator[bytes]:
    tell_channel(job)
    if job.head.title or job.head.subtitle:
        job.losses.append(FormatLoss("", "the title and the description of the feed"))
    written = write_activities(job.head, map(read_entry, job.items))
    job.losses += written.losses
    yield written.data


def _json_feed(job: FeedExport) -> Iterator[bytes]:
    tell_channel(job, _IN_JSON_FEED)
    written = write_json_feed(job.head, map(read_entry, job.items))
    job.losses += written.losses
    yield written.data


def _ess(job: FeedExport) -> Iterator[bytes]:
    """Times and checksums are all that ESS is; deleted items are not listed, and the oldest where it is full."""
    head = job.head
    job.losses.append(FormatLoss("", "everything but the address of the feed, and time and checksum of each title"))
    tell_channel(job)
    live: list[Entry] = []
    for item in job.items:
        entry = read_entry(item)
        if entry.deleted:
            job.losses.append(FormatLoss(item.id, "a deleted item: ESS has no form for it"))
        else:
            live.append(entry)
    address = head.self_link or head.link or head.id
    file = write_ess(address, [(raw_title(entry), entry.issued_us) for entry in live], job.now_us)
    if file.count < len(live):
        missing = len(live) - file.count
        job.losses.append(FormatLoss("", f"the {missing} oldest items: the file would be larger than ESS allows"))
    yield file.data


def raw_title(entry: Entry) -> str:
    """A title as it stands in a document: what checksums are made of (A-106)."""
    return entry.title.plain if entry.title.kind is TextKind.XHTML else entry.title.value


_IN_JSON_FEED = frozenset({"language", "icon", "hub", "authors"})
IN_ATOM = _IN_JSON_FEED | {"copyright", "generator", "categories", "logo", "extensions"}


def tell_channel(job: FeedExport, kept: frozenset[str] = frozenset()) -> None:
    """Reports what the feed says of itself and the format has no place for."""
    channel = job.head.channel or Channel()
    lost = list(channel.left_out)
    lost += [
        name
        for attribute, name in CHANNEL_PARTS.items()
        if attribute not in kept and getattr(channel, attribute) not in ("", None, ())
    ]
    if lost:
        job.losses.append(FormatLoss("", f"of the feed itself: {', '.join(lost)}"))


WRITERS: Mapping[str, Format] = MappingProxyType(
    {
        "atom": Format("Atom 1.0", _atom),
        "rss": Format("RSS 2.0", _rss),
        "opml": Format("OPML 2.0", _opml),
        "json": Format("ActivityStreams 1.0", _json),
        "jsonfeed": Format("JSON Feed 1.1", _json_feed),
        "ess": Format("ESS", _ess),
    }
)
