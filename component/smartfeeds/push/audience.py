"""The recipients of a node's events: pages of subscriptions, prepared as parts of frames.

A page stays cached until the `audience` number of the node changes, so that a fan-out does not read a thousand rows for
each event. A new subscription invalidates the last page only.
"""

from collections import OrderedDict
from dataclasses import dataclass

from smartfeeds.core.access import Access
from smartfeeds.core.attachments import follows_target
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import AUDIENCE_CHANGE, Node, Subscription, SubscriptionState
from smartfeeds.core.suboptions import flag
from smartfeeds.push.frames import RecipientGroup, recipient
from smartfeeds.service.context import Context, affiliation_of, with_contact
from smartfeeds.store.base import ReadTx

PAGE = 1_000  # subscriptions of one transaction, so that other reads run in between
CACHED_PAGES = 200  # of all nodes together


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
class AudiencePage:
    """Up to PAGE subscriptions by group. The next page begins after the subscription number `next_after`."""

    groups: dict[RecipientGroup, GroupRecipients]
    next_after: int | None


def read_audience(tx: ReadTx, context: Context, node: Node, after_no: int, *, everybody: bool = False) -> AudiencePage:
    """One page of a node's subscriptions that the access model still admits (xep-map 181).

    With `everybody` all subscriptions are included, pending ones too.
    """
    subscriptions = tx.subscriptions(node.node_no, after_no, PAGE)
    recipients = [sub for sub in subscriptions if everybody or _is_recipient(tx, context, node, sub)]
    return AudiencePage(_groups(recipients), subscriptions[-1].sub_no if len(subscriptions) == PAGE else None)


def _is_recipient(tx: ReadTx, context: Context, node: Node, sub: Subscription) -> bool:
    jid = parse_jid(sub.jid)
    if sub.state is not SubscriptionState.SUBSCRIBED or not flag(sub.options, "deliver") or jid is None:
        return False
    access = Access(affiliation_of(tx, context, node, jid), node.options, sub.state)
    return with_contact(tx, context, access, jid).reading_error is None


def _groups(subs: list[Subscription]) -> dict[RecipientGroup, GroupRecipients]:
    members_of: dict[RecipientGroup, list[Subscription]] = {}
    for sub in subs:
        group = RecipientGroup(sub.view, sub.node_text, sub.service, flag(sub.options, "include_body"))
        members_of.setdefault(group, []).append(sub)
    return {group: _group_recipients(members) for group, members in members_of.items()}


def _group_recipients(members: list[Subscription]) -> GroupRecipients:
    created = "order=created" in members[0].view.split("&")
    since = tuple(sub.since_created_us if created else sub.since_us for sub in members)
    return GroupRecipients(tuple(recipient(sub.jid, sub.sub_no) for sub in members), since, max(since))


class AudienceCache:
    """The pages used last, by node and place. A page of an older audience is not returned."""

    def __init__(self, pages: int = CACHED_PAGES) -> None:
        self._limit = pages
        self._pages: OrderedDict[tuple[int, int], tuple[int, AudiencePage]] = OrderedDict()

    def get(self, node: Node, after_no: int) -> AudiencePage | None:
        """A page that is current, or None."""
        key = (node.node_no, after_no)
        audience, page = self._pages.get(key, (-1, None))
        if page is None:
            return None
        # A new subscription is behind all others, so it does not change a page that is full.
        unit = 1 if page.next_after is None else AUDIENCE_CHANGE
        if audience // unit != node.audience // unit:
            return None
        self._pages.move_to_end(key)
        return page

    def put(self, node: Node, after_no: int, page: AudiencePage) -> None:
        """Stores a page."""
        # The people of such a node are those of its target, and its audience number does not count their changes.
        if follows_target(node.name):
            return
        self._pages[node.node_no, after_no] = (node.audience, page)
        self._pages.move_to_end((node.node_no, after_no))
        while len(self._pages) > self._limit:
            self._pages.popitem(last=False)
