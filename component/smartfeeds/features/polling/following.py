"""Following: subscriptions to nodes, and the sources that fill these nodes (SRC-083, SRC-084).

To follow a feed is to subscribe to its node. The bot delivers the new items by chat (`service.chat_follows`), or nobody
is told: the subscription then has `pubsub#deliver` off, and the person reads the feed on the pages. So quotas, access,
approval, the export and the erasure of a person's data hold as for every subscription.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import Final

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import (
    ALL_NUMBERS,
    Affiliation,
    Item,
    KeyRange,
    Node,
    NodeKind,
    Slice,
    Subscription,
    SubscriptionState,
)
from smartfeeds.core.options import PUBSUB
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.suboptions import CHAT, CHAT_ONLY, flag
from smartfeeds.core.view import BARE
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling import sources
from smartfeeds.features.polling.polls import resumed
from smartfeeds.features.polling.requests import EndUnreadSources, end_unread_sources, open_node_of
from smartfeeds.features.polling.source import Source, SourceState, is_made_for
from smartfeeds.service.chat_follows import consumer_of, follow
from smartfeeds.service.context import Context, find_for, locate_for, recipient_access
from smartfeeds.service.nodes import may_create
from smartfeeds.service.paged_lists import listed_bytes, listing_of, page_of
from smartfeeds.service.requests import Answer, NodeRequest, Request, Subscribe, Unsubscribe
from smartfeeds.service.resources import ListAnswer, ListRequest
from smartfeeds.service.standing import manages
from smartfeeds.service.steps import IndexFirst
from smartfeeds.service.subscriptions import subscribe, unsubscribe
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.texts import N_

# The nodes that a page offers to be filled with a feed: a longer choice is no help, and a name may be typed.
MOST_OWN_NODES: Final = 100
# The sources of a node that a list shows, the failing ones first: a node of a whole list may have a thousand.
MOST_SOURCES: Final = 20
# Options of a subscription, as `CHAT`: no fields of a form. The title is that of a list, for a feed that has none yet.
FOLDER: Final = "folder"
TITLE: Final = "title"
_MAX_CHARACTERS: Final = {FOLDER: 100, TITLE: 200}
HIDDEN_REASON: Final = "cannot be read"
NO_FEED: Final = N_("the address is one of this service, and no feed")
_SILENT: Final = {f"{PUBSUB}deliver": ("false",)}


class Tell(Enum):
    """The receiver of new items."""

    CHAT = "chat"
    """The person, by chat messages of the bot."""
    CLIENT = "client"
    """The person's clients, by notifications of XMPP. Only clients choose this, when they subscribe."""
    NOBODY = "nobody"
    """Nobody."""


@dataclass(frozen=True, slots=True)
class OwnNode:
    """A feed of the actor: the name and the title of its node."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class GetKnownFeeds(Request):
    """Asks what the service knows of the feeds at these addresses. `with_own`: also for the nodes of the actor.
    `is_site`: they may be those of sites, which the service does not request."""

    urls: tuple[str, ...]
    with_own: bool = False
    is_site: bool = False


@dataclass(frozen=True, slots=True)
class KnownFeed:
    """The knowledge of the service about a feed. `node` is a node that has the whole feed and that the actor may read,
    "" if there is none: one that the actor follows, else an open one. `title`, `count` and `changed_us` are those of
    the node."""

    node: str = ""
    follows: bool = False
    title: str = ""
    count: int = 0
    changed_us: int | None = None


@dataclass(frozen=True, slots=True)
class GetFeedHere(Request):
    """Asks for a feed of this service, or a view of it, by the names that its address may mean (`feed_names`)."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FeedHere(Answer):
    """A feed of this service to which the actor may subscribe. `view` is the name of a view if the address is that of
    one. `newest` is the newest entry. `may_read` is false if an owner has to approve first: then the entries and their
    number are left out. `may_add` is that of `KnownFeeds`."""

    feed: KnownFeed
    view: str
    newest: Item | None
    may_read: bool
    may_add: bool


