"""What a peer can ask for, and what it gets: one frozen value a request, the same for every wire.

Every request carries `actor`, the full address it came from, and `service`, our bare address it was sent to (SF-085).
Node names and ids are texts as written, None where they were missing. Forms are mappings of field names to values.
"""

from dataclasses import dataclass, field

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, Item, Node, NodeKind, SubscriptionState
from smartfeeds.core.options import FormFields, NodeOptions
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import View
from smartfeeds.service.drafts import Draft


@dataclass(frozen=True, slots=True)
class Request:
    """What all requests have."""

    actor: Jid
    service: str

    @property
    def turn(self) -> str:
        """For whom it is: works of different turns are taken in turn (`Store.read`)."""
        return str(self.actor.bare)


@dataclass(frozen=True, slots=True)
class OrderBy:
    """XEP-0413: `by` is creation or modification, as written."""

    by: str
    descending: bool = False


# Items.


@dataclass(frozen=True, slots=True)
class Expected:
    """What an item must be like for a change of it to happen (RFC 9110 13.1; `preconditions.item_tag`).

    With `tags` it has one of these (If-Match). Without, it is there (If-Match: *) or, with `absent`, it is not
    (If-None-Match: *); a deleted one is not there.
    """

    tags: frozenset[str] | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Publish(Request):
    """XEP-0060 7.1. `draft` None means an empty item; `options` are publish-options, None when absent.

    `may_create` is False for who may only publish: a node that is missing is then not made.
    """

    node: str | None
    item_id: str | None
    draft: Draft | None
    options: FormFields | None = None
    item_present: bool = True
    expected: Expected | None = None
    may_create: bool = True


@dataclass(frozen=True, slots=True)
class Published:
    """The node name as written, and the id the item has now.

    `tag` is what its next change can expect, empty where it was deleted; `created` says that it was not there before.
    """

    node: str
    item_id: str
    tag: str = ""
    created: bool = False


@dataclass(frozen=True, slots=True)
class Retract(Request):
    """XEP-0060 7.2. `notify` None means the attribute was absent."""

    node: str | None
    item_id: str | None
    notify: bool = False
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class Purge(Request):
    """XEP-0060 8.5."""

    node: str | None


@dataclass(frozen=True, slots=True)
class Pull(Request):
    """XEP-0060 6.5 with XEP-0059 and XEP-0413. `item_ids` asks for these items alone."""

    node: str | None
    item_ids: tuple[str, ...] = ()
    max_items: str | None = None
    page: ResultSetRequest | None = None
    order_by: tuple[OrderBy, ...] = ()


@dataclass(frozen=True, slots=True)
class PullFeed(Request):
    """A page as a document wants it: with what the feed says of itself and whether there is more.

    `node` is the name of the feed itself, `view` the query string of a view; without one it is the Smart view in
    modified order, with `stock` (and on generic nodes) the bare node. `known` are versions (see `FeedPage`) that the
    asker has: no items are read where one is still right. With `both_sides` older items are looked for too. `asker` is
    the address of an anonymous reader.
    """

    node: str
    view: str = ""
    stock: bool = False
    page: ResultSetRequest | None = None
    known: frozenset[str] = frozenset()
    both_sides: bool = False
    asker: str = ""

    @property
    def turn(self) -> str:
        """For the address that asks, where the actor is nobody in particular."""
        return self.asker or str(self.actor.bare)


@dataclass(frozen=True, slots=True)
class ResultSet:
    """The answer to a result set: `first` and `last` are full UIDs (`cursor:...`), None on an empty page.

    `count` is None where counting would cost far more than the page (XEP-0059 2.7: it is optional).
    """

    count: int | None
    first: str | None = None
    last: str | None = None
    index: int | None = None

    def is_longer_than(self, entries: int) -> bool:
        """Whether the whole list may have more than so many entries."""
        return self.count is None or self.count > entries


@dataclass(frozen=True, slots=True)
class Page:
    """Items in the order they are shown. `show_publisher` follows itemreply."""

    node: str
    items: tuple[Item, ...]
    result_set: ResultSet | None
    show_publisher: bool


@dataclass(frozen=True, slots=True)
class GetItem(Request):
    """One item of a node, or of the node of a view; with `sync` as a view with that parameter shows it."""

    node: str | None
    item_id: str
    sync: bool = False


@dataclass(frozen=True, slots=True)
class ItemShown:
    """An item, or what is left of a deleted one, and the node it is in. `show_publisher` follows itemreply."""

    item: Item
    node: Node
    show_publisher: bool


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A page of a feed, ascending, with the feed itself. `version` changes with everything a page of it depends on.

    `page` is None where the asker knows it. `newer` and `older` tell whether the view has items behind and before the
    page now, `older` only where that was asked; `before_us` is the ordering key of the item right before the page then.
    `public` says that anybody may read the feed.
    """

    node: Node
    view: View
    version: str
    public: bool
    page: Page | None = None
    newer: bool = False
    older: bool = False
    before_us: int | None = None


# Nodes.


@dataclass(frozen=True, slots=True)
class CreateNode(Request):
    """XEP-0060 8.1; node None asks for an instant node; `form` None: no configuration given."""

    node: str | None
    form: FormFields | None = None


@dataclass(frozen=True, slots=True)
class NodeCreated:
    """`generated` tells that the name is ours and has to be told."""

    node: str
    generated: bool


@dataclass(frozen=True, slots=True)
class GetConfiguration(Request):
    """XEP-0060 8.2."""

    node: str | None


@dataclass(frozen=True, slots=True)
class Configure(Request):
    """XEP-0060 8.2.4. `form` None is a form of type cancel."""

    node: str | None
    form: FormFields | None


@dataclass(frozen=True, slots=True)
class GetDefaultConfiguration(Request):
    """XEP-0060 8.3; `type` is leaf or collection."""

    type: str = "leaf"


@dataclass(frozen=True, slots=True)
class Configuration:
    """A node's options, or the defaults when `node` is None."""

    node: str | None
    options: NodeOptions


