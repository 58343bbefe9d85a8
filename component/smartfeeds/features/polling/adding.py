"""The look at an address for `source add` and `source check`: the feeds there, and what people are told of them."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from smartfeeds.core.times import format_second
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.finding import AddressLook, SeenFeed, SourceReport, check_source, look_at
from smartfeeds.features.polling.push_links import described
from smartfeeds.features.polling.source import Source, host_of
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits, display_url
from smartfeeds.service.resources import Row
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


async def check_address(source: Source, limits: FetchLimits) -> SourceReport:
    """Returns what a poll of a source would see."""
    async with Fetcher(limits) as fetcher:
        return await check_source(fetcher, source, now_us())


def mirror_command(source: Source, report: SourceReport, config: Path | None) -> str:
    """The command that mirrors a feed with sync data, "" for any other feed."""
    if report.document is None or not report.document.synced:
        return ""
    words = ["smartfeeds", "mirror", "add", source.url, source.node]
    words += ["--allow-private"] if source.settings.allow_private else []
    return shlex.join([*words, "--config", str(config)] if config is not None else words)


def report_row(report: SourceReport) -> Row:
    """Returns a report as an object of JSON."""
    document = report.document
    times_us = () if document is None else document.times_us
    return {
        "requests": [{"address": display_url(hop.url), "status": hop.status} for hop in report.hops],
        "problem": report.problem,
        "content_type": report.content_type,
        "format": document.feed.format if document else "",
        "title": document.feed.title if document else "",
        "items": len(document.items) if document else 0,
        "items_left_out": document.left_out if document else 0,
        "items_with_sync_data": document.synced if document else 0,
        "newest_item": format_second(max(times_us)) if times_us else "",
        "conditional_requests": report.has_validators,
        "hint_s": report.hint_s,
        "next_poll_s": report.next_s,
        "push": described(document.links) if document else "",
        "notes": list(document.notes) if document else [],
        "feeds": [{"type": link.type.value, "address": link.href, "title": link.title} for link in report.links],
    }


def report_lines(row: Row) -> Iterator[str]:
    """Yields the lines of `report_row` for people."""
    for request in row["requests"]:
        yield f"request: {request['address']} -> {request['status'] or 'no answer'}"
    for name, value in row.items():
        if value not in ("", None, []) and name not in ("requests", "notes", "feeds", "mirror"):
            yield f"{name.replace('_', ' ')}: {value}"
    yield from (f"note: {note}" for note in row["notes"])
    for feed in row["feeds"]:
        yield f"feed: {feed['address']} ({feed['type']}) {feed['title']}".rstrip()
    if row["feeds"]:
        command = shlex.join(["smartfeeds", "source", "add", row["feeds"][0]["address"]])
        yield f"This is a web page. Add one of its feeds: {command}"
    if row["mirror"]:
        yield "The feed has sync data (FeedSync or SSE), which a source leaves out. To merge it, run:"
        yield row["mirror"]