@dataclass(frozen=True, slots=True)
class KnownFeeds(Answer):
    """The feeds in the order of the request. `may_add`: the actor may add feeds to the service. `own` are its nodes
    if the request asked for them."""

    feeds: tuple[KnownFeed, ...]
    may_add: bool
    own: tuple[OwnNode, ...]


@dataclass(frozen=True, slots=True)
class BeginFollowing(NodeRequest):
    """Makes the actor follow a node, or changes who is told. `folder` groups what somebody follows. `title` is the
    actor's name for a feed without a title, such as one that could not be read yet."""

    tell: Tell = Tell.NOBODY
    folder: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class FollowingBegun(Answer):
    """The node. `is_new`: the actor did not follow it before. `consumer` delivers by chat, None if nothing does.
    `pending`: an owner of the node has to approve."""

    node: Node
    is_new: bool
    pending: bool
    consumer: Consumer | None = None


@dataclass(frozen=True, slots=True)
class GetFollowing(NodeRequest):
    """Asks whether the actor follows a feed."""


@dataclass(frozen=True, slots=True)
class FollowingShown(Answer):
    """The title of a feed, "" if the actor may not know it. `tell` is None if the actor does not follow the feed.
    `may_follow`: the actor may read it, and its owner permits subscriptions."""

    title: str = ""
    tell: Tell | None = None
    may_follow: bool = False


@dataclass(frozen=True, slots=True)
class EndFollowing(NodeRequest):
    """Ends what makes the actor follow a node. Its sources that the actor has added end if nobody else reads it."""


@dataclass(frozen=True, slots=True)
class FollowingEnded(Answer):
    """The number of sources that ended, and the consumers that have nothing to deliver any more."""

    sources_ended: int
    consumers: tuple[Consumer, ...]


@dataclass(frozen=True, slots=True)
class TryAgain(NodeRequest):
    """Polls the sources of a node that the actor follows, those that fail."""


@dataclass(frozen=True, slots=True)
class TriedAgain(Answer):
    """The number of sources that are due now."""

    count: int


@dataclass(frozen=True, slots=True)
class ListFollowed(ListRequest):
    """The nodes that the actor follows, by folder and title."""


@dataclass(frozen=True, slots=True)
class FollowedFeed:
    """A node that a person follows. `sources` are those that fill it, the failing ones first; empty for a feed of this
    service. `may_read` is false if the node was closed to the person. `may_retry`: the person may let its sources be
    polled. `newest_us` is the time of the newest entry. `title` is that of the node, else that of the person's list,
    else the name of the node."""

    node: Node
    title: str
    tell: Tell
    pending: bool
    folder: str
    may_read: bool
    may_retry: bool
    newest_us: int | None
    sources: tuple[Source, ...]

    @property
    def failing(self) -> tuple[Source, ...]:
        """The sources that bring nothing at the moment."""
        return tuple(source for source in self.sources if source.is_failing)


def tell_of(row: Subscription) -> Tell:
    """Returns who is told by a subscription."""
    if CHAT in row.options:
        return Tell.CHAT
    return Tell.CLIENT if flag(row.options, "deliver") else Tell.NOBODY


def followed_feeds(
    tx: ReadTx, context: Context, actor: Jid, *, pending: bool = False
) -> dict[int, tuple[Node, Subscription]]:
    """Returns the feeds that a person follows by number, also those that were closed to the person, each with its first
    subscription. `pending`: also those whose owner has to approve."""
    bare = actor.bare_text
    rows: dict[int, tuple[Node, Subscription]] = {}
    for node, row in tx.subscriptions_of(bare, ALL_NUMBERS, now_us=context.now_us):
        is_approved = row.state is SubscriptionState.SUBSCRIBED
        if row.jid == bare and node.kind is NodeKind.FEED and (pending or is_approved):
            rows.setdefault(node.node_no, (node, row))
    return rows


