"""The values that the service and the store exchange: nodes, items, subscriptions, events, marks, and parts of lists.

They are immutable. The store fills them from rows, and a change is a new value. Times and keys are microseconds since
the Unix epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from smartfeeds.core.options import FormFields, NodeOptions
from smartfeeds.core.options import NodeKind as NodeKind  # so written for mypy: other modules import it from here
from smartfeeds.core.view import Order, View

K = TypeVar("K", int, str)

AUDIENCE_CHANGE = 2**32  # the step of `Node.audience`: more than the subscriptions between two other changes
# The greatest size of an item's sync data. It is sent in one stanza with the payload, also with the largest one.
MAX_SYNC_BYTES = 131_072
# The greatest size of a payload with all quotation marks escaped. Servers accept stanzas of up to 512 KiB.
MAX_WRITTEN_BYTES = 380_000
MAX_ID_BYTES = 1023  # of a node name or an item id, in UTF-8 (XEP-0060 4.6; xep-map 55)


class Affiliation(Enum):
    """The affiliation of a JID with a node (XEP-0060 section 4.1)."""

    OWNER = "owner"
    PUBLISHER = "publisher"
    PUBLISH_ONLY = "publish-only"
    MEMBER = "member"
    NONE = "none"
    OUTCAST = "outcast"

    __hash__ = object.__hash__  # Enum.__hash__ is a slow Python function


class SubscriptionState(Enum):
    """The state of a subscription, of those that the service uses (XEP-0060 section 4.2)."""

    SUBSCRIBED = "subscribed"
    PENDING = "pending"
    NONE = "none"

    __hash__ = object.__hash__  # as above


NO_OPTIONS: FormFields = MappingProxyType({})


class IndexState(Enum):
    """The state of the filter index of a node."""

    UNREAD = "unread"  # nothing: nobody has read a filtered view of the node, so it is not indexed
    BEHIND = "behind"
    CURRENT = "current"


class NodeState(Enum):
    """A deleted node has lost its name, but its rows stay until the delete event is sent."""

    LIVE = "live"
    DELETED = "deleted"


class Node(NamedTuple):
    """A node as stored. Keys are microseconds; `-1` means that none has been assigned yet.

    `total` counts every item of the feed, tombstones too; `live` counts those that are not deleted. `last_modified_us`
    and `last_created_us` are the greatest ordering keys assigned so far. `audience` is the version of the recipients
    (subscriptions, affiliations, configuration); a cached list of another version is outdated. It grows by 1 with a new
    subscription, which does not affect earlier ones, and by AUDIENCE_CHANGE with every other change.

    Nodes are tuples because lists read hundreds of them and each publish creates three. A frozen dataclass takes six
    times as long to create.
    """

    node_no: int
    name: str
    kind: NodeKind
    creator: str
    created_us: int
    options: NodeOptions
    state: NodeState = NodeState.LIVE
    total: int = 0
    live: int = 0
    last_modified_us: int = -1
    last_created_us: int = -1
    audience: int = 0


class Item(NamedTuple):
    """An item as stored: the whole object (SF-009), or its tombstone (SF-013).

    `item_no` grows in the order of first storing and breaks ties between equal keys (A-07). `payload` is canonical
    UTF-8 XML, ready to be joined into a stanza, or empty if a generic node stores none. `revision` is 1 for an item
    that was never changed. `notify`: subscribers of the bare node are notified of this tombstone (XEP-0060 7.2.2.1).
    `total` and `live` are the counts of the feed right after this change, for its notifications (xep-map 172). `sync`
    is the sx:sync of a feed's item as XML, with its `conflicts` (FeedSync 2.4); the endpoint alone if the item was
    published here and not changed since; None if it was not read. The payload never contains it. `sync_id` is the id in
    the sync data, empty if it equals `id` (A-154). `left`: the view from which the item was read does not contain the
    item any more, although it is not deleted (`core.view.ViewStanding`). No store has this flag, and
    `service.syncing.item_in_view` sets `deleted` too. `damaged`: the database has other bytes than were stored, so the
    item has neither payload nor sync data here.

    A tuple, because a page has fifty of them, and a frozen dataclass takes seven times as long to create.
    """

    item_no: int
    id: str
    created_us: int
    modified_us: int
    payload: bytes
    publisher: str
    deleted: bool = False
    revision: int = 1
    notify: bool = False
    total: int = 0
    live: int = 0
    sync_id: str = ""
    conflicts: int = 0
    sync: bytes | None = b""
    left: bool = False
    damaged: bool = False


class Subscription(NamedTuple):
    """A subscription: an address receives the events of a view.

    `jid` is the address exactly as subscribed, `view` the canonical text of the view, `node_text` the NodeID as last
    written by the subscriber (xep-map 115), `service` the address to which the subscriber sent the request. `since_us`
    and `since_created_us` are the newest keys of the feed when the subscription began: only newer items are pushed.
    """

    sub_no: int
    node_no: int
    jid: str
    view: str
    node_text: str
    service: str
    state: SubscriptionState
    since_us: int
    since_created_us: int
    created_us: int
    options: FormFields = NO_OPTIONS


class SubscriberUse(NamedTuple):
    """The subscriptions of a bare JID and its resources on one node, their number on all nodes, and the number of all
    subscriptions of its domain.
    """

    here: list[Subscription]
    own: int
    of_domain: int


# The kind of the event for an item that the node does not store. Its data are the publisher, the quoted id, which is
# empty if there is only a notification, and the payload, separated by spaces.
TRANSIENT_ITEM = "item"
# The kind of an event that is sent to nobody: the delivery of held events begins, because options have changed. `data`
# is the number of a subscription, empty for all of the node.
RELEASE = "release"
# The kind of an event that is sent to nobody: items up to the key in `data`, of the modified order, are not notified.
QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A change that is not the change of a stored item: a purge, the deletion or configuration of the node, a
    retraction on a generic node, an item that the node does not store, the state of a subscription.

    `at_us` is a key of the feed's modified order, so that events and items are sent in one order. `to` limits the event
    to one address; empty means all subscribers.
    """

    event_no: int
    node_no: int
    at_us: int
    kind: str
    data: str = ""
    to: str = ""


