"""A store in memory: the protocol of `store.base` in plain Python, written independently of the SQL store.

Property tests run the same operations on both stores and compare the results. All data is in dictionaries of values.
Every change is recorded in an undo list, so that a transaction that raises leaves nothing behind. Transactions run one
after the other on the event loop, so each sees one snapshot.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from smartfeeds.core.access import READERS, Access
from smartfeeds.core.attachments import is_listed
from smartfeeds.core.blocklist import DIGEST_PREFIX, ListKind, Refusal, same_addresses
from smartfeeds.core.callbacks import Callback, CallbackKind
from smartfeeds.core.chat import ChatRow
from smartfeeds.core.consumers import (
    HELD,
    PUSH,
    Backlog,
    Consumer,
    ConsumerRow,
    Failure,
    SentBatch,
    Wait,
    held_consumer,
)
from smartfeeds.core.database_state import DatabaseState
from smartfeeds.core.enclosures import Arrival, Enclosure, EnclosureState, EnclosureUse
from smartfeeds.core.erasures import Erasure
from smartfeeds.core.files import FeedFile, file_ids
from smartfeeds.core.jid import Jid
from smartfeeds.core.mirror import MirrorRow
from smartfeeds.core.model import (
    ALL_NUMBERS,
    ALL_TEXTS,
    AUDIENCE_CHANGE,
    MAX_ITEM_NO,
    NO_LIMIT,
    Affiliation,
    Edge,
    Item,
    KeyRange,
    Mark,
    Node,
    NodeEvent,
    NodeKind,
    NodeState,
    OpenPurge,
    PushStart,
    Slice,
    SubscriberUse,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.options import FormFields, NodeOptions
from smartfeeds.core.person import Person
from smartfeeds.core.presence import Contact
from smartfeeds.core.river import NodePlace
from smartfeeds.core.sessions import Session
from smartfeeds.core.source_entries import EntryKey, SourceEntry
from smartfeeds.core.source_push import FOLLOWING, PushState, SourcePush
from smartfeeds.core.sources import HostPause, Source, SourceState, held_reader
from smartfeeds.core.suboptions import is_temporary, lease_end_us
from smartfeeds.core.text import is_xml_text
from smartfeeds.core.tokens import Token
from smartfeeds.core.touches import Touch
from smartfeeds.core.validators import KnownDocument
from smartfeeds.core.view import NO_TRAITS, Order, Standing, Traits, View, matches, version_traits
from smartfeeds.errors import StoreError
from smartfeeds.store.base import Again, ReadTx, WriteTx
from smartfeeds.store.indexer import TraitsReader
from smartfeeds.store.sql_sources import SPREAD_FACTOR, SPREAD_MODULUS
from smartfeeds.store.sql_tallies import BLOCKS
from support.steps import Step, run_steps

K = TypeVar("K")
T = TypeVar("T")
N = TypeVar("N", int, str)
V = TypeVar("V")

Place = tuple[int, int]
NOWHERE: Place = (-(2**63), 0)


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the filter index knows of an item: the version that it had when its modified key was `modified_us`, and all
    versions before."""

    modified_us: int
    version: Traits
    past: tuple[Traits, ...] = ()

    def standing(self, view: View, item: Item, *, publishers: bool) -> Standing:
        """How the item stands to a filtered view."""
        if matches(view, self.version, publishers=publishers):
            return Standing.PRESENT
        if view.hides_tombstones or not any(matches(view, one, publishers=publishers) for one in self.past):
            return Standing.ABSENT
        return Standing.PRESENT if item.deleted else Standing.LEFT


@dataclass(slots=True)
class Feed:
    """The items of a node, and their places in either order."""

    items: dict[int, Item] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    places: dict[Order, list[Place]] = field(default_factory=lambda: {order: [] for order in Order})


@dataclass(slots=True)
class Data:
    """Everything that the store holds, and the greatest numbers given out."""

    nodes: dict[int, Node] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    feeds: dict[int, Feed] = field(default_factory=dict)
    affiliations: dict[tuple[int, str], Affiliation] = field(default_factory=dict)
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    events: dict[int, NodeEvent] = field(default_factory=dict)
    marks: dict[tuple[int, str, str], Mark] = field(default_factory=dict)
    batches: dict[Consumer, SentBatch] = field(default_factory=dict)
    waits: dict[Consumer, Wait] = field(default_factory=dict)
    purges: dict[int, OpenPurge] = field(default_factory=dict)
    request_forms: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    contacts: dict[tuple[str, str], Contact] = field(default_factory=dict)
    callbacks: dict[int, Callback] = field(default_factory=dict)
    sources: dict[int, Source] = field(default_factory=dict)
    source_entries: dict[int, tuple[int, SourceEntry]] = field(default_factory=dict)
    source_pushes: dict[int, SourcePush] = field(default_factory=dict)
    host_pauses: dict[str, HostPause] = field(default_factory=dict)
    enclosures: dict[int, Enclosure] = field(default_factory=dict)
    enclosure_uses: dict[tuple[int, int, str], EnclosureUse] = field(default_factory=dict)
    arrivals: dict[int, Arrival] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    mirrors: dict[str, MirrorRow] = field(default_factory=dict)
    chats: dict[str, ChatRow] = field(default_factory=dict)
    files: dict[tuple[int, str], FeedFile] = field(default_factory=dict)
    file_uses: dict[tuple[int, int], frozenset[str]] = field(default_factory=dict)
    documents: dict[tuple[str, str], KnownDocument] = field(default_factory=dict)
    redirects: dict[str, tuple[str, str]] = field(default_factory=dict)
    blocks: dict[tuple[ListKind, str], bool] = field(default_factory=dict)
    salts: dict[int, bytes] = field(default_factory=dict)
    index: dict[int, Indexed] = field(default_factory=dict)
    indexed_to: dict[int, Place] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)


def unended(subscriptions: list[Subscription], now_us: int | None) -> list[Subscription]:
    """These subscriptions without those whose lease has ended."""
    ends = [(one, lease_end_us(one.options)) for one in subscriptions]
    return [one for one, end_us in ends if now_us is None or end_us is None or end_us > now_us]


def part_of(found: list[V], part: KeyRange[N], key: Callable[[V], N]) -> list[V]:
    """These entries of a list, which is in the order of its key."""
    after, before = part.after, part.before
    found = [one for one in found if (after is None or key(one) > after) and (before is None or key(one) < before)]
    if part.newest:
        return found[max(len(found) - part.offset - part.limit, 0) : max(len(found) - part.offset, 0)]
    return found[part.offset : part.offset + part.limit]


def place(item: Item, order: Order) -> Place:
    """Where an item stands in an order."""
    return (item.modified_us if order is Order.MODIFIED else item.created_us, item.item_no)


def domain_of(bare: str) -> str:
    """The domain of a bare JID."""
    return bare.partition("@")[2] if "@" in bare else bare


def _is_listed(node: Node) -> bool:
    """Whether lists have a node: it is live, and stanzas can contain its name and creator."""
    return node.state is NodeState.LIVE and is_xml_text(node.name + node.creator)


