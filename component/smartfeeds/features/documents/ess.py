"""ESS and NNO files: times and title checksums of the newest entries of one feed, and of many (ESS-001 to ESS-010,
ESS-025, A-100 to A-108, A-112, A-113).

An ESS file is `buildTime, feedUrl, minutes,checksum, ...`; an NNO file is `buildTime, feedUrl,minutes,checksum, ...`.
Build times are Unix seconds divisible by 60, minutes are counted back from there (negative: later than the build).
Reading is from left to right: behind the build time everything up to the first whole number is the address, so that
commas in addresses are understood; what then does not fit makes the file invalid.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.formats import representation
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import DocumentFormat, Drafts, FeedExport, Reader
from smartfeeds.formats.entry import Entry, TextKind, read_entry
from smartfeeds.formats.feed_document import FormatLoss
from smartfeeds.formats.representation import Representation

ESS_TYPE: Final = "application/ess"
NNO_TYPE: Final = "application/nno"
MAX_BYTES: Final = 1_000_000
MINUTE_S: Final = 60
MILLISECONDS_FROM: Final = 100_000_000_000  # the year 5138 in seconds, 1973 in milliseconds
MAX_CHECKSUM: Final = 256  # read as 0; written are 0 to 255
TIME_RANGE_S: Final = (-62_135_596_800, 253_402_300_799)  # the years 1 to 9999
_MINUTE_US: Final = MINUTE_S * US_PER_S
_MAX_DIGITS: Final = 18  # int rejects texts of thousands of digits with an error of its own
_NUMBER = re.compile(r"-?[0-9]+")
_BEGINNING = re.compile(rb"\s*[0-9]{1,20}\s*(?:,|\Z)")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[\x21-\x7e]+")
# Everything that may stand in an address, except the comma.
_SAFE: Final = "%:/?#[]@!$&'()*+;=-._~"


class EntryStamp(NamedTuple):
    """One entry of an ESS file: its time in Unix seconds, divisible by 60, and its title's checksum, 0 to 255."""

    time_s: int
    checksum: int


class NnoEntry(NamedTuple):
    """One entry of an NNO file: the address of its feed, and what a `EntryStamp` says."""

    feed_url: str
    time_s: int
    checksum: int


@dataclass(frozen=True, slots=True)
class EssContent:
    """An ESS file as read: newest entry first. `build_s` is Unix seconds, divisible by 60."""

    build_s: int
    feed_url: str
    entries: tuple[EntryStamp, ...] = ()


