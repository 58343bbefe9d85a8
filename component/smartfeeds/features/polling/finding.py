"""Finds the feed behind an address that a person knows, and polls it for the first time (SRC-048, SRC-083).

People know the address of a blog, not that of its feed: a page that links to feeds stands for the first of them.
"""

from typing import Final

from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.polling.checking import SourceReport, check_source
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import FoundFeed, Source, is_own, new_source
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.autodiscovery import LinkType, PageLink
from smartfeeds.net.fetch import Fetcher

# Searches at once. Each waits for a server that a person has named, so they must not use up all requests.
AT_ONCE: Final = 8
_FEEDS: Final = frozenset({LinkType.RSS, LinkType.ATOM, LinkType.JSON_FEED})


class FeedFinder:
    """Answers what a person gets who follows an address. `own_url` is that of this service, "" if it has none.

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
