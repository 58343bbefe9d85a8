"""What a store offers: transactions of named operations.

A use case of `service/` is one function over a transaction, run by `Store.read` or `Store.write`; so the rules are
written once and a store only keeps rows. The functions run in the store's own thread: they must not await, block or
touch anything but the transaction and their arguments. A work function that raises leaves nothing behind. It may be run
a second time, from the start, when the commit that it shared failed.

`Store.write` returns after the commit is durable. Several writes may share one commit (group commit), each of them
still atomic. Reads see one snapshot, which contains every write that was acknowledged before.
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
    """The reading half of a transaction. Listings are in the order of the key that `after` names, ascending."""

    def node(self, name: str) -> Node | None:
        """The live node of this exact name."""

    def node_by_no(self, node_no: int) -> Node | None:
        """The node of this number, deleted ones too."""

    def nodes(self, after: str, limit: int, *, before: str | None = None, newest: bool = False) -> list[Node]:
        """Live nodes by name (code point order): those after `after` and before `before`; `newest` takes the last."""

    def node_count(self) -> int:
        """How many live nodes there are."""

    def listed_nodes(
        self, jid: str, after: str, limit: int, *, before: str | None = None, newest: bool = False
    ) -> list[Node]:
        """As `nodes`, those that lists show to a bare JID (`core.access.Access.sees_description`). The cost grows with
        the nodes returned and those between them from which the JID is kept out, but not with hidden nodes."""

    def listed_count(self, jid: str) -> int:
        """How many `listed_nodes` there are. Cost: the hidden ones among them, and those it is kept out of."""

    def created_by(self, creator: str) -> int:
        """How many live nodes this bare JID has made."""

    def created_in(self, domain: str) -> int:
        """How many live nodes the bare JIDs of this domain have made. O(1)."""

    def affiliation(self, node_no: int, jid: str) -> Affiliation:
        """The affiliation of a bare JID; NONE where none is stored."""

    def affiliations(
        self, node_no: int, part: KeyRange[str] = ALL_TEXTS, *, held: Affiliation | None = None
    ) -> list[tuple[str, Affiliation]]:
        """Stored affiliations of a node, by JID; with `held` those of this kind. Cost: what is returned."""

    def affiliation_count(self, node_no: int) -> int:
        """How many affiliations of a node are stored."""

    def affiliations_of(self, jid: str, part: KeyRange[int] = ALL_NUMBERS) -> list[tuple[Node, Affiliation]]:
        """The affiliations of a bare JID with live nodes, by node_no. Cost: what is returned."""

    def affiliated(self, jid: str) -> int:
        """How many affiliations a bare JID has, until their nodes are reaped."""

    def subscription(self, node_no: int, jid: str, view: str) -> Subscription | None:
        """The subscription of exactly this address to this canonical view."""

    def subscription_by_no(self, sub_no: int) -> Subscription | None:
        """The subscription of this number."""

    def subscriptions(self, node_no: int, after_no: int, limit: int) -> list[Subscription]:
        """Subscriptions of a node in every state, by sub_no."""

    def subscribers(self, node_no: int, part: KeyRange[str] = ALL_TEXTS) -> list[str]:
        """The addresses in state subscribed on a node, each once however many views it follows. Cost: what is
        returned."""

    def subscriptions_of(self, bare: str, part: KeyRange[int] = ALL_NUMBERS) -> list[tuple[Node, Subscription]]:
        """The subscriptions of a bare JID and its resources on live nodes, by sub_no. Cost: what is returned."""

    def subscriptions_on(self, node_no: int, bare: str) -> list[Subscription]:
        """The subscriptions of a bare JID and its resources to one node, by sub_no. Cost: what is returned."""

    def subscribed_by(self, bare: str) -> int:
        """How many subscriptions a bare JID and its resources have, in every state, until their nodes are reaped."""

    def subscribed_in(self, domain: str) -> int:
        """As `subscribed_by`, of all bare JIDs of this domain. O(1)."""

    def subscription_count(self, node_no: int) -> int:
        """How many subscriptions of a node are in state subscribed. O(1)."""

    def subscribed_views(self, node_no: int) -> list[str]:
        """The distinct canonical views that a node's subscriptions in state subscribed name."""

    def item(self, node_no: int, item_id: str) -> Item | None:
        """The item of this id, tombstones too."""

    def items(self, node_no: int, item_ids: Sequence[str]) -> list[Item]:
        """The items of these ids that are there, tombstones too, in no particular order."""

    def item_of_sync(self, node_no: int, sync_id: str) -> Item | None:
        """The item that is shared under this id: what its `sync_id` says, else its id."""

    def conflicted(self, node_no: int, part: KeyRange[int] = ALL_NUMBERS) -> list[Item]:
        """The items with conflicts, by item_no. Cost: what is returned."""

    def conflict_count(self, node_no: int) -> int:
        """How many items have conflicts. Cost: their number."""

    def slice(self, node_no: int, wanted: Slice) -> list[Item]:
        """Items of a view, ascending; without their sync data unless the view shows them. `Item.left` marks those that
        have left a filtered view (`core.view.Standing`); a view that hides tombstones has none of them.

        Cost: the items returned, whatever the size of the feed (unfiltered views).
        """

    def count(self, node_no: int, view: View, *, before: Edge | None = None) -> int:
        """How many items the view has, or how many lie up to an edge. O(1) for an unfiltered view without edge."""

    def bounded_count(self, node_no: int, view: View, *, before: Edge | None = None) -> int | None:
        """As `count`, or None if that takes more than a bounded amount of work. Counts of the whole view are
        remembered: the next one costs what has come since."""

    def standings(self, node_no: int, item: Item, views: Sequence[View]) -> list[Standing]:
        """How a stored item of this node stands to each of these views. Cost: the versions that the item has had."""

    def group(self, node_no: int, order: Order, key_us: int, limit: int) -> list[tuple[int, str]]:
        """The (item_no, id) of the first `limit` items, before any filter, that share this ordering key, by item_no."""

    def index_current(self, node_no: int) -> bool:
        """Whether the filter index knows every item of the node; else reads of filtered views need
        `WriteTx.index_node`."""

    def unindexed(self, limit: int) -> list[bytes]:
        """The payloads of the items that `WriteTx.index_some` takes next with this limit."""

    def mark(self, node_no: int, order: Order, name: str) -> Mark | None:
        """How far the consumer of this name has come in an order of a feed; None if it does not read that order."""

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
        """The events of a node that are still to be sent, by at_us, then event_no."""

    def token(self, token_id: str) -> Token | None:
        """The bearer token of this id, whether or not its time is over."""

    def tokens(self, after: str, limit: int) -> list[Token]:
        """Bearer tokens, by id."""

    def mirror(self, name: str) -> MirrorRow | None:
        """The mirror of this name."""

    def mirrors(self) -> list[MirrorRow]:
        """All mirrors, by name: there are few of them."""

    def documents(self, reader: str) -> dict[str, KnownDocument]:
        """The documents that a reader has processed, by the address that it requests."""