def get_known_feeds(tx: ReadTx, context: Context, request: GetKnownFeeds) -> KnownFeeds:
    """The feeds at these addresses. The cost grows with the sources of their hosts, and with the subscriptions of the
    actor."""
    bare = request.actor.bare_text
    followed = {row.node_no for _node, row in tx.subscriptions_of(bare, ALL_NUMBERS, now_us=context.now_us)}
    by_url = sources.sources_of_feeds(tx, request.urls)
    may_add = may_create(context, request.actor)
    # The page of a site says which feeds it has. Where the service may not read it, the feeds say to which site they
    # belong.
    for url in request.urls if request.is_site or not may_add else ():
        by_url[url] = by_url[url] or sources.sources_of_site(tx, url)
    feeds = tuple(_known(tx, context, request.actor, by_url[url], followed) for url in request.urls)
    own = tuple(islice(_own_nodes(tx, bare), MOST_OWN_NODES)) if request.with_own else ()
    return KnownFeeds(feeds, may_add, own)


def _own_nodes(tx: ReadTx, bare: str) -> Iterator[OwnNode]:
    """The feeds that a person owns, without those that were made for one feed of another server."""
    after = 0
    while part := tx.affiliations_of(bare, KeyRange(MOST_OWN_NODES, after), kind=Affiliation.OWNER):
        after = part[-1][0].node_no
        names = [node.name for node, _ in part if node.kind is NodeKind.FEED]
        filled = {name for name, url in source_rows.addresses_of(tx, names) if is_made_for(name, url)}
        yield from (OwnNode(node.name, node.options.title) for node, _ in part if node.name in {*names} - filled)


def _known(tx: ReadTx, context: Context, actor: Jid, rows: list[Source], followed: set[int]) -> KnownFeed:
    node = None
    for source in rows:
        filled = tx.node(source.node)
        if filled is not None and filled.node_no in followed and not source.settings.only:
            node = filled
    node = node or open_node_of(tx, rows)
    if node is None or not recipient_access(tx, context, node, actor).may_read:
        return KnownFeed()
    changed_us = node.last_modified_us if node.last_modified_us >= 0 else None
    return KnownFeed(node.name, node.node_no in followed, node.options.title or node.name, node.live, changed_us)


def get_feed_here(tx: ReadTx, context: Context, request: GetFeedHere) -> FeedHere:
    """The feed that an address of this service names. Raises FeedError as `subscriptions.subscribe` does, and
    NOT_ACCEPTABLE for an address that is no feed."""
    actor = request.actor
    if not request.names:
        raise FeedError(Condition.NOT_ACCEPTABLE, NO_FEED)
    *longer, last = request.names
    nodes = (find_for(tx, context, name, actor) for name in longer)
    located = next(filter(None, nodes), None) or locate_for(tx, context, last, actor)
    node, access, may_read = located.node, located.access, located.access.may_read
    if node.kind is not NodeKind.FEED:
        raise FeedError(Condition.NOT_ACCEPTABLE, NO_FEED)
    if not may_read:
        access.subscription_on_request()  # raises for all nodes but those whose owner approves
    follows = bool(_subscriptions(tx, context, node, actor))
    title = node.options.title if may_read or access.sees_description else ""
    newest = tx.slice(node.node_no, Slice(BARE, 1, newest=True)) if may_read else []
    changed_us = newest[0].modified_us if newest else None
    known = KnownFeed(node.name, follows, title or node.name, node.live if may_read else 0, changed_us)
    view = f"{node.name}?{located.view_text}" if located.view.filtered else ""
    return FeedHere(known, view, newest[0] if newest else None, may_read, may_create(context, actor))


