"""Follows addresses for people: finds their feeds, adds sources, and reads lists of feeds (SRC-048, SRC-083,
SRC-084).

The chat, the pages, programs over HTTP and lists that are uploaded use this one object. It asks the store for the
rights of a person before it requests an address: strangers must not use the service as a fetcher.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from smartfeeds.app.feature import Host
from smartfeeds.core.ip_addresses import Network
from smartfeeds.core.jid import Jid
from smartfeeds.core.limits import Quota
from smartfeeds.core.public_address import without_secrets
from smartfeeds.core.text import cut
from smartfeeds.core.urls import feed_path, xmpp_uri
from smartfeeds.core.web_address import address_key, has_login, read_address
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.finding import MOST_FEEDS, TITLE_CHARACTERS, AddressLook, FeedFinder, SeenFeed
from smartfeeds.features.polling.following import (
    NO_FEED,
    BeginFollowing,
    EndFollowing,
    FeedHere,
    FollowingBegun,
    FollowingEnded,
    GetFeedHere,
    GetKnownFeeds,
    KnownFeed,
    KnownFeeds,
    OwnNode,
    Tell,
)
from smartfeeds.features.polling.own_address import feed_names, is_own, own_nodes
from smartfeeds.features.polling.requests import AddSource, FindSourceNode, MayNotAddError, SourceNode, SourceShown
from smartfeeds.features.polling.source import NO_SETTINGS, Source, SourceSettings
from smartfeeds.features.polling.sources import TooManySourcesError
from smartfeeds.features.polling.subscription_lists import MAX_LISTED
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.features.polling.uploaded_lists import UploadedFeed, read_upload
from smartfeeds.formats.atom import read_meta
from smartfeeds.net.addresses import is_private
from smartfeeds.service.answers import ask
from smartfeeds.service.context import Context
from smartfeeds.service.requests import Answer, NodeRequest, Request
from smartfeeds.service.standing import GetStanding, Standing
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_

T = TypeVar("T")

LISTS_AT_ONCE: Final = 1  # of one person: each is some hundred small transactions
# Feeds of a list whose writes share transactions. Each takes 0.4 ms, and the writes of others wait for one transaction.
_LISTED_AT_ONCE: Final = 8
LOOKS_AT_ONCE: Final = 2  # of one person, so that nobody takes all of `finding.AT_ONCE`
_REASON_CHARACTERS: Final = 300
# Its subscribers are told of nothing that the feeds of a list have already.
_QUIET: Final = SourceSettings(first_told=0)
# The scheme that a person has written. `read_address` assumes TLS where there is none.
_SECURE: Final = ("https:", "feeds:")


class NoFeedError(FeedError):
    """There is no feed at an address. The text is the reason, `url` the address."""

    __slots__ = ("is_refused", "url")

    def __init__(self, feed: SeenFeed) -> None:
        super().__init__(Condition.NOT_ACCEPTABLE, feed.problem)
        self.url = feed.url
        self.is_refused = feed.is_refused


@dataclass(frozen=True, slots=True)
class LookAt(Request):
    """Asks what is at an address, as a person has written it. Nothing is stored. `is_public`: networks of the operator
    are not reached, whoever asks. `site_url` is the address by which the actor has reached this service."""

    address: str
    is_public: bool = False
    site_url: str = ""


class FoundFeed(NamedTuple):
    """A feed at an address, and what the service knows of it."""

    seen: SeenFeed
    known: KnownFeed


@dataclass(frozen=True, slots=True)
class LookedAt(Answer):
    """The feeds at an address. `url` is the address that was requested, `title` that of the page there. `own` are the
    nodes of the actor. `may_add`: it may add feeds that are not `known`. `has_chat`: the bot can tell of new items.
    `here` is what the service knows of its own feed at this address, None for an address elsewhere."""

    url: str
    title: str
    feeds: tuple[FoundFeed, ...]
    own: tuple[OwnNode, ...]
    may_add: bool
    has_chat: bool
    here: FeedHere | None = None


@dataclass(frozen=True, slots=True)
class FollowAddress(Request):
    """Makes the actor follow the feed at an address, or the feed of this service that has the address.

    `node` is the node that the feed fills: an existing one of the actor, or a new one of this name; "" for a node that
    has the feed already, or else a new one that is named by the address. `site_url` is that of `LookAt`.
    """

    address: str
    node: str = ""
    tell: Tell = Tell.NOBODY
    site_url: str = ""


@dataclass(frozen=True, slots=True)
class AddressFollowed(Answer):
    """The node that the actor follows now, and the address of the feed. `is_new`: it did not before. `pending`: its
    owner has to approve. `seen` is the feed, None if it was known and not requested."""

    node: str
    title: str
    url: str
    is_new: bool
    pending: bool
    seen: SeenFeed | None


@dataclass(frozen=True, slots=True)
class FollowNode(NodeRequest):
    """Makes the actor follow a feed of this service, or changes who is told. The answer is `FollowingBegun`."""

    tell: Tell = Tell.NOBODY


@dataclass(frozen=True, slots=True)
class UnfollowNode(Request):
    """Ends what makes the actor follow a node."""

    node: str


@dataclass(frozen=True, slots=True)
class FollowList(Request):
    """Makes the actor follow the feeds of a subscription list (OPML)."""

    document: bytes
    tell: Tell = Tell.NOBODY


class ListedFollow(NamedTuple):
    """A feed of an uploaded list. `node` is that of the service, "" if it was refused for the `reason`."""

    url: str
    title: str
    folder: str
    node: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ListFollowedUp(Answer):
    """The feeds of an uploaded list: those that the actor follows now, those that it followed before, and those that
    were refused."""

    added: tuple[ListedFollow, ...]
    followed: tuple[ListedFollow, ...]
    refused: tuple[ListedFollow, ...]


class PlacedFeed(NamedTuple):
    """The node of a feed, and the feed as it was seen, None if the node had it already."""

    node: str
    url: str
    seen: SeenFeed | None


class AddressFollower:
    """Answers the requests above."""

    def __init__(self, host: Host, finder: FeedFinder, tools: SourceTools) -> None:
        self._host = host
        self._finder = finder
        self._tools = tools
        self._own_url = host.settings.http.base_url
        self._allowed = host.settings.sources.networks
        self._looks = Quota(LOOKS_AT_ONCE)
        self._lists = Quota(LISTS_AT_ONCE)

    @property
    def handlers(self) -> Mapping[type[Request], Callable[[Any], Awaitable[Answer]]]:
        """The functions that answer, by the type of request."""
        return {
            LookAt: self.look,
            FollowAddress: self.follow,
            FollowNode: self.follow_node,
            UnfollowNode: self.stop_following,
            FollowList: self.follow_list,
        }

    @property
    def has_chat(self) -> bool:
        """Whether the bot can tell people of new items."""
        return self._host.answers_chat()

    async def look(self, request: LookAt) -> LookedAt:
        """Returns what is at an address. Raises FeedError: NOT_ACCEPTABLE for a text that is no address of a public
        feed, MayNotAddError if the service does not have the feed and the actor may not add it; for an address of this
        service as `get_feed_here` does."""
        here = await self._here(request.actor, request.address, request.site_url)
        if here is not None:
            return self._looked_here(here, request.site_url)
        url, without_tls = _typed(request.address)
        answer = await self._known(request.actor, url, with_own=True)
        feeds, known = answer.feeds, answer.feeds[0]
        if known.node:
            # The feed is here already, so its server need not be asked.
            look = _look_of(url, known)
        elif not answer.may_add:
            raise MayNotAddError
        else:
            by_admin = not request.is_public and await self._is_admin(request.actor)
            look = await self._looked(request.actor, url, without_tls, by_admin=by_admin)
            feeds = (await self._known(request.actor, *(feed.url for feed in look.feeds))).feeds
            if look.first.is_refused:
                at_site = (await self._known(request.actor, url, is_site=True)).feeds
                look, feeds = (_look_of(url, at_site[0]), at_site) if at_site[0].node else (look, feeds)
        pairs = tuple(map(FoundFeed, look.feeds, feeds))
        return LookedAt(look.url, look.title, pairs, answer.own, answer.may_add, self.has_chat)

    async def follow(self, request: FollowAddress) -> AddressFollowed:
        """Follows an address. Raises FeedError as `look`, `place` and `begin_following` do."""
        self._check_tell(request.tell)
        here = None if request.node else await self._here(request.actor, request.address, request.site_url)
        if here is None:
            placed = await self.place(request.actor, request.address, request.node, prefers_known=not request.node)
        else:
            # Pages show feeds, and not views of them.
            placed = PlacedFeed(here.feed.node, self._address_here(here.feed.node, request.site_url), None)
        begun = await self._begin(request.actor, placed.node, request.tell)
        title = begun.node.options.title or begun.node.name
        return AddressFollowed(placed.node, title, placed.url, begun.is_new, begun.pending, placed.seen)

    async def place(
        self,
        actor: Jid,
        address: str,
        name: str,
        *,
        prefers_known: bool = True,
        is_public: bool = False,
        subscriber: Jid | None = None,
    ) -> PlacedFeed:
        """Returns the node of the feed at an address, and adds the source if the service does not have it.

        `name` is that of the node. With `prefers_known` an open node that has the feed already is taken in its place.
        `is_public` is that of `LookAt`. `subscriber` is who subscribes next, the actor if it is None.
        Raises NoFeedError, and FeedError: FORBIDDEN if the actor may not add feeds, CONFLICT if the name belongs to
        another user, POLICY_VIOLATION if the actor has too many, TOO_MANY_SUBSCRIPTIONS if the subscriber has.
        """
        url, without_tls = _typed(address)
        if prefers_known and (node := await self._known_node(actor, url, is_public=is_public)):
            return PlacedFeed(node, url, None)
        standing = await self._ask(GetStanding(actor, self._domain), Standing)
        if not (standing.admin or standing.creator or standing.owner):
            raise MayNotAddError
        look = await self._looked(actor, url, without_tls, by_admin=standing.admin and not is_public, most=1)
        feed = look.first
        if feed.is_refused and prefers_known:
            node = await self._known_node(actor, url, is_public=is_public, is_site=True)
            if node:
                return PlacedFeed(node, url, None)
        if feed.problem:
            raise NoFeedError(feed)
        if prefers_known and (node := await self._known_node(actor, feed.url, is_public=is_public)):
            return PlacedFeed(node, feed.url, feed)
        source = await self._add(actor, feed.url, name, NO_SETTINGS, (subscriber or actor).bare)
        if source is None:
            return PlacedFeed(name, feed.url, feed)
        # Before the subscription, so that the person does not get the entries that the feed has already.
        await self._finder.poll(source)
        return PlacedFeed(source.node, feed.url, feed)

    def names_here(self, address: str, site_url: str = "") -> tuple[str, ...] | None:
        """The names that an address of this service may mean, as `feed_names`."""
        return feed_names(address, self._domain, self._own_url or site_url)

    async def find_here(self, actor: Jid, address: str) -> str:
        """Returns the name of the feed or view of this service at an address, "" if there can be none. Raises FeedError
        as `get_feed_here` does."""
        here = await self._here(actor, address) if self.names_here(address) else None
        return "" if here is None else here.view or here.feed.node

    async def _here(self, actor: Jid, address: str, site_url: str = "") -> FeedHere | None:
        """The feed of this service at an address, None for an address elsewhere. Raises FeedError."""
        names = self.names_here(address, site_url)
        return None if names is None else await self._ask(GetFeedHere(actor, self._domain, names), FeedHere)

    def _address_here(self, node: str, site_url: str) -> str:
        root = self._own_url or site_url
        return f"{root.rstrip('/')}{feed_path(node)}" if root else xmpp_uri(self._domain, node)

    def _looked_here(self, here: FeedHere, site_url: str) -> LookedAt:
        known, newest = here.feed, here.newest
        seen = SeenFeed(
            self._address_here(known.node, site_url),
            known.title,
            count=known.count,
            newest_us=known.changed_us,
            newest_title="" if newest is None else cut(read_meta(newest.payload).body, TITLE_CHARACTERS),
            is_read=here.may_read,
        )
        return LookedAt(seen.url, "", (FoundFeed(seen, known),), (), here.may_add, self.has_chat, here)

    async def follow_node(self, request: FollowNode) -> FollowingBegun:
        """Follows a feed of this service. Raises FeedError as `begin_following` does."""
        self._check_tell(request.tell)
        return await self._begin(request.actor, request.node or "", request.tell)

    async def stop_following(self, request: UnfollowNode) -> FollowingEnded:
        """Ends following a node. Raises FeedError."""
        ended = await self._ask(EndFollowing(request.actor, self._domain, request.node), FollowingEnded)
        # The deliverer finds that nothing is followed any more, and the consumer is removed.
        for consumer in ended.consumers:
            self._host.dispatcher.hurry(consumer)
        return ended

    async def follow_list(self, request: FollowList) -> ListFollowedUp:
        """Follows the feeds of a list. No feed is requested now: the poller does that in turn.

        Raises FeedError for a document that is no list, or is too large; BUSY if the person's last list is not read.
        """
        self._check_tell(request.tell)
        actor = request.actor.bare_text
        if not self._lists.take(actor):
            raise FeedError(Condition.BUSY, "your last list is still being read; try again in a minute")
        try:
            # First, because it refuses users who may not use the service.
            standing = await self._ask(GetStanding(request.actor, self._domain), Standing)
            allowed = self._allowed if standing.admin else ()
            listed = await self._tools.aside(read_upload, request.document, MAX_LISTED, self._own_url, party=actor)
            urls = tuple(feed.url for feed in listed if feed.url)
            # Together, because this reads all sources of their hosts, and the subscriptions of the person.
            known = await self._known(request.actor, *urls)
            feeds = dict(zip(urls, known.feeds, strict=True))
            follow = partial(self._follow_listed, request, allowed, may_add=known.may_add)
            results: list[tuple[ListedFollow, bool]] = []
            for start in range(0, len(listed), _LISTED_AT_ONCE):
                some = listed[start : start + _LISTED_AT_ONCE]
                results += await asyncio.gather(*(follow(feed, feeds.get(feed.url)) for feed in some))
        finally:
            self._lists.release(actor)
        return ListFollowedUp(
            tuple(feed for feed, is_new in results if feed.node and is_new),
            tuple(feed for feed, is_new in results if feed.node and not is_new),
            tuple(feed for feed, _is_new in results if not feed.node),
        )

    async def _follow_listed(
        self,
        request: FollowList,
        allowed: Sequence[Network],
        feed: UploadedFeed,
        known: KnownFeed | None,
        *,
        may_add: bool,
    ) -> tuple[ListedFollow, bool]:
        """Follows a feed of a list. The second result: it was not followed before."""
        line = _line(feed)
        if known is not None and known.follows:
            return line._replace(node=known.node), False
        try:
            node = await self._node_of_listed(request.actor, feed, known, allowed, may_add=may_add)
            begun = await self._begin(request.actor, node, request.tell, feed.folder, feed.title)
        except FeedError as error:
            return _refused(line, error), False
        return line._replace(node=node), begun.is_new

    async def _node_of_listed(
        self, actor: Jid, feed: UploadedFeed, known: KnownFeed | None, allowed: Sequence[Network], *, may_add: bool
    ) -> str:
        """The node of a feed of a list, which is added if the service does not have it. Raises FeedError."""
        if known is None:
            if not is_own(feed.text, self._own_url):
                has_password = has_login(read_address(feed.text))
                raise FeedError(Condition.NOT_ACCEPTABLE, _PASSWORD if has_password else _NO_ADDRESS)
            # A list of this service, such as an export of what the person follows.
            names = own_nodes(feed.text, self._domain, self._own_url)
            if not names:
                raise FeedError(Condition.NOT_ACCEPTABLE, NO_FEED)
            return await self._host.service.read(lambda tx, _: next(filter(tx.node, names), names[0]))
        if known.node:
            return known.node
        if is_private(feed.url, allowed):
            # Such a source would never be requested, and count as one of the person.
            raise FeedError(
                Condition.NOT_ACCEPTABLE, "the address is in a private network, and this service does not read it"
            )
        if not may_add:
            raise MayNotAddError
        try:
            source = await self._add(actor, feed.url, "", _QUIET, actor.bare)
        except FeedError as error:
            # Somebody else may have added it since the list was looked up.
            is_taken = error.condition is Condition.FORBIDDEN
            node = await self._known_node(actor, feed.url, is_public=False) if is_taken else ""
            if not node:
                raise
            return node
        assert source is not None  # only a node with a name can have the feed already
        return source.node

    async def _looked(
        self, actor: Jid, url: str, without_tls: str, *, by_admin: bool, most: int = MOST_FEEDS
    ) -> AddressLook:
        """Looks at an address, and at that without TLS if no server answers and the person has written no scheme."""
        if not self._looks.take(actor.bare_text):
            raise FeedError(Condition.BUSY)
        try:
            look = await self._finder.look(url, by_admin=by_admin, most=most)
            if look.first.is_silent and without_tls:
                second = await self._finder.look(without_tls, by_admin=by_admin, most=most)
                look = look if second.first.problem else second
        finally:
            self._looks.release(actor.bare_text)
        return look

    async def _add(self, actor: Jid, url: str, name: str, settings: SourceSettings, subscriber: Jid) -> Source | None:
        """Adds a source. None: the node has it already. Raises FeedError."""
        request = AddSource(
            actor, self._domain, name, url=url, settings=settings, may_create=True, subscriber=subscriber
        )
        try:
            return (await self._ask(request, SourceShown)).source
        except FeedError as error:
            if error.condition is Condition.FORBIDDEN and name:
                raise FeedError(Condition.CONFLICT, f"another user owns the feed {name}; choose another name") from None
            if error.condition is Condition.NOT_ACCEPTABLE and name and await self._has(actor, name, url):
                return None
            raise

    async def _has(self, actor: Jid, name: str, url: str) -> bool:
        """Whether a node of the actor has the feed at an address."""

        def read(tx: ReadTx, _context: Context) -> bool:
            key = address_key(url)
            return any(key in (address_key(row.first_url), address_key(row.url)) for row in rows.sources_of(tx, name))

        return await self._host.service.read(read, turn=actor.bare_text)

    async def _known(self, actor: Jid, *urls: str, with_own: bool = False, is_site: bool = False) -> KnownFeeds:
        return await self._ask(GetKnownFeeds(actor, self._domain, urls, with_own, is_site), KnownFeeds)

    async def _known_node(self, actor: Jid, url: str, *, is_public: bool, is_site: bool = False) -> str:
        """Returns the node that has a feed already: one that everybody may read, or also one that the actor follows.
        `is_site`: the address may be that of its site.

        Raises MayNotAddError if there is none and the actor may not add feeds.
        """
        if is_public:
            return (await self._ask(FindSourceNode(actor, self._domain, url, is_site), SourceNode)).node
        answer = await self._known(actor, url, is_site=is_site)
        (known,) = answer.feeds
        if not known.node and not answer.may_add:
            raise MayNotAddError
        return known.node

    async def _begin(self, actor: Jid, node: str, tell: Tell, folder: str = "", title: str = "") -> FollowingBegun:
        request = BeginFollowing(actor, self._domain, node, tell=tell, folder=folder, title=title)
        begun = await self._ask(request, FollowingBegun)
        if begun.consumer is not None:
            if tell is Tell.CHAT:
                self._host.dispatcher.add(begun.consumer)
            else:
                self._host.dispatcher.hurry(begun.consumer)
        return begun

    async def _is_admin(self, actor: Jid) -> bool:
        return (await self._ask(GetStanding(actor, self._domain), Standing)).admin

    def _check_tell(self, tell: Tell) -> None:
        if tell is Tell.CLIENT:
            raise FeedError(Condition.BAD_REQUEST, "tell is chat or nobody; your client subscribes by itself")
        if tell is Tell.CHAT and not self.has_chat:
            raise FeedError(Condition.NOT_ACCEPTABLE, "this service sends no chat messages; choose to tell nobody")

    @property
    def _domain(self) -> str:
        return self._host.settings.component.jid

    async def _ask(self, request: Request, kind: type[T]) -> T:
        return await ask(self._host.service.handle, request, kind)


_TOO_MANY: Final = N_("you have as many feeds as this service allows")
_NO_ADDRESS: Final = N_("this is no address of a web page or feed")
_PASSWORD: Final = N_("an address with a password cannot be followed here: everybody could read the feed")


def _typed(text: str) -> tuple[str, str]:
    """Returns the address that a person means, and the one to try if its server does not answer, "" if the person has
    written a scheme. Raises FeedError(NOT_ACCEPTABLE)."""
    url = read_address(text)
    if not url:
        raise FeedError(Condition.NOT_ACCEPTABLE, _NO_ADDRESS)
    if has_login(url):
        raise FeedError(Condition.NOT_ACCEPTABLE, _PASSWORD)
    is_assumed = url.startswith("https:") and not any(scheme in text.lower() for scheme in _SECURE)
    return url, f"http{url.removeprefix('https')}" if is_assumed else ""


def _look_of(url: str, known: KnownFeed) -> AddressLook:
    """A look at an address whose feed the service has."""
    seen = SeenFeed(url, known.title, count=known.count, newest_us=known.changed_us, is_read=False)
    return AddressLook(url, "", (seen,))


def _line(feed: UploadedFeed) -> ListedFollow:
    return ListedFollow(cut(without_secrets(feed.text), _REASON_CHARACTERS), feed.title, feed.folder)


def _refused(line: ListedFollow, error: FeedError) -> ListedFollow:
    # Most lines of a long list have this reason.
    reason = _TOO_MANY if isinstance(error, TooManySourcesError) else error.text or error.condition.value
    return line._replace(reason=cut(reason, _REASON_CHARACTERS))