class OpenPurge(NamedTuple):
    """A purge that has begun: the items up to `up_to_us` of the modified order are still to be retracted for `actor`,
    the bare JID of the user who purged the node."""

    node_no: int
    up_to_us: int
    actor: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The progress of deliveries in one order of a feed: everything up to `key_us` has been sent or dropped.

    `cursor` is the cursor of the last of these items at the time of sending; empty before the first item.
    """

    key_us: int
    cursor: str


class PushStart(NamedTuple):
    """The start of the next notifications of a node: the canonical views in state subscribed, the marks of the push by
    order, the first events to send, and the version of the block lists."""

    views: list[str]
    marks: Mapping[Order, Mark]
    events: list[NodeEvent]
    blocks_version: int


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A place between two items of an order: right behind the item (`key_us`, `item_no`).

    With `item_no` -1 the place is before all items of that key, with MAX_ITEM_NO after all of them.
    """

    key_us: int
    item_no: int


MAX_ITEM_NO = 2**62  # above every number of an item, and within the 64 bits of a column


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a view to read: up to `limit` items after `after` and up to `before`; None is open.

    With `newest` the last items of the range are read, else the first. The result is always ascending. `offset` skips
    as many items at the end from which they are read. A `brief` slice of a view without sync data has no revisions,
    counts of conflicts or of the feed, and no `notify`: what documents and stanzas do not show.
    """

    view: View
    limit: int
    after: Edge | None = None
    before: Edge | None = None
    newest: bool = False
    offset: int = 0
    brief: bool = False


NO_LIMIT = 2**62  # within the 64 bits of a LIMIT in SQL


@dataclass(frozen=True, slots=True)
class KeyRange(Generic[K]):
    """The part of a list to read, by key: up to `limit` entries after `after` and before `before`; None is open.

    `newest` and `offset` are those of a `Slice`, and the result is ascending too.
    """

    limit: int = NO_LIMIT
    after: K | None = None
    before: K | None = None
    newest: bool = False
    offset: int = 0


ALL_TEXTS: KeyRange[str] = KeyRange()
ALL_NUMBERS: KeyRange[int] = KeyRange()
