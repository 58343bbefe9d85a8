"""Selects the N newest entries of many ESS files, and finds their items in the feeds (ESS-011 to ESS-022, A-106, A-109
to A-112).

The specification leaves some choices open. Of two feeds or entries with equal times, the earlier arrival stays. An
entry whose item has a new time moves to its new place and is marked as updated (ESS-021). Entries of the same time and
title are all included, each with an item of its own if the feed has enough of them (ESS-022).
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from smartfeeds.core.times import US_PER_S
from smartfeeds.features.documents.ess import MINUTE_S, EntryStamp, EssContent, NnoEntry, dumb_checksum
from smartfeeds.formats import atom
from smartfeeds.formats.atom import ATOM_NS, string_of
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.formats.loader import load
from smartfeeds.formats.xml import parse_stored

_ITEMS: Final = frozenset({"item", "entry"})
# Spellings of one trimmed title that are compared: a document could hold any number of them.
_MAX_TITLE_VARIANTS: Final = 8


class _ListedFeed(NamedTuple):
    """A feed on the list: the time of its first entry, and when it came, counted."""

    first_s: int
    number: int
    entries: tuple[EntryStamp, ...]


class Aggregator:
    """The `limit` feeds with the youngest first entries, and out of them the `limit` youngest entries (ESS-011).

    Each ESS file takes O(log limit). `result` sorts the rest, at most limit times limit entries. Times are absolute, so
    that files of different build times can be compared (A-111).
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("at least one entry must be requested")
        self.limit = limit
        self._feeds: dict[str, _ListedFeed] = {}
        # A heap with the oldest feed on top. A feed that is replaced leaves its former line behind, because a line
        # inside a heap cannot be removed cheaply; `_top` skips such lines.
        self._oldest: list[tuple[int, int, str]] = []
        self._arrivals = 0

    @property
    def feeds(self) -> list[str]:
        """The feeds on the list, youngest first entry first (ESS-012)."""
        return sorted(self._feeds, key=lambda url: (-self._feeds[url].first_s, self._feeds[url].number))

    @property
    def oldest_s(self) -> int | None:
        """The first time of the oldest feed on the list; None while there is room for more feeds (A-109)."""
        return self._top()[0] if len(self._feeds) >= self.limit else None

    def add(self, ess: EssContent) -> bool:
        """Puts an ESS file on the list if it belongs there, and returns whether it does (ESS-013, ESS-014).

        A file replaces the former file of the same feed before anything is compared (A-110).
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
            self._arrivals += 1
        feed = _ListedFeed(first_s, former.number if former else self._arrivals, ess.entries[: self.limit])
        self._feeds[ess.feed_url] = feed
        self._push(ess.feed_url, feed)
        if self.oldest_s is not None:
            self._purge_feed(ess.feed_url, self._top()[0])
        return True

    def purge(self) -> None:
        """Removes what is older than the oldest first entry, once there are `limit` feeds (ESS-015, A-109)."""
        oldest_s = self.oldest_s
        if oldest_s is not None:
            for url in list(self._feeds):
                self._purge_feed(url, oldest_s)

    def split(self) -> list[NnoEntry]:
        """Everything that is left as single entries, youngest first (ESS-016)."""
        singles = [
            (-stamp.time_s, feed.number, place, NnoEntry(url, *stamp))
            for url, feed in self._feeds.items()
            for place, stamp in enumerate(feed.entries)
        ]
        singles.sort(key=lambda single: single[:3])
        return [single[3] for single in singles]

    def result(self) -> list[NnoEntry]:
        """The youngest entries of all, at most `limit`, youngest first: what an NNO file is made of (ESS-017)."""
        self.purge()
        return self.split()[: self.limit]

    def _purge_feed(self, url: str, oldest_s: int) -> None:
        feed = self._feeds[url]
        if feed.entries[-1].time_s < oldest_s:
            young = bisect_right(feed.entries, -oldest_s, key=lambda stamp: -stamp.time_s)
            self._feeds[url] = feed._replace(entries=feed.entries[: max(young, 1)])

    def _push(self, url: str, feed: _ListedFeed) -> None:
        # The heap is built anew before the lines of replaced feeds outnumber the others.
        if len(self._oldest) > 2 * self.limit:
            self._oldest = [(feed.first_s, -feed.number, name) for name, feed in self._feeds.items()]
            heapq.heapify(self._oldest)
        else:
            heapq.heappush(self._oldest, (feed.first_s, -feed.number, url))

    def _top(self) -> tuple[int, int, str]:
        while True:
            first_s, number, url = self._oldest[0]
            feed = self._feeds.get(url)
            if feed is not None and (feed.first_s, -feed.number) == (first_s, number):
                return self._oldest[0]
            heapq.heappop(self._oldest)

    def _drop_oldest(self) -> None:
        del self._feeds[self._top()[2]]


class EntryRequest(NamedTuple):
    """An entry of an NNO file whose item is searched; `turn` counts entries that are equal in everything (ESS-022)."""

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


def requests_of(entries: Iterable[NnoEntry]) -> list[EntryRequest]:
    """A request for each entry, with its turn."""
    turns: Counter[NnoEntry] = Counter()
    requests = []
    for entry in entries:
        requests.append(EntryRequest(entry, turns[entry]))
        turns[entry] += 1
    return requests


def to_download(requests: Iterable[EntryRequest], known: Collection[EntryRequest]) -> dict[str, list[EntryRequest]]:
    """Returns the feeds that have entries which earlier results lack, with these entries (ESS-018, ESS-019)."""
    feeds: dict[str, list[EntryRequest]] = {}
    for request in requests:
        if request not in known:
            feeds.setdefault(request.entry.feed_url, []).append(request)
    return feeds


def match(requests: Sequence[EntryRequest], candidates: Sequence[Candidate]) -> list[ItemMatch | None]:
    """Returns the matching item of the feed for each entry, or None. No item matches two entries (ESS-020).

    If one item alone has the time of the entry, that item matches; if several have it, the checksum decides among them.
    If no item has the time, the checksum decides among all items, the nearest time first. Titles as they stand come
    before trimmed ones (A-106).
    """
    return _MatchRun(candidates).run(requests)


class _FreeItems:
    """The items that are not matched yet, in the order of a number.

    Each search passes over matched items, and no later search passes over them again. All searches together therefore
    take about as many steps as there are items and searches.
    """

    def __init__(self, keys: Iterable[tuple[int, int]], free: Collection[int]) -> None:
        """`keys` are pairs of a number to search by and the place of an item; `free` are the places not matched yet."""
        self._keys = sorted(keys)
        self._next = list(range(len(self._keys) + 1))
        self._free = free

    def first(self, number: int) -> tuple[int, int] | None:
        """The key of the first free item whose number is not below this one."""
        start = at = bisect_left(self._keys, (number, -1))
        while at < len(self._keys):
            if self._next[at] == at:
                if self._keys[at][1] in self._free:
                    break
                self._next[at] = at + 1
            at = self._next[at]
        # Path compression: the next search from here jumps over everything that this search has passed.
        while start < at:
            start, self._next[start] = self._next[start], at
        return self._keys[at] if at < len(self._keys) else None

    def at(self, number: int) -> int | None:
        """The place of the first free item with this number."""
        key = self.first(number)
        return key[1] if key is not None and key[0] == number else None


class _ItemsByTime:
    """The items of one checksum, to be searched by time."""

    def __init__(self, places: list[int], candidates: Sequence[Candidate], free: Collection[int]) -> None:
        times = [(time_s, place) for place in places for time_s in candidates[place].times_s]
        self._later = _FreeItems(times, free)
        self._earlier = _FreeItems(((-time_s, place) for time_s, place in times), free)
        self._undated = _FreeItems(((0, place) for place in places if not candidates[place].times_s), free)

    def at(self, time_s: int) -> int | None:
        """The first free item of exactly this time."""
        return self._later.at(time_s)

    def nearest(self, time_s: int) -> int | None:
        """The nearest free item, of several the first; an item without a time if there is no other."""
        later, earlier = self._later.first(time_s), self._earlier.first(-time_s)
        distances = [(key[0] + sign * time_s, key[1]) for key, sign in ((later, -1), (earlier, 1)) if key]
        return min(distances)[1] if distances else self._undated.at(0)


class _MatchRun:
    """One run of `match`: rules from the surest to the weakest, each over all entries that are still open."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self.free = set(range(len(candidates)))
        self.free_at = Counter(time_s for candidate in candidates for time_s in set(candidate.times_s))
        times = ((time_s, place) for place, candidate in enumerate(candidates) for time_s in candidate.times_s)
        self.by_time = _FreeItems(times, self.free)
        self.by_title = self._by_checksum(lambda candidate: candidate.checksums[:1])
        self.by_any_title = self._by_checksum(lambda candidate: candidate.checksums)

    def _by_checksum(self, checksums: Callable[[Candidate], Iterable[int]]) -> dict[int, _ItemsByTime]:
        places: dict[int, list[int]] = {}
        for place, candidate in enumerate(self.candidates):
            for checksum in set(checksums(candidate)):
                places.setdefault(checksum, []).append(place)
        return {checksum: _ItemsByTime(group, self.candidates, self.free) for checksum, group in places.items()}

    def run(self, requests: Sequence[EntryRequest]) -> list[ItemMatch | None]:
        matches: list[ItemMatch | None] = [None] * len(requests)
        for rule, updated in (
            (partial(self._at_time, self.by_title), False),
            (partial(self._at_time, self.by_any_title), False),
            (self._time_alone, False),
            (partial(self._nearest, self.by_title), True),
            (partial(self._nearest, self.by_any_title), True),
        ):
            for index, request in enumerate(requests):
                place = rule(request) if matches[index] is None else None
                if place is not None:
                    self.free.discard(place)
                    self.free_at.subtract(set(self.candidates[place].times_s))
                    matches[index] = ItemMatch(place, updated)
        return matches

    def _at_time(self, index: Mapping[int, _ItemsByTime], request: EntryRequest) -> int | None:
        items = index.get(request.entry.checksum)
        return None if items is None else items.at(request.entry.time_s)

    def _time_alone(self, request: EntryRequest) -> int | None:
        time_s = request.entry.time_s
        return self.by_time.at(time_s) if self.free_at[time_s] == 1 else None

    def _nearest(self, index: Mapping[int, _ItemsByTime], request: EntryRequest) -> int | None:
        items = index.get(request.entry.checksum)
        # A second entry of one time and title has its item at this time or nowhere.
        return None if items is None or request.turn else items.nearest(request.entry.time_s)