@dataclass(frozen=True, slots=True)
class DeleteNode(Request):
    """XEP-0060 8.4."""

    node: str | None


@dataclass(frozen=True, slots=True)
class EmptyResult:
    """An empty result."""


# Subscriptions.


@dataclass(frozen=True, slots=True)
class Subscribe(Request):
    """XEP-0060 6.1; `options` is a submitted subscribe_options form, None when absent."""

    node: str | None
    jid: str | None
    options: FormFields | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe(Request):
    """XEP-0060 6.2. A subid is ignored: there are none (xep-map 123)."""

    node: str | None
    jid: str | None


@dataclass(frozen=True, slots=True)
class SubscriptionShown:
    """A subscription as it is told: node as written, the JID subscribed, its state."""

    node: str
    jid: str
    state: SubscriptionState


@dataclass(frozen=True, slots=True)
class Subscribed:
    """`options` are set when they were part of the request; `last` is an item to send along (xep-map 116).

    It goes out as the node sends items: `last` has its payload, or none, `message_type` and `body` are its message's.
    """

    subscription: SubscriptionShown
    kind: NodeKind
    options: FormFields | None = None
    last: Item | None = None
    show_publisher: bool = True
    message_type: str = "headline"
    body: str = ""


@dataclass(frozen=True, slots=True)
class GetSubscriptions(Request):
    """XEP-0060 5.6, with XEP-0059."""

    node: str | None = None
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionList:
    """Subscriptions of an entity (`node` as asked) or of a node (`owner` true)."""

    node: str | None
    entries: tuple[SubscriptionShown, ...]
    owner: bool = False
    result_set: ResultSet | None = None


@dataclass(frozen=True, slots=True)
class GetSubscribeOptions(Request):
    """XEP-0060 6.3.2."""

    node: str | None
    jid: str | None


@dataclass(frozen=True, slots=True)
class SetSubscribeOptions(Request):
    """XEP-0060 6.3.5. `form` None is a form of type cancel."""

    node: str | None
    jid: str | None
    form: FormFields | None


@dataclass(frozen=True, slots=True)
class GetDefaultSubscribeOptions(Request):
    """XEP-0060 6.4."""

    node: str | None = None


@dataclass(frozen=True, slots=True)
class SubscribeOptions:
    """The options of a subscription, or the defaults when `jid` is None: encoded by way of `core.suboptions`."""

    node: str | None
    jid: str | None
    kind: NodeKind
    options: FormFields


# Affiliations and the owner's view.


@dataclass(frozen=True, slots=True)
class GetAffiliations(Request):
    """XEP-0060 5.7, or 8.9.1 when `owner` is true, with XEP-0059."""

    node: str | None = None
    owner: bool = False
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class AffiliationShown:
    """One entry; `node` is set in an entity's own list, `jid` in an owner's."""

    affiliation: Affiliation
    node: str = ""
    jid: str = ""


@dataclass(frozen=True, slots=True)
class AffiliationList:
    """Affiliations of an entity or, with `owner`, of a node."""

    node: str | None
    entries: tuple[AffiliationShown, ...]
    owner: bool = False
    result_set: ResultSet | None = None


@dataclass(frozen=True, slots=True)
class SetAffiliations(Request):
    """XEP-0060 8.9.2: (jid, affiliation as written or None) pairs."""

    node: str | None
    entries: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class GetNodeSubscriptions(Request):
    """XEP-0060 8.8.1, with XEP-0059."""

    node: str | None
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class SetSubscriptions(Request):
    """XEP-0060 8.8.2: (jid, state as written) pairs."""

    node: str | None
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PartlyRefused:
    """Some entries of a SetAffiliations or SetSubscriptions could not be applied; the others were (xep-map 89, 96)."""

    affiliations: AffiliationList | None = None
    subscriptions: SubscriptionList | None = None


# Discovery.


@dataclass(frozen=True, slots=True)
class GetNodeInfo(Request):
    """XEP-0030 disco#info on a node or a Smart view."""

    node: str


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What is told about a node. `readable` decides whether owners, publishers and the audience are shown (34).

    Of a node that is not `described` its name, type and access model are told, and `node` holds no more than these.
    """

    name: str
    node: Node
    view: View
    readable: bool
    owners: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()
    subscribers: int = 0
    described: bool = True


@dataclass(frozen=True, slots=True)
class GetNodes(Request):
    """XEP-0030 disco#items on the service, with XEP-0059 and XEP-0462."""

    page: ResultSetRequest | None = None
    included_types: tuple[str, ...] | None = None
    excluded_types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeList:
    """Nodes by name."""

    nodes: tuple[Node, ...]
    result_set: ResultSet | None


@dataclass(frozen=True, slots=True)
class GetItemIds(Request):
    """XEP-0030 disco#items on a node."""

    node: str
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class ItemIds:
    """Ids of live items (xep-map 40, 41)."""

    node: str
    ids: tuple[str, ...]
    result_set: ResultSet | None


@dataclass(frozen=True, slots=True)
class Bounce(Request):
    """An error that came back for an event: `sub_no` from its message id, the condition (XEP-0060 12.4)."""

    sub_no: int
    condition: str = field(default="")