class MemoryReadTx:
    """`base.ReadTx` over `Data`."""

    def __init__(self, data: Data) -> None:
        self._data = data

    # Erasures run on the SQL stores only: they are about all tables of the schema.

    def person_salt(self) -> bytes:
        return self._data.salts.get(0, b"")

    def open_erasures(self) -> list[Erasure]:
        return []

    def blocks(self, kind: ListKind) -> list[str]:
        return sorted(name for one, name in self._data.blocks if one is kind)

    def refusal(self, bare: str, domain: str) -> Refusal | None:
        denied, allowed = (self.blocks(kind) for kind in (ListKind.DENY, ListKind.ALLOW))
        jids = same_addresses(Jid(bare.rpartition("@")[0], domain))
        names = {name for jid in jids for name in (str(jid), jid.domain)}
        people = [Person(str(jid)) for jid in jids if jid.local]
        names |= {f"{DIGEST_PREFIX}{person.digest(self.person_salt()).hex()}" for person in people}
        if names & set(denied):
            return Refusal.DENIED
        return Refusal.NOT_ALLOWED if allowed and not names & set(allowed) else None

    def database_state(self) -> DatabaseState | None:
        """Returns None, because there is no server."""
        return None

    def blocks_version(self) -> int:
        return self._data.last.get(BLOCKS, 0)

    def published_after(self, publisher: str, item_no: int, limit: int) -> tuple[int, int, int | None]:
        part = sorted((one for one in self._data.items.values() if one.item_no > item_no), key=lambda one: one.item_no)
        part = part[:limit]
        own = sum(1 for one in part if one.publisher == publisher and not one.deleted)
        return own, len(part), part[-1].item_no if len(part) == limit else None

    def subscription_nos(self, bare: str, limit: int) -> list[int]:
        owned = (no for no, one in self._data.subscriptions.items() if one.jid.partition("/")[0] == bare)
        return sorted(owned)[:limit]

    def node(self, name: str) -> Node | None:
        return self._data.nodes.get(self._data.names.get(name, 0))

    def node_no(self, name: str) -> int | None:
        return self._data.names.get(name)

    def node_by_no(self, node_no: int) -> Node | None:
        return self._data.nodes.get(node_no)

    def nodes_by_no(self, node_nos: Collection[int]) -> dict[int, Node]:
        return {node_no: node for node_no in node_nos if (node := self.node_by_no(node_no)) is not None}

    def nodes(self, after: str, limit: int, *, before: str | None = None, newest: bool = False) -> list[Node]:
        between = [name for name in self._data.names if name > after and (before is None or name < before)]
        names = sorted(name for name in between if _is_listed(self._data.nodes[self._data.names[name]]))
        start = max(len(names) - limit, 0) if newest else 0
        return [self._data.nodes[self._data.names[name]] for name in names[start : start + limit]]

    def listed_nodes(
        self, jid: str, after: str, limit: int, *, before: str | None = None, newest: bool = False
    ) -> list[Node]:
        known = self.nodes(after, NO_LIMIT, before=before)
        accesses = [Access(self.affiliation(node.node_no, jid), node.options) for node in known]
        found = [
            node
            for node, access in zip(known, accesses, strict=True)
            if access.sees_description and (is_listed(node) or access.affiliation in READERS)
        ]
        return found[max(len(found) - limit, 0) :] if newest else found[:limit]

    def changed_nodes(self, jid: str | None, limit: int, before: NodePlace | None = None) -> list[Node]:
        known = self.nodes("", NO_LIMIT) if jid is None else self.listed_nodes(jid, "", NO_LIMIT)
        places = {NodePlace(node.last_modified_us, node.name): node for node in known}
        return [places[place] for place in sorted(places, reverse=True) if before is None or place < before][:limit]

    def changed_items(self, limit: int, before: Edge | None = None) -> list[tuple[Edge, int]]:
        found = [
            (Edge(item.modified_us, item.item_no), node_no)
            for node_no, feed in self._data.feeds.items()
            for item in feed.items.values()
            if not item.deleted
        ]
        return sorted((one for one in found if before is None or one[0] <= before), reverse=True)[:limit]

    def item_by_no(self, item_no: int) -> Item:
        (found,) = (feed.items[item_no] for feed in self._data.feeds.values() if item_no in feed.items)
        return found._replace(sync=None)

    def listed_count(self, jid: str) -> int:
        return len(self.listed_nodes(jid, "", NO_LIMIT))

    def node_count(self) -> int:
        return len(self._data.names)

    def created_by(self, creator: str) -> int:
        return sum(self._data.nodes[node_no].creator == creator for node_no in self._data.names.values())

    def created_in(self, domain: str) -> int:
        return sum(domain_of(self._data.nodes[node_no].creator) == domain for node_no in self._data.names.values())

    def affiliation(self, node_no: int, jid: str) -> Affiliation:
        return self._data.affiliations.get((node_no, jid), Affiliation.NONE)

    def affiliations(
        self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, kind: Affiliation | None = None
    ) -> list[tuple[str, Affiliation]]:
        stored = ((jid, found) for (number, jid), found in self._data.affiliations.items() if number == node_no)
        found = sorted((pair for pair in stored if kind in (None, pair[1])), key=lambda pair: pair[0])
        return part_of(found, part, lambda pair: pair[0])

    def affiliation_count(self, node_no: int) -> int:
        return sum(number == node_no for number, _ in self._data.affiliations)

    def affiliations_of(
        self, jid: str, part: KeyRange[int] = ALL_NUMBERS, *, kind: Affiliation | None = None
    ) -> list[tuple[Node, Affiliation]]:
        held = [(self._data.nodes[no], one) for (no, of), one in self._data.affiliations.items() if of == jid]
        live = (pair for pair in held if _is_listed(pair[0]) and kind in (None, pair[1]))
        return part_of(sorted(live, key=lambda pair: pair[0].node_no), part, lambda pair: pair[0].node_no)

    def owned_count(self, jid: str) -> int:
        return len(self.affiliations_of(jid, kind=Affiliation.OWNER))

    def addresses(self, *, owners: bool, after: str, limit: int) -> list[str]:
        if owners:
            held = self._data.affiliations.items()
            live = (pair for pair in held if self._data.nodes[pair[0][0]].state is NodeState.LIVE)
            jids = {jid for (_, jid), kind in live if kind is Affiliation.OWNER}
        else:
            subscriptions = self._data.subscriptions.values()
            active = (one for one in subscriptions if one.state is SubscriptionState.SUBSCRIBED)
            jids = {one.jid.partition("/")[0] for one in active}
        return sorted(jid for jid in jids if jid > after)[:limit]

    def totals(self) -> tuple[int, int, int]:
        nodes = [self._data.nodes[node_no] for node_no in self._data.names.values()]
        subscribed = sum(self.subscription_count(node.node_no) for node in nodes)
        return sum(node.live for node in nodes), sum(node.total - node.live for node in nodes), subscribed

    def affiliated(self, jid: str) -> int:
        return sum(of == jid for _, of in self._data.affiliations)

    def subscription(self, node_no: int, jid: str, view: str, *, now_us: int | None) -> Subscription | None:
        wanted = (node_no, jid, view)
        same = [one for one in self._data.subscriptions.values() if (one.node_no, one.jid, one.view) == wanted]
        return next(iter(unended(same, now_us)), None)

    def subscription_by_no(self, sub_no: int) -> Subscription | None:
        return self._data.subscriptions.get(sub_no)

    def _subscriptions(self, node_no: int) -> list[Subscription]:
        return [one for _, one in sorted(self._data.subscriptions.items()) if one.node_no == node_no]

    def subscriptions(self, node_no: int, after_no: int, limit: int) -> list[Subscription]:
        return [one for one in self._subscriptions(node_no) if one.sub_no > after_no][:limit]

    def subscribers(self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, now_us: int | None) -> list[str]:
        jids = {one.jid for one in unended(self._in_force(node_no), now_us)}
        return part_of(sorted(jids), part, lambda jid: jid)

    def subscriptions_of(
        self, bare: str, part: KeyRange[int] = ALL_NUMBERS, *, now_us: int | None
    ) -> list[tuple[Node, Subscription]]:
        by_number = unended([one for _, one in sorted(self._data.subscriptions.items())], now_us)
        mine = [one for one in by_number if one.jid.partition("/")[0] == bare]
        pairs = [(self._data.nodes[one.node_no], one) for one in mine]
        live = [pair for pair in pairs if _is_listed(pair[0])]
        return part_of(live, part, lambda pair: pair[1].sub_no)

    def subscriptions_on(self, node_no: int, bare: str, *, now_us: int | None) -> list[Subscription]:
        mine = [one for one in self._subscriptions(node_no) if one.jid.partition("/")[0] == bare]
        return unended(mine, now_us)

    def pending_subscriptions(self, node_no: int, limit: int, *, now_us: int | None) -> list[Subscription]:
        pending = [one for one in self._subscriptions(node_no) if one.state is SubscriptionState.PENDING]
        return unended(pending, now_us)[:limit]

    def pending_nodes(self, owner: str | None, limit: int, *, now_us: int | None) -> list[Node]:
        live = [node for node in self._data.nodes.values() if _is_listed(node)]
        mine = [n for n in live if owner is None or self.affiliation(n.node_no, owner) is Affiliation.OWNER]
        return sorted(
            (n for n in mine if self.pending_subscriptions(n.node_no, 1, now_us=now_us)), key=lambda n: n.name
        )[:limit]

    def request_forms(self, node_no: int, whom: str, after_us: int) -> int:
        since_us, forms = self._data.request_forms.get((node_no, whom), (after_us, 0))
        return forms if since_us > after_us else 0

    def ended_leases(self, now_us: int, limit: int) -> list[Subscription]:
        leases = [(lease_end_us(one.options), no, one) for no, one in self._data.subscriptions.items()]
        ended = sorted((end, no) for end, no, _ in leases if end is not None and end <= now_us)
        return [self._data.subscriptions[no] for _, no in ended[:limit]]

    def temporary_subscriptions(self, after_no: int, limit: int) -> list[Subscription]:
        subscriptions = sorted(self._data.subscriptions.items())
        return [one for no, one in subscriptions if no > after_no and is_temporary(one.options)][:limit]

    def has_temporary(self, bare: str) -> bool:
        return any(sub.jid.partition("/")[0] == bare for sub in self.temporary_subscriptions(0, 2**31))

    def subscribed_by(self, bare: str) -> int:
        return sum(one.jid.partition("/")[0] == bare for one in self._data.subscriptions.values())

    def subscriber_use(self, node_no: int, bare: str, *, now_us: int | None) -> SubscriberUse:
        here = self.subscriptions_on(node_no, bare, now_us=now_us)
        return SubscriberUse(here, self.subscribed_by(bare), self.subscribed_in(domain_of(bare)))

    def subscribed_in(self, domain: str) -> int:
        return sum(domain_of(one.jid.partition("/")[0]) == domain for one in self._data.subscriptions.values())

    def _in_force(self, node_no: int) -> list[Subscription]:
        return [one for one in self._subscriptions(node_no) if one.state is SubscriptionState.SUBSCRIBED]

    def subscription_count(self, node_no: int) -> int:
        return len(self._in_force(node_no))

    def subscribed_views(self, node_no: int) -> list[str]:
        return sorted({one.view for one in self._in_force(node_no)})

    def _known(self, node_no: int) -> Node:
        node = self._data.nodes.get(node_no)
        if node is None:
            raise StoreError(f"there is no node number {node_no}")
        return node

    def _feed(self, node_no: int) -> Feed:
        return self._data.feeds.get(node_no) or Feed()

    def item(self, node_no: int, item_id: str) -> Item | None:
        feed = self._feed(node_no)
        return feed.items.get(feed.numbers.get(item_id, 0))

    def items(self, node_no: int, item_ids: Sequence[str]) -> list[Item]:
        return [item for item_id in item_ids if (item := self.item(node_no, item_id)) is not None]

    def _range(self, node_no: int, order: Order, after: Edge | None, before: Edge | None) -> list[Place]:
        places = self._feed(node_no).places[order]
        start = bisect_right(places, (after.key_us, after.item_no)) if after else 0
        end = bisect_right(places, (before.key_us, before.item_no)) if before else len(places)
        return places[start:end]

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        items = self._feed(node_no).items.values()
        named = self.item(node_no, sync_id)
        own = named if named and not named.sync_id else None
        return next((one for one in items if sync_id and one.sync_id == sync_id), own)

    def conflicted(self, node_no: int, part: KeyRange[int] = ALL_NUMBERS) -> list[Item]:
        found = [one for _, one in sorted(self._feed(node_no).items.items()) if one.conflicts]
        return part_of(found, part, lambda one: one.item_no)

    def conflict_count(self, node_no: int) -> int:
        return len(self.conflicted(node_no))

    def slice(self, node_no: int, page: Slice) -> list[Item]:
        items = self._feed(node_no).items
        places = self._range(node_no, page.view.order, page.after, page.before)
        if page.newest:
            places.reverse()
        found: list[Item] = []
        skip = page.offset
        for _, item_no in places:
            if len(found) == page.limit:
                break
            item = items[item_no]
            standing = self._standing(node_no, item, page.view)
            if standing is Standing.ABSENT:
                continue
            if skip:
                skip -= 1
            else:
                item = item._replace(left=standing is Standing.LEFT)
                found.append(item if page.view.sync else item._replace(sync=None))
        return found[::-1] if page.newest else found

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        items = self._feed(node_no).items
        places = self._range(node_no, view.order, None, before)
        return sum(self._standing(node_no, items[item_no], view) is not Standing.ABSENT for _, item_no in places)

    def bounded_count(self, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        return self.count(node_no, view, before=before)

    def standings(self, node_no: int, item: Item, views: Sequence[View]) -> list[Standing]:
        return [self._standing(node_no, item, view) for view in views]

    def _standing(self, node_no: int, item: Item, view: View) -> Standing:
        if item.deleted and view.hides_tombstones:
            return Standing.ABSENT
        if not view.filtered:
            return Standing.PRESENT
        node, known = self._known(node_no), self._data.index.get(item.item_no)
        if known is None or place(item, Order.MODIFIED) > self._data.indexed_to.get(node_no, NOWHERE):
            return Standing.ABSENT
        return known.standing(view, item, publishers=node.options.shows_publisher)

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        feed = self._feed(node_no)
        places = feed.places[order]
        start = bisect_left(places, (key_us, -1))
        end = bisect_right(places, (key_us, MAX_ITEM_NO))
        return [(item_no, feed.items[item_no].id) for _, item_no in places[start:end][:limit]]

    def _unindexed(self, node_no: int) -> list[Place]:
        places = self._feed(node_no).places[Order.MODIFIED]
        return places[bisect_right(places, self._data.indexed_to.get(node_no, NOWHERE)) :]

    def index_current(self, node_no: int) -> bool:
        return not self._unindexed(node_no)

    def unindexed(self, limit: int) -> list[bytes]:
        nodes = sorted(self._data.names.values())
        items = [self._data.feeds[node_no].items[no] for node_no in nodes for _key, no in self._unindexed(node_no)]
        return [item.payload for item in items[:limit] if not item.deleted]

    def behind(self) -> list[Consumer]:
        data = self._data
        found = {Consumer(event.node_no, PUSH) for event in data.events.values()}
        found |= {Consumer(no, PUSH) for no, node in data.nodes.items() if node.state is NodeState.DELETED}
        for (node_no, order, name), mark in data.marks.items():
            places = data.feeds[node_no].places[Order(order)]
            if places and places[-1][0] > mark.key_us and Consumer(node_no, name).kind != HELD:
                found.add(Consumer(node_no, name))
        return sorted(found)

    def backlog(self) -> Backlog:
        data = self._data
        unpushed = [(event.node_no, event.at_us) for event in data.events.values()]
        others: dict[Consumer, int] = {}
        for (node_no, order, name), mark in data.marks.items():
            above = [key_us for key_us, _ in data.feeds[node_no].places[Order(order)] if key_us > mark.key_us]
            if above and name == PUSH:
                unpushed.append((node_no, above[0]))
            elif above:
                others[Consumer(node_no, name)] = min(above[0], others.get(Consumer(node_no, name), above[0]))
        return Backlog(
            len({node_no for node_no, _ in unpushed}),
            min((at_us for _, at_us in unpushed), default=None),
            len(others),
            min((key_us for consumer, key_us in others.items() if consumer.kind == HELD), default=None),
        )

    def consumers(self, after: tuple[int, str, str], limit: int) -> list[ConsumerRow]:
        return self._consumers([key for key in sorted(self._data.marks) if key > after][:limit])

    def consumers_of(self, node_no: int, after: tuple[str, str], limit: int) -> list[ConsumerRow]:
        keys = [key for key in sorted(self._data.marks) if key[0] == node_no and key[1:] > after]
        return self._consumers(keys[:limit])

    def _consumers(self, keys: list[tuple[int, str, str]]) -> list[ConsumerRow]:
        rows = [(Consumer(node_no, name), Order(order)) for node_no, order, name in keys]
        return [
            ConsumerRow(consumer, order, self._data.marks[key], self.wait(consumer))
            for key, (consumer, order) in zip(keys, rows, strict=True)
        ]

    def wait(self, consumer: Consumer) -> Wait | None:
        return self._data.waits.get(consumer)

    def waits(self) -> list[tuple[Consumer, Wait]]:
        return sorted(self._data.waits.items(), key=lambda entry: entry[0])

    def failures(self) -> list[tuple[Consumer, Failure]]:
        return [(consumer, wait) for consumer, wait in self.waits() if isinstance(wait, Failure)]

    def open_purges(self) -> list[OpenPurge]:
        return sorted(self._data.purges.values())

    def open_purge(self, node_no: int) -> OpenPurge | None:
        return self._data.purges.get(node_no)

    def source(self, source_no: int) -> Source | None:
        return self._data.sources.get(source_no)

    def source_of(self, node: str, first_url: str) -> Source | None:
        return next((one for one in self._sources() if (one.node, one.first_url) == (node, first_url)), None)

    def sources(self, after_no: int, limit: int) -> list[Source]:
        return [one for one in self._sources() if one.source_no > after_no][:limit]

    def sources_of(self, node: str) -> list[Source]:
        return [one for one in self._sources() if one.node == node]

    def sources_of_list(self, list_no: int) -> list[Source]:
        return [one for one in self._sources() if one.settings.list_no == list_no]

    def own_lists(self) -> list[Source]:
        return sorted((one for one in self._sources() if one.url.startswith("xmpp:")), key=lambda one: one.url)

    def sources_at(self, url: str) -> list[Source]:
        return [one for one in self._sources() if one.url == url]

    def sources_naming(self, text: str) -> list[Source]:
        return [one for one in self._sources() if text in f"{one.url}\n{one.first_url}".lower()]

    def sources_due(self, until_us: int, limit: int) -> list[Source]:
        first: dict[str, Source] = {}
        due = [(one.due_us, one) for one in self._sources() if one.due_us is not None and one.due_us <= until_us]
        for _due_us, one in sorted(due, key=lambda pair: pair[0]):
            first.setdefault(one.host, one)
        return list(first.values())[:limit]

    def next_source_due_us(self) -> int | None:
        return min((one.due_us for one in self._sources() if one.due_us is not None), default=None)

    def sources_by(self, owner: str) -> int:
        return sum(1 for one in self._sources() if owner and one.owner == owner)

    def source_states(self) -> dict[SourceState, int]:
        return dict(Counter(one.state for one in self._sources()))

    def source_entries(self, source_no: int) -> list[SourceEntry]:
        return [one for _, (number, one) in sorted(self._data.source_entries.items()) if number == source_no]

    def source_entries_of(self, source_no: int, keys: Sequence[EntryKey]) -> list[SourceEntry]:
        identities, links = {key.identity for key in keys}, {key.link for key in keys} - {""}
        ours = self.source_entries(source_no)
        return [one for one in ours if one.key.identity in identities or one.key.link in links]

    def has_source_entries(self, source_no: int) -> bool:
        return bool(self.source_entries(source_no))

    def host_pauses(self, now_us: int) -> list[HostPause]:
        return [one for _, one in sorted(self._data.host_pauses.items()) if one.until_us > now_us]

    def host_pause(self, host: str) -> HostPause | None:
        return self._data.host_pauses.get(host)

    def source_push(self, push_no: int) -> SourcePush | None:
        return self._data.source_pushes.get(push_no)

    def source_push_of_token(self, token: str) -> SourcePush | None:
        return next((one for one in self._pushes() if one.token == token), None)

    def source_pushes_of(self, source_no: int) -> list[SourcePush]:
        return [one for one in self._pushes() if one.source_no == source_no]

    def source_pushes(self, after_no: int, limit: int) -> list[SourcePush]:
        return [one for one in self._pushes() if one.push_no > after_no][:limit]

    def source_pushes_due(self, until_us: int, limit: int) -> list[SourcePush]:
        first: dict[str, SourcePush] = {}
        due = [(one.due_us, one) for one in self._pushes() if one.due_us is not None and one.due_us <= until_us]
        for _, push in sorted(due, key=lambda pair: pair[0]):
            first.setdefault(push.host, push)
        return list(first.values())[:limit]

    def next_source_push_due_us(self) -> int | None:
        return min((one.due_us for one in self._pushes() if one.due_us is not None), default=None)

    def has_active_push(self, url: str) -> bool:
        return any(one.target.url == url and one.state is PushState.ACTIVE for one in self._pushes())

    def source_pushes_without_source(self, limit: int) -> Sequence[SourcePush]:
        polled = {
            one.source_no for one in self._sources() if one.state not in (SourceState.PAUSED, SourceState.STOPPED)
        }
        return [one for one in self._pushes() if one.state in FOLLOWING and 0 < one.source_no not in polled][:limit]

    def source_push_states(self) -> dict[PushState, int]:
        return dict(Counter(one.state for one in self._pushes()))

    def _pushes(self) -> list[SourcePush]:
        return [one for _, one in sorted(self._data.source_pushes.items())]

    def _sources(self) -> list[Source]:
        return [one for _, one in sorted(self._data.sources.items())]

    def enclosure(self, enclosure_no: int) -> Enclosure | None:
        return self._data.enclosures.get(enclosure_no)

    def enclosure_at(self, url: str) -> Enclosure | None:
        return next((one for one in self._enclosures() if one.url == url), None)

    def enclosure_of_digest(self, digest: str) -> Enclosure | None:
        return next((one for one in self._enclosures() if one.digest == digest), None)

    def enclosures(self, after_no: int, limit: int) -> list[Enclosure]:
        return [one for one in self._enclosures() if one.enclosure_no > after_no][:limit]

    def enclosures_asked(self, hosts: Collection[str], limit: int) -> list[Enclosure]:
        asked = [(one.asked_us, one) for one in self._waiting() if one.asked_us is not None and one.host not in hosts]
        return [one for _, one in sorted(asked, key=lambda pair: pair[0])][:limit]

    def enclosures_due(self, open_us: int, hosts: Collection[str], limit: int) -> list[Enclosure]:
        due = [one for one in self._waiting() if one.tried_us < open_us and one.host not in hosts]
        return sorted(due, key=lambda one: (one.condition == "", -one.dated_us))[:limit]

    def enclosure_uses(self, enclosure_no: int) -> list[EnclosureUse]:
        uses = [one for one in self._data.enclosure_uses.values() if one.enclosure_no == enclosure_no]
        return sorted(uses, key=lambda one: (-one.dated_us, one.item_id))

    def enclosure_uses_of(self, source_no: int) -> list[EnclosureUse]:
        uses = [one for one in self._data.enclosure_uses.values() if one.source_no == source_no]
        return sorted(uses, key=lambda one: (-one.dated_us, -one.enclosure_no))

    def enclosure_sources(self, after_no: int, limit: int) -> list[int]:
        numbers = {one.source_no for one in self._data.enclosure_uses.values()}
        return sorted(number for number in numbers if number > after_no)[:limit]

    def enclosures_arrived_in(self, node: str) -> list[tuple[Enclosure, str]]:
        return [
            (one, use.item_id)
            for one in self._arrived()
            for use in self.enclosure_uses(one.enclosure_no)
            if use.node == node
        ]

    def enclosures_oldest(self, limit: int) -> list[Enclosure]:
        return sorted(self._arrived(), key=lambda one: (one.dated_us, one.enclosure_no))[:limit]

    def enclosures_before(self, since_us: int, limit: int) -> list[Enclosure]:
        return [one for one in self._enclosures() if one.since_us < since_us][:limit]

    def enclosures_unused(self, limit: int) -> list[Enclosure]:
        used = {one.enclosure_no for one in self._data.enclosure_uses.values()}
        return [one for one in self._enclosures() if one.enclosure_no not in used][:limit]

    def enclosure_bytes(self, since_us: int = 0, *, but: int = 0) -> int:
        complete = sum(one.length_bytes or 0 for one in self._arrived() if one.dated_us >= since_us)
        return complete + sum(one.partial_bytes for one in self._waiting() if one.enclosure_no != but)

    def enclosure_night_bytes(self, source_no: int, night_us: int) -> int:
        numbers = {use.enclosure_no for use in self.enclosure_uses_of(source_no)}
        rows = [one for one in self._enclosures() if one.enclosure_no in numbers and one.night_us == night_us]
        return sum(one.night_bytes for one in rows)

    def enclosure_totals(self) -> list[tuple[str, int, int]]:
        totals: dict[str, tuple[int, int]] = {}
        for one in self._enclosures():
            count, size_bytes = totals.get(one.state, (0, 0))
            own_bytes = (one.length_bytes or 0) if one.state is EnclosureState.ARRIVED else one.partial_bytes
            totals[one.state] = (count + 1, size_bytes + own_bytes)
        return [(str(state), *total) for state, total in sorted(totals.items())]

    def known_enclosures(self, digests: Collection[str], *, complete: bool) -> set[str]:
        rows = self._arrived() if complete else self._waiting()
        return {one.digest for one in rows} & set(digests)

    def arrivals(self, after_no: int, limit: int) -> list[Arrival]:
        return [one for number, one in sorted(self._data.arrivals.items()) if number > after_no][:limit]

    def _enclosures(self) -> list[Enclosure]:
        return [one for _, one in sorted(self._data.enclosures.items())]

    def _waiting(self) -> list[Enclosure]:
        return [one for one in self._enclosures() if one.state is EnclosureState.WAITING]

    def _arrived(self) -> list[Enclosure]:
        return [one for one in self._enclosures() if one.state is EnclosureState.ARRIVED]

    def callback(self, callback_no: int) -> Callback | None:
        return self._data.callbacks.get(callback_no)

    def callback_for(self, kind: CallbackKind, url: str, topic: str) -> Callback | None:
        return next((one for one in self._callbacks(kind) if (one.url, one.topic) == (url, topic)), None)

    def callbacks(self, kind: CallbackKind, after_no: int, limit: int) -> list[Callback]:
        return [one for one in self._callbacks(kind) if one.callback_no > after_no][:limit]

    def callbacks_due(
        self, kind: CallbackKind, until_us: int, limit: int, *, without_hosts: Collection[str] = ()
    ) -> list[Callback]:
        rows = [one for one in self._callbacks(kind) if one.host not in without_hosts]
        due = sorted((one.due_us, one.callback_no, one) for one in rows if one.due_us is not None)
        return [one for due_us, _, one in due if due_us <= until_us][:limit]

    def ended_callbacks(self, now_us: int, limit: int) -> list[Callback]:
        ended = [one for one in self._data.callbacks.values() if one.expires_us <= now_us]
        return sorted(ended, key=lambda one: one.expires_us)[:limit]

    def callback_count(self, kind: CallbackKind, *, node_no: int | None = None, host: str | None = None) -> int:
        ours = self._callbacks(kind)
        return sum(node_no in (None, one.node_no) and host in (None, one.host) for one in ours)

    def _callbacks(self, kind: CallbackKind) -> list[Callback]:
        return [one for _, one in sorted(self._data.callbacks.items()) if one.kind is kind]

    def contact(self, address: str, jid: str) -> Contact | None:
        return self._data.contacts.get((address, jid))

    def contacts(self, after: tuple[str, str], limit: int) -> list[Contact]:
        return [one for key, one in sorted(self._data.contacts.items()) if key > after][:limit]

    def contacts_of(self, jid: str) -> int:
        return sum(one.jid == jid for one in self._data.contacts.values())

    def contacts_in(self, domain: str) -> int:
        return sum(domain_of(one.jid) == domain for one in self._data.contacts.values())

    def token(self, token_id: str) -> Token | None:
        return self._data.tokens.get(token_id)

    def tokens(self, after: str, limit: int) -> list[Token]:
        return [self._data.tokens[token_id] for token_id in sorted(self._data.tokens) if token_id > after][:limit]

    def tokens_of(self, jid: str) -> list[Token]:
        own = [token for token in self._data.tokens.values() if token.jid == jid]
        return sorted(own, key=lambda token: (token.created_us, token.token_id))

    def session(self, session_id: str) -> Session | None:
        return self._data.sessions.get(session_id)

    def sessions_of(self, jid: str) -> list[Session]:
        own = [session for session in self._data.sessions.values() if session.jid == jid]
        return sorted(own, key=lambda session: (session.seen_us, session.session_id))

    def ended_sessions(self, now_us: int, limit: int) -> list[str]:
        ended = [session for session in self._data.sessions.values() if session.expires_us <= now_us]
        return [session.session_id for session in sorted(ended, key=lambda one: one.expires_us)][:limit]

    def mirror(self, name: str) -> MirrorRow | None:
        return self._data.mirrors.get(name)

    def mirrors(self) -> list[MirrorRow]:
        return [row for _, row in sorted(self._data.mirrors.items())]

    def chat(self, jid: str) -> ChatRow | None:
        return self._data.chats.get(jid)

    def chat_rooms(self) -> list[ChatRow]:
        return [row for _, row in sorted(self._data.chats.items()) if row.room]

    def document_readers(self) -> set[str]:
        return {reader for reader, _ in self._data.documents}

    def redirect(self, name: str) -> str | None:
        return self._data.redirects[name][0] if name in self._data.redirects else None

    def redirects_by(self, creator: str) -> int:
        return sum(by == creator for _, by in self._data.redirects.values())

    def expiring(self, after: int, limit: int) -> list[Node]:
        nodes = [node for no, node in sorted(self._data.nodes.items()) if no > after and node.state is NodeState.LIVE]
        return [n for n in nodes if n.kind is NodeKind.GENERIC and "item_expire" in n.options.stored][:limit]

    def documents(self, reader: str) -> dict[str, KnownDocument]:
        return {url: row for (name, url), row in self._data.documents.items() if name == reader}

    def mark(self, node_no: int, order: Order, name: str) -> Mark | None:
        return self._data.marks.get((node_no, order.value, name))

    def push_start(self, node_no: int, events: int) -> PushStart:
        marks = {order: self.mark(node_no, order, PUSH) for order in Order}
        stored = {order: mark for order, mark in marks.items() if mark is not None}
        return PushStart(self.subscribed_views(node_no), stored, self.events(node_no, events), self.blocks_version())

    def batch(self, consumer: Consumer) -> SentBatch | None:
        return self._data.batches.get(consumer)

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        found = [event for event in self._data.events.values() if event.node_no == node_no]
        return sorted(found, key=lambda event: (event.at_us, event.event_no))[:limit]

    def file(self, node_no: int, file_id: str) -> FeedFile | None:
        return self._data.files.get((node_no, file_id))

    def files_bytes(self, owner: str) -> int:
        return sum(file.size_bytes for file in self._data.files.values() if file.owner == owner)

    def unused_files(self, before_us: int, limit: int) -> list[FeedFile]:
        unused = [
            (file.unused_us, file)
            for file in self._data.files.values()
            if file.unused_us is not None and file.unused_us < before_us
        ]
        return [file for _, file in sorted(unused)[:limit]]

    def known_digests(self, digests: Collection[str]) -> set[str]:
        return set(digests) & {file.digest for file in self._data.files.values()}


class MemoryWriteTx(MemoryReadTx):
    """`base.WriteTx` over `Data`. `undo` takes back everything that it did."""

    def __init__(self, data: Data, reader: TraitsReader) -> None:
        super().__init__(data)
        self._read_traits = reader
        self._undo: list[Callable[[], object]] = []

    def undo(self) -> None:
        """Takes back every change, the last one first."""
        while self._undo:
            self._undo.pop()()

    def _set(self, table: dict[K, V], key: K, value: V) -> None:
        if key in table:
            old = table[key]
            self._undo.append(lambda: table.__setitem__(key, old))
        else:
            self._undo.append(lambda: table.__delitem__(key))
        table[key] = value

    def _drop(self, table: dict[K, V], key: K) -> None:
        if key in table:
            old = table.pop(key)
            self._undo.append(lambda: table.__setitem__(key, old))

    def _number(self, of: str) -> int:
        number = self._data.last.get(of, 0) + 1
        self._set(self._data.last, of, number)
        return number

    def _put_node(self, node: Node) -> None:
        self._set(self._data.nodes, node.node_no, node)

    def _more_audience(self, node_no: int, by: int = AUDIENCE_CHANGE) -> None:
        node = self._known(node_no)
        self._put_node(node._replace(audience=node.audience + by))

    def lock(self, name: str) -> Node | None:
        return self.node(name)

    def reserve_name(self, name: str) -> None:
        """Nothing: writes are serialised."""

    def lock_quotas(self, jid: str) -> None:
        """Nothing, for the same reason."""

    def lock_no(self, node_no: int) -> Node | None:
        return self.node_by_no(node_no)

    def add_node(self, node: Node) -> Node:
        if node.name in self._data.names:
            raise StoreError(f"the name {node.name!r} is taken")
        stored = node._replace(node_no=self._number("node"), state=NodeState.LIVE, total=0, live=0)
        self._put_node(stored)
        self._set(self._data.names, stored.name, stored.node_no)
        self._set(self._data.feeds, stored.node_no, Feed())
        return stored

    def set_options(self, node_no: int, options: FormFields) -> None:
        self._more_audience(node_no)
        self._put_node(self._known(node_no)._replace(options=NodeOptions(self._known(node_no).kind, options)))

    def set_kind(self, node_no: int, kind: NodeKind) -> None:
        self._more_audience(node_no)
        node = self._known(node_no)
        self._put_node(node._replace(kind=kind, options=NodeOptions(kind, node.options.stored)))

    def rename_node(self, node_no: int, name: str, creator: str) -> None:
        self._more_audience(node_no)
        node = self._known(node_no)
        self._drop(self._data.names, node.name)
        self._set(self._data.names, name, node_no)
        self._put_node(node._replace(name=name, creator=creator))

    def set_keys(self, node_no: int, last_modified_us: int, last_created_us: int) -> None:
        node = self._known(node_no)
        self._put_node(node._replace(last_modified_us=last_modified_us, last_created_us=last_created_us))

    def retire_node(self, node_no: int) -> None:
        node = self._known(node_no)
        if node.state is NodeState.LIVE:
            self._drop(self._data.names, node.name)
            self._put_node(node._replace(state=NodeState.DELETED))

    def reap(self, node_no: int, limit: int) -> bool:
        node = self._data.nodes.get(node_no)
        if node is None:
            return True
        if node.state is NodeState.LIVE:
            raise StoreError(f"node {node_no} is not deleted")
        steps = self._belongings(node_no)
        for step in steps[:limit]:
            step()
        if len(steps) >= limit:
            return False
        self._drop(self._data.feeds, node_no)
        self._drop(self._data.indexed_to, node_no)
        self._drop(self._data.nodes, node_no)
        return True

    def _belongings(self, node_no: int) -> list[Callable[[], None]]:
        data = self._data
        steps: list[Callable[[], None]] = []
        steps += [partial(self._take_out, node_no, item) for item in self._feed(node_no).items.values()]
        steps += [partial(self._drop, data.subscriptions, one.sub_no) for one in self._subscriptions(node_no)]
        steps += [partial(self._drop, data.affiliations, (node_no, jid)) for jid, _ in self.affiliations(node_no)]
        events = [event for event in data.events.values() if event.node_no == node_no]
        steps += [partial(self._drop, data.events, event.event_no) for event in events]
        steps += [partial(self._drop, data.purges, key) for key in list(data.purges) if key == node_no]
        steps += [partial(self._drop, data.marks, key) for key in list(data.marks) if key[0] == node_no]
        steps += [partial(self._drop, data.batches, key) for key in list(data.batches) if key[0] == node_no]
        steps += [partial(self._drop, data.waits, key) for key in list(data.waits) if key[0] == node_no]
        steps += [partial(self._drop, data.files, key) for key in list(data.files) if key[0] == node_no]
        steps += [partial(self._drop, data.file_uses, key) for key in list(data.file_uses) if key[0] == node_no]
        forms = [key for key in data.request_forms if key[0] == node_no]
        return steps + [partial(self._drop, data.request_forms, key) for key in forms]

    def add_items(self, node_no: int, items: Sequence[Item]) -> None:
        for item in items:
            self.put_item(node_no, item)

    def put_item(self, node_no: int, item: Item) -> Item:
        node = self._known(node_no)
        feed = self._data.feeds[node_no]
        old = feed.items.get(item.item_no)
        if item.item_no and old is None:
            raise StoreError(f"node {node_no} has no item number {item.item_no}")
        if feed.numbers.get(item.id, item.item_no) != item.item_no:
            raise StoreError(f"the item id {item.id!r} is taken")
        if any(
            one.sync_id == item.sync_id for one in feed.items.values() if item.sync_id and one.item_no != item.item_no
        ):
            raise StoreError(f"the sync id {item.sync_id!r} is taken")
        stored = item._replace(item_no=old.item_no if old else self._number("item"), left=False)
        if old:
            if place(old, Order.MODIFIED) > self._data.indexed_to.get(node_no, NOWHERE):
                self._index_item(old)
            self._take_out(node_no, old)
        self._bring_in(node_no, stored)
        self._note_files(node_no, stored)
        live = int(not stored.deleted) - int(old is not None and not old.deleted)
        self._put_node(node._replace(total=node.total + (old is None), live=node.live + live))
        if place(stored, Order.MODIFIED) <= self._data.indexed_to.get(node_no, NOWHERE):
            self._set(self._data.indexed_to, node_no, (stored.modified_us, stored.item_no - 1))
        return stored

    def _note_files(self, node_no: int, item: Item) -> None:
        uses, key = self._data.file_uses, (node_no, item.item_no)
        before = uses.get(key, frozenset())
        references = file_ids(item.payload) | file_ids(item.sync or b"")
        after = frozenset(file_id for file_id in references if self.file(node_no, file_id))
        self._set(uses, key, after)
        for file_id in before | after:
            file = self.file(node_no, file_id)
            used = any(file_id in ids for (of_node, _), ids in uses.items() if of_node == node_no)
            if file is not None:
                self._set(
                    self._data.files, (node_no, file_id), file._replace(unused_us=None if used else item.modified_us)
                )

    def put_file(self, file: FeedFile) -> None:
        self._set(self._data.files, (file.node_no, file.file_id), file)

    def remove_file(self, file: FeedFile) -> None:
        self._drop(self._data.files, (file.node_no, file.file_id))

    def _bring_in(self, node_no: int, item: Item) -> None:
        feed = self._data.feeds[node_no]
        self._set(feed.items, item.item_no, item)
        self._set(feed.numbers, item.id, item.item_no)
        for order, places in feed.places.items():
            where = place(item, order)
            insort(places, where)
            self._undo.append(partial(places.remove, where))

    def _take_out(self, node_no: int, item: Item) -> None:
        feed = self._data.feeds[node_no]
        self._drop(feed.items, item.item_no)
        self._drop(feed.numbers, item.id)
        for order, places in feed.places.items():
            where = place(item, order)
            del places[bisect_left(places, where)]
            self._undo.append(partial(insort, places, where))

    def set_affiliation(self, node_no: int, jid: str, affiliation: Affiliation) -> None:
        self._more_audience(node_no)
        if affiliation is Affiliation.NONE:
            self._drop(self._data.affiliations, (node_no, jid))
        else:
            self._set(self._data.affiliations, (node_no, jid), affiliation)

    def put_subscription(self, subscription: Subscription) -> Subscription:
        self._more_audience(subscription.node_no, AUDIENCE_CHANGE if subscription.sub_no else 1)
        old = self._data.subscriptions.get(subscription.sub_no)
        if subscription.sub_no and (old is None or old.node_no != subscription.node_no):
            raise StoreError(f"node {subscription.node_no} has no subscription number {subscription.sub_no}")
        same = self.subscription(subscription.node_no, subscription.jid, subscription.view, now_us=None)
        if same and same.sub_no != subscription.sub_no:
            raise StoreError(f"{subscription.jid} is subscribed to {subscription.view!r}")
        stored = subscription if old else subscription._replace(sub_no=self._number("subscription"))
        self._set(self._data.subscriptions, stored.sub_no, stored)
        return stored

    def remove_subscription(self, sub_no: int) -> None:
        old = self._data.subscriptions.get(sub_no)
        if old is not None:
            self._more_audience(old.node_no)
            self._drop(self._data.subscriptions, sub_no)
            for order in Order:
                self._drop(self._data.marks, (old.node_no, order.value, held_consumer(old.node_no, sub_no).name))

    def add_event(self, event: NodeEvent) -> NodeEvent:
        self._known(event.node_no)
        stored = replace(event, event_no=self._number("event"))
        self._set(self._data.events, stored.event_no, stored)
        return stored

    def remove_events(self, event_nos: Iterable[int]) -> None:
        for event_no in event_nos:
            self._drop(self._data.events, event_no)

    def put_purge(self, purge: OpenPurge) -> None:
        self._known(purge.node_no)
        self._set(self._data.purges, purge.node_no, purge)

    def remove_purge(self, node_no: int) -> None:
        self._drop(self._data.purges, node_no)

    def set_mark(self, node_no: int, order: Order, name: str, mark: Mark) -> None:
        self._known(node_no)
        self._set(self._data.marks, (node_no, order.value, name), mark)

    def move_mark(self, consumer: Consumer, order: Order, mark: Mark) -> None:
        if self.mark(consumer.node_no, order, consumer.name) is not None:
            self.set_mark(consumer.node_no, order, consumer.name, mark)

    def set_wait(self, consumer: Consumer, wait: Wait | None) -> None:
        if wait is None:
            self._drop(self._data.waits, consumer)
            return
        self._known(consumer.node_no)
        self._set(self._data.waits, consumer, wait)

    def put_batch(self, consumer: Consumer, batch: SentBatch) -> None:
        self._known(consumer.node_no)
        self._set(self._data.batches, consumer, batch)

    def remove_consumer(self, consumer: Consumer) -> None:
        self.set_wait(consumer, None)
        self._drop(self._data.batches, consumer)
        for order in Order:
            self._drop(self._data.marks, (consumer.node_no, order.value, consumer.name))

    def count_request_form(self, node_no: int, names: Iterable[str], now_us: int, after_us: int) -> None:
        self._known(node_no)
        for key, (since_us, _) in list(self._data.request_forms.items()):
            if since_us <= after_us:
                self._drop(self._data.request_forms, key)
        for whom in names:
            since_us, forms = self._data.request_forms.get((node_no, whom), (now_us, 0))
            self._set(self._data.request_forms, (node_no, whom), (since_us, forms + 1))

    def add_source(self, source: Source) -> int:
        if self.source_of(source.node, source.first_url) is not None:
            raise StoreError(f"the node has a source {source.first_url!r}")
        number = self._number("source")
        self._set(self._data.sources, number, replace(source, source_no=number))
        return number

    def put_source(self, source: Source) -> None:
        if source.source_no in self._data.sources:
            self._set(self._data.sources, source.source_no, source)

    def remove_source(self, source_no: int) -> None:
        self._drop(self._data.sources, source_no)
        self.remove_enclosure_uses(self.enclosure_uses_of(source_no))
        self.trim_source_entries(source_no, 0)
        for url in self.documents(held_reader(source_no)):
            self.remove_document(held_reader(source_no), url)

    def put_source_entry(self, source_no: int, entry: SourceEntry) -> None:
        number = entry.entry_no or self._number("source_entry")
        self._set(self._data.source_entries, number, (source_no, replace(entry, entry_no=number)))

    def trim_source_entries(self, source_no: int, keep: int) -> None:
        entries = self.source_entries(source_no)
        for one in entries[: max(0, len(entries) - keep)]:
            self._drop(self._data.source_entries, one.entry_no)

    def pull_back_sources(self, now_us: int) -> None:
        for one in self._sources():
            if one.polled_us is not None and one.polled_us > now_us:
                due_us = None if one.due_us is None else one.due_us - one.polled_us + now_us
                self.put_source(replace(one, due_us=due_us, polled_us=now_us))

    def spread_overdue_sources(self, now_us: int, within_s: int) -> None:
        for one in self._sources():
            if one.due_us is not None and one.due_us < now_us and one.polled_us is not None:
                share = one.source_no * SPREAD_FACTOR % SPREAD_MODULUS
                self.put_source(replace(one, due_us=now_us + share * within_s * 1_000_000 // SPREAD_MODULUS))

    def add_enclosure(self, enclosure: Enclosure) -> Enclosure:
        enclosure = enclosure._replace(enclosure_no=self._number("enclosure"))
        self._set(self._data.enclosures, enclosure.enclosure_no, enclosure)
        return enclosure

    def put_enclosure(self, enclosure: Enclosure) -> None:
        if enclosure.enclosure_no in self._data.enclosures:
            self._set(self._data.enclosures, enclosure.enclosure_no, enclosure)

    def remove_enclosure(self, enclosure_no: int) -> None:
        self.remove_enclosure_uses(self.enclosure_uses(enclosure_no))
        self._drop(self._data.enclosures, enclosure_no)

    def put_enclosure_use(self, use: EnclosureUse) -> None:
        self._set(self._data.enclosure_uses, use[:3], use)

    def remove_enclosure_uses(self, uses: Sequence[EnclosureUse]) -> None:
        for use in uses:
            self._drop(self._data.enclosure_uses, use[:3])

    def mark_pages_changed(self, node_no: int) -> None:
        self._more_audience(node_no)

    def add_arrival(self, arrival: Arrival, before_us: int) -> None:
        number = self._number("arrival")
        self._set(self._data.arrivals, number, arrival._replace(arrival_no=number))
        for one in self.arrivals(0, NO_LIMIT):
            if one.at_us < before_us:
                self._drop(self._data.arrivals, one.arrival_no)

    def put_source_push(self, push: SourcePush) -> SourcePush:
        if not push.push_no:
            push = replace(push, push_no=self._number("source_push"))
        self._set(self._data.source_pushes, push.push_no, push)
        return push

    def remove_source_push(self, push_no: int) -> None:
        self._drop(self._data.source_pushes, push_no)

    def spread_overdue_source_pushes(self, now_us: int, within_s: int) -> None:
        for one in self._pushes():
            if one.due_us is not None and one.due_us < now_us:
                share = one.push_no * SPREAD_FACTOR % SPREAD_MODULUS
                self.put_source_push(replace(one, due_us=now_us + share * within_s * 1_000_000 // SPREAD_MODULUS))

    def put_host_pause(self, pause: HostPause) -> None:
        self._set(self._data.host_pauses, pause.host, pause)

    def remove_host_pause(self, host: str) -> None:
        self._drop(self._data.host_pauses, host)

    def put_callback(self, callback: Callback) -> Callback:
        if not callback.callback_no:
            callback = replace(callback, callback_no=self._number("callback"))
        self._set(self._data.callbacks, callback.callback_no, callback)
        return callback

    def note_deliveries(self, results: Iterable[tuple[int, int, str]]) -> None:
        for callback_no, tried_us, result in results:
            callback = self._data.callbacks.get(callback_no)
            if callback is not None:
                self.put_callback(replace(callback, tried_us=tried_us, result=result))

    def remove_callback(self, callback_no: int) -> None:
        self._drop(self._data.callbacks, callback_no)

    def put_contact(self, contact: Contact) -> None:
        self._set(self._data.contacts, (contact.address, contact.jid), contact)

    def remove_contact(self, contact: Contact) -> None:
        self._drop(self._data.contacts, (contact.address, contact.jid))

    def add_token(self, token: Token) -> None:
        if token.token_id in self._data.tokens:
            raise StoreError(f"there is a token {token.token_id}")
        self._set(self._data.tokens, token.token_id, token)

    def remove_token(self, token_id: str) -> None:
        self._drop(self._data.tokens, token_id)
        for session in list(self._data.sessions.values()):
            if session.token_id == token_id:
                self.remove_session(session.session_id)

    def put_session(self, session: Session) -> None:
        self._set(self._data.sessions, session.session_id, session)

    def remove_session(self, session_id: str) -> None:
        self._drop(self._data.sessions, session_id)

    def put_mirror(self, row: MirrorRow) -> None:
        self._set(self._data.mirrors, row.mirror.name, row)

    def remove_mirror(self, name: str) -> None:
        self._drop(self._data.mirrors, name)

    def put_redirect(self, name: str, uri: str, creator: str) -> None:
        self._set(self._data.redirects, name, (uri, creator))

    def remove_redirect(self, name: str) -> None:
        self._drop(self._data.redirects, name)

    def change_blocks(self) -> None:
        self._number(BLOCKS)

    def set_person_salt(self, salt: bytes) -> None:
        self._set(self._data.salts, 0, salt)

    def add_blocks(self, kind: ListKind, names: Collection[str]) -> None:
        self.change_blocks()
        for name in names:
            self._set(self._data.blocks, (kind, name), True)

    def remove_blocks(self, kind: ListKind, names: Collection[str]) -> None:
        self.change_blocks()
        for name in names:
            self._drop(self._data.blocks, (kind, name))

    def put_chat(self, row: ChatRow) -> None:
        self._set(self._data.chats, row.jid, row)

    def remove_chat(self, jid: str) -> None:
        self._drop(self._data.chats, jid)

    def put_document(self, reader: str, url: str, document: KnownDocument) -> None:
        self._set(self._data.documents, (reader, url), document)

    def remove_document(self, reader: str, url: str) -> None:
        self._drop(self._data.documents, (reader, url))

    def index_some(self, limit: int, *, skip_locked: bool = True) -> int:
        done = 0
        for node_no in sorted(self._data.names.values()):
            done += self._index(node_no, limit - done)
        return done

    def index_node(self, node_no: int, limit: int = NO_LIMIT) -> int:
        return self._index(node_no, limit)

    def _index(self, node_no: int, limit: int) -> int:
        todo = self._unindexed(node_no)[:limit]
        for where in todo:
            self._index_item(self._data.feeds[node_no].items[where[1]])
            self._set(self._data.indexed_to, node_no, where)
        return len(todo)

    def _index_item(self, item: Item) -> None:
        content = NO_TRAITS if item.deleted else self._read_traits(item.payload)
        version = version_traits(content, item.publisher, deleted=item.deleted, revision=item.revision)
        before = self._data.index.get(item.item_no)
        past = (*before.past, before.version) if before else ()
        self._set(self._data.index, item.item_no, Indexed(item.modified_us, version, past))


class MemoryStore:
    """A `base.Store` that forgets everything with the process. It keeps its data over `close` and `open`."""

    def __init__(self, reader: TraitsReader) -> None:
        self._data = Data()
        self._read_traits = reader
        self._open = False

    async def open(self) -> None:
        if self._open:
            raise StoreError("the store is already open")
        self._open = True

    def prepare_close(self) -> None:
        """Does nothing: memory answers at once."""

    async def close(self) -> None:
        self._open = False

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "", touch: Touch | None = None) -> T:
        self._check_open()
        return work(MemoryReadTx(self._data))

    async def write(
        self,
        work: Callable[[WriteTx], T | Again],
        *,
        turn: str = "",
        on_commit: Callable[[], None] | None = None,
        touch: Touch | None = None,
    ) -> T:
        return run_steps(work, self._run, on_commit)

    def _run(self, step: Step[T]) -> T | Again:
        self._check_open()
        tx = MemoryWriteTx(self._data, self._read_traits)
        try:
            return step(tx)
        except BaseException:
            tx.undo()
            raise

    async def index_some(self, limit: int) -> int:
        return await self.write(lambda tx: tx.index_some(limit))

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError("the store is closed")
