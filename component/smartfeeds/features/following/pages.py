"""The page `/follow`: a box for an address, what is there, and what the reader follows; and lists that are uploaded.

It works without a script. GET with `url` shows what is at an address and stores nothing, so that a link of another
site, such as a bookmarklet, can lead there. The requests are those of programs (`features.polling.following_http`).
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from smartfeeds.core.model import Item, Node
from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.token import TokenScope, covers
from smartfeeds.core.urls import FOLLOW, LOGIN, entry_path, feed_path, local_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.following.entries import GetMyEntries, GetNewestKey, MarkRead, MyEntries, NewestKey
from smartfeeds.features.following.upload import read_upload_form
from smartfeeds.features.following.waiting import NewsWaiters
from smartfeeds.features.pages.answers import links_of_item
from smartfeeds.features.pages.bookmarklet import PAGE, bookmarklet
from smartfeeds.features.pages.frame import EntryForms, FeedControl, FeedControls, ReaderPlaces, frame_of, page_reply
from smartfeeds.features.pages.problem_page import prefers_page
from smartfeeds.features.pages.river import parse_entry_place
from smartfeeds.features.pages.river_page import Card, make_card
from smartfeeds.features.polling.failures import FailureWords, next_step, words_of_failure, words_of_reason
from smartfeeds.features.polling.follower import (
    AddressFollowed,
    FollowAddress,
    FollowList,
    FollowNode,
    FoundFeed,
    ListFollowedUp,
    LookAt,
    LookedAt,
    NoFeedError,
    UnfollowNode,
)
from smartfeeds.features.polling.following import (
    FollowedFeed,
    FollowingBegun,
    FollowingShown,
    GetFollowing,
    ListFollowed,
    Tell,
    TriedAgain,
    TryAgain,
)
from smartfeeds.features.polling.following_http import is_from_another_page
from smartfeeds.features.polling.requests import MayNotAddError
from smartfeeds.features.polling.source import Source
from smartfeeds.features.polling.sources import TooManySourcesError
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.json_text import dump_json
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.feeds import counted
from smartfeeds.http.http_errors import STATUSES, HttpError
from smartfeeds.http.negotiation import JSON
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import page_path, read_parameters, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.http.resources import PRIVATE
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.net.fetch import display_url
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.resources import ListAnswer
from smartfeeds.texts import N_

FOLLOWED_FEEDS: Final = f"{FOLLOW}/feeds/"
LIST: Final = f"{FOLLOW}/list"
MY_ENTRIES: Final = f"{FOLLOW}/entries"
MARK: Final = f"{FOLLOW}/read"
ENTRIES: Final = 30  # on a page
ROWS: Final = 50  # feeds on a page
_RIGHT: Final = TokenScope.ADMIN
# The choices of a form beside the names of nodes.
_ANY, _NEW = "any", "new"

PLACES: Final = ReaderPlaces(((MY_ENTRIES, N_("My feeds")), (FOLLOW, N_("Follow"))))

# Its handler checks the right, because people who are not signed in read there how to.
SHOW = page_for_people("followPage", "The page to follow a blog")
SUBMIT = page_for_people("followForm", "Follows the feed of the form", form=True, scope=_RIGHT)
UPLOAD = page_for_people("followListForm", "Follows the feeds of a list", form=True, scope=_RIGHT)
ENTRIES_PAGE = page_for_people("myFeedsPage", "The newest entries of what the reader follows", scope=_RIGHT)
MARK_READ = page_for_people("markReadForm", "Marks what the reader follows as read", form=True, scope=_RIGHT)
CHANGE = page_for_people("followedFeedForm", "Changes or ends following a feed", form=True, scope=_RIGHT)

# The messages after a form, by the parameter `done`.
_DONE: Final = {
    "followed": N_("You follow {feed} now."),
    "already": N_("You follow {feed} already."),
    "pending": N_("The owner of {feed} has to approve your request."),
    "retried": N_("The service reads {feed} again now."),
    "chat": N_("New entries of {feed} come by chat now."),
    "nobody": N_("You get no messages about new entries of {feed}."),
    "unfollowed": N_("You follow {feed} no longer."),
}
_THIS_FEED: Final = N_("this feed")  # in place of a title that the reader may not know
_TELLS: Final = {"chat": Tell.CHAT, "nobody": Tell.NOBODY}


@dataclass(frozen=True, slots=True)
class ShownFeed:
    """A feed at an address as the page shows it. `problem` is why it cannot be followed, None if it can."""

    feed: FoundFeed
    problem: FailureWords | None
    path: str

    @property
    def is_choice(self) -> bool:
        """Whether the reader may choose it."""
        return self.problem is None and not self.feed.known.follows


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """A source that fails as the page shows it: its address, what happened, and what the service does next."""

    source: Source
    words: FailureWords
    next_step: str
    address: str


@dataclass(frozen=True, slots=True)
class ShownFollow:
    """A feed that the reader follows as the page shows it. `left_out` counts the failures that are not shown. `next_us`
    is the time of the next request for a source that works, None without one."""

    feed: FollowedFeed
    path: str
    action: str
    anchor: str
    failures: tuple[ShownFailure, ...]
    left_out: int
    next_us: int | None


@dataclass(frozen=True, slots=True)
class _View:
    """The parts of a page beside the list: the text in the box, the feeds at the address, and the result of a form.
    `done` is a key of `_DONE`, and `feed` the node that the form has changed."""

    address: str = ""
    looked: LookedAt | None = None
    name: str = ""
    problem: str = ""
    advice: str = ""
    reason: str = ""
    status: HTTPStatus = HTTPStatus.OK
    imported: ListFollowedUp | None = None
    done: str = ""
    feed: str = ""


class FollowPages:
    """Handles the page and its forms."""

    def __init__(self, tools: SiteTools) -> None:
        self._handle = tools.handle
        self._perform = tools.perform
        self._service = tools.domain
        self._bodies = tools.bodies
        self._now_us = tools.now_us
        self._authenticate = tools.authenticator.authenticate
        self._behind_proxies = tools.behind_proxies
        self._waiters = tools.parts.get(NewsWaiters)

    async def show(self, call: HttpCall) -> Reply:
        """The page, for people who are not signed in with the way to do so. Raises FeedError."""
        query = read_parameters(call.query, ("url", "after", "done", "feed"))
        address = query.get("url", "").strip()
        if call.token is None:
            return self._signed_out(call, address)
        call.require(_RIGHT, "")
        if not address:
            view = _View(done=query.get("done", ""), feed=query.get("feed", ""))
            return await self._page(call, view, query.get("after", ""))
        return await self._page(call, await self._look(call, address))

    async def submit(self, call: HttpCall) -> Reply:
        """Follows the feed of the form. Raises FeedError."""
        fields = await self._bodies.fields(call)
        address, name = fields.get("url", "").strip(), fields.get("name", "").strip()
        place = fields.get("place", _ANY)
        # A reader who types a name means a new feed.
        node = name if place in (_ANY, _NEW) else place.removeprefix("node:")
        tell = _TELLS.get(fields.get("tell", ""), Tell.NOBODY)
        try:
            if place == _NEW and not name:
                raise FeedError(Condition.BAD_REQUEST, N_("type a name for the new feed, or choose another place"))
            request = FollowAddress(call.actor, self._service, address, node, tell, call.site_url)
            followed = await ask(self._perform, request, AddressFollowed)
        except FeedError as error:
            view = _refused(call, error, address)
            if address and not isinstance(error, NoFeedError):
                # The reader chooses again.
                again = await self._look(call, fields.get("from", "").strip() or address)
                view = replace(view, address=again.address, looked=again.looked, name=name)
            return await self._page(call, view)
        done = _result(is_new=followed.is_new, pending=followed.pending)
        return call.see_other(_path_after(done, followed.node))

    async def upload(self, call: HttpCall) -> Reply:
        """Follows the feeds of a list, and reports which. A repetition adds nothing again. Raises FeedError."""
        form = await read_upload_form(call, self._bodies)
        tell = _TELLS.get(form.fields.get("tell", ""), Tell.NOBODY)
        try:
            if not form.document:
                raise FeedError(Condition.BAD_REQUEST, N_("choose a file with a list of feeds (OPML)"))
            answer = await ask(
                self._perform, FollowList(call.actor, self._service, form.document, tell), ListFollowedUp
            )
        except FeedError as error:
            return await self._page(call, _refused(call, error))
        return await self._page(call, _View(imported=answer))

    async def change(self, call: HttpCall) -> Reply:
        """Tries again, changes who is told, or ends following. Raises FeedError."""
        fields = await self._bodies.fields(call)
        action = fields.get("action", "")
        try:
            done = await self._change(call, action)
        except FeedError as error:
            view = _refused(call, error)
            if action == "retry" and error.condition is Condition.NOT_ACCEPTABLE:
                view = replace(view, problem=_NOT_NOW, advice=_LATER, reason=error.text)
            return await self._page(call, view)
        # The page of the feed shows by its button what has changed.
        return call.see_other(local_path(fields.get("next", "")) or _path_after(done, call.name))

    async def _change(self, call: HttpCall, action: str) -> str:
        """Performs the action of a button. Returns the key of the message."""
        actor, service, node = call.actor, self._service, call.name
        if action == "retry":
            await ask(self._perform, TryAgain(actor, service, node), TriedAgain)
            return "retried"
        if action == "unfollow":
            await self._perform(UnfollowNode(actor, service, node))
            return "unfollowed"
        if action == "follow":
            begun = await ask(self._perform, FollowNode(actor, service, node), FollowingBegun)
            return _result(is_new=begun.is_new, pending=begun.pending)
        if action in _TELLS:
            await self._perform(FollowNode(actor, service, node, _TELLS[action]))
            return action
        raise FeedError(Condition.BAD_REQUEST, N_("the form has no known action; load the page again"))

    async def entries(self, call: HttpCall) -> Reply:
        """The newest entries of what the reader follows; for the script of the page, the key of the newest one."""
        query = read_parameters(call.query, ("after", "since"))
        if not prefers_page(call.header("Accept")):
            return await self._newest(call, query.get("since", ""))
        after = parse_entry_place(query["after"]) if query.get("after") else None
        request = GetMyEntries(call.actor, self._service, ENTRIES, after, call.site_url)
        answer = await ask(self._handle, request, MyEntries)
        newest_us = max((entry.item.modified_us for entry in answer.entries), default=0)
        frame = frame_of(call)

        def card_of(node: Node, item: Item) -> Card:
            links = links_of_item(frame.texts, item, answer.answered, self._service, call.site_url)
            return make_card(node, item, answers=links)

        def write() -> bytes:
            return frame.page(
                "following/templates/entries.html",
                cards=[(entry, card_of(entry.node, entry.item)) for entry in answer.entries],
                can_reply=call.parts.find(EntryForms) is not None,
                feeds=answer.feeds,
                new=sum(entry.is_new for entry in answer.entries),
                newest_us=newest_us,
                first_page=after is None,
                next_path="" if answer.next is None else page_path(MY_ENTRIES, {}, after=str(answer.next)),
                here=MY_ENTRIES,
                follow_path=FOLLOW,
                read_path=MARK,
            )

        # In a thread, because reading entries of the greatest size takes more than 50 ms.
        return call.zipped(page_reply(await asyncio.to_thread(write)))

    async def _newest(self, call: HttpCall, since: str) -> Reply:
        """The key of the newest entry. With the key of an entry the request is held until there is a newer one."""
        known_us = parse_number(since, "since") if since else -1
        read = partial(ask, self._handle, GetNewestKey(call.actor, self._service, known_us), NewestKey)
        with counted(call, self._behind_proxies):
            newest = await self._waiters.newest(read, known_us)
            # After the read: a session that has ended by now must not learn what was published since.
            await self._authenticate(call.credential)
        return Reply(dump_json({"newest": str(newest.modified_us)}), JSON.media_type, headers=PRIVATE)

    async def mark_read(self, call: HttpCall) -> Reply:
        """Marks everything as read that the page has shown. Raises FeedError."""
        until_us = parse_number((await self._bodies.fields(call)).get("until", ""), "until")
        await self._perform(MarkRead(call.actor, self._service, until_us))
        return call.see_other(MY_ENTRIES)

    async def _look(self, call: HttpCall, address: str) -> _View:
        """The feeds at an address, or the reason why the reader may not see them."""
        request = LookAt(call.actor, self._service, address, is_from_another_page(call), call.site_url)
        try:
            looked = await ask(self._handle, request, LookedAt)
        except FeedError as error:
            return _refused(call, error, address)
        return _View(address, looked)

    def _signed_out(self, call: HttpCall, address: str) -> Reply:
        here = f"{FOLLOW}?url={quote(address, safe='')}" if address else FOLLOW
        body = frame_of(call).page(
            "following/templates/signed_out.html", address=address, sign_in=f"{LOGIN}?next={quote(here, safe='/')}"
        )
        return call.zipped(page_reply(body)).with_status(HTTPStatus.UNAUTHORIZED)

    async def _page(self, call: HttpCall, view: _View, after: str = "") -> Reply:
        frame = frame_of(call)
        page = ResultSetRequest(str(ROWS), after or None)
        answer: ListAnswer[FollowedFeed] = await ask(
            self._handle, ListFollowed(call.actor, self._service, page), ListAnswer
        )
        result_set = answer.result_set
        count = 0 if result_set is None else result_set.count or 0
        last = "" if result_set is None or result_set.last is None else result_set.last
        more = bool(last) and int(last) + 1 < count
        follows = [_shown_follow(feed, self._now_us()) for feed in answer.entries]
        changed = next((follow.feed.node for follow in follows if follow.feed.node.name == view.feed), None)
        feeds = () if view.looked is None else tuple(map(_shown_feed, view.looked.feeds))
        body = frame.page(
            "following/templates/follow.html",
            view=view,
            found=feeds,
            here=None if view.looked is None else view.looked.here,
            feed_count=sum(feed.problem is None for feed in feeds),
            first=next((feed for feed in feeds if feed.is_choice), None),
            follow_path=FOLLOW,
            bookmark=bookmarklet(f"{call.site_url}{FOLLOW}", {"url": PAGE}),
            list_path=LIST,
            folders=_by_folder(follows),
            total=count,
            failing=sum(bool(follow.failures) for follow in follows),
            first_page=not after,
            next_path=page_path(FOLLOW, {}, after=last) if more else "",
            done=await self._message(call, view, "" if changed is None else title_of(changed)),
            # The browser shows this part of the list.
            done_at="" if changed is None else _anchor(changed.name),
        )
        reply = call.zipped(page_reply(body))
        return reply if view.status is HTTPStatus.OK else reply.with_status(view.status)

    async def _message(self, call: HttpCall, view: _View, title: str) -> str:
        """The message after a form, with the title of the feed; "" without a form."""
        if view.done not in _DONE:
            return ""
        if not title:
            request = GetFollowing(call.actor, self._service, view.feed)
            title = (await ask(self._handle, request, FollowingShown)).title
        texts = frame_of(call).texts
        return texts.say(_DONE[view.done], feed=title or texts.say(_THIS_FEED))


def _result(*, is_new: bool, pending: bool) -> str:
    """The key of the message after following."""
    return "pending" if pending else "followed" if is_new else "already"


def _path_after(done: str, node: str) -> str:
    """The path to which a form leads: the feed in the list, with a message."""
    return f"{FOLLOW}?{write_query({'done': done, 'feed': node})}#{_anchor(node)}"


def _refused(call: HttpCall, error: FeedError, address: str = "") -> _View:
    """A page with the message of an error. Raises HttpError again."""
    if isinstance(error, HttpError):
        raise error
    texts, status = frame_of(call).texts, STATUSES[error.condition]
    if isinstance(error, NoFeedError):
        words = words_of_reason(error.text)
        # The reasons are for operators, and name their options.
        reason = "" if words.is_known else error.text
        return _View(address, problem=words.what, advice=words.advice, reason=reason, status=status)
    if isinstance(error, MayNotAddError):
        return _View(address, problem=_MAY_NOT, advice=_ASK_ADMIN, status=status)
    if isinstance(error, TooManySourcesError):
        return _View(address, problem=_TOO_MANY, advice=_ASK_MORE, status=status)
    if error.condition is Condition.BUSY and not error.text:
        return _View(address, problem=_BUSY, status=status)
    return _View(address, problem=texts.message(error.text or error.condition.value), status=status)


_MAY_NOT: Final = N_("You may not add feeds of other servers here.")
_ASK_ADMIN: Final = N_("Ask an admin of this service to add it, or to let you add feeds.")
_TOO_MANY: Final = N_("You have as many feeds as this service allows.")
_ASK_MORE: Final = N_("Unfollow one first, or ask an admin of this service to allow more.")
_NOT_NOW: Final = N_("It cannot be read again right now.")
_LATER: Final = N_("It was read less than a minute ago, its server asked for a pause, or somebody has paused it.")
_BUSY: Final = N_("The service is busy. Try again in a minute.")


def _shown_feed(feed: FoundFeed) -> ShownFeed:
    problem = words_of_reason(feed.seen.problem) if feed.seen.problem else None
    return ShownFeed(feed, problem, feed_path(feed.known.node) if feed.known.node else "")


def _shown_follow(feed: FollowedFeed, now_us: int) -> ShownFollow:
    name = feed.node.name
    failures = [
        ShownFailure(source, words, next_step(source), display_url(source.url))
        for source in feed.failing
        if (words := words_of_failure(source)) is not None
    ]
    due_us = feed.sources[0].due_us if feed.sources and not failures else None
    return ShownFollow(
        feed,
        feed_path(name),
        _action(name),
        _anchor(name),
        tuple(failures[:3]),
        max(0, len(failures) - 3),
        # It may be late, which is no news for people.
        None if due_us is None else max(due_us, now_us),
    )


def _action(node: str) -> str:
    """The path of the form that changes how the reader follows a feed."""
    return entry_path(node, folder=FOLLOWED_FEEDS)


def feed_controls(handle: Handle, service: str) -> FeedControls:
    """Returns the part by which the page of a feed has a button to follow it."""

    async def read(call: HttpCall) -> FeedControl | None:
        if call.token is None or not covers(call.token, _RIGHT, ""):
            return None
        answer = await ask(handle, GetFollowing(call.actor, service, call.name), FollowingShown)
        if answer.tell is None and not answer.may_follow:
            return None
        state = "" if answer.tell is None else answer.tell.value
        return FeedControl("following/templates/control.html", state, _action(call.name))

    return FeedControls(read)


def _by_folder(follows: Sequence[ShownFollow]) -> list[tuple[str, list[ShownFollow]]]:
    """The feeds by folder, those without one first, in the order of the list."""
    folders: dict[str, list[ShownFollow]] = {}
    for follow in follows:
        folders.setdefault(follow.feed.folder, []).append(follow)
    return list(folders.items())


def _anchor(node: str) -> str:
    """The fragment of a feed in the list."""
    return f"feed-{hashlib.sha256(node.encode()).hexdigest()[:12]}"


# fmt: off
HTTP: Final[HttpSide[FollowPages]] = HttpSide(
    (
        Route("GET", FOLLOW, "follow", SHOW, lambda h: h.show),
        Route("POST", FOLLOW, "follow", SUBMIT, lambda h: h.submit),
        Route("GET", MY_ENTRIES, "follow", ENTRIES_PAGE, lambda h: h.entries),
        Route("POST", MARK, "follow", MARK_READ, lambda h: h.mark_read),
        Route("POST", LIST, "follow", UPLOAD, lambda h: h.upload),
        Route("POST", f"{FOLLOWED_FEEDS}{{name}}/", "follow", CHANGE, lambda h: h.change),
    ),
    FollowPages,
)
# fmt: on
