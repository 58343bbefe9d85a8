"""The look at the address of a source that a command adds: the feeds there, and what people are told of them."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from smartfeeds.core.times import format_second
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.finding import AddressLook, SeenFeed, SourceReport, check_source, look_at
from smartfeeds.features.polling.source import Source, host_of
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits, display_url
from smartfeeds.system import now_us


class AddedFinding(NamedTuple):
    """The feeds at an address, and the report of the first one."""

    look: AddressLook
    report: SourceReport


async def look_for_source(source: Source, limits: FetchLimits) -> AddedFinding:
    """Looks for the feeds at the address of a source, with its settings."""
    reports: dict[str, SourceReport] = {}
    async with Fetcher(limits) as fetcher:

        async def check(url: str) -> SourceReport:
            reports[url] = await check_source(fetcher, at_address(source, url), now_us())
            return reports[url]

        look = await look_at(check, source.url)
        return AddedFinding(look, reports[look.first.url])


def at_address(source: Source, url: str) -> Source:
    """Returns the source at another address. The password is for the host of the first one only (SRC-015)."""
    same_host = host_of(url) == source.host
    settings = source.settings if same_host else replace(source.settings, user="", password="")
    return replace(source, url=url, first_url=url, settings=settings)


def check_found(feed: SeenFeed, command: list[str]) -> None:
    """Raises ConfigError if there is no feed, with the command that adds the address all the same. A server that does
    not answer now may do so later."""
    if not feed.problem or feed.is_temporary:
        return
    option = "--allow-private" if feed.is_refused else "--unread"
    reason = feed.problem.partition(";")[0] if feed.is_refused else feed.problem
    raise ConfigError(
        f"{display_url(feed.url)} {reason}; nothing was added. To add it all the same, use {option}: "
        f"{shlex.join([*command, option])}"
    )


def found_lines(look: AddressLook) -> Iterator[str]:
    """Yields what was found at an address, for people."""
    feed = look.first
    if feed.problem:
        yield f"The feed could not be read now: it {feed.problem}. The service tries again."
        return
    newest = "" if feed.newest_us is None else f", the newest of {format_second(feed.newest_us)}"
    titled = f": {feed.newest_title}" if feed.newest_title else ""
    count = "1 entry" if feed.count == 1 else f"{feed.count} entries" if feed.count else "no entries yet"
    yield f"Found {feed.title or display_url(feed.url)} ({feed.format}): {count}{newest}{titled}"
    if len(look.feeds) > 1:
        yield "The page has other feeds, too:"
        for other in look.feeds[1:]:
            yield f"  {display_url(other.url)}  {other.title}".rstrip()