class WriteTx(ReadTx, Protocol):
    """The writing half. Each method keeps the derived counts (total, live, subscriptions) right by itself."""

    def lock(self, name: str) -> Node | None:
        """`node`, and nobody else writes to it until this transaction ends."""

    def lock_no(self, node_no: int) -> Node | None:
        """`node_by_no`, likewise."""

    def add_node(self, node: Node) -> Node:
        """Stores a new node and returns it with its number. The caller has checked that the name is free."""

    def set_options(self, node_no: int, options: FormFields) -> None:
        """Replaces the options of a node; its audience grows, and lists of nodes follow."""

    def set_keys(self, node_no: int, last_modified_us: int, last_created_us: int) -> None:
        """Remembers the greatest keys given out."""

    def retire_node(self, node_no: int) -> None:
        """Frees the name and marks the node deleted; its rows stay until `reap`."""

    def reap(self, node_no: int, limit: int) -> bool:
        """Removes up to `limit` rows of a deleted node; True when nothing of it is left."""

    def put_item(self, node_no: int, item: Item) -> Item:
        """Stores an item: a new one when item_no is 0 (returned with its number), else the new version of that one.

        The filter index remembers every version of a feed's item that was replaced, whether or not it had read it."""

    def remove_item(self, node_no: int, item_no: int) -> None:
        """Takes an item out for good (generic nodes only)."""

    def set_affiliation(self, node_no: int, jid: str, affiliation: Affiliation) -> None:
        """Stores an affiliation; NONE removes it. The audience grows."""

    def put_subscription(self, subscription: Subscription) -> Subscription:
        """Stores a subscription: a new one when sub_no is 0 (returned with its number, which is above
        all others). The audience grows, for a new one by 1."""

    def remove_subscription(self, sub_no: int) -> None:
        """Ends a subscription. The audience grows."""

    def add_event(self, event: NodeEvent) -> NodeEvent:
        """Stores an event that is to be sent and returns it with its number."""

    def remove_events(self, event_nos: Iterable[int]) -> None:
        """Forgets events that were sent."""

    def set_mark(self, node_no: int, order: Order, name: str, mark: Mark) -> None:
        """Stores how far the consumer of this name has come in an order of a feed."""

    def set_failure(self, consumer: Consumer, failure: Failure | None) -> None:
        """Stores the failure of a consumer; None removes it."""

    def remove_consumer(self, consumer: Consumer) -> None:
        """Removes the marks and the failure of a consumer."""

    def add_token(self, token: Token) -> None:
        """Stores a new bearer token. Raises StoreError where its id is taken."""

    def remove_token(self, token_id: str) -> None:
        """Forgets a bearer token."""

    def put_mirror(self, row: MirrorRow) -> None:
        """Stores a mirror, in the place of the one of its name."""

    def remove_mirror(self, name: str) -> None:
        """Forgets a mirror; what it brought stays."""

    def put_document(self, reader: str, url: str, document: KnownDocument) -> None:
        """Stores a document that a reader has processed, in place of the former one of this address."""

    def remove_document(self, reader: str, url: str) -> None:
        """Removes a document that a reader requests no more."""

    def index_some(self, limit: int) -> int:
        """Brings up to `limit` items into the filter index, oldest change first; how many it did (0: up to date).

        An item above 1 KiB counts as several, because reading it takes as long."""

    def index_node(self, node_no: int, limit: int = NO_LIMIT) -> int:
        """Brings up to `limit` items of a node into its filter index, oldest change first; how many it did. `slice`,
        `count` and `standings` of filtered views need it up to date."""


