"""Finds the feed at an address, for `smartfeeds source check` (SRC-047, SRC-048) and for people who follow a site
(SRC-083).

People know the address of a blog, not that of its feed: a page that links to feeds stands for the first of them.
"""

import contextlib
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.polling.answers import failed_answer, good_answer, whole
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.polls import GOOD, after_answer, hinted_s
from smartfeeds.features.polling.reading import ACCEPT_SOURCE, SourceDocument, read_source
from smartfeeds.features.polling.source import Source, host_of, new_source
from smartfeeds.features.polling.tools import DocumentRunner, SourceTools, read_here
from smartfeeds.formats.autodiscovery import MAX_PAGE_BYTES, LinkType, PageLink, links_of
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchError, FetchResponse, Hop, Sender

# Searches at once. Each waits for a server that a person has named, so they must not use up all requests.
AT_ONCE: Final = 8
_FEEDS: Final = frozenset({LinkType.RSS, LinkType.ATOM, LinkType.JSON_FEED})


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The response of an address. `problem` is the reason why it cannot be a source, "" if it can. `links` are the
    feeds that a web page offers. `hint_s` is the interval that the server asks for, `next_s` the seconds until the next
    poll."""

    hops: tuple[Hop, ...]
    problem: str = ""
    content_type: str = ""
    has_validators: bool = False
    document: SourceDocument | None = None
    links: tuple[PageLink, ...] = ()
    hint_s: int | None = None
    next_s: int | None = None


async def check_source(
    fetcher: Fetcher, source: Source, now_us: int, aside: DocumentRunner = read_here
) -> SourceReport:
    """Requests the address of a source once, and stores nothing."""
    settings = source.settings
    try:
        sender = Sender(settings.user, settings.password, settings.user_agent)
        response = whole(await fetcher.get(source.url, accept=ACCEPT_SOURCE, sender=sender))
    except FetchError as error:
        after = after_answer(source, failed_answer(error), now_us, 0.5)
        return SourceReport(error.hops, error.reason, next_s=_seconds(after, now_us))
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
        return SourceReport(response.hops, error.text or error.condition.value, content_type, links=links)
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
class FoundFeed:
    """The feed at an address that a user wants to follow. `problem` is the reason why the user cannot, "" for none.

    `is_silent`: no response came.
    """

    url: str
    title: str = ""
    problem: str = ""
    is_silent: bool = False


class FeedFinder:
    """Finds the feed for a person who follows an address. `own_url` is that of this service, "" if it has none.

    `public` is the client for users, `listed` that for admins: it also reaches `sources.allowed_networks`.
    """

    def __init__(self, public: Fetcher, listed: Fetcher, poller: Poller, tools: SourceTools, own_url: str = "") -> None:
        self._public = public
        self._listed = listed
        self._poller = poller
        self._tools = tools
        self._own_url = own_url
        self._searches = 0

    async def find(self, url: str, *, by_admin: bool) -> FoundFeed:
        """The feed at an address, or the first one that the page there links to.

        Raises FeedError: NOT_ACCEPTABLE if it is no address of a public feed, BUSY if too many searches run.
        """
        if self._searches >= AT_ONCE:
            raise FeedError(Condition.BUSY)
        self._searches += 1
        try:
            return await self._find(url, self._listed if by_admin else self._public)
        finally:
            self._searches -= 1

    async def _find(self, url: str, fetcher: Fetcher) -> FoundFeed:
        source, report = await self._check(url, fetcher)
        link = _feed_link(report)
        if link is not None:
            source, report = await self._check(link.href, fetcher)
        title = report.document.feed.title if report.document is not None else ""
        is_silent = bool(report.hops) and not report.hops[-1].status
        return FoundFeed(source.url, title, report.problem, is_silent)

    async def _check(self, url: str, fetcher: Fetcher) -> tuple[Source, SourceReport]:
        try:
            source = new_source("check", url, self._tools.now_us())
        except ConfigError as error:
            raise FeedError(Condition.NOT_ACCEPTABLE, str(error)) from None
        if source.settings.user:
            # Everybody could read the node.
            raise FeedError(Condition.NOT_ACCEPTABLE, "the address contains a password")
        if is_own(source.url, self._own_url):
            raise FeedError(Condition.NOT_ACCEPTABLE, "the address is a feed of this service")
        return source, await check_source(fetcher, source, self._tools.now_us(), self._tools.aside)

    async def poll(self, source: Source) -> None:
        """Polls a new source now. A failure is stored with it, and the poller tries again. Raises StoreError."""
        await self._poller.poll(source)


def _feed_link(report: SourceReport) -> PageLink | None:
    return next((link for link in report.links if link.type in _FEEDS), None)
