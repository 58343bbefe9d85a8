"""Requests and responses: one frozen value for each, the same for every wire.

Every request carries `actor`, the full address of its sender, and `service`, the bare address that it was sent to
(SF-085). Node names and ids are texts as written, None if they were missing. Requests about conflicts, about pending
subscriptions and about archives are in `service.conflicts`, `service.authorization` and `service.archive`.
"""

from dataclasses import dataclass

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, Item, Node, NodeKind, SubscriptionState
from smartfeeds.core.options import FormFields, NodeOptions
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.view import View
from smartfeeds.service.drafts import PayloadDraft


def local_part(service: str) -> str | None:
    """Returns the local part of a bare address, None if it is a domain."""
    return service.rpartition("@")[0] or None


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests."""

    actor: Jid
    service: str

    @property
    def turn(self) -> str:
        """The user on whose behalf the request runs; the store serves users in turn (`Store.read`)."""
        return str(self.actor.bare)

    @property
    def address_node(self) -> str | None:
        """The node of a request that names none: the local part of the address, None at the domain (SF-085)."""
        return local_part(self.service)


@dataclass(frozen=True, slots=True)
class NodeRequest(Request):
    """The base of requests about one node, or a view of it."""

    node: str | None


class Answer:
    """The base of all responses."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OrderBy:
    """An order of XEP-0413; `by` is "creation" or "modification", as written."""

    by: str
    descending: bool = False


# Items.


@dataclass(frozen=True, slots=True)
class ItemPrecondition:
    """A precondition for the change of an item (RFC 9110 13.1).

    If `tags` are given, the tag of the item (`preconditions.item_tag`) must be one of them (If-Match). Otherwise the
    item must exist (If-Match: *) or, with `absent`, must not exist (If-None-Match: *). A deleted item does not exist.
    """

    tags: frozenset[str] | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Publish(NodeRequest):
    """XEP-0060 7.1. `draft` None means an empty item; `options` are publish-options, None if absent.

    `may_create` is False if the sender's token does not allow it to create a missing node, or to change the kind of an
    empty feed.
    """

    item_id: str | None
    draft: PayloadDraft | None
    options: FormFields | None = None
    item_present: bool = True
    expected: ItemPrecondition | None = None
    may_create: bool = True


@dataclass(frozen=True, slots=True)
class Published(Answer):
    """The node name as written, and the id of the item.

    `tag` is the item's new tag for `ItemPrecondition.tags`, empty if the publish deleted the item. `created` is true if
    the item did not exist before.
    """

    node: str
    item_id: str
    tag: str = ""
    created: bool = False


@dataclass(frozen=True, slots=True)
class Retract(NodeRequest):
    """XEP-0060 7.2."""

    item_id: str | None
    notify: bool = False
    expected: ItemPrecondition | None = None


@dataclass(frozen=True, slots=True)
class Purge(NodeRequest):
    """XEP-0060 8.5."""


@dataclass(frozen=True, slots=True)
class Pull(NodeRequest):
    """XEP-0060 6.5 with XEP-0059 and XEP-0413. With `item_ids`, only these items."""

    item_ids: tuple[str, ...] = ()
    max_items: str | None = None
    page: ResultSetRequest | None = None
    order_by: tuple[OrderBy, ...] = ()


@dataclass(frozen=True, slots=True)
class PullFeed(Request):
    """A page for a document: with data about the feed, and with the information whether there is more.

    `node` is the exact name of the feed and `view` the query string of a view. Without `view` it is the Smart view in
    modified order; with `stock` it is the bare node. `known` are versions (see `FeedPage`) that
    the client has: if one of them is current, no items are read. With `both_sides` the response also says whether older
    items exist. `asker` is the network address of an anonymous reader.
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
        """The network address of an anonymous reader, else the actor."""
        return self.asker or str(self.actor.bare)


@dataclass(frozen=True, slots=True)
class ResultSet:
    """A response's result set: `first` and `last` are full UIDs (`cursor:...`), None on an empty page.

    `count` is None if counting would cost far more than the page. It is optional (XEP-0059 2.7).
    """

    count: int | None
    first: str | None = None
    last: str | None = None
    index: int | None = None

    def is_longer_than(self, entries: int) -> bool:
        """Whether the whole list may have more than so many entries."""
        return self.count is None or self.count > entries


@dataclass(frozen=True, slots=True)
class Page(Answer):
    """Items in the order of the response. `show_publisher` follows `pubsub#itemreply`."""

    node: str
    items: tuple[Item, ...]
    result_set: ResultSet | None
    show_publisher: bool


@dataclass(frozen=True, slots=True)
class GetItem(NodeRequest):
    """One item of a node or view; with `sync`, as a view with that parameter shows it."""

    item_id: str
    sync: bool = False


@dataclass(frozen=True, slots=True)
class ItemShown(Answer):
    """An item or its tombstone, and its node. `show_publisher` follows `pubsub#itemreply`."""

    item: Item
    node: Node
    show_publisher: bool


@dataclass(frozen=True, slots=True)
class FeedPage(Answer):
    """A page of a feed, ascending, with its node. `version` changes with everything that a page depends on.

    `page` is None if the client has it already. `newer` and `older` say whether the view has items behind and before
    the page; `older` is only set on request (`PullFeed.both_sides`), and `before_us` is then the ordering key of the
    item right before the page. `public` is true if everybody may read the feed.
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
class CreateNode(NodeRequest):
    """XEP-0060 8.1. `node` None requests an instant node; `form` None means no configuration."""

    form: FormFields | None = None