class OpenMode(Enum):
    """What opening a store may do to it. Only a service and `db upgrade` change the schema: a command of a newer
    version must not change it under a running service of an older one."""

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
        """Whether a store that does not exist is created."""
        return self in (OpenMode.CREATE, OpenMode.SERVE)


class Store(Protocol):
    """A place where feeds live."""

    async def open(self) -> None:
        """Opens it as its `OpenMode` allows. Raises StoreError with what to do."""

    async def close(self) -> None:
        """Finishes what is running and closes it."""

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "") -> T:
        """Runs `work` on a snapshot. Raises what `work` raises, or StoreError.

        `turn` says for whom: works of different turns that wait are taken in turn, those of one turn in their order.
        """

    async def write(self, work: Callable[[WriteTx], T], *, turn: str = "") -> T:
        """Runs `work` in a transaction and returns when it is durable. Raises what `work` raises, or StoreError."""

    async def index_some(self, limit: int) -> int:
        """`WriteTx.index_some` in a transaction of its own, with its payloads read before it. Raises StoreError."""


# The facets and words that a payload gives a version: passed to a store, because payloads are a matter of `formats`.
Indexer = Callable[[bytes], Traits]


class ReadAhead:
    """An `Indexer` that can read payloads before the transaction that indexes them, so that other writes do not wait
    for it: reading 60 KB takes 4 ms, or 20 ms of HTML. The results of `prepare` are kept until the next call."""

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
        """Whether this payload has been read ahead."""
        return payload in self._traits
