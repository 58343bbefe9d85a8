"""The newest entries of what a person follows, and how far the person has read them.

The mark of a feed is an option of the subscription: the key of the newest entry that the person has read. So it is
exported and erased with the subscription, and every browser of the person has the same marks. Entries that a feed had
before the person followed it count as read.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from smartfeeds.core.access import Access
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, KeyRange, Node, Subscription
from smartfeeds.features.pages.river import EntryPlace
from smartfeeds.features.pages.river_requests import FeedEntry, edge_at, merged_entries, place_of
from smartfeeds.features.polling.following import followed_feeds
from smartfeeds.service.context import Context, recipient_access
from smartfeeds.service.replies import AnsweredItems, find_answered
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.steps import MoreSteps
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx

READ: Final = "read"  # the option of a subscription, as `core.suboptions.CHAT`: no field of a form
MARKED_AT_ONCE: Final = 200  # subscriptions that one transaction changes
BEHIND_OWN: Final = 30  # newest entries among which one of somebody else is looked for, as many as a page has


class _Followed(NamedTuple):
    """A feed that a person follows, with the subscription that counts."""

    node: Node
    row: Subscription
    access: Access


@dataclass(frozen=True, slots=True)
class GetMyEntries(Request):
    """The newest entries of the feeds that the actor follows, at most `limit`, after a place. `base_url` is the address
    of the site, by which entries may name what they answer."""

    limit: int
    after: EntryPlace | None = None
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class MyEntry:
    """An entry. `is_new`: somebody else has published it, and the actor has not marked it as read. `may_reply`: the
    actor may publish in its feed."""

    node: Node
    item: Item
    is_new: bool
    may_reply: bool


@dataclass(frozen=True, slots=True)
class MyEntries(Answer):
    """Entries by last change, the newest first, and the place of the last one if older ones follow. `feeds` is the
    number of feeds that the actor follows, and may read. `answered` are the items that the entries answer."""

    entries: tuple[MyEntry, ...]
    next: EntryPlace | None
    feeds: int
    answered: AnsweredItems


@dataclass(frozen=True, slots=True)
class GetNewestKey(Request):
    """The key of the newest entry of what the actor follows that is newer than `since_us` and not its own. Each open
    page asks for it, and again after a change."""

    since_us: int = -1


@dataclass(frozen=True, slots=True)
class NewestKey(Answer):
    """The key of an entry, at most `since_us` without a newer one, and the feeds that the actor follows, also closed
    ones."""

    modified_us: int
    node_nos: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MarkRead(Request):
    """Marks all entries of the feeds that the actor follows as read, up to a time: that of the newest entry that the
    actor has seen."""

    until_us: int


@dataclass(frozen=True, slots=True)
class MarkedRead(Answer):
    """Everything up to that time is marked."""


def get_my_entries(tx: ReadTx, context: Context, request: GetMyEntries) -> MyEntries:
    """One page. The cost grows with the feeds that the actor follows."""
    actor = request.actor
    feeds = _followed(tx, context, actor)
    nodes = sorted((feed.node for feed in feeds.values() if feed.node.live), key=lambda node: -node.last_modified_us)
    before = None if request.after is None else edge_at(tx, context, actor, request.after)
    entries: list[MyEntry] = []
    size_bytes, following = 0, None
    # An entry more than the page has shows that older ones follow.
    for entry in merged_entries(tx, nodes, before, request.limit + 1):
        if len(entries) == request.limit or size_bytes > context.policy.page_bytes:
            following = place_of(tx, FeedEntry(entries[-1].node, entries[-1].item))
            break
        feed = feeds[entry.node.node_no]
        is_new = entry.item.modified_us > read_until_us(feed.row) and not _is_own(entry, actor)
        entries.append(MyEntry(entry.node, entry.item, is_new, feed.access.may_publish))
        size_bytes += len(entry.item.payload)
    pairs = [(entry.node, entry.item) for entry in entries]
    return MyEntries(tuple(entries), following, len(feeds), find_answered(tx, context, actor, pairs, request.base_url))


def get_newest_key(tx: ReadTx, context: Context, request: GetNewestKey) -> NewestKey:
    """The key of one entry, without the other entries and rights of a page. The cost grows with the subscriptions of
    the actor."""
    rows = followed_feeds(tx, context, request.actor)
    ordered = sorted((node for node, _ in rows.values() if node.live), key=lambda node: -node.last_modified_us)
    # Most often the newest entry decides. Behind own entries there may be one of somebody else.
    for count in (1, BEHIND_OWN):
        # Rights are read only until no other feed can have a newer entry.
        readable = (node for node in ordered if recipient_access(tx, context, node, request.actor).may_read)
        for entry in merged_entries(tx, readable, None, count):
            if entry.item.modified_us <= request.since_us or not _is_own(entry, request.actor):
                return NewestKey(entry.item.modified_us, tuple(rows))
    return NewestKey(0, tuple(rows))


def _is_own(entry: FeedEntry, actor: Jid) -> bool:
    """Whether an actor has published an entry: it is no news then."""
    return entry.item.publisher == actor.bare_text


def read_until_us(row: Subscription) -> int:
    """Returns the key up to which a subscriber has read a feed."""
    return max(row.since_us, int(row.options.get(READ, ("0",))[0]))


def _followed(tx: ReadTx, context: Context, actor: Jid) -> dict[int, _Followed]:
    """The feeds that a person follows and may read, by number."""
    feeds = {
        node_no: _Followed(node, row, recipient_access(tx, context, node, actor))
        for node_no, (node, row) in followed_feeds(tx, context, actor).items()
    }
    return {node_no: feed for node_no, feed in feeds.items() if feed.access.may_read}


def mark_read(tx: WriteTx, context: Context, request: MarkRead, after: int = 0) -> MarkedRead | MoreSteps[MarkedRead]:
    """Marks what the actor follows, some subscriptions in each transaction."""
    bare, last = request.actor.bare_text, after
    part = tx.subscriptions_of(bare, KeyRange(MARKED_AT_ONCE, after), now_us=context.now_us)
    for node, row in part:
        last = row.sub_no
        # A time in the future would hide what comes until then.
        until_us = min(request.until_us, node.last_modified_us)
        if row.jid == bare and until_us > read_until_us(row):
            tx.put_subscription(row._replace(options={**row.options, READ: (str(until_us),)}))
    if len(part) < MARKED_AT_ONCE:
        return MarkedRead()
    return MoreSteps(lambda tx, context: mark_read(tx, context, request, last))


USE_CASES: Final = UseCases(
    reads={
        GetMyEntries: ("get_my_entries", get_my_entries),
        GetNewestKey: ("get_newest_key", get_newest_key),
    },
    writes={MarkRead: ("mark_read", mark_read)},
)
