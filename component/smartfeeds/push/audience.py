"""The recipients of a node's events: pages of subscriptions, and resources that request them by `NODE+notify`.

A page stays cached until the `audience` number of the node changes, so that a fan-out does not read a thousand rows for
each event. A new subscription invalidates the last page only.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.attachment_names import follows_target
from smartfeeds.core.consumers import HELD, Consumer, held_consumer
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import AUDIENCE_CHANGE, Mark, Node, Subscription, SubscriptionState
from smartfeeds.core.options import AccessModel
from smartfeeds.core.suboptions import flag, values_of, wants_events
from smartfeeds.core.view import BARE, Order, canonical, from_canonical
from smartfeeds.push.frames import RecipientGroup, recipient
from smartfeeds.push.side import Interest
from smartfeeds.service.consumers import add_consumer
from smartfeeds.service.context import Context, recipient_access, refusal_of
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import ReadTx, WriteTx

PAGE = 1_000  # subscriptions of one transaction, so that other reads run in between
CACHED_PAGES = 200  # of all nodes together
PAGE_BYTES = 125_000  # about the memory of a full page; with addresses of 17 characters it has 116,424 bytes
HELD_AT_ONCE = 200  # subscriptions whose events one transaction begins to hold: some 10 ms
SHOW_VALUES = "show-values"
NO_SUBSCRIPTION = 0  # replaces the number of a subscription in message ids
_BARE = canonical(BARE)


@dataclass(frozen=True, slots=True)
class GroupRecipients:
    """The recipients of one group: their parts of frames, and since when each is subscribed, in the same order.

    `since_us` are keys of the order of the view; `newest_since_us` is the greatest of them.
    """

    recipients: tuple[bytes, ...]
    since_us: tuple[int, ...]
    newest_since_us: int

    def after(self, key_us: int) -> tuple[bytes, ...]:
        """The recipients that were subscribed before this key was assigned."""
        if self.newest_since_us < key_us:
            return self.recipients
        return tuple(r for r, since in zip(self.recipients, self.since_us, strict=True) if since < key_us)


@dataclass(frozen=True, slots=True)
class PresenceRecipient:
    """A subscriber who receives events in some states of presence only. `since_us` is a key of the order of the
    view."""

    group: RecipientGroup
    subscription: Subscription
    since_us: int

    @property
    def part(self) -> bytes:
        """The part of a frame for this subscriber."""
        return recipient(self.subscription.jid, self.subscription.sub_no)

    @property
    def shows(self) -> tuple[str, ...]:
        """The states of presence in which events are sent."""
        return values_of(self.subscription.options, SHOW_VALUES)


@dataclass(frozen=True, slots=True)
class AudiencePage:
    """Up to PAGE subscriptions by group. The next page begins after the subscription number `next_after`.

    `by_presence` are the subscriptions whose events depend on presence, without those whose events are held. `overdue`
    are consumers of held events that do not depend on presence any more.
    """

    groups: dict[RecipientGroup, GroupRecipients]
    next_after: int | None
    by_presence: tuple[PresenceRecipient, ...] = ()
    overdue: tuple[Consumer, ...] = ()


def depends_on_presence(node: Node, subscription: Subscription) -> bool:
    """Returns whether events wait while a subscriber is offline (XEP-0060 section 12.6), or in another state than the
    subscriber has chosen."""
    return node.options.presence_based_delivery or SHOW_VALUES in subscription.options


def read_audience(tx: ReadTx, context: Context, node: Node, after_no: int, *, everybody: bool = False) -> AudiencePage:
    """One page of a node's subscriptions that the access model still admits (xep-map 181).

    With `everybody` all subscriptions are included, pending ones too.
    """
    subscriptions = tx.subscriptions(node.node_no, after_no, PAGE)
    next_after = subscriptions[-1].sub_no if len(subscriptions) == PAGE else None
    if everybody:
        return AudiencePage(_groups([sub for sub in subscriptions if is_admitted(tx, context, sub)]), next_after)
    recipients = [sub for sub in subscriptions if is_recipient(tx, context, node, sub)]
    # One look at the node spares most nodes a look for each subscription.
    held = [sub for sub in recipients if held_mark(tx, sub) is not None] if _has_held(tx, node) else []
    held_nos = {sub.sub_no for sub in held}
    joined = [sub for sub in recipients if sub.sub_no not in held_nos]
    at_once = [sub for sub in joined if not depends_on_presence(node, sub)]
    by_presence = [presence_recipient(sub) for sub in joined if depends_on_presence(node, sub)]
    overdue = [held_consumer(node.node_no, sub.sub_no) for sub in held if not depends_on_presence(node, sub)]
    return AudiencePage(_groups(at_once), next_after, tuple(by_presence), tuple(overdue))


def read_held(tx: ReadTx, _context: Context, node: Node, after_no: int) -> tuple[list[Consumer], int | None]:
    """The consumers of held events among one page of a node's subscriptions, and the number behind which the next page
    begins."""
    if not _has_held(tx, node):
        return [], None
    subscriptions = tx.subscriptions(node.node_no, after_no, PAGE)
    next_after = subscriptions[-1].sub_no if len(subscriptions) == PAGE else None
    return [held_consumer(node.node_no, sub.sub_no) for sub in subscriptions if held_mark(tx, sub)], next_after


def _has_held(tx: ReadTx, node: Node) -> bool:
    prefix = f"{HELD}:"
    firsts = [tx.consumers_of(node.node_no, (order.value, prefix), 1) for order in Order]
    return any(row.consumer.kind == HELD for rows in firsts for row in rows)


def read_interested(tx: ReadTx, context: Context, node: Node, interests: Sequence[Interest]) -> AudiencePage:
    """The recipients among resources that request a node by `NODE+notify`: they may read it, and no subscription to it
    brings its events."""
    members_of: dict[RecipientGroup, list[Interest]] = {}
    for interest in interests:
        jid = parse_jid(interest.jid)
        if jid is not None and is_interested(tx, context, node, jid):
            members_of.setdefault(RecipientGroup(_BARE, node.name, interest.address, False), []).append(interest)
    groups = {
        group: GroupRecipients(
            tuple(recipient(each.jid, NO_SUBSCRIPTION) for each in members),
            tuple(each.since_us for each in members),
            max(each.since_us for each in members),
        )
        for group, members in members_of.items()
    }
    return AudiencePage(groups, None)


def is_interested(tx: ReadTx, context: Context, node: Node, jid: Jid) -> bool:
    """Returns whether a resource that requests notifications of a node by `NODE+notify` receives them: it may read the
    node, and no subscription to the node brings them."""
    if refusal_of(tx, context.policy, jid) is not None:
        return False
    if not recipient_access(tx, context, node, jid).may_read:
        return False
    bare = jid.bare_text
    return not any(
        sub.view == _BARE
        and sub.jid in (str(jid), bare)
        and sub.state is SubscriptionState.SUBSCRIBED
        and wants_events(sub.options)
        for sub in tx.subscriptions_on(node.node_no, bare, now_us=context.now_us)
    )


def is_recipient(tx: ReadTx, context: Context, node: Node, sub: Subscription) -> bool:
    """Returns whether a subscription delivers events and its subscriber may read the node."""
    jid = parse_jid(sub.jid)
    if sub.state is not SubscriptionState.SUBSCRIBED or not wants_events(sub.options) or jid is None:
        return False
    if refusal_of(tx, context.policy, jid) is not None:
        return False
    access = recipient_access(tx, context, node, jid, sub.state)
    if access.history_error is not None and from_canonical(sub.view).sync:
        return False
    return access.may_read


def is_admitted(tx: ReadTx, context: Context, sub: Subscription) -> bool:
    """Returns whether the subscriber may use the service."""
    jid = parse_jid(sub.jid)
    return jid is not None and refusal_of(tx, context.policy, jid) is None


def presence_recipient(sub: Subscription) -> PresenceRecipient:
    """Returns a subscription as a recipient whose events depend on presence."""
    return PresenceRecipient(_group_of(sub), sub, _since_us(sub))


def held_mark(tx: ReadTx, sub: Subscription) -> Mark | None:
    """Returns the mark behind which the events of a subscription are held, None if they are not."""
    return tx.mark(sub.node_no, from_canonical(sub.view).order, held_consumer(sub.node_no, sub.sub_no).name)


async def hold(
    service: FeedService, subscriptions: Sequence[Subscription], marks: Mapping[Order, Mark]
) -> list[Subscription]:
    """Holds the changes behind the mark of its order for each of these subscriptions.

    Returns them as they are stored now, when the hold is durable. Raises StoreError.
    """

    def write(tx: WriteTx, _context: Context, part: Sequence[Subscription]) -> list[Subscription]:
        stored = []
        for sub in part:
            current = tx.subscription_by_no(sub.sub_no)
            if current is not None:
                order = from_canonical(sub.view).order
                add_consumer(tx, held_consumer(sub.node_no, sub.sub_no), order, marks[order])
                stored.append(tx.put_subscription(current))  # the audience of the node changes
        return stored

    stored = []
    for start in range(0, len(subscriptions), HELD_AT_ONCE):
        stored += await service.write(partial(write, part=subscriptions[start : start + HELD_AT_ONCE]), turn="push")
    return stored


def _group_of(sub: Subscription) -> RecipientGroup:
    return RecipientGroup(sub.view, sub.node_text, sub.service, flag(sub.options, "include_body"))


def _since_us(sub: Subscription) -> int:
    return sub.since_created_us if from_canonical(sub.view).order is Order.CREATED else sub.since_us


def _groups(subs: list[Subscription]) -> dict[RecipientGroup, GroupRecipients]:
    members_of: dict[RecipientGroup, list[Subscription]] = {}
    for sub in subs:
        members_of.setdefault(_group_of(sub), []).append(sub)
    return {group: _group_recipients(members) for group, members in members_of.items()}


def _group_recipients(members: list[Subscription]) -> GroupRecipients:
    since_us = tuple(map(_since_us, members))
    return GroupRecipients(tuple(recipient(sub.jid, sub.sub_no) for sub in members), since_us, max(since_us))


class AudienceCache:
    """The pages used last, by node and place. A page of an older audience is not returned.

    The place of a page of subscriptions is the subscription number behind which it begins. Pages of interested
    resources have places below 0. A page also depends on its `version`: that of the block lists and of the interests.
    The audience number and that of the block lists are read with the batch that is sent, so changes by other processes
    invalidate pages, too.
    """

    def __init__(self, pages: int = CACHED_PAGES) -> None:
        self._limit = pages
        self._pages: OrderedDict[tuple[int, int], tuple[int, tuple[int, ...], AudiencePage]] = OrderedDict()

    def get(self, node: Node, place: int, version: tuple[int, ...] = ()) -> AudiencePage | None:
        """A page that is current, or None."""
        key = (node.node_no, place)
        audience, read_version, page = self._pages.get(key, (-1, (), None))
        if page is None or version != read_version:
            return None
        # A new subscription is behind all others, so it does not change a page that is full.
        unit = AUDIENCE_CHANGE if page.next_after is not None else 1
        if audience // unit != node.audience // unit:
            return None
        self._pages.move_to_end(key)
        return page

    def put(self, node: Node, place: int, page: AudiencePage, version: tuple[int, ...] = ()) -> None:
        """Stores a page."""
        # The audience number does not count changes of what these depend on: the people of the target of attachments,
        # and the contacts of the service.
        if follows_target(node.name) or node.options.access_model is AccessModel.PRESENCE:
            return
        self._pages[node.node_no, place] = (node.audience, version, page)
        self._pages.move_to_end((node.node_no, place))
        while len(self._pages) > self._limit:
            self._pages.popitem(last=False)