def get_following(tx: ReadTx, context: Context, request: GetFollowing) -> FollowingShown:
    """Whether the actor follows a feed. A feed that the actor may not read is as one that does not exist."""
    node = tx.node(request.node or "")
    if node is None or node.kind is not NodeKind.FEED:
        return FollowingShown()
    access = recipient_access(tx, context, node, request.actor)
    row = next(iter(_subscriptions(tx, context, node, request.actor)), None)
    return FollowingShown(
        (node.options.title or node.name) if access.may_read or access.sees_description else "",
        None if row is None else tell_of(row),
        access.may_read and node.options.subscribe,
    )


def begin_following(tx: WriteTx, context: Context, request: BeginFollowing) -> FollowingBegun | IndexFirst:
    """Subscribes the actor to a node. Raises FeedError as `subscriptions.subscribe` does."""
    actor, name = request.actor.bare, request.node or ""
    located = locate_for(tx, context, name, actor)
    node, jid = located.node, actor.bare_text
    before = tx.subscription(node.node_no, jid, located.view_text, now_us=context.now_us)
    consumer = None
    if request.tell is Tell.CHAT:
        answer = follow(tx, context, actor, name)
        if isinstance(answer, IndexFirst):
            return answer
        consumer = answer.consumer
    elif before is None:
        subscribed = subscribe(tx, context, Subscribe(actor, request.service, name, jid, _SILENT))
        if isinstance(subscribed, IndexFirst):
            return subscribed
    elif CHAT in before.options:
        # A client that has subscribed, too, goes on as it was.
        options = {option: values for option, values in before.options.items() if option != CHAT}
        silent = {"deliver": ("false",)} if before.options[CHAT] == CHAT_ONLY else {}
        tx.put_subscription(before._replace(options={**options, **silent}))
        consumer = consumer_of(node.node_no, jid)
    row = tx.subscription(node.node_no, jid, located.view_text, now_us=context.now_us)
    assert row is not None  # it was there, or was made
    texts = {FOLDER: request.folder, TITLE: request.title}
    own = {name: (text[: _MAX_CHARACTERS[name]],) for name, text in texts.items() if text}
    if own and row.options != {**row.options, **own}:
        tx.put_subscription(row._replace(options={**row.options, **own}))
    return FollowingBegun(node, before is None, row.state is SubscriptionState.PENDING, consumer)


def end_following(tx: WriteTx, context: Context, request: EndFollowing) -> FollowingEnded:
    """Ends the actor's subscriptions to a node. Raises FeedError(NOT_SUBSCRIBED) if there are none."""
    node = tx.node(request.node or "")
    rows = () if node is None else _subscriptions(tx, context, node, request.actor)
    if node is None or not rows:
        raise FeedError(Condition.NOT_SUBSCRIBED, "you do not follow this feed")
    chats = [row for row in rows if CHAT in row.options]
    for row in rows:
        try:
            unsubscribe(tx, context, Unsubscribe(request.actor.bare, row.service, row.node_text, row.jid))
        except FeedError as error:
            # The parameters of the name mean another view now, or none.
            if error.condition not in (Condition.ITEM_NOT_FOUND, Condition.NOT_SUBSCRIBED):
                raise
            tx.remove_subscription(row.sub_no)
    ended = end_unread_sources(tx, context, EndUnreadSources(request.actor, request.service, node.name))
    return FollowingEnded(ended.count, tuple(consumer_of(node.node_no, row.jid) for row in chats))


def _subscriptions(tx: ReadTx, context: Context, node: Node, actor: Jid) -> list[Subscription]:
    """Returns the subscriptions of the actor's bare address. Those of single clients are theirs."""
    bare = actor.bare_text
    return [row for row in tx.subscriptions_on(node.node_no, bare, now_us=context.now_us) if row.jid == bare]