@dataclass(frozen=True, slots=True)
class NodeCreated(Answer):
    """`generated` is true if the service chose the name, which the response must then contain."""

    node: str
    generated: bool


@dataclass(frozen=True, slots=True)
class GetConfiguration(NodeRequest):
    """XEP-0060 8.2."""


@dataclass(frozen=True, slots=True)
class Configure(NodeRequest):
    """XEP-0060 8.2.4. `form` None is a form of type cancel."""

    form: FormFields | None


@dataclass(frozen=True, slots=True)
class GetDefaultConfiguration(Request):
    """XEP-0060 8.3; `type` is leaf or collection."""

    type: str = "leaf"


@dataclass(frozen=True, slots=True)
class Configuration(Answer):
    """A node's options, or the defaults of a new node if `node` is None."""

    node: str | None
    options: NodeOptions


@dataclass(frozen=True, slots=True)
class DeleteNode(NodeRequest):
    """XEP-0060 8.4. `redirect` is the address of the node that replaces the deleted node, empty without one."""

    redirect: str = ""


@dataclass(frozen=True, slots=True)
class EmptyResult(Answer):
    """An empty result."""


# Subscriptions.


@dataclass(frozen=True, slots=True)
class Subscribe(NodeRequest):
    """XEP-0060 6.1. `options` is a submitted subscribe_options form, None if absent."""

    jid: str | None
    options: FormFields | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe(NodeRequest):
    """XEP-0060 6.2. A subid is ignored, because the service assigns none (xep-map 123)."""

    jid: str | None


@dataclass(frozen=True, slots=True)
class SubscriptionShown:
    """A subscription in a response: the node as the subscriber wrote it, the subscribed JID, the state.

    `lease_end_us` is the end of its lease in microseconds.
    """

    node: str
    jid: str
    state: SubscriptionState
    lease_end_us: int | None = None


@dataclass(frozen=True, slots=True)
class Subscribed(Answer):
    """`options` are set if they were part of the request; `last` is an item to send with the response (xep-map 116).

    The item is sent as the node sends items: `last` is without payload if events are, and `message_type` and `body`
    are those of its message.
    """

    subscription: SubscriptionShown
    kind: NodeKind
    options: FormFields | None = None
    last: Item | None = None
    show_publisher: bool = True
    message_type: str = "headline"
    body: str = ""


@dataclass(frozen=True, slots=True)
class Unsubscribed(Answer):
    """The subscription that ended, in state none."""

    subscription: SubscriptionShown


@dataclass(frozen=True, slots=True)
class GetSubscriptions(Request):
    """XEP-0060 5.6, with XEP-0059."""

    node: str | None = None
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionList(Answer):
    """Subscriptions of an entity (`node` as in the request) or, with `owner`, of a node."""

    node: str | None
    entries: tuple[SubscriptionShown, ...]
    owner: bool = False
    result_set: ResultSet | None = None


@dataclass(frozen=True, slots=True)
class GetSubscribeOptions(NodeRequest):
    """XEP-0060 6.3.2."""

    jid: str | None


@dataclass(frozen=True, slots=True)
class SetSubscribeOptions(NodeRequest):
    """XEP-0060 6.3.5. `form` None is a form of type cancel."""

    jid: str | None
    form: FormFields | None


@dataclass(frozen=True, slots=True)
class GetDefaultSubscribeOptions(Request):
    """XEP-0060 6.4."""

    node: str | None = None


@dataclass(frozen=True, slots=True)
class SubscribeOptions(Answer):
    """The options of a subscription (`core.suboptions`), or the defaults if `jid` is None."""

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
class AffiliationList(Answer):
    """Affiliations of an entity or, with `owner`, of a node."""

    node: str | None
    entries: tuple[AffiliationShown, ...]
    owner: bool = False
    result_set: ResultSet | None = None


@dataclass(frozen=True, slots=True)
class SetAffiliations(NodeRequest):
    """XEP-0060 8.9.2: (jid, affiliation as written or None) pairs."""

    entries: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class GetNodeSubscriptions(NodeRequest):
    """XEP-0060 8.8.1, with XEP-0059."""

    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class SetSubscriptions(NodeRequest):
    """XEP-0060 8.8.2: (jid, state as written) pairs."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PartlyRefused(Answer):
    """The entries of a SetAffiliations or SetSubscriptions that were not applied; all others were (xep-map 89, 96)."""

    affiliations: AffiliationList | None = None
    subscriptions: SubscriptionList | None = None


# Discovery.


@dataclass(frozen=True, slots=True)
class GetNodeInfo(Request):
    """XEP-0030 disco#info on a node or a Smart view."""

    node: str


@dataclass(frozen=True, slots=True)
class NodeInfo(Answer):
    """The description of a node. Owners, publishers and subscribers are only filled if it is `readable` (xep-map 34).

    If it is not `described`, the response has its name, type and access model, and `node` holds nothing else.
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
    """XEP-0030 disco#items on the service, with XEP-0059 and XEP-0462; at the address of a feed, on this feed."""

    page: ResultSetRequest | None = None
    included_types: tuple[str, ...] | None = None
    excluded_types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeList(Answer):
    """Nodes by name."""

    nodes: tuple[Node, ...]
    result_set: ResultSet | None


@dataclass(frozen=True, slots=True)
class GetItemIds(Request):
    """XEP-0030 disco#items on a node."""

    node: str
    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class ItemIds(Answer):
    """The ids of live items (xep-map 40, 41)."""

    node: str
    ids: tuple[str, ...]
    result_set: ResultSet | None
