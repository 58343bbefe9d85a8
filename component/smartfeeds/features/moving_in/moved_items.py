"""The items of a moved node on their way from the source to the store.

All items are read and checked before the first is stored, because the kind of the node, the order of the items and
their ordering keys depend on all of them. Payloads wait in a spool. Both ordering keys of a new node are the dates of
the source, each one microsecond above the last where dates are equal (IMP-061).
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import MAX_ID_BYTES, Node, NodeKind
from smartfeeds.core.text import counted, cut, is_xml_text
from smartfeeds.core.urls import xmpp_uri
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.moving_in.moved import MovedItem, MovedProblem, UnreadableItem
from smartfeeds.formats.payload import Payload, accept_payload, repaired_entry
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.context import Policy
from smartfeeds.service.drafts import LEFT_FAULT
from smartfeeds.service.item_writes import next_key
from smartfeeds.service.publishing import FEED_ITEMS, check_payload_size
from smartfeeds.sync.joining import Spool
from smartfeeds.sync.markup import without_sync

NO_PAYLOAD: Final = Payload()
# What is known of a payload, as the first character of its record in the spool: an entry that every node stores as it
# is, a payload that generic nodes store as it is, or a payload that must be looked at again.
ENTRY, UNMARKED, OTHER = "e", "u", "o"


class KeyedItem(NamedTuple):
    """An item as it comes out of the spool.

    `created_us` and `modified_us` are its dates, `created_key_us` and `modified_key_us` its keys in a new node. `rank`
    is its place in the modified order, from 1. `form` is ENTRY, UNMARKED or OTHER.
    """

    id: str
    publisher: str
    created_us: int
    modified_us: int
    created_key_us: int
    modified_key_us: int
    rank: int
    payload: Payload
    form: str


@dataclass(slots=True)
class ItemSpool:
    """The items of a node in a spool, and in memory 40 bytes for each.

    `for_feed` says whether a feed can store every item. `publisher` is that of items without a valid one. Dates behind
    `now_us` become `now_us`. `refused_ids` are the ids of items that no node can store. `is_whole` is False if the
    source has items that cannot be read, so that their ids are unknown.
    """

    spool: Spool
    publisher: str
    now_us: int
    for_feed: bool = True
    problems: list[MovedProblem] = field(default_factory=list)
    refused_ids: set[str] = field(default_factory=set)
    is_whole: bool = True
    _created_us: "array[int]" = field(default_factory=lambda: array("q"))
    _modified_us: "array[int]" = field(default_factory=lambda: array("q"))
    _offsets: "array[int]" = field(default_factory=lambda: array("q"))
    _sizes: "array[int]" = field(default_factory=lambda: array("q"))
    _hashes: "array[int]" = field(default_factory=lambda: array("q"))
    _publishers: dict[str, str] = field(default_factory=dict)
    _dropped: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._offsets) - len(self._dropped)

    def fill(self, items: Iterable[MovedItem | MovedProblem]) -> Iterator[None]:
        """Reads all items, and yields after each of them. Items that no node can store become problems, and so do all
        but the newest items with the same id."""
        for item in items:
            if isinstance(item, MovedProblem):
                self.problems.append(item)
                self.is_whole = self.is_whole and not isinstance(item, UnreadableItem)
            else:
                try:
                    self._add(item)
                except FeedError as error:
                    self.refused_ids.add(item.id)
                    self.problems.append(MovedProblem(f"item {cut(item.id, 80)!r}", error.text))
            yield
        self._drop_repeated()

    def _add(self, item: MovedItem) -> None:
        check_id(item.id)
        payload = accept_payload(parse_payload(item.payload)) if item.payload else NO_PAYLOAD
        form = OTHER
        if not item.payload:
            self.for_feed = False
        else:
            shape = payload.shape
            self.for_feed = self.for_feed and (shape.entry or is_about_feed(item.id, payload))
            if not (shape.synced or shape.removed or shape.left):
                form = ENTRY if shape.entry and shape.complete else UNMARKED
        last_us = self._created_us[-1] if self._created_us else 0
        created_us = self._date(last_us if item.created_us is None else item.created_us)
        modified_us = created_us if item.modified_us is None else self._date(item.modified_us)
        self._created_us.append(created_us)
        self._modified_us.append(max(created_us, modified_us))
        # Neither an id nor a JID contains a NUL (`is_xml_text`).
        head = f"{form}{item.id}\0{self._bare(item.publisher)}\0".encode()
        self._offsets.append(self.spool.append(head + payload))
        self._sizes.append(len(head) + len(payload))
        self._hashes.append(hash(item.id))

    def _drop_repeated(self) -> None:
        """Leaves out the items whose id another item has that was changed later, or as late and is behind it.

        A folder with two dumps of one table has every id twice, so one problem names them all.
        """
        # Only items with equal hashes are read from the spool again; other ids that share a hash differ there.
        repeated = {value for value, following in pairwise(sorted(self._hashes)) if value == following}
        newest: dict[str, int] = {}
        for place, value in enumerate(self._hashes):
            if value in repeated:
                item_id = self._read(place, 0, 0, 0).id
                former = newest.setdefault(item_id, place)
                if former != place:
                    older, newer = sorted((former, place), key=self._modified_us.__getitem__)
                    newest[item_id] = newer
                    self._dropped.add(older)
        if self._dropped:
            first = self._read(min(self._dropped), 0, 0, 0).id
            self.problems.append(
                MovedProblem(
                    f"{counted(len(self._dropped), 'older item')} such as {cut(first, 80)!r}",
                    "the source has the id more than once; the item that was changed last moves",
                )
            )

    def _date(self, date_us: int) -> int:
        return min(max(date_us, 0), self.now_us)

    def _bare(self, text: str) -> str:
        # ejabberd stores full JIDs, and each connection of a publisher may have another resource.
        address = text.partition("/")[0]
        bare = self._publishers.get(address)
        if bare is None:
            jid = parse_jid(address) if address else None
            if text and jid is None:
                self.problems.append(MovedProblem(f"publisher {cut(text, 80)!r}", "not a JID"))
            bare = self._publishers[address] = self.publisher if jid is None else jid.bare_text
        return bare

    def in_created_order(self) -> Iterator[KeyedItem]:
        """Yields the items in the order in which a new node gets them."""
        places = self._places()
        created_keys = _keys(places, self._created_us)
        by_change = sorted(places, key=self._modified_us.__getitem__)
        modified_keys, ranks = _keys(by_change, self._modified_us), _ranks(by_change, len(self._offsets))
        for place in places:
            yield self._read(place, created_keys[place], modified_keys[place], ranks[place])

    def in_modified_order(self) -> Iterator[KeyedItem]:
        """Yields the items in the order of their last change, in which a node that has items gets them."""
        for rank, place in enumerate(sorted(self._places(), key=self._modified_us.__getitem__), start=1):
            yield self._read(place, 0, 0, rank)

    def _places(self) -> list[int]:
        """The places of the items that are stored, in the order of their creation."""
        places = (place for place in range(len(self._offsets)) if place not in self._dropped)
        return sorted(places, key=self._created_us.__getitem__)

    def _read(self, place: int, created_key_us: int, modified_key_us: int, rank: int) -> KeyedItem:
        record = self.spool.read(self._offsets[place], self._sizes[place])
        head, publisher, payload = record.split(b"\0", 2)
        text = head.decode()
        dates = (self._created_us[place], self._modified_us[place])
        keys = (created_key_us, modified_key_us)
        return KeyedItem(text[1:], publisher.decode(), *dates, *keys, rank, Payload(payload), text[0])


def _keys(places: list[int], dates_us: "array[int]") -> "array[int]":
    """Returns a key for each place: its date, or one above the key of the place before it."""
    keys, last_us = array("q", bytes(8 * len(dates_us))), -1
    for place in places:
        last_us = keys[place] = next_key(last_us, dates_us[place])
    return keys


def _ranks(places: list[int], count: int) -> "array[int]":
    """Returns the rank of each of `count` places, from 1."""
    ranks = array("q", bytes(8 * count))
    for rank, place in enumerate(places, start=1):
        ranks[place] = rank
    return ranks


def check_id(item_id: str) -> None:
    """Raises FeedError for an id that no item can have (IMP-067)."""
    if not item_id or not is_xml_text(item_id):
        raise FeedError(Condition.BAD_REQUEST, "the id is empty or has characters that XML forbids")
    if len(item_id.encode()) > MAX_ID_BYTES:
        raise FeedError(Condition.BAD_REQUEST, f"the id is longer than {MAX_ID_BYTES} bytes")


def is_about_feed(item_id: str, payload: Payload) -> bool:
    """Returns whether an item is one of the items about the feed itself."""
    return item_id in FEED_ITEMS and payload.root.tag == FEED_ITEMS[item_id]


def fitted_payload(policy: Policy, node: Node, item: KeyedItem) -> Payload:
    """Returns the payload of an item as the node stores it; the same for each import. Raises FeedError if the node
    cannot store it (IMP-067)."""
    payload = item.payload
    if not payload:
        if node.kind is NodeKind.FEED or node.options.deliver_payloads:
            raise FeedError(Condition.PAYLOAD_REQUIRED, "the item has no payload")
        return payload
    if item.form != ENTRY and (item.form != UNMARKED or node.kind is NodeKind.FEED):
        payload = _fitted(policy, node, item)
    check_payload_size(payload, node, policy.options)
    return payload


def _fitted(policy: Policy, node: Node, item: KeyedItem) -> Payload:
    payload, shape = item.payload, item.payload.shape
    if shape.left:
        raise FeedError(Condition.INVALID_PAYLOAD, LEFT_FAULT)
    if shape.removed:
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload is marked as deleted")
    if node.kind is not NodeKind.FEED:
        return payload
    if not shape.entry:
        if not is_about_feed(item.id, payload):
            raise FeedError(Condition.INVALID_PAYLOAD, "the items of a feed are Atom entries")
        return payload
    atom_id = xmpp_uri(policy.domain, node.name, item.id)
    return repaired_entry(without_sync(payload), atom_id, item.created_us, item.modified_us)