@dataclass(frozen=True, slots=True)
class NnoContent:
    """An NNO file as read: newest entry first. `build_s` is Unix seconds, divisible by 60."""

    build_s: int
    entries: tuple[NnoEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class EssFile:
    """An ESS or NNO file as written, and how many entries are in it."""

    data: bytes
    count: int


def dumb_checksum(title: str) -> int:
    """The sum of the title's UTF-16 code units modulo 256 (ESS-007, ESS-008, A-104, A-105); the title as it is (A-106).

    Only the lower byte of each unit matters.
    """
    return sum(title.encode("utf-16-le", "surrogatepass")[::2]) & 0xFF


def build_time(now_us: int) -> int:
    """The build time for this moment: Unix seconds, floored to the minute (ESS-003)."""
    return now_us // _MINUTE_US * MINUTE_S


def minutes_before(build_s: int, time_us: int) -> int:
    """The whole minutes by which an entry is older than the build; negative if it is younger (ESS-004, ESS-005)."""
    return build_s // MINUTE_S - time_us // _MINUTE_US


def ascii_address(url: str) -> str:
    """An address in ASCII and without commas, as it stands in a file (A-107, A-113). Raises FeedError for none."""
    try:
        parts = urlsplit(url.strip())
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        clean = quote(urlunsplit(parts._replace(netloc=host)), safe=_SAFE, errors="surrogatepass")
    except (ValueError, UnicodeError):
        clean = ""
    if _ADDRESS.fullmatch(clean) is None:
        raise FeedError(Condition.INVALID_PAYLOAD, "the address of a feed must be absolute, such as https://...")
    return clean


def write_ess(feed_url: str, entries: Iterable[tuple[str, int | None]], now_us: int) -> EssFile:
    """The ESS file of a feed: (title, microseconds) pairs, in any order, newest first in the file (ESS-001, ESS-009).

    Entries without a time are left out (A-112), and the oldest ones where the file would pass `MAX_BYTES`. Raises
    FeedError for an address that is none.
    """
    build_s = build_time(now_us)
    dated = [(time_us, title) for title, time_us in entries if time_us is not None]
    dated.sort(key=lambda pair: pair[0], reverse=True)
    fields = (f"{minutes_before(build_s, time_us)},{dumb_checksum(title)}" for time_us, title in dated)
    return _joined([str(build_s), ascii_address(feed_url)], fields)


def write_nno(entries: Iterable[NnoEntry], now_us: int) -> EssFile:
    """The NNO file of these entries, newest first (ESS-002). What would pass `MAX_BYTES` is left out: the oldest.

    Raises FeedError for an address that is none.
    """
    build_s = build_time(now_us)
    ordered = sorted(entries, key=lambda entry: entry.time_s, reverse=True)
    fields = (
        f"{ascii_address(entry.feed_url)},{build_s // MINUTE_S - entry.time_s // MINUTE_S},{entry.checksum % 256}"
        for entry in ordered
    )
    return _joined([str(build_s)], fields)


def _joined(head: list[str], fields: Iterable[str]) -> EssFile:
    parts = list(head)
    size_bytes = sum(len(part) + 2 for part in head)
    for field in fields:
        size_bytes += len(field) + 2
        if size_bytes > MAX_BYTES:
            break
        parts.append(field)
    return EssFile(", ".join(parts).encode("ascii"), len(parts) - len(head))


def looks_like_ess(data: bytes) -> bool:
    """Whether a document can only be an ESS or an NNO file: it begins with a number."""
    return _BEGINNING.match(data) is not None


def read_ess(data: bytes) -> EssContent:
    """An ESS file. Raises FeedError(INVALID_PAYLOAD) that says what is wrong, FeedError(PAYLOAD_TOO_BIG) above 1 MB."""
    fields = _fields(data)
    build_s = _build_time(fields[0])
    url, place = _address(fields, 1)
    numbers = fields[place:]
    if len(numbers) % 2:
        raise _invalid("a number is left over: behind the address there are pairs of minutes and checksum")
    entries = [_stamp(build_s, numbers[at], numbers[at + 1]) for at in range(0, len(numbers), 2)]
    entries.sort(key=lambda entry: -entry.time_s)
    return EssContent(build_s, url, tuple(entries))


def read_nno(data: bytes) -> NnoContent:
    """An NNO file. Raises FeedError(INVALID_PAYLOAD) that says what is wrong, FeedError(PAYLOAD_TOO_BIG) above 1 MB."""
    fields = _fields(data)
    build_s = _build_time(fields[0])
    entries: list[NnoEntry] = []
    place = 1
    while place < len(fields):
        url, place = _address(fields, place)
        if place + 1 >= len(fields):
            raise _invalid("the last entry is not whole: an address is followed by minutes and checksum")
        entries.append(NnoEntry(url, *_stamp(build_s, fields[place], fields[place + 1])))
        place += 2
    entries.sort(key=lambda entry: -entry.time_s)
    return NnoContent(build_s, tuple(entries))


def read_either(data: bytes) -> list[EssContent]:
    """An ESS file, or an NNO file as the ESS files it was made of. Raises FeedError as the readers do.

    What both could be means the same as either.
    """
    try:
        return [read_ess(data)]
    except FeedError as error:
        try:
            return split_nno(read_nno(data))
        except FeedError:
            raise error from None


def split_nno(nno: NnoContent) -> list[EssContent]:
    """An NNO file as the ESS files it was made of, as far as it tells: one a feed."""
    feeds: dict[str, list[EntryStamp]] = {}
    for url, time_s, checksum in nno.entries:
        feeds.setdefault(url, []).append(EntryStamp(time_s, checksum))
    return [EssContent(nno.build_s, url, tuple(stamps)) for url, stamps in feeds.items()]


def _fields(data: bytes) -> list[str]:
    if len(data) > MAX_BYTES:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"the file is larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("ascii").strip()
    except UnicodeDecodeError:
        raise _invalid("the file holds bytes that are not ASCII") from None
    if not text:
        raise _invalid("the file is empty")
    if "\n" in text or "\r" in text:
        raise _invalid("the file has more than one line")
    return text.split(",")


def _build_time(field: str) -> int:
    number = _number(field, "the build time")
    if number < 0:
        raise _invalid("the build time is before 1970")
    if number >= MILLISECONDS_FROM:
        number //= 1000
    if number > TIME_RANGE_S[1]:
        raise _invalid("the build time is behind the year 9999")
    return number // MINUTE_S * MINUTE_S


def _address(fields: Sequence[str], place: int) -> tuple[str, int]:
    """The address that begins at a field, and the place of the number behind it (A-107)."""
    begin = place
    while place < len(fields) and _NUMBER.fullmatch(fields[place].strip()) is None:
        place += 1
    url = ",".join(fields[begin:place]).strip()
    if _ADDRESS.fullmatch(url) is None:
        raise _invalid(f"there should be the address of a feed, not {url[:40]!r}" if url else "an address is missing")
    return url, place


def _stamp(build_s: int, minutes: str, checksum: str) -> EntryStamp:
    title_sum = _number(checksum, "a checksum")
    if not 0 <= title_sum <= MAX_CHECKSUM:
        raise _invalid(f"a checksum is not in 0 to {MAX_CHECKSUM}")
    time_s = build_s - _number(minutes, "an entry's minutes") * MINUTE_S
    if not TIME_RANGE_S[0] <= time_s <= TIME_RANGE_S[1]:
        raise _invalid("the time of an entry is not in the years 1 to 9999")
    return EntryStamp(time_s, title_sum % 256)


def _number(field: str, name: str) -> int:
    text = field.strip()
    if _NUMBER.fullmatch(text) is None:
        raise _invalid(f"{name} is not a whole number: {text[:40]!r}")
    if len(text) > _MAX_DIGITS:
        raise _invalid(f"{name} is out of range")
    return int(text)


def _invalid(text: str) -> FeedError:
    return FeedError(Condition.INVALID_PAYLOAD, text)


def raw_title(entry: Entry) -> str:
    """A title as it stands in a document: what checksums are made of (A-106)."""
    return entry.title.plain if entry.title.kind is TextKind.XHTML else entry.title.value


def nno_entry(feed_url: str, entry: Entry) -> NnoEntry:
    """An entry of an NNO file for an entry of the feed at this address, as the ESS file of the feed has it."""
    return NnoEntry(feed_url, entry.issued_us // US_PER_S, dumb_checksum(raw_title(entry)))


def _pieces(job: FeedExport) -> Iterator[bytes]:
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


def _losses(_head: FeedHead) -> str:
    return "everything but the address of the feed, and time and checksum of each title"


def _refuse(data: bytes, _base: str) -> Drafts:
    try:
        feeds = tuple(file.feed_url for file in read_either(data))
    except FeedError:
        feeds = ()
    raise FormatError(
        "the document is an ESS or NNO file, which has neither texts nor addresses of items: smartfeeds nno reads it, "
        "and with --full downloads the items that it means",
        feeds,
    )


ESS = DocumentFormat(
    "ess",
    "ESS",
    _pieces,
    losses=_losses,
    text=Reader(looks_like_ess, _refuse),
    # An ESS file describes the items of the RSS document (ESS-001).
    representation=Representation(
        "ess", ESS_TYPE, (ESS_TYPE,), "ESS", has_hub=True, self_suffix=representation.RSS.suffix, link=5
    ),
)
