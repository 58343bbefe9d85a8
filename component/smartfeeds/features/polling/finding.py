"""Finds the feeds at an address, for `smartfeeds source` (SRC-047, SRC-048) and for people who follow a site
(SRC-083).

People know the address of a blog, not that of its feed: a page that links to feeds stands for the first of them.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from smartfeeds.core.text import cut
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.web_address import address_key
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.polling.answers import failed_answer, good_answer, whole
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.polls import GOOD, AnswerKind, after_answer, hinted_s
from smartfeeds.features.polling.reading import ACCEPT_SOURCE, SourceDocument, read_source
from smartfeeds.features.polling.source import Source, host_of, new_source
from smartfeeds.features.polling.tools import DocumentRunner, SourceTools, read_here
from smartfeeds.formats.atom import read_meta
from smartfeeds.formats.autodiscovery import MAX_PAGE_BYTES, LinkType, PageLink, links_of
from smartfeeds.formats.refusals import page_title
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchError, FetchResponse, Hop, Sender

# Searches at once. Each waits for a server that a person has named, so they must not use up all requests.
AT_ONCE: Final = 8
TITLE_CHARACTERS: Final = 200  # of the newest entry
# The feeds of a page that are requested. A page of a blog has one for the entries and one for the comments; pages of
# newspapers have hundreds.
MOST_FEEDS: Final = 4
_MOST_LINKS: Final = 20  # that are shown
_FEEDS: Final = frozenset({LinkType.RSS, LinkType.ATOM, LinkType.JSON_FEED})


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The response of an address. `problem` is the reason why it cannot be a source, "" if it can. `links` are the
    feeds that a web page offers, `page_title` is its title. `hint_s` is the interval that the server asks for, `next_s`
    the seconds until the next poll. `is_refused`: the address is in a network that may not be reached. `is_temporary`:
    the server did not answer, or could not at the moment."""

    hops: tuple[Hop, ...]
    problem: str = ""
    content_type: str = ""
    has_validators: bool = False
    document: SourceDocument | None = None
    links: tuple[PageLink, ...] = ()
    hint_s: int | None = None
    next_s: int | None = None
    page_title: str = ""
    is_refused: bool = False
    is_temporary: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether no response came."""
        return bool(self.hops) and not self.hops[-1].status


async def check_source(
    fetcher: Fetcher, source: Source, now_us: int, aside: DocumentRunner = read_here
) -> SourceReport:
    """Requests the address of a source once, and stores nothing."""
    settings = source.settings
    try:
        sender = Sender(settings.user, settings.password, settings.user_agent)
        response = whole(await fetcher.get(source.url, accept=ACCEPT_SOURCE, sender=sender))
    except FetchError as error:
        answer = failed_answer(error)
        return SourceReport(
            error.hops,
            error.reason,
            next_s=_seconds(after_answer(source, answer, now_us, 0.5), now_us),
            is_refused=error.is_refused,
            is_temporary=answer.kind in (AnswerKind.BUSY, AnswerKind.FAILED) and not error.is_refused,
        )
    return await _read(source, response, now_us, aside)


async def _read(source: Source, response: FetchResponse, now_us: int, aside: DocumentRunner) -> SourceReport:
    content_type = response.content_type
    try:
        document = await aside(
            read_source,
            *(response.body, response.charset, response.url, source, ""),
            response.headers.getall("Link", ()),
            party=source.host,
        )
    except FeedError as error:
        links = await _links(response, aside)
        reason = error.text or error.condition.value
        title = page_title(response.body)
        return SourceReport(response.hops, reason, content_type, links=links, page_title=title)
    answer = good_answer(source, response, document)
    assert answer.kind in GOOD
    after = after_answer(source, answer, now_us, 0.5)
    return SourceReport(
        response.hops,
        "",
        content_type,
        has_validators=bool(response.validators),
        document=document,
        links=await _links(response, aside) if document.is_page else (),
        hint_s=hinted_s(after.progress),
        next_s=_seconds(after, now_us),
        page_title=page_title(response.body) if document.is_page else "",
    )


async def _links(response: FetchResponse, aside: DocumentRunner) -> tuple[PageLink, ...]:
    """The feeds that a web page offers; none if the page cannot be read within the limits."""
    if response.body.lstrip()[:1] != b"<":
        return ()
    with contextlib.suppress(FeedError):
        return await aside(links_of, response.body[:MAX_PAGE_BYTES], response.url, party=host_of(response.url))
    return ()


def _seconds(source: Source, now_us: int) -> int | None:
    return None if source.due_us is None or source.due_us <= now_us else (source.due_us - now_us) // US_PER_S


@dataclass(frozen=True, slots=True)
class SeenFeed:
    """A feed at an address, as a request saw it. `problem` is the reason why it cannot be followed, "" if it can.

    `format` is its name for people, `link` the address of its site, `count` the number of its entries; `newest_us` and
    `newest_title` are those of the newest entry. `is_read` is false for a feed that a page links to and that was not
    requested.
    """

    url: str
    title: str = ""
    format: str = ""
    link: str = ""
    count: int = 0
    newest_us: int | None = None
    newest_title: str = ""
    problem: str = ""
    is_read: bool = True
    is_silent: bool = False
    is_refused: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class AddressLook:
    """The feeds at an address: the feed itself, or those that the page there links to, in its order. `title` is that of
    the page, "" for a feed. There is at least one feed, which may have a `problem`."""

    url: str
    title: str
    feeds: tuple[SeenFeed, ...]

    @property
    def first(self) -> SeenFeed:
        """The feed that stands for the address (SRC-048)."""
        return self.feeds[0]


# Requests an address once. Raises FeedError if it cannot be that of a source.
CheckAddress = Callable[[str], Awaitable[SourceReport]]


async def look_at(check: CheckAddress, url: str, most: int = MOST_FEEDS) -> AddressLook:
    """Requests an address, and at most `most` of the feeds that the page there links to. Raises FeedError."""
    report = await check(url)
    links = {address_key(link.href): link for link in report.links if link.type in _FEEDS}
    links.pop(address_key(url), None)
    if not links:
        return AddressLook(url, report.page_title, (_seen(url, report),))
    chosen = list(links.values())[:_MOST_LINKS]
    feeds = await asyncio.gather(*(_linked(check, link) for link in chosen[:most]))
    unread = (SeenFeed(link.href, link.title, is_read=False) for link in chosen[most:])
    return AddressLook(url, report.page_title, (*feeds, *unread))


async def _linked(check: CheckAddress, link: PageLink) -> SeenFeed:
    try:
        feed = _seen(link.href, await check(link.href))
    except FeedError as error:
        return SeenFeed(link.href, link.title, problem=error.text or error.condition.value)
    return feed if feed.title else replace(feed, title=link.title)


def _seen(url: str, report: SourceReport) -> SeenFeed:
    document = report.document
    if document is None:
        return SeenFeed(
            url,
            problem=report.problem,
            is_silent=report.is_silent,
            is_refused=report.is_refused,
            is_temporary=report.is_temporary,
        )
    feed, items = document.feed, document.items
    return SeenFeed(
        url,
        feed.title,
        feed.format,
        feed.link,
        len(items),
        max(document.times_us, default=None),
        # Items are in the order of their times, the newest last.
        cut(read_meta(items[-1].item.payload).body, TITLE_CHARACTERS) if items else "",
    )


class FeedFinder:
    """Finds feeds for people who name an address. `own_url` is that of this service, "" if it has none.

    `public` is the client for users, `listed` that for admins: it also reaches `sources.allowed_networks`.
    """

    def __init__(self, public: Fetcher, listed: Fetcher, poller: Poller, tools: SourceTools, own_url: str = "") -> None:
        self._public = public
        self._listed = listed
        self._poller = poller
        self._tools = tools
        self._own_url = own_url
        self._searches = 0

    async def look(self, url: str, *, by_admin: bool, most: int = MOST_FEEDS) -> AddressLook:
        """The feeds at an address, as `look_at`.

        Raises FeedError: NOT_ACCEPTABLE if it is no address of a public feed, BUSY if too many searches run.
        """
        if self._searches >= AT_ONCE:
            raise FeedError(Condition.BUSY)
        self._searches += 1
        fetcher = self._listed if by_admin else self._public

        async def check(address: str) -> SourceReport:
            return await check_source(fetcher, self._source(address), self._tools.now_us(), self._tools.aside)

        try:
            return await look_at(check, url, most)
        finally:
            self._searches -= 1

    def _source(self, url: str) -> Source:
        try:
            source = new_source("check", url, self._tools.now_us())
        except ConfigError as error:
            raise FeedError(Condition.NOT_ACCEPTABLE, str(error)) from None
        if source.settings.user:
            # Everybody could read the node.
            raise FeedError(Condition.NOT_ACCEPTABLE, "the address contains a password")
        if is_own(source.url, self._own_url):
            raise FeedError(Condition.NOT_ACCEPTABLE, "the address is a feed of this service")
        return source

    async def poll(self, source: Source) -> None:
        """Polls a new source now. A failure is stored with it, and the poller tries again. Raises StoreError."""
        await self._poller.poll(source)
