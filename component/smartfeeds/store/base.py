"""The protocol of a store: transactions with named operations.

A use case of `service/` is a function over a transaction, run by `Store.read` or `Store.write`. So the rules are in one
place, and a store manages rows only. The functions run in the store's own thread. They must not await, block, or use
anything except the transaction and their arguments. A function that raises leaves no changes. It may run a second time
from the start if the commit that it shared with others failed.

`Store.write` returns after the commit is durable. Several writes may share a commit (group commit); each of them is
still atomic. A read sees one snapshot, which contains every write that was acknowledged before.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol, TypeVar

from smartfeeds.core.consumers import Consumer, ConsumerRow, Failure
from smartfeeds.core.mirror import MirrorRow
from smartfeeds.core.model import (
    ALL_NUMBERS,
    ALL_TEXTS,
    Affiliation,
    Edge,
    Item,
    KeyRange,
    Mark,
    Node,
    NodeEvent,
    Slice,
    Subscription,
)
from smartfeeds.core.options import FormFields
from smartfeeds.core.tokens import Token
from smartfeeds.core.validators import KnownDocument
from smartfeeds.core.view import Order, Standing, Traits, View

T = TypeVar("T")
NO_LIMIT = 2**62


class ReadTx(Protocol):
    """The reading operations of a transaction. Lists are ordered by the key that `after` names, ascending."""

    def node(self, name: str) -> Node | None:
        """Returns the live node with exactly this name."""

    def node_by_no(self, node_no: int) -> Node | None:
        """Returns the node with this number, including deleted nodes."""

    def nodes(self, after: str, limit: int, *, before: str | None = None, newest: bool = False) -> list[Node]:
        """Returns live nodes by name in code point order, between `after` and `before`; with `newest` the last ones."""

    def node_count(self) -> int:
        """Returns the number of live nodes."""

    def listed_nodes(
        self, jid: str, after: str, limit: int, *, before: str | None = None, newest: bool = False
    ) -> list[Node]:
        """Returns the nodes that lists show to a bare JID (`core.access.Access.sees_description`), as `nodes` does.

        The cost grows with the result and with the nodes in between that exclude the JID, not with all hidden nodes.
        """

    def listed_count(self, jid: str) -> int:
        """Returns the number of `listed_nodes`. The cost grows with the hidden nodes among them and those that exclude
        the JID.
        """

    def created_by(self, creator: str) -> int:
        """Returns the number of live nodes that this bare JID created."""

    def created_in(self, domain: str) -> int:
        """Returns the number of live nodes that bare JIDs of this domain created. O(1)."""

    def affiliation(self, node_no: int, jid: str) -> Affiliation:
        """Returns the affiliation of a bare JID, or NONE."""

    def affiliations(
        self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, held: Affiliation | None = None
    ) -> list[tuple[str, Affiliation]]:
        """Returns the affiliations of a node by JID; with `held` only those of this kind. The cost grows with the
        result.
        """

    def affiliation_count(self, node_no: int) -> int:
        """Returns the number of affiliations of a node."""

    def affiliations_of(self, jid: str, part: KeyRange[int] = ALL_NUMBERS) -> list[tuple[Node, Affiliation]]:
        """Returns the affiliations of a bare JID with live nodes, by node_no. The cost grows with the result."""

    def affiliated(self, jid: str) -> int:
        """Returns the number of affiliations of a bare JID, including those with nodes still to be reaped."""

    def subscription(self, node_no: int, jid: str, view: str) -> Subscription | None:
        """Returns the subscription of exactly this address to this canonical view."""

    def subscription_by_no(self, sub_no: int) -> Subscription | None:
        """Returns the subscription with this number."""

    def subscriptions(self, node_no: int, after_no: int, limit: int) -> list[Subscription]:
        """Returns the subscriptions of a node in all states, by sub_no."""

    def subscribers(self, node_no: int, part: KeyRange[str] = ALL_TEXTS) -> list[str]:
        """Returns the addresses in state subscribed on a node, each once, even if it follows several views. The cost
        grows with the result.
        """

    def subscriptions_of(self, bare: str, part: KeyRange[int] = ALL_NUMBERS) -> list[tuple[Node, Subscription]]:
        """Returns the subscriptions of a bare JID and its resources on live nodes, by sub_no. The cost grows with the
        result.
        """

    def subscriptions_on(self, node_no: int, bare: str) -> list[Subscription]:
        """Returns the subscriptions of a bare JID and its resources to one node, by sub_no. The cost grows with the
        result.
        """

    def subscribed_by(self, bare: str) -> int:
        """Returns the number of subscriptions of a bare JID and its resources in all states, including those to deleted
        nodes that are not yet reaped.
        """

    def subscribed_in(self, domain: str) -> int:
        """Returns the same number for all bare JIDs of a domain. O(1)."""

    def subscription_count(self, node_no: int) -> int:
        """Returns the number of subscriptions of a node in state subscribed. O(1)."""

    def subscribed_views(self, node_no: int) -> list[str]:
        """Returns the distinct canonical views to which a node has subscriptions in state subscribed."""

    def item(self, node_no: int, item_id: str) -> Item | None:
        """Returns the item with this id, including tombstones."""

    def items(self, node_no: int, item_ids: Sequence[str]) -> list[Item]:
        """Returns the existing items with these ids, including tombstones, in no particular order."""

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        """Returns the item with this sync id, which is its `sync_id`, else its id."""

    def conflicted(self, node_no: int, part: KeyRange[int] = ALL_NUMBERS) -> list[Item]:
        """Returns the items with conflicts, by item_no. The cost grows with the result."""

    def conflict_count(self, node_no: int) -> int:
        """Returns the number of items with conflicts. The cost grows with this number."""

    def slice(self, node_no: int, wanted: Slice) -> list[Item]:
        """Returns items of a view, ascending, with sync data only if the view shows it.

        `Item.left` marks items that have left a filtered view (`core.view.Standing`); a view that hides tombstones has
        none of them. For an unfiltered view the cost grows with the result, not with the feed.
        """

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        """Returns the number of items in a view, or of those up to an edge. O(1) for an unfiltered view and no edge."""

    def bounded_count(self, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        """Returns `count`, or None if counting would take more than a bounded amount of work.

        Counts of whole views are cached: the next count costs what has changed since.
        """

    def standings(self, node_no: int, item: Item, views: Sequence[View]) -> list[Standing]:
        """Returns the standing of a stored item in each of these views. The cost grows with the number of the item's
        versions.
        """

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        """Returns (item_no, id) of the first `limit` items with this ordering key, before filters, by item_no."""

    def index_current(self, node_no: int) -> bool:
        """Returns whether the filter index has every item of the node. If not, filtered views need `WriteTx.index_node`
        first.
        """

    def unindexed(self, limit: int) -> list[bytes]:
        """Returns the payloads that `WriteTx.index_some` reads next with this limit."""

    def mark(self, node_no: int, order: Order, name: str) -> Mark | None:
        """Returns the mark of the consumer of this name in an order of a feed; None if it does not read that order."""

    def behind(self) -> list[Consumer]:
        """Every consumer with items above a mark, by node_no and name. `PUSH` is one also where a node has events to
        send or is deleted."""

    def consumers(self, after: tuple[int, str, str], limit: int) -> list[ConsumerRow]:
        """Marks of all consumers, by node_no, order and name; `after` names the last one of the page before."""

    def failure(self, consumer: Consumer) -> Failure | None:
        """The failure of a consumer, None if its last delivery succeeded."""

    def failures(self) -> list[tuple[Consumer, Failure]]:
        """Every consumer whose last delivery failed, by node_no and name."""

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        """Returns the events of a node that are still to be sent, by at_us, then event_no."""

    def token(self, token_id: str) -> Token | None:
        """Returns the bearer token with this id, even if it has expired."""

    def tokens(self, after: str, limit: int) -> list[Token]:
        """Returns bearer tokens by id."""

    def mirror(self, name: str) -> MirrorRow | None:
        """Returns the mirror with this name."""

    def mirrors(self) -> list[MirrorRow]:
        """Returns all mirrors by name. Their number is small."""

    def documents(self, reader: str) -> dict[str, KnownDocument]:
        """Returns the documents that a reader has processed, by the address that it requests."""


class WriteTx(ReadTx, Protocol):
    """The writing operations. Each method maintains the derived counts (total, live, subscriptions)."""

    def lock(self, name: str) -> Node | None:
        """Returns `node` and lock it until this transaction ends."""

    def lock_no(self, node_no: int) -> Node | None:
        """Returns `node_by_no` and lock it until this transaction ends."""

    def add_node(self, node: Node) -> Node:
        """Stores a new node and returns it with its number. The caller must have checked that the name is free."""

    def set_options(self, node_no: int, options: FormFields) -> None:
        """Replaces the options of a node. Its audience number increases, and lists of nodes change accordingly."""

    def set_keys(self, node_no: int, last_modified_us: int, last_created_us: int) -> None:
        """Stores the greatest ordering keys that were assigned."""

    def retire_node(self, node_no: int) -> None:
        """Frees the name and marks the node as deleted. Its rows remain until `reap`."""

    def reap(self, node_no: int, limit: int) -> bool:
        """Removes up to `limit` rows of a deleted node. Returns True if none is left."""

    def put_item(self, node_no: int, item: Item) -> Item:
        """Stores an item: a new item if item_no is 0 (returned with its number), else a new version of the item.

        The filter index keeps every replaced version of a feed's item, even if it had not read that version yet.
        """

    def remove_item(self, node_no: int, item_no: int) -> None:
        """Removes an item without a tombstone (generic nodes only)."""

    def set_affiliation(self, node_no: int, jid: str, affiliation: Affiliation) -> None:
        """Stores an affiliation; NONE removes it. The audience number increases."""

    def put_subscription(self, subscription: Subscription) -> Subscription:
        """Stores a subscription: a new one if sub_no is 0, returned with a number above all others.

        The audience number increases, for a new subscription by 1.
        """

    def remove_subscription(self, sub_no: int) -> None:
        """Removes a subscription. The audience number increases."""

    def add_event(self, event: NodeEvent) -> NodeEvent:
        """Stores an event to send and return it with its number."""

    def remove_events(self, event_nos: Iterable[int]) -> None:
        """Removes events that were sent."""

    def set_mark(self, node_no: int, order: Order, name: str, mark: Mark) -> None:
        """Stores how far the consumer of this name has come in an order of a feed."""

    def set_failure(self, consumer: Consumer, failure: Failure | None) -> None:
        """Stores the failure of a consumer; None removes it."""

    def remove_consumer(self, consumer: Consumer) -> None:
        """Removes the marks and the failure of a consumer."""

    def add_token(self, token: Token) -> None:
        """Stores a new bearer token. Raises StoreError if its id exists."""

    def remove_token(self, token_id: str) -> None:
        """Removes a bearer token."""

    def put_mirror(self, row: MirrorRow) -> None:
        """Stores a mirror, or replaces the mirror with its name."""

    def remove_mirror(self, name: str) -> None:
        """Removes a mirror. The items that it received remain."""

    def put_document(self, reader: str, url: str, document: KnownDocument) -> None:
        """Stores a document that a reader has processed, or replaces the document of this address."""

    def remove_document(self, reader: str, url: str) -> None:
        """Removes a document that a reader no longer requests."""

    def index_some(self, limit: int) -> int:
        """Adds up to `limit` items to the filter index, oldest change first. Returns their number; 0 means up to date.

        An item above 1 KiB counts as several, because reading it takes as long as reading several.
        """

    def index_node(self, node_no: int, limit: int = NO_LIMIT) -> int:
        """Adds up to `limit` items of a node to its filter index, oldest change first. Returns their number.

        `slice`, `count` and `standings` of filtered views require an index that is up to date.
        """


class OpenMode(Enum):
    """How a store is opened.

    Only a service and `db upgrade` change the schema: a command of a newer version must not change it under a running
    service of an older version.
    """

    READ = "read"
    """Reads an existing store."""
    WRITE = "write"
    """Reads and writes an existing store."""
    CREATE = "create"
    """Reads and writes a store, which is created when it does not exist."""
    SERVE = "serve"
    """As CREATE; an older schema is upgraded."""

    @property
    def creates(self) -> bool:
        """Whether a missing store is created."""
        return self in (OpenMode.CREATE, OpenMode.SERVE)


class Store(Protocol):
    """A store of feeds."""

    async def open(self) -> None:
        """Opens the store as its `OpenMode` allows. Raises StoreError with advice."""

    async def close(self) -> None:
        """Finishes running work and closes the store."""

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "") -> T:
        """Runs `work` on a snapshot. Raises what `work` raises, or StoreError.

        `turn` names the requester. Waiting work of different turns is served in rotation, work of one turn in its
        order.
        """

    async def write(self, work: Callable[[WriteTx], T], *, turn: str = "") -> T:
        """Runs `work` in a transaction and returns when it is durable. Raises what `work` raises, or StoreError."""

    async def index_some(self, limit: int) -> int:
        """Runs `WriteTx.index_some` in a transaction of its own, with payloads read before it. Raises StoreError."""


# Returns the facets and words of a payload. It is passed to the store, because only `formats` can read payloads.
Indexer = Callable[[bytes], Traits]


class ReadAhead:
    """An `Indexer` that can read payloads before the transaction that indexes them, so that other writes do not wait.

    Reading 60 KB takes 4 ms, or 20 ms for HTML. The results of `prepare` are kept until the next call.
    """

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer
        self._traits: dict[bytes, Traits] = {}

    def __call__(self, payload: bytes) -> Traits:
        traits = self._traits.get(payload)
        return self._indexer(payload) if traits is None else traits

    def prepare(self, payloads: Iterable[bytes]) -> None:
        """Reads these payloads. May run in any thread."""
        self._traits = {payload: self._indexer(payload) for payload in payloads}

    def is_ready(self, payload: bytes) -> bool:
        """Returns whether this payload was read ahead."""
        return payload in self._traits