def title_checksums(title: str) -> tuple[int, ...]:
    """The checksums of a title as it stands and trimmed (A-106)."""
    return tuple(dict.fromkeys((dumb_checksum(title), dumb_checksum(title.strip()))))


def raw_titles(data: bytes, charset: str = "") -> dict[str, tuple[str, ...]]:
    """Returns the titles of a document's items with their white space, by the trimmed title, which is all that feed
    readers keep.

    Raises FeedError where the document cannot be read.
    """
    titles: dict[str, tuple[str, ...]] = {}
    for node in load(data, charset).root.iter("{*}title"):
        parent = node.getparent()
        namespace = node.tag.rpartition("}")[0].lstrip("{")
        if parent is None or parent.tag.rpartition("}")[2] not in _ITEMS:
            continue
        if namespace not in ("", ATOM_NS) and namespace != parent.tag.rpartition("}")[0].lstrip("{"):
            continue
        text = string_of(node)
        variants = titles.get(text.strip(), ())
        if text not in variants and len(variants) < _MAX_TITLE_VARIANTS:
            titles[text.strip()] = (*variants, text)
    return titles


def candidate_of(item: ImportedItem, titles: Mapping[str, tuple[str, ...]]) -> Candidate:
    """An item of a document as a candidate; `titles` are the document's `raw_titles`."""
    node = next(parse_stored(item.payload).iterchildren(atom.TITLE), None)
    title = "" if node is None else string_of(node)
    raw = titles.get(title.strip(), ())
    spellings = (title, *raw) if title in raw else (*raw, title)
    checksums = [checksum for spelling in spellings for checksum in title_checksums(spelling)]
    times_us = (item.published_us, item.updated_us)
    times_s = [time_us // US_PER_S // MINUTE_S * MINUTE_S for time_us in times_us if time_us is not None]
    return Candidate(tuple(dict.fromkeys(times_s)), tuple(dict.fromkeys(checksums)))