def try_again(tx: WriteTx, context: Context, request: TryAgain) -> TriedAgain:
    """Makes the failing sources of a node due. Owners of the node also resume those that were paused.

    Raises FeedError: ITEM_NOT_FOUND if the actor neither follows nor manages the node, FORBIDDEN if the actor may add
    no feeds, NOT_ACCEPTABLE with the reason if no source may be polled now (SRC-030).
    """
    node = tx.node(request.node or "")
    is_manager = node is not None and manages(tx, context, request.actor, node)
    if node is None or not (is_manager or _subscriptions(tx, context, node, request.actor)):
        raise FeedError(Condition.ITEM_NOT_FOUND, "you do not follow this feed")
    if not is_manager and not may_create(context, request.actor):
        raise FeedError(Condition.FORBIDDEN, "only the owner of the feed can try again")
    count, refusal = 0, "every feed that fills it works"
    for source in source_rows.sources_of(tx, node.name):
        if not source.is_failing:
            continue
        try:
            if is_manager and source.state is SourceState.PAUSED:
                sources.change_source(tx, context, source, resumed)
            else:
                sources.poll_now(tx, context, source)
            count += 1
        except ConfigError as error:
            refusal = str(error)
    if not count:
        raise FeedError(Condition.NOT_ACCEPTABLE, refusal)
    return TriedAgain(count)


def list_followed(tx: ReadTx, context: Context, request: ListFollowed) -> ListAnswer[FollowedFeed]:
    """The nodes that the actor follows. The cost grows with the subscriptions of the actor, and with the sources of the
    nodes of the page."""
    rows = followed_feeds(tx, context, request.actor, pending=True)
    ordered = sorted(rows.values(), key=_order)
    listing = listing_of(ordered, lambda pair: listed_bytes(pair[0].name, _title_of(*pair)))
    page_rows, result_set = page_of(listing, request.page, context.policy)
    may_add = may_create(context, request.actor)
    feeds = tuple(_followed(tx, context, request.actor, node, row, may_add=may_add) for node, row in page_rows)
    return ListAnswer(feeds, result_set)


def folder_of(row: Subscription) -> str:
    """Returns the folder of a subscription, "" if it is in none."""
    return row.options.get(FOLDER, ("",))[0]


def _order(pair: tuple[Node, Subscription]) -> tuple[str, str, str]:
    node, row = pair
    return folder_of(row).casefold(), _title_of(node, row).casefold(), node.name


def _title_of(node: Node, row: Subscription) -> str:
    return node.options.title or row.options.get(TITLE, ("",))[0] or node.name


def _followed(
    tx: ReadTx, context: Context, actor: Jid, node: Node, row: Subscription, *, may_add: bool
) -> FollowedFeed:
    may_read = recipient_access(tx, context, node, actor).may_read
    is_manager = manages(tx, context, actor, node)
    rows = source_rows.sources_of(tx, node.name) if may_read else []
    rows.sort(key=lambda source: not source.is_failing)
    times = [times_us[0] for source in rows if (times_us := source.progress.times_us)]
    changed_us = node.last_modified_us if may_read and node.live else None
    return FollowedFeed(
        node,
        _title_of(node, row),
        tell_of(row),
        row.state is SubscriptionState.PENDING,
        folder_of(row),
        may_read,
        bool(rows) and (may_add or is_manager),
        max(times, default=changed_us),
        tuple(rows if is_manager else map(_for_readers, rows))[:MOST_SOURCES],
    )


def _for_readers(source: Source) -> Source:
    """Returns a source as readers of its node may see it: a secret of the operator is left out. The reason of a failure
    may name an address of a private network."""
    settings = source.settings
    if not (settings.user or settings.allow_private or without_secrets(source.url) != source.url):
        return source
    return replace(source, url="", first_url="", reason=HIDDEN_REASON if source.reason else "")


USE_CASES: Final = UseCases(
    reads={
        GetKnownFeeds: ("get_known_feeds", get_known_feeds),
        GetFeedHere: ("get_feed_here", get_feed_here),
        GetFollowing: ("get_following", get_following),
        ListFollowed: ("list_followed", list_followed),
    },
    writes={
        BeginFollowing: ("begin_following", begin_following),
        EndFollowing: ("end_following", end_following),
        TryAgain: ("try_again", try_again),
    },
)
