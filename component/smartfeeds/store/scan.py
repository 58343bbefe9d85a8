"""The items of a view, found by reading all items of the node instead of the filter index.

Making the index of a large node takes much longer than reading the node once. So the first pages of a filtered view
come from a scan, while the index is made.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from smartfeeds.core.model import Edge, Item, Slice
from smartfeeds.core.view import NO_TRAITS, Order, Traits, View, version_traits
from smartfeeds.core.word_search import searcher
from smartfeeds.store.index_tokens import index_tokens
from smartfeeds.store.indexer import TraitsReader
from smartfeeds.store.rows import NOWHERE
from smartfeeds.store.versions import VERSION_TEXT

# A larger node waits for its index: the numbers of its items alone would exceed the memory of all scans.
SCAN_ITEMS = 100_000
# A scan takes a quarter to a half of the time of indexing, and is kept for `KEPT_SCAN_S` only.
SCAN_SHARE = 4
SCAN_LEAST = 1_000  # items that are to be indexed; fewer are indexed in a tenth of a second
# What a scan takes of the memory for each item, for each of its view, and for each of an ordered list of these.
_JUDGED_BYTES, _MATCH_BYTES, _LISTED_BYTES = 100, 64, 8
_ABSENT = -1  # the place of an item that is not in the view
_SHORT = 8_192  # bytes of a payload whose words are fewer than VERSION_TEXT in any case


@dataclass(slots=True)
class Scan:
    """The items that the filters of a view select in a node, as far as the node was read: up to `end`.

    A scan runs in several transactions. An item that changes between them moves behind the end, and is judged again.
    """

    node_no: int
    view: View
    reader: TraitsReader
    end: Edge = field(default=Edge(*NOWHERE))
    publishers: bool = False
    # Items that the next step fetches at most: a quarter more than the last one could judge. A step of 200 items of
    # 60 KB would read 12 MB and judge two items; one of 200 items of 1 KB would judge a hundred, and reading an item
    # takes half of the time of a scan.
    reach: int = 25
    seen_us: int = -1  # of the last change of the node, in the newest snapshot that the scan has seen
    # The items that were judged, each with its place in the columns below.
    _places: dict[int, int] = field(default_factory=dict)
    # Of the items of the view, in order of their last change: columns of numbers, because a tuple for each item would
    # take four times as much. A state is the states that match and whether the item is deleted, or 0 if the item was
    # judged again since.
    _item_nos: "array[int]" = field(default_factory=partial(array, "q"))
    _modified: "array[int]" = field(default_factory=partial(array, "q"))
    _created: "array[int]" = field(default_factory=partial(array, "q"))
    _states: "array[int]" = field(default_factory=partial(array, "q"))
    _lists: dict[tuple[Order, bool], "array[int]"] = field(default_factory=dict)  # places in the order of a view
    _query: frozenset[str] = field(init=False)
    _may_contain: Callable[[bytes], bool] = field(init=False)

    def __post_init__(self) -> None:
        self._query = self.view.query
        self._may_contain = searcher(self._query)

    def add(self, items: Sequence[Item], histories: Mapping[int, int]) -> None:
        """Adds the next items of the node. `histories` has the matching states of those with past versions."""
        self._lists.clear()
        for item in items:
            item_no = item.item_no
            place = self._places.get(item_no, _ABSENT)
            if place != _ABSENT:
                self._states[place] = 0
            bits = histories.get(item_no)
            if bits is None:
                bits = self._matches(item)
            if bits:
                self._places[item_no] = len(self._item_nos)
                self._item_nos.append(item_no)
                self._modified.append(item.modified_us)
                self._created.append(item.created_us)
                self._states.append(bits << 1 | item.deleted)
            else:
                self._places[item_no] = _ABSENT
            self.end = Edge(item.modified_us, item_no)

    @property
    def judged(self) -> int:
        """The number of items that were judged."""
        return len(self._places)

    def _matches(self, item: Item) -> bool:
        is_short = len(item.payload) <= _SHORT
        query = self._query
        if query and is_short and not self._may_contain(item.payload):
            return False
        facets = self.view.facets(publishers=self.publishers)
        # Words take most of the time, and few items match other filters.
        version = self.version(item, words=not is_short or bool(query and not facets))
        for alternatives in facets:
            if not alternatives & version.facets:
                return not is_short and self._is_too_long(version)
        if query and facets and is_short:
            version = self.version(item, words=True)
        return query <= version.words or (not is_short and self._is_too_long(version))

    def version(self, item: Item, *, words: bool) -> Traits:
        """Returns the present version of an item."""
        content = NO_TRAITS if item.deleted else self.reader(item.payload, words=words)
        return version_traits(content, item.publisher, deleted=item.deleted, revision=item.revision)

    def _is_too_long(self, version: Traits) -> bool:
        """Returns whether the index has ANYTHING in place of a version."""
        return sum(map(len, index_tokens(self.node_no, version, {}))) > VERSION_TEXT

    def states(self, item_no: int) -> int:
        """Returns the states of an item that match the filters."""
        place = self._places.get(item_no, _ABSENT)
        return 0 if place == _ABSENT else self._states[place] >> 1

    def size_bytes(self) -> int:
        """Returns an estimate of the memory that the scan takes."""
        listed = sum(map(len, self._lists.values()))
        return _JUDGED_BYTES * self.judged + _MATCH_BYTES * len(self._item_nos) + _LISTED_BYTES * listed

    def count(self, view: View, before: Edge | None) -> int:
        """Returns the number of items in a view with these filters up to an edge."""
        return len(self._between(view, None, before))

    def page(self, page: Slice) -> list[int]:
        """Returns the numbers of the items of a page of a view with these filters, in its order."""
        places = self._between(page.view, page.after, page.before)
        if page.newest:
            end = max(0, len(places) - page.offset)
            places = places[max(0, end - page.limit) : end]
        else:
            places = places[page.offset : page.offset + page.limit]
        return [self._item_nos[place] for place in places]

    def _between(self, view: View, after: Edge | None, before: Edge | None) -> "array[int]":
        order, hides = view.order, view.hides_tombstones
        keys, item_nos = self._modified if order is Order.MODIFIED else self._created, self._item_nos

        def edge(place: int) -> tuple[int, int]:
            return keys[place], item_nos[place]

        places = self._lists.get((order, hides))
        if places is None:
            # The lowest bits: the item is deleted; its present version matches.
            in_view = [place for place, state in enumerate(self._states) if (state & 3 == 2 if hides else state)]
            if order is not Order.MODIFIED:
                in_view.sort(key=edge)
            places = self._lists[order, hides] = array("q", in_view)
        start = bisect_right(places, (after.key_us, after.item_no), key=edge) if after else 0
        end = bisect_right(places, (before.key_us, before.item_no), key=edge) if before else len(places)
        return places[start:end]
