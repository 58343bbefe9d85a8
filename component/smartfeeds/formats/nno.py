"""From many ESS files to the N newest entries of all of them, and from there to the items of the feeds (ESS-011 to
ESS-022, A-106, A-109 to A-112).

Choices that the document leaves open. Ties keep what is there already. An entry that comes with a new time is shown
in its new place and marked as updated (ESS-021). Entries of the same time and title are all included, each with an item
of its own as far as the feed has them (ESS-022).
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lxml import etree

from smartfeeds.core.times import US_PER_S
from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS, string_of
from smartfeeds.formats.ess import MINUTE_S, EntryStamp, EssContent, NnoEntry, dumb_checksum
from smartfeeds.formats.items import ImportedItem
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.loader import load
from smartfeeds.formats.payload import Payload, payload_of
from smartfeeds.formats.xml import parse_stored

_ITEMS: Final = frozenset({"item", "entry"})


class _ListedFeed(NamedTuple):
    """A feed on the list: the time of its first entry, and when it came, counted."""

    first_s: int
    number: int
    entries: tuple[EntryStamp, ...]


class Aggregator:
    """The `wanted` feeds with the youngest first entries, and out of them the `wanted` youngest entries (ESS-011).

    Each ESS file takes O(log wanted); `result` sorts what is left, which is at most wanted times wanted entries. Times
    are absolute, so that files of different build times can be compared (A-111).
    """

    def __init__(self, wanted: int) -> None:
        if wanted < 1:
            raise ValueError("at least one entry must be wanted")
        self.wanted = wanted
        self._feeds: dict[str, _ListedFeed] = {}
        # Oldest on top; feeds that were replaced leave lines behind that no feed matches any more.
        self._oldest: list[tuple[int, int, str]] = []
        self._came = 0

    @property
    def feeds(self) -> list[str]:
        """The feeds on the list, youngest first entry first (ESS-012)."""
        return sorted(self._feeds, key=lambda url: (-self._feeds[url].first_s, self._feeds[url].number))

    @property
    def oldest_s(self) -> int | None:
        """The first time of the oldest feed on the list; None while there is room for more feeds (A-109)."""
        return self._top()[0] if len(self._feeds) >= self.wanted else None

    def add(self, ess: EssContent) -> bool:
        """Puts an ESS file on the list if it belongs there (ESS-013, ESS-014); whether it does.

        It takes the place of a former one of the same feed, before anything is compared (A-110).
        """
        former = self._feeds.pop(ess.feed_url, None)
        if not ess.entries:
            return False
        first_s = ess.entries[0].time_s
        oldest_s = self.oldest_s
        if oldest_s is not None:
            if first_s <= oldest_s:
                return False
            self._drop_oldest()
        if former is None:
            self._came += 1
        kept = _ListedFeed(first_s, former.number if former else self._came, ess.entries[: self.wanted])
        self._feeds[ess.feed_url] = kept
        self._push(ess.feed_url, kept)
        if self.oldest_s is not None:
            self._purge_feed(ess.feed_url, self._top()[0])
        return True

    def purge(self) -> None:
        """Removes what is older than the oldest first entry, once there are `wanted` feeds (ESS-015, A-109)."""
        oldest_s = self.oldest_s
        if oldest_s is not None:
            for url in list(self._feeds):
                self._purge_feed(url, oldest_s)

    def split(self) -> list[NnoEntry]:
        """Everything that is left as single entries, youngest first (ESS-016)."""
        singles = [
            (-stamp.time_s, kept.number, place, NnoEntry(url, *stamp))
            for url, kept in self._feeds.items()
            for place, stamp in enumerate(kept.entries)
        ]
        singles.sort(key=lambda single: single[:3])
        return [single[3] for single in singles]

    def result(self) -> list[NnoEntry]:
        """The youngest entries of all, at most `wanted`, youngest first: what an NNO file is made of (ESS-017)."""
        self.purge()
        return self.split()[: self.wanted]

    def _purge_feed(self, url: str, oldest_s: int) -> None:
        kept = self._feeds[url]
        if kept.entries[-1].time_s < oldest_s:
            young = bisect_right(kept.entries, -oldest_s, key=lambda stamp: -stamp.time_s)
            self._feeds[url] = kept._replace(entries=kept.entries[: max(young, 1)])

    def _push(self, url: str, kept: _ListedFeed) -> None:
        if len(self._oldest) > 2 * self.wanted:
            self._oldest = [(one.first_s, -one.number, name) for name, one in self._feeds.items()]
            heapq.heapify(self._oldest)
        else:
            heapq.heappush(self._oldest, (kept.first_s, -kept.number, url))

    def _top(self) -> tuple[int, int, str]:
        while True:
            first_s, number, url = self._oldest[0]
            kept = self._feeds.get(url)
            if kept is not None and (kept.first_s, -kept.number) == (first_s, number):
                return self._oldest[0]
            heapq.heappop(self._oldest)

    def _drop_oldest(self) -> None:
        del self._feeds[self._top()[2]]


class EntryRequest(NamedTuple):
    """An entry of an NNO file that is to be found; `turn` counts entries that are equal in everything (ESS-022)."""

    entry: NnoEntry
    turn: int = 0


class Candidate(NamedTuple):
    """An item of a feed as far as an NNO entry says anything of it.

    `times_s` are its times (published, updated) in Unix seconds, floored to the minute (ESS-006). `checksums` are those
    that its title may have: as it stands first, then trimmed (A-106).
    """

    times_s: tuple[int, ...]
    checksums: tuple[int, ...]


class ItemMatch(NamedTuple):
    """The place of the item that an entry means; `updated` where the item has another time now (ESS-021)."""

    place: int
    updated: bool = False


def wanted_of(entries: Iterable[NnoEntry]) -> list[EntryRequest]:
    """The entries with their turns."""
    seen: Counter[NnoEntry] = Counter()
    found = []
    for entry in entries:
        found.append(EntryRequest(entry, seen[entry]))
        seen[entry] += 1
    return found


def to_download(wanted: Iterable[EntryRequest], known: Collection[EntryRequest]) -> dict[str, list[EntryRequest]]:
    """Returns the feeds that have entries which earlier results lack, with these entries (ESS-018, ESS-019)."""
    lacking: dict[str, list[EntryRequest]] = {}
    for one in wanted:
        if one not in known:
            lacking.setdefault(one.entry.feed_url, []).append(one)
    return lacking


def match(wanted: Sequence[EntryRequest], candidates: Sequence[Candidate]) -> list[ItemMatch | None]:
    """Returns the matching item of the feed for each entry, or None. No item matches two entries (ESS-020).

    The time decides where one item alone has it, else the checksum among those of the time; where the time is
    nobody's, the checksum among all, the nearest time first. Titles as they are come before trimmed ones (A-106).
    """
    return _MatchRun(candidates).run(wanted)


class _SearchLine:
    """Items in the order of a key. Each search passes over the items that were given away, and no later search passes
    over them again, so that all searches together take about as many steps as there are items and searches."""

    def __init__(self, keys: Iterable[tuple[int, int]], free: Collection[int]) -> None:
        """`keys` are pairs of a number to search by and the place of an item; `free` are the items not given away."""
        self._keys = sorted(keys)
        self._next = list(range(len(self._keys) + 1))
        self._free = free

    def first(self, number: int) -> tuple[int, int] | None:
        """The first free item whose number is not below this one."""
        start = at = bisect_left(self._keys, (number, -1))
        while at < len(self._keys):
            if self._next[at] == at:
                if self._keys[at][1] in self._free:
                    break
                self._next[at] = at + 1
            at = self._next[at]
        while start < at:
            start, self._next[start] = self._next[start], at
        return self._keys[at] if at < len(self._keys) else None


class _NearestItem:
    """The items of one checksum, to be searched by time."""

    def __init__(self, places: list[int], candidates: Sequence[Candidate], free: Collection[int]) -> None:
        times = [(time_s, place) for place in places for time_s in candidates[place].times_s]
        self._later = _SearchLine(times, free)
        self._earlier = _SearchLine(((-time_s, place) for time_s, place in times), free)
        self._undated = _SearchLine(((0, place) for place in places if not candidates[place].times_s), free)

    def place(self, time_s: int) -> int | None:
        """The nearest free item, of several the first one; an item without a time where there is no other."""
        later, earlier = self._later.first(time_s), self._earlier.first(-time_s)
        distances = [(key[0] + sign * time_s, key[1]) for key, sign in ((later, -1), (earlier, 1)) if key]
        if distances:
            return min(distances)[1]
        undated = self._undated.first(0)
        return None if undated is None else undated[1]


class _MatchRun:
    """One run of `match`: rules from the surest to the weakest, each over all entries that are still open."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self.free = set(range(len(candidates)))
        self.free_at = Counter(time_s for candidate in candidates for time_s in set(candidate.times_s))
        by_time: dict[int, list[int]] = {}
        by_both: dict[tuple[int, int], list[int]] = {}
        by_both_as_it_stands: dict[tuple[int, int], list[int]] = {}
        by_checksum: dict[int, list[int]] = {}
        by_title: dict[int, list[int]] = {}
        for place, candidate in enumerate(candidates):
            title = candidate.checksums[0]
            by_title.setdefault(title, []).append(place)
            for checksum in set(candidate.checksums):
                by_checksum.setdefault(checksum, []).append(place)
            for time_s in set(candidate.times_s):
                by_time.setdefault(time_s, []).append(place)
                by_both_as_it_stands.setdefault((time_s, title), []).append(place)
                for checksum in set(candidate.checksums):
                    by_both.setdefault((time_s, checksum), []).append(place)
        self.at_time = {key: self._line(places) for key, places in by_time.items()}
        self.at_both = {key: self._line(places) for key, places in by_both.items()}
        self.at_title = {key: self._line(places) for key, places in by_both_as_it_stands.items()}
        self.near = {key: _NearestItem(places, candidates, self.free) for key, places in by_checksum.items()}
        self.near_title = {key: _NearestItem(places, candidates, self.free) for key, places in by_title.items()}

    def run(self, wanted: Sequence[EntryRequest]) -> list[ItemMatch | None]:
        found: list[ItemMatch | None] = [None] * len(wanted)
        rules: tuple[tuple[Callable[[EntryRequest], int | None], bool], ...] = (
            (self._time_and_title, False),
            (self._time_and_trimmed, False),
            (self._time_alone, False),
            (self._title, True),
            (self._trimmed, True),
        )
        for rule, updated in rules:
            for index, one in enumerate(wanted):
                place = rule(one) if found[index] is None else None
                if place is not None:
                    self.free.discard(place)
                    self.free_at.subtract(set(self.candidates[place].times_s))
                    found[index] = ItemMatch(place, updated)
        return found

    def _line(self, places: list[int]) -> _SearchLine:
        return _SearchLine(((0, place) for place in places), self.free)

    def _time_and_title(self, one: EntryRequest) -> int | None:
        return _first(self.at_title.get((one.entry.time_s, one.entry.checksum)))

    def _time_and_trimmed(self, one: EntryRequest) -> int | None:
        return _first(self.at_both.get((one.entry.time_s, one.entry.checksum)))

    def _time_alone(self, one: EntryRequest) -> int | None:
        return _first(self.at_time.get(one.entry.time_s)) if self.free_at[one.entry.time_s] == 1 else None

    def _title(self, one: EntryRequest) -> int | None:
        return self._nearest(one, self.near_title)

    def _trimmed(self, one: EntryRequest) -> int | None:
        return self._nearest(one, self.near)

    def _nearest(self, one: EntryRequest, index: Mapping[int, _NearestItem]) -> int | None:
        nearest = index.get(one.entry.checksum)
        # A second entry of one time and title has its item at this time or nowhere.
        return None if nearest is None or one.turn else nearest.place(one.entry.time_s)


