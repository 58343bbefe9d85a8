"""What the operations of a store mean: a model in lists and dictionaries that are searched from end to end.

Property tests run the same works on a real store and on the model, and compare the answers. The model is no store: it
has the operations that those tests use, no interface to wait on, and no limits.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from smartfeeds.core.access import READERS, Access
from smartfeeds.core.attachment_names import is_listed
from smartfeeds.core.consumers import PUSH, Backlog, Consumer, ConsumerRow, Failure, Wait
from smartfeeds.core.model import (
    ALL_NUMBERS,
    ALL_TEXTS,
    AUDIENCE_CHANGE,
    NO_LIMIT,
    Affiliation,
    Edge,
    Item,
    KeyRange,
    Mark,
    Node,
    NodeEvent,
    NodeState,
    PushStart,
    Slice,
    SubscriberUse,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.node_place import NodePlace
from smartfeeds.core.options import FormFields, NodeOptions
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.view import NO_TRAITS, Order, Traits, View, ViewStanding, matches, version_traits
from smartfeeds.errors import StoreError
from store.values import read_payload

T = TypeVar("T")


def edge(item: Item, order: Order = Order.MODIFIED) -> Edge:
    """The place of an item in an order."""
    return Edge(item.created_us if order is Order.CREATED else item.modified_us, item.item_no)


def traits(item: Item) -> Traits:
    """What the filter index knows of a version of an item."""
    content = NO_TRAITS if item.deleted else read_payload(item.payload)
    return version_traits(content, item.publisher, deleted=item.deleted, revision=item.revision)


def bare(jid: str) -> str:
    """A JID without its resource."""
    return jid.partition("/")[0]


def domain(jid: str) -> str:
    """The domain of a JID."""
    return bare(jid).rpartition("@")[2]


def part_of(rows: list[T], part: KeyRange[Any], key: Callable[[T], Any]) -> list[T]:
    """The part of a list that a range names. The list is in the order of its key."""
    rows = [row for row in rows if part.after is None or key(row) > part.after]
    rows = [row for row in rows if part.before is None or key(row) < part.before]
    step = -1 if part.newest else 1
    return rows[::step][part.offset :][: part.limit][::step]


class Model:
    """A transaction of `base.WriteTx` and all that is stored."""

    def __init__(self) -> None:
        self._last: Counter[str] = Counter()  # the greatest number that was given out, of each kind
        self._nodes: dict[int, Node] = {}
        self._items: dict[int, tuple[int, Item]] = {}  # node and item, by item_no
        self._versions: dict[int, tuple[Traits, ...]] = {}  # that an item has had, by item_no; the newest last
        self._indexed: dict[int, Edge] = {}  # the place up to which a node is indexed
        self._begun: set[int] = set()  # the nodes that are indexed
        self._affiliations: dict[tuple[int, str], Affiliation] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._events: dict[int, NodeEvent] = {}
        self._marks: dict[tuple[int, str, str], Mark] = {}
        self._waits: dict[Consumer, Wait] = {}

    def attempt(self, work: Callable[[Any], T]) -> T:
        """Runs a work. If it raises, it leaves no changes."""
        before = {name: copy(stored) for name, stored in vars(self).items()}
        try:
            return work(self)
        except BaseException:
            vars(self).update(before)
            raise

    def _number(self, kind: str) -> int:
        self._last[kind] += 1
        return self._last[kind]

    # Nodes.

    def _known(self, node_no: int) -> Node:
        if node_no not in self._nodes:
            raise StoreError(f"there is no node number {node_no}")
        return self._nodes[node_no]

    def _change(self, node_no: int, audience: int = 0, **fields: Any) -> None:
        node = self._known(node_no)
        self._nodes[node_no] = node._replace(audience=node.audience + audience, **fields)

    def _live(self) -> list[Node]:
        return sorted((one for one in self._nodes.values() if one.state is NodeState.LIVE), key=lambda one: one.name)

    def _shown(self) -> list[Node]:
        """Those that lists have: stanzas can contain their names and creators."""
        return [one for one in self._live() if is_xml_text(one.name + one.creator)]

    def node(self, name: str) -> Node | None:
        return next((one for one in self._live() if one.name == name), None)

    lock = node

    def node_by_no(self, node_no: int) -> Node | None:
        return self._nodes.get(node_no)

    lock_no = node_by_no

    def nodes(self, after: str, limit: int, *, before: str | None = None, newest: bool = False) -> list[Node]:
        return part_of(self._shown(), KeyRange(limit, after, before, newest=newest), lambda one: one.name)

    def node_count(self) -> int:
        return len(self._live())

    def created_by(self, creator: str) -> int:
        return sum(one.creator == creator for one in self._live())

    def created_in(self, of: str) -> int:
        return sum(domain(one.creator) == of for one in self._live())

    def listed_nodes(
        self, jid: str, after: str, limit: int, *, before: str | None = None, newest: bool = False
    ) -> list[Node]:
        nodes = []
        for one in self._shown():
            access = Access(self.affiliation(one.node_no, jid), one.options)
            if access.sees_description and (is_listed(one) or access.affiliation in READERS):
                nodes.append(one)
        return part_of(nodes, KeyRange(limit, after, before, newest=newest), lambda one: one.name)

    def listed_count(self, jid: str) -> int:
        return len(self.listed_nodes(jid, "", NO_LIMIT))

    def changed_nodes(self, jid: str | None, limit: int, before: NodePlace | None = None) -> list[Node]:
        nodes = self._shown() if jid is None else self.listed_nodes(jid, "", NO_LIMIT)
        places = {NodePlace(one.last_modified_us, one.name): one for one in nodes}
        return [places[place] for place in sorted(places, reverse=True) if before is None or place < before][:limit]

    def add_node(self, node: Node) -> Node:
        if self.node(node.name):
            raise StoreError(f"the name {node.name!r} is taken")
        stored = node._replace(node_no=self._number("node"), state=NodeState.LIVE, total=0, live=0)
        self._nodes[stored.node_no] = stored
        return stored

    def set_options(self, node_no: int, options: FormFields) -> None:
        self._change(node_no, AUDIENCE_CHANGE, options=NodeOptions(self._known(node_no).kind, options))

    def set_keys(self, node_no: int, last_modified_us: int, last_created_us: int) -> None:
        self._change(node_no, last_modified_us=last_modified_us, last_created_us=last_created_us)

    def retire_node(self, node_no: int) -> None:
        self._change(node_no, state=NodeState.DELETED)

    def reap(self, node_no: int, _limit: int) -> bool:
        node = self._nodes.pop(node_no, None)
        if node and node.state is NodeState.LIVE:
            raise StoreError(f"node {node_no} is not deleted")
        self._items = {no: row for no, row in self._items.items() if row[0] != node_no}
        self._affiliations = {key: row for key, row in self._affiliations.items() if key[0] != node_no}
        self._subscriptions = {no: row for no, row in self._subscriptions.items() if row.node_no != node_no}
        self._events = {no: row for no, row in self._events.items() if row.node_no != node_no}
        self._marks = {key: row for key, row in self._marks.items() if key[0] != node_no}
        self._waits = {key: row for key, row in self._waits.items() if key.node_no != node_no}
        return True

    # People.

    def affiliation(self, node_no: int, jid: str) -> Affiliation:
        return self._affiliations.get((node_no, jid), Affiliation.NONE)

    def affiliations(
        self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, kind: Affiliation | None = None
    ) -> list[tuple[str, Affiliation]]:
        rows = [(jid, held) for (number, jid), held in sorted(self._affiliations.items()) if number == node_no]
        return part_of([row for row in rows if kind in (None, row[1])], part, lambda row: row[0])

    def affiliation_count(self, node_no: int) -> int:
        return len(self.affiliations(node_no))

    def affiliations_of(self, jid: str, part: KeyRange[int] = ALL_NUMBERS) -> list[tuple[Node, Affiliation]]:
        rows = [(self._nodes[number], held) for (number, of), held in sorted(self._affiliations.items()) if of == jid]
        return part_of([row for row in rows if row[0].state is NodeState.LIVE], part, lambda row: row[0].node_no)

    def affiliated(self, jid: str) -> int:
        return sum(of == jid for _, of in self._affiliations)

    def set_affiliation(self, node_no: int, jid: str, affiliation: Affiliation) -> None:
        self._change(node_no, AUDIENCE_CHANGE)
        self._affiliations[node_no, jid] = affiliation
        if affiliation is Affiliation.NONE:
            del self._affiliations[node_no, jid]

    def _subscribed(self, node_no: int) -> list[Subscription]:
        return [one for one in self.subscriptions(node_no, 0, NO_LIMIT) if one.state is SubscriptionState.SUBSCRIBED]

    def subscription(self, node_no: int, jid: str, view: str, *, now_us: None) -> Subscription | None:
        rows = self.subscriptions(node_no, 0, NO_LIMIT)
        return next((one for one in rows if (one.jid, one.view) == (jid, view)), None)

    def subscriptions(self, node_no: int, after_no: int, limit: int) -> list[Subscription]:
        rows = [one for no, one in sorted(self._subscriptions.items()) if no > after_no and one.node_no == node_no]
        return rows[:limit]

    def subscribers(self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, now_us: None) -> list[str]:
        return part_of(sorted({one.jid for one in self._subscribed(node_no)}), part, lambda jid: jid)

    def subscription_count(self, node_no: int) -> int:
        return len(self._subscribed(node_no))

    def subscribed_views(self, node_no: int) -> list[str]:
        return sorted({one.view for one in self._subscribed(node_no)})

    def subscriptions_on(self, node_no: int, jid: str, *, now_us: None) -> list[Subscription]:
        return [one for one in self.subscriptions(node_no, 0, NO_LIMIT) if bare(one.jid) == jid]

    def subscriptions_of(
        self, jid: str, part: KeyRange[int] = ALL_NUMBERS, *, now_us: None
    ) -> list[tuple[Node, Subscription]]:
        rows = [(self._nodes[one.node_no], one) for _, one in sorted(self._subscriptions.items())]
        rows = [row for row in rows if bare(row[1].jid) == jid and row[0].state is NodeState.LIVE]
        return part_of(rows, part, lambda row: row[1].sub_no)

    def subscriber_use(self, node_no: int, jid: str, *, now_us: None) -> SubscriberUse:
        everywhere = sum(bare(one.jid) == jid for one in self._subscriptions.values())
        here = self.subscriptions_on(node_no, jid, now_us=now_us)
        of_domain = sum(domain(one.jid) == domain(jid) for one in self._subscriptions.values())
        return SubscriberUse(here, everywhere, of_domain)

    def put_subscription(self, subscription: Subscription) -> Subscription:
        self._change(subscription.node_no, AUDIENCE_CHANGE if subscription.sub_no else 1)
        old = self._subscriptions.get(subscription.sub_no)
        if subscription.sub_no and (old is None or old.node_no != subscription.node_no):
            raise StoreError(f"there is no subscription number {subscription.sub_no}")
        same = self.subscription(subscription.node_no, subscription.jid, subscription.view, now_us=None)
        if same and same.sub_no != subscription.sub_no:
            raise StoreError(f"{subscription.jid} is subscribed to {subscription.view!r}")
        stored = subscription if old else subscription._replace(sub_no=self._number("subscription"))
        self._subscriptions[stored.sub_no] = stored
        return stored

    def remove_subscription(self, sub_no: int) -> None:
        old = self._subscriptions.pop(sub_no, None)
        if old:
            self._change(old.node_no, AUDIENCE_CHANGE)

    # Items.

    def _feed(self, node_no: int, order: Order = Order.MODIFIED) -> list[Item]:
        items = [item for number, item in self._items.values() if number == node_no]
        return sorted(items, key=lambda item: edge(item, order))

    def item(self, node_no: int, item_id: str) -> Item | None:
        return next((item for item in self._feed(node_no) if item.id == item_id), None)

    def items(self, node_no: int, item_ids: Sequence[str]) -> list[Item]:
        return [item for item_id in item_ids if (item := self.item(node_no, item_id))]

    def item_by_no(self, item_no: int) -> Item:
        return self._items[item_no][1]._replace(sync=None)

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        items = [item for item in self._feed(node_no) if (item.sync_id or item.id) == sync_id]
        return min(items, key=lambda item: item.sync_id != sync_id, default=None)

    def conflicted(self, node_no: int, part: KeyRange[int] = ALL_NUMBERS) -> list[Item]:
        items = sorted((item for item in self._feed(node_no) if item.conflicts), key=lambda item: item.item_no)
        return part_of(items, part, lambda item: item.item_no)

    def conflict_count(self, node_no: int) -> int:
        return len(self.conflicted(node_no))

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        items = [item for item in self._feed(node_no, order) if edge(item, order).key_us == key_us]
        return [(item.item_no, item.id) for item in items][:limit]

    def changed_items(self, limit: int, before: Edge | None = None) -> list[tuple[Edge, int]]:
        rows = [(edge(item), node_no) for node_no, item in self._items.values() if not item.deleted]
        return sorted((row for row in rows if before is None or row[0] <= before), reverse=True)[:limit]

    def put_item(self, node_no: int, item: Item) -> Item:
        node, others = self._known(node_no), [one for one in self._feed(node_no) if one.item_no != item.item_no]
        of, old = self._items.get(item.item_no, (0, None))
        if item.item_no and of != node_no:
            raise StoreError(f"node {node_no} has no item number {item.item_no}")
        if any(one.id == item.id or (one.sync_id and one.sync_id == item.sync_id) for one in others):
            raise StoreError(f"the item id {item.id!r} or the sync id {item.sync_id!r} is taken")
        stored = item._replace(item_no=item.item_no or self._number("item"), left=False)
        self._items[stored.item_no] = (node_no, stored)
        self._versions[stored.item_no] = (*self._versions.get(stored.item_no, ()), traits(stored))
        live = (not stored.deleted) - (old is not None and not old.deleted)
        self._change(node_no, total=node.total + (old is None), live=node.live + live)
        if node_no in self._indexed and edge(stored) <= self._indexed[node_no]:
            self._indexed[node_no] = Edge(stored.modified_us, stored.item_no - 1)  # to be indexed from here on, again
        return stored

    # Views.

    def standings(self, node_no: int, item: Item, views: Sequence[View]) -> list[ViewStanding]:
        return [self._standing(node_no, item, view) for view in views]

    def _standing(self, node_no: int, item: Item, view: View) -> ViewStanding:
        if item.deleted and view.hides_tombstones:
            return ViewStanding.ABSENT
        if not view.filtered:
            return ViewStanding.PRESENT
        if edge(item) > self._indexed.get(node_no, Edge(-1, 0)):
            return ViewStanding.ABSENT
        shown = self._nodes[node_no].options.shows_publisher
        *past, present = (matches(view, one, publishers=shown) for one in self._versions[item.item_no])
        if present or (any(past) and item.deleted):
            return ViewStanding.PRESENT
        return ViewStanding.LEFT if any(past) and not view.hides_tombstones else ViewStanding.ABSENT

    def _view(self, node_no: int, view: View) -> list[Item]:
        items = []
        for item in self._feed(node_no, view.order):
            standing = self._standing(node_no, item, view)
            if standing is not ViewStanding.ABSENT:
                items.append(item._replace(left=standing is ViewStanding.LEFT, sync=item.sync if view.sync else None))
        return items

    def slice(self, node_no: int, page: Slice) -> list[Item]:
        items = [(edge(item, page.view.order), item) for item in self._view(node_no, page.view)]
        items = [row for row in items if page.after is None or row[0] > page.after]
        items = [row for row in items if page.before is None or row[0] <= page.before]
        part: KeyRange[int] = KeyRange(page.limit, newest=page.newest, offset=page.offset)
        return [item for _, item in part_of(items, part, lambda row: row[0])]

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        return len(self.slice(node_no, Slice(view, NO_LIMIT, before=before)))

    def index_node(self, node_no: int) -> int:
        self._begun.add(node_no)
        edges = [edge(item) for item in self._feed(node_no)]
        count = sum(one > self._indexed.get(node_no, Edge(-1, 0)) for one in edges)
        if count:
            self._indexed[node_no] = edges[-1]
        return count

    def index_some(self, _limit: int) -> int:
        return sum(self.index_node(one.node_no) for one in self._live() if one.node_no in self._begun)

    # Consumers.

    def mark(self, node_no: int, order: Order, name: str) -> Mark | None:
        return self._marks.get((node_no, order.value, name))

    def set_mark(self, node_no: int, order: Order, name: str, mark: Mark) -> None:
        self._known(node_no)
        self._marks[node_no, order.value, name] = mark

    def wait(self, consumer: Consumer) -> Wait | None:
        return self._waits.get(consumer)

    def failures(self) -> list[tuple[Consumer, Failure]]:
        return [(consumer, wait) for consumer, wait in sorted(self._waits.items()) if isinstance(wait, Failure)]

    def set_wait(self, consumer: Consumer, wait: Wait | None) -> None:
        if wait is None:
            self._waits.pop(consumer, None)
        else:
            self._known(consumer.node_no)
            self._waits[consumer] = wait

    def remove_consumer(self, consumer: Consumer) -> None:
        self.set_wait(consumer, None)
        for order in Order:
            self._marks.pop((consumer.node_no, order.value, consumer.name), None)

    def consumers(self, after: tuple[int, str, str], limit: int) -> list[ConsumerRow]:
        keys = [key for key in sorted(self._marks) if key > after][:limit]
        rows = [(Consumer(node_no, name), Order(order)) for node_no, order, name in keys]
        return [
            ConsumerRow(consumer, order, self._marks[key], self.wait(consumer))
            for key, (consumer, order) in zip(keys, rows, strict=True)
        ]

    def consumers_of(self, node_no: int, after: tuple[str, str], limit: int) -> list[ConsumerRow]:
        rows = self.consumers((node_no, *after), limit)
        return [row for row in rows if row.consumer.node_no == node_no]

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        events = [one for one in self._events.values() if one.node_no == node_no]
        return sorted(events, key=lambda one: (one.at_us, one.event_no))[:limit]

    def add_event(self, event: NodeEvent) -> NodeEvent:
        self._known(event.node_no)
        stored = replace(event, event_no=self._number("event"))
        self._events[stored.event_no] = stored
        return stored

    def remove_events(self, event_nos: Iterable[int]) -> None:
        for event_no in event_nos:
            self._events.pop(event_no, None)

    def push_start(self, node_no: int, events: int) -> PushStart:
        marks = {order: self.mark(node_no, order, PUSH) for order in Order}
        stored = {order: mark for order, mark in marks.items() if mark}
        return PushStart(self.subscribed_views(node_no), stored, self.events(node_no, events), blocks_version=0)

    def _above_marks(self) -> dict[Consumer, int]:
        """The consumers with items above a mark, and the key of the first of these items."""
        first: dict[Consumer, int] = {}
        for (node_no, order, name), mark in self._marks.items():
            for item in self._feed(node_no):
                key_us = edge(item, Order(order)).key_us
                if key_us > mark.key_us:
                    consumer = Consumer(node_no, name)
                    first[consumer] = min(key_us, first.get(consumer, key_us))
        return first

    def behind(self) -> list[Consumer]:
        deleted = [no for no, node in self._nodes.items() if node.state is NodeState.DELETED]
        events = [event.node_no for event in self._events.values()]
        return sorted({*self._above_marks(), *(Consumer(node_no, PUSH) for node_no in (*deleted, *events))})

    def backlog(self) -> Backlog:
        above = self._above_marks()
        pushes = [(one.node_no, key_us) for one, key_us in above.items() if one.name == PUSH]
        pushes += [(event.node_no, event.at_us) for event in self._events.values()]
        others = [one for one in above if one.name != PUSH]
        oldest_us = min((key_us for _, key_us in pushes), default=None)
        return Backlog(len({node_no for node_no, _ in pushes}), oldest_us, len(others), None)
