"""Subscriptions, for their entities and for the owners of nodes (XEP-0060 5.6, 6.1 to 6.4, 8.8)."""

from dataclasses import dataclass

from smartfeeds.core.model import Item, NodeKind, SubscriptionState
from smartfeeds.core.options import FormFields
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.service.requests.base import Answer, NodeRequest, Request, ResultSet


@dataclass(frozen=True, slots=True)
class Subscribe(NodeRequest):
    """Subscribes a JID to a node (XEP-0060 6.1). `options` is a submitted subscribe_options form, None if absent."""

    jid: str | None
    options: FormFields | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe(NodeRequest):
    """Ends the subscription of a JID (XEP-0060 6.2). A subid is ignored, because the service assigns none (xep-map
    123)."""

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
    """Lists the subscriptions of the actor in pages (XEP-0060 5.6, XEP-0059)."""

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
    """Asks for the options of a subscription (XEP-0060 6.3.2)."""

    jid: str | None


@dataclass(frozen=True, slots=True)
class SetSubscribeOptions(NodeRequest):
    """Changes the options of a subscription (XEP-0060 6.3.5). `form` None is a form of type cancel."""

    jid: str | None
    form: FormFields | None


@dataclass(frozen=True, slots=True)
class GetDefaultSubscribeOptions(Request):
    """Asks for the default options of subscriptions (XEP-0060 6.4)."""

    node: str | None = None


@dataclass(frozen=True, slots=True)
class SubscribeOptions(Answer):
    """The options of a subscription (`core.suboptions`), or the defaults if `jid` is None."""

    node: str | None
    jid: str | None
    kind: NodeKind
    options: FormFields


@dataclass(frozen=True, slots=True)
class GetNodeSubscriptions(NodeRequest):
    """Lists the subscriptions of a node in pages, for its owner (XEP-0060 8.8.1, XEP-0059)."""

    page: ResultSetRequest | None = None


@dataclass(frozen=True, slots=True)
class SetSubscriptions(NodeRequest):
    """Changes subscriptions of a node, as its owner (XEP-0060 8.8.2). `entries` are pairs of a JID and a state as
    written."""

    entries: tuple[tuple[str, str], ...]
