"""Begins, changes, lists and ends subscriptions, for subscribers and for owners (XEP-0060 5.6, 6.1 to 6.4, 8.8)."""

from dataclasses import dataclass, replace
from functools import partial

from smartfeeds.core.attachment_names import is_reserved
from smartfeeds.core.consumers import held_consumer
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import (
    NO_OPTIONS,
    RELEASE,
    Item,
    KeyRange,
    Node,
    NodeEvent,
    Slice,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.options import FormFields
from smartfeeds.core.suboptions import PRESENCE, apply, for_client, is_temporary, lease_end_us
from smartfeeds.core.suboptions import flag as subscriber_wants
from smartfeeds.core.text import without_forbidden
from smartfeeds.core.view import View, from_canonical
from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.context import Context, LocatedNode, locate_for, recipient_access
from smartfeeds.service.paged_lists import PagedList, listed_bytes, listing_of, number_in, page_of, shown_bytes
from smartfeeds.service.requests import (
    EmptyResult,
    GetDefaultSubscribeOptions,
    GetNodeSubscriptions,
    GetSubscribeOptions,
    GetSubscriptions,
    NodeRequest,
    PartlyRefused,
    Request,
    SetSubscribeOptions,
    SetSubscriptions,
    Subscribe,
    Subscribed,
    SubscribeOptions,
    SubscriptionList,
    SubscriptionShown,
    Unsubscribe,
    Unsubscribed,
)
from smartfeeds.service.steps import IndexFirst, MoreSteps, index_first
from smartfeeds.service.subscription_states import (
    begin,
    change_state,
    current_subscription,
    of_jid,
    owned_node,
    send_requests,
    start_pushing,
    tell,
)
from smartfeeds.service.syncing import item_in_view
from smartfeeds.store.base import ReadTx, WriteTx

_ENDING = frozenset({"gone", "too-many-bounces"})  # other errors are counted first (`push.bounces`)
STEP = 100  # entries of an owner's list that one transaction applies: some 5 ms
_STATES = {"subscribed": SubscriptionState.SUBSCRIBED, "none": SubscriptionState.NONE}


@dataclass(frozen=True, slots=True)
class Bounce(Request):
    """An error response to an event (XEP-0060 12.4): the `sub_no` in its message id, and the condition."""

    sub_no: int
    condition: str = ""


def subscribe(tx: WriteTx, context: Context, request: Subscribe) -> Subscribed | IndexFirst:
    """Subscribes the actor's bare or full address. A repetition changes only the stored spelling of the node name."""
    located = locate_for(tx, context, request.node, request.actor)
    jid = _own_jid(request.jid, request.actor, Condition.INVALID_JID)
    node = located.node
    if not node.options.subscribe:
        raise unsupported("subscribe", "the owner has switched off subscriptions to this node (pubsub#subscribe)")
    state = located.access.subscription_on_request()
    if state is SubscriptionState.PENDING and is_reserved(node.name, context.policy.domain):
        raise FeedError(Condition.NOT_SUBSCRIBED_READER, "subscribe to the node of the items first")
    if located.view.sync:
        located.check_view()
    view = located.view_text
    existing = current_subscription(tx, context, node.node_no, jid, view)
    if existing is None:
        if (error := _quota_error(tx, context, request.actor, located)) is not None:
            raise error
    elif state is SubscriptionState.PENDING:
        if existing.state is SubscriptionState.PENDING:
            raise FeedError(Condition.PENDING_SUBSCRIPTION)
        state = existing.state  # approved before
    sends_last = state is SubscriptionState.SUBSCRIBED and node.options.send_last_published_item != "never"
    # Before anything is stored, because the whole step then runs again.
    if sends_last and (behind := index_first(tx, node, located.view)) is not None:
        return behind
    subscription = _store(tx, context, located, request, jid, view, state, existing)
    last = newest_item(tx, context, node, located.view) if sends_last else None
    if last is None:
        answer = Subscribed(_shown(subscription), node.kind)
    else:
        body = subscriber_wants(subscription.options, "include_body")
        answer = with_last_item(node, _shown(subscription), last, body=body)
    return answer if request.options is None else replace(answer, options=subscription.options)


def _store(
    tx: WriteTx,
    context: Context,
    located: LocatedNode,
    request: Subscribe,
    jid: str,
    view: str,
    state: SubscriptionState,
    existing: Subscription | None,
) -> Subscription:
    """Stores a subscription in a state: a new one, or the existing one with the options of the request."""
    node = located.node
    options = NO_OPTIONS if existing is None else for_client(existing.options)
    if request.options is not None or node.options.tempsub:
        options = _options(tx, context, node, jid, options, request.options)
    if existing is None:
        subscription = begin(tx, context, node, _new_subscription(context, node, request, jid, view, state, options))
    else:
        subscription = existing._replace(node_text=request.node or "", service=request.service, options=options)
        if state is existing.state:
            if subscription != existing:
                _change_options(tx, context, node, subscription)
            return subscription
        subscription = change_state(tx, context, subscription, state, by_subscriber=True)
    start_pushing(tx, node, located.view.order)
    if state is SubscriptionState.PENDING:
        send_requests(tx, context, node, subscription)
    return subscription


def with_last_item(node: Node, subscription: SubscriptionShown, last: Item | None, *, body: bool) -> Subscribed:
    """Returns a subscription with the newest item, as the node sends items."""
    return Subscribed(
        subscription,
        node.kind,
        None,
        last if last is None or node.options.deliver_payloads else last._replace(payload=b""),
        node.options.shows_publisher,
        node.options.notification_type,
        read_meta(last.payload).body if last and body else "",
    )


def sees_presence(tx: ReadTx, context: Context, bare: str) -> bool:
    """Whether a bare JID is a contact of the service that has accepted its request for presence."""
    contact = tx.contact(context.policy.domain, bare)
    return contact is not None and contact.is_granted


def _options(
    tx: ReadTx, context: Context, node: Node, jid: str, current: FormFields, form: FormFields | None
) -> FormFields:
    """The options of a subscription after a form. On a node with `tempsub` it ends by presence (XEP-0060 12.5).

    Raises FeedError for invalid options, and for an end by presence if the service does not see the presence.
    """
    options = current if form is None else apply(node.kind, current, form, context.now_us)
    if node.options.tempsub:
        options = {**options, "expire": (PRESENCE,)}
    if is_temporary(options) and not is_temporary(current) and not sees_presence(tx, context, jid.partition("/")[0]):
        condition = Condition.PRESENCE_REQUIRED if node.options.tempsub else Condition.INVALID_OPTIONS
        domain = context.policy.domain
        raise FeedError(
            condition,
            f"the subscription would end with your presence, which {domain} does not see; subscribe to the presence of "
            f"{domain} and accept its request",
        )
    return options


def _new_subscription(
    context: Context,
    node: Node,
    request: NodeRequest,
    jid: str,
    view: str,
    state: SubscriptionState,
    options: FormFields,
) -> Subscription:
    """A subscription to store; only what is published after it is sent."""
    address = node.node_no, jid, view, request.node or "", request.service
    return Subscription(0, *address, state, node.last_modified_us, node.last_created_us, context.now_us, options)


def unsubscribe(tx: WriteTx, context: Context, request: Unsubscribe) -> Unsubscribed:
    """Ends a subscription of the actor."""
    _node, subscription = _own_subscription(tx, context, request)
    change_state(tx, context, subscription, SubscriptionState.NONE, by_subscriber=True)
    return Unsubscribed(SubscriptionShown(request.node or "", subscription.jid, SubscriptionState.NONE))


def get_subscriptions(tx: ReadTx, context: Context, request: GetSubscriptions) -> SubscriptionList:
    """The subscriptions of the actor's bare address and its resources, or those of one NodeID (xep-map 114, 124)."""
    bare = request.actor.bare_text
    if request.node:
        located = locate_for(tx, context, request.node, request.actor)
        subscriptions = tx.subscriptions_on(located.node.node_no, bare, now_us=context.now_us)
        listing = listing_of([_shown(sub) for sub in subscriptions if sub.view == located.view_text], shown_bytes)
    else:
        listing = _of_entity(tx, context, bare)
    entries, result_set = page_of(listing, request.page, context.policy)
    return SubscriptionList(request.node, entries, result_set=result_set)


def _of_entity(tx: ReadTx, context: Context, bare: str) -> PagedList[int, SubscriptionShown]:
    def read(part: KeyRange[int]) -> list[tuple[int, SubscriptionShown]]:
        return [(sub.sub_no, _shown(sub)) for _, sub in tx.subscriptions_of(bare, part, now_us=context.now_us)]

    return PagedList(number_in, read, shown_bytes, lambda: tx.subscribed_by(bare))


def get_options(tx: ReadTx, context: Context, request: GetSubscribeOptions) -> SubscribeOptions:
    """The options of a subscription of the actor."""
    node, subscription = _own_subscription(tx, context, request)
    return SubscribeOptions(request.node, subscription.jid, node.kind, subscription.options)


def set_options(tx: WriteTx, context: Context, request: SetSubscribeOptions) -> EmptyResult:
    """Changes the options in the form; a cancelled form changes nothing."""
    node, subscription = _own_subscription(tx, context, request)
    if request.form is not None:
        current = for_client(subscription.options)
        options = _options(tx, context, node, subscription.jid, current, request.form)
        _change_options(tx, context, node, subscription._replace(options=options))
    return EmptyResult()


def _change_options(tx: WriteTx, context: Context, node: Node, subscription: Subscription) -> None:
    """Stores a subscription whose options may have changed. Events that are held may have to be sent now."""
    tx.put_subscription(subscription)
    order, consumer = from_canonical(subscription.view).order, held_consumer(node.node_no, subscription.sub_no)
    if tx.mark(node.node_no, order, consumer.name) is not None:
        tx.add_event(NodeEvent(0, node.node_no, node.last_modified_us, RELEASE, str(subscription.sub_no)))
        context.changed.add(node.node_no)


def get_default_options(tx: ReadTx, context: Context, request: GetDefaultSubscribeOptions) -> SubscribeOptions:
    """The options of a new subscription."""
    kind = (
        locate_for(tx, context, request.node, request.actor).node.kind if request.node else context.policy.default_kind
    )
    return SubscribeOptions(request.node, None, kind, {})


def list_for_owner(tx: ReadTx, context: Context, request: GetNodeSubscriptions) -> SubscriptionList:
    """The addresses in state subscribed (xep-map 93)."""
    node = owned_node(tx, context, request.node, request.actor)
    state = SubscriptionState.SUBSCRIBED

    # A subscriber of several views of the node is one entry, because the list cannot express the view.
    def read(part: KeyRange[str]) -> list[tuple[str, SubscriptionShown]]:
        jids = tx.subscribers(node.node_no, part, now_us=context.now_us)
        return [(jid, SubscriptionShown(node.name, without_forbidden(jid), state)) for jid in jids]

    listing = PagedList(str, read, lambda entry: listed_bytes(entry.jid), lambda: tx.subscription_count(node.node_no))
    entries, result_set = page_of(listing, request.page, context.policy)
    return SubscriptionList(request.node, entries, True, result_set)


def set_for_owner(
    tx: WriteTx, context: Context, request: SetSubscriptions, refused: tuple[SubscriptionShown, ...] = ()
) -> EmptyResult | PartlyRefused | MoreSteps[EmptyResult | PartlyRefused]:
    """Removes, approves or adds subscribers. Returns the entries that cannot be applied (xep-map 94 to 96).

    A step applies `STEP` entries, so that the writes of others do not wait for the whole list. `refused` are the
    entries that earlier steps could not apply.
    """
    located = locate_for(tx, context, request.node, request.actor)
    located.access.check_manage()
    node = located.node
    rejected = list(refused)
    for text, state_text in request.entries[:STEP]:
        jid = parse_jid(text)
        state = _STATES.get(state_text)
        subscriptions = of_jid(tx, context, node, jid) if jid is not None else []
        if jid is not None and state is SubscriptionState.SUBSCRIBED and not _is_listed(located, subscriptions, jid):
            subscriptions = _add_for_owner(tx, context, located, request, jid)
        if state is None or not subscriptions:
            current = subscriptions[0].state if subscriptions else SubscriptionState.NONE
            rejected.append(SubscriptionShown(node.name, text, current))
            continue
        for subscription in subscriptions:
            change_state(tx, context, subscription, state)
    if len(request.entries) > STEP:
        rest = replace(request, entries=request.entries[STEP:])
        return MoreSteps(partial(set_for_owner, request=rest, refused=tuple(rejected)))
    if rejected:
        return PartlyRefused(subscriptions=SubscriptionList(request.node, tuple(rejected), owner=True))
    return EmptyResult()


def _is_listed(located: LocatedNode, subscriptions: list[Subscription], jid: Jid) -> bool:
    """Whether there is a request to approve, or a subscription of exactly this address. Any view of a node counts for
    the node itself, because clients send the list of addresses back as they have read it."""
    return any(
        sub.state is SubscriptionState.PENDING
        or (sub.jid == str(jid) and (not located.view.smart or sub.view == located.view_text))
        for sub in subscriptions
    )


def _add_for_owner(
    tx: WriteTx, context: Context, located: LocatedNode, request: SetSubscriptions, jid: Jid
) -> list[Subscription]:
    """Subscribes the owner, or another user if the operator allows it. Returns [] if the subscription is refused.

    Another user never asked for the notifications. So the operator decides whether owners may do this, and the quotas
    of that user count.
    """
    node, own = located.node, jid.bare == request.actor.bare
    allowed = node.options.subscribe and (own or context.policy.owners_subscribe_others)
    access = recipient_access(tx, context, node, jid, SubscriptionState.SUBSCRIBED)
    if not allowed or not access.may_read or _quota_error(tx, context, jid, located) is not None:
        return []
    try:
        options = _options(tx, context, node, str(jid), NO_OPTIONS, None)
    except FeedError:
        return []
    view = located.view_text
    current_subscription(tx, context, node.node_no, str(jid), view)
    new = _new_subscription(context, node, request, str(jid), view, SubscriptionState.SUBSCRIBED, options)
    subscription = begin(tx, context, node, new)
    if not own:
        tell(tx, context, node, subscription, subscription.jid)
    start_pushing(tx, node, located.view.order)
    return [subscription]


def _own_jid(text: str | None, actor: Jid, foreign: Condition) -> str:
    """The address to act on: the actor's bare or full one. Raises FeedError(`foreign`) for somebody else's."""
    if not text:
        raise FeedError(Condition.JID_REQUIRED)
    if text == actor.bare_text:  # most clients send it in the form of the service
        return text
    jid = parse_jid(text)
    if jid is None:
        raise FeedError(Condition.INVALID_JID)
    if jid.bare != actor.bare:
        raise FeedError(foreign)
    return str(jid)


def _own_subscription(
    tx: ReadTx, context: Context, request: Unsubscribe | GetSubscribeOptions | SetSubscribeOptions
) -> tuple[Node, Subscription]:
    """Returns the node and the actor's subscription to it. Raises FeedError."""
    located = locate_for(tx, context, request.node, request.actor)
    jid = _own_jid(request.jid, request.actor, Condition.FORBIDDEN)
    subscription = tx.subscription(located.node.node_no, jid, located.view_text, now_us=context.now_us)
    if subscription is None:
        raise FeedError(Condition.NOT_SUBSCRIBED)
    return located.node, subscription


def check_quotas(tx: WriteTx, context: Context, actor: Jid, name: str) -> None:
    """Checks whether a user may subscribe to a node now, for what is stored before the subscription. Raises FeedError
    as `subscribe` does."""
    located = locate_for(tx, context, name, actor)
    if tx.subscription(located.node.node_no, actor.bare_text, located.view_text, now_us=context.now_us) is not None:
        return
    if (error := _quota_error(tx, context, actor, located)) is not None:
        raise error


def _quota_error(tx: WriteTx, context: Context, actor: Jid, located: LocatedNode) -> FeedError | None:
    """Returns the error for a further subscription of the user to the view; None if it is within the quotas."""
    bare = actor.bare_text
    tx.lock_quotas(bare)  # until the new row is stored: another process must count it
    use = tx.subscriber_use(located.node.node_no, bare, now_us=context.now_us)
    if use.own >= context.policy.subscriptions_per_jid:
        return FeedError(Condition.TOO_MANY_SUBSCRIPTIONS, "end some of your subscriptions first")
    # The owner of a domain can create any number of JIDs.
    if use.of_domain >= context.policy.subscriptions_per_domain:
        return FeedError(Condition.TOO_MANY_SUBSCRIPTIONS, f"the users of {actor.domain} have too many subscriptions")
    # Every change of the node is sent once for each of these subscriptions.
    if len(use.here) >= context.policy.subscriptions_per_jid_and_node:
        return FeedError(Condition.TOO_MANY_SUBSCRIPTIONS, "end some of your subscriptions to this node first")
    if located.view.filtered:
        # Every change of a node is compared with each filtered view that has subscribers, and counted there.
        views = {subscription.view for subscription in use.here} - {located.view_text}
        if sum(from_canonical(view).filtered for view in views) >= context.policy.filters_per_jid:
            return FeedError(Condition.TOO_MANY_SUBSCRIPTIONS, "end some of your filtered subscriptions here first")
    return None


def newest_item(tx: ReadTx, context: Context, node: Node, view: View) -> Item | None:
    """The newest live item of a view, as it is shown there."""
    live = replace(view, smart=False)
    newest = tx.slice(node.node_no, Slice(live, 1, newest=True))
    return item_in_view(context, node, view, newest[0]) if newest else None


def _shown(subscription: Subscription) -> SubscriptionShown:
    end_us = lease_end_us(subscription.options) if subscription.options else None
    return SubscriptionShown(subscription.node_text, subscription.jid, subscription.state, end_us)


def end_after_bounce(tx: WriteTx, context: Context, request: Bounce) -> EmptyResult:
    """Ends a subscription after a permanent error (xep-map 241, 242) from the subscribed address itself."""
    subscription = tx.subscription_by_no(request.sub_no)
    if subscription is None:
        return EmptyResult()
    jid = parse_jid(subscription.jid)
    if jid is not None and jid.bare == request.actor.bare and request.condition in _ENDING:
        change_state(tx, context, subscription, SubscriptionState.NONE)
    return EmptyResult()