def _first(line: _SearchLine | None) -> int | None:
    key = None if line is None else line.first(0)
    return None if key is None else key[1]


def title_checksums(title: str) -> tuple[int, ...]:
    """The checksums of a title as it stands and trimmed (A-106)."""
    return tuple(dict.fromkeys((dumb_checksum(title), dumb_checksum(title.strip()))))


def raw_titles(data: bytes) -> dict[str, tuple[str, ...]]:
    """The titles of a document's items as they stand in it, by the same title trimmed: readers of feeds trim them.

    Raises FeedError where the document cannot be read.
    """
    found: dict[str, tuple[str, ...]] = {}
    for node in load(data).root.iter("{*}title"):
        parent = node.getparent()
        namespace = node.tag.rpartition("}")[0].lstrip("{")
        if parent is None or parent.tag.rpartition("}")[2] not in _ITEMS:
            continue
        if namespace not in ("", ATOM_NS) and namespace != parent.tag.rpartition("}")[0].lstrip("{"):
            continue
        text = string_of(node)
        known = found.get(text.strip(), ())
        if text not in known and len(known) < 8:
            found[text.strip()] = (*known, text)
    return found


def candidate_of(item: ImportedItem, titles: Mapping[str, tuple[str, ...]]) -> Candidate:
    """An item of a document as a candidate; `titles` are the document's `raw_titles`."""
    node = next(parse_stored(item.payload).iterchildren(atom.TITLE), None)
    own = "" if node is None else string_of(node)
    raw = titles.get(own.strip(), ())
    ordered = (own, *raw) if own in raw else (*raw, own)
    checksums = [checksum for title in ordered for checksum in title_checksums(title)]
    times_us = (item.published_us, item.updated_us)
    times_s = [time_us // US_PER_S // MINUTE_S * MINUTE_S for time_us in times_us if time_us is not None]
    return Candidate(tuple(dict.fromkeys(times_s)), tuple(dict.fromkeys(checksums)))


def with_source(payload: bytes, feed_id: str, title: str, url: str) -> Payload:
    """An entry that says which feed it comes from, as entries in the feed of another do (RFC 4287 4.2.11).

    What it says already stays. The id is left out where it is no URI.
    """
    entry = parse_stored(payload)
    if next(entry.iterchildren(atom.SOURCE), None) is not None:
        return payload_of(payload)
    source = etree.SubElement(entry, atom.SOURCE)
    if is_uri(feed_id):
        etree.SubElement(source, atom.ID).text = feed_id
    etree.SubElement(source, atom.TITLE).text = title
    etree.SubElement(source, atom.LINK, {"rel": "self", "href": url})
    return Payload.of(entry)
