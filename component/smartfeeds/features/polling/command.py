"""`smartfeeds source`: feeds of other servers that fill nodes (docs/webfeeds.md).

A running service applies each change within seconds.
"""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from smartfeeds.cli.common import bare_jid, config_option, json_option, output_option, private_option, read_settings
from smartfeeds.cli.fetching import allowed_networks
from smartfeeds.cli.list_commands import print_list
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import (
    Commands,
    exit_failed_if,
    print_err,
    print_json,
    print_lines,
    print_out,
    run_async,
)
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.text import counted
from smartfeeds.core.times import format_second
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.enclosure_rules import parse_rule
from smartfeeds.features.polling.finding import AddressLook, SeenFeed, SourceReport, check_source, look_at
from smartfeeds.features.polling.own_address import is_own
from smartfeeds.features.polling.polls import REPAIRED, paused, resumed
from smartfeeds.features.polling.push_links import described
from smartfeeds.features.polling.requests import SourceStatus
from smartfeeds.features.polling.resources import SOURCES
from smartfeeds.features.polling.source import (
    LEAST_CHOSEN_S,
    MAX_HISTORY,
    TOLD_AT_FIRST,
    Source,
    SourceSettings,
    check_hold,
    filter_of,
    host_of,
    new_source,
    node_names_of,
    publisher_of,
)
from smartfeeds.features.polling.source_lists import read_source_list, write_source_list
from smartfeeds.features.polling.source_push import newest_push, renew_push
from smartfeeds.features.polling.sources import (
    add_source,
    change_source,
    find_source,
    in_own_node,
    poll_now,
    remove_source,
)
from smartfeeds.features.polling.subscription_lists import add_list
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits, display_url
from smartfeeds.service.chat_follows import follow
from smartfeeds.service.context import Context
from smartfeeds.service.importing import describe_node
from smartfeeds.service.resources import Row
from smartfeeds.store.base import OpenMode, WriteTx
from smartfeeds.system import now_us

LOOK_S = 5.0  # for the look at a feed that is added


@click.group("source", cls=Commands)
def source_command() -> None:
    """Fill nodes with feeds of other servers (docs/webfeeds.md)."""


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a source. None means that the option was not given."""
    for option in reversed(
        (
            click.option(
                "--every",
                "every_s",
                type=click.IntRange(LEAST_CHOSEN_S),
                metavar="SECONDS",
                help="A fixed interval. Default: by the rhythm of the feed, 1 to 24 hours.",
            ),
            click.option(
                "--publisher", type=bare_jid, metavar="JID", help="The publisher of the items. Default: the component."
            ),
            click.option("--user-agent", help="The header User-Agent. Default: that of the service."),
            click.option(
                "--told",
                "first_told",
                type=click.IntRange(0),
                help=f"Subscribers are notified of so many items of the first document. Default: {TOLD_AT_FIRST}.",
            ),
            click.option(
                "--only",
                metavar="FILTERS",
                help="Only items that match, such as 'category=news'. Default: all.",
            ),
            click.option(
                "--ignore-skips/--obey-skips", default=None, help="Ignore or obey skipHours and skipDays of the feed."
            ),
            click.option(
                "--ignore",
                multiple=True,
                metavar="NAME",
                callback=lambda _context, _option, names: tuple(filter(None, names)) if names else None,
                help="An element, or a ?parameter of addresses, whose change is no change of an item. May be repeated;"
                " an empty name ignores nothing.",
            ),
            click.option(
                "--history",
                type=click.IntRange(0, MAX_HISTORY),
                metavar="PAGES",
                help="Read so many older pages or archives of the feed at the first poll. Default: 0.",
            ),
            click.option(
                "--push/--no-push", default=None, help="Subscribe at the hub or cloud of the feed, or only poll."
            ),
            click.option(
                "--prefetch/--no-prefetch",
                default=None,
                help="Load the enclosures of new items in advance (docs/webfeeds-prefetch.md).",
            ),
            click.option(
                "--prefetch-first",
                type=click.IntRange(0),
                metavar="NUMBER",
                help="Load so many enclosures of the first document. Default: 1.",
            ),
            click.option(
                "--prefetch-rule",
                "prefetch_rules",
                multiple=True,
                metavar="RULE",
                callback=lambda _context, _option, rules: tuple(filter(None, rules)) if rules else None,
                help="A rule such as 'yes type=audio/* max=50MB', in place of prefetch.rules. May be repeated; an empty"
                " rule restores prefetch.rules.",
            ),
            click.option(
                "--prefetch-hold/--no-prefetch-hold",
                default=None,
                help="Publish new items when their enclosures have arrived or were given up, after 7 days at most.",
            ),
        )
    ):
        command = option(command)
    return command


def _node_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--node", help="The node of the source, if several nodes have this address.")(command)


@source_command.command("add")
@click.argument("url")
@click.option("--node", help="The node. It is created if it does not exist. Default: derived from the address.")
@click.option("--tell", type=bare_jid, metavar="JID", help="Send new items to this person by chat.")
@click.option("--unread", is_flag=True, help="Add URL itself, and do not request it now.")
@_settings_options
@private_option
@config_option
def add(
    url: str,
    node: str | None,
    tell: str | None,
    config: Path | None,
    *,
    unread: bool,
    allow_private: bool,
    **chosen: Any,
) -> None:
    """Fill a node with the feed at URL, or with the first feed that the page at URL links to.

    The feed is read once, and the command prints what was found. If there is no feed, nothing is added.

    A name and a password for HTTP Basic may be part of URL; lists and logs do not show them.
    """
    settings = replace(SourceSettings(allow_private=allow_private), **_given(chosen))
    own_url = read_settings(config).http.base_url
    source, finding = _new(url, node, settings, own_url), None
    if not unread:
        limits = FetchLimits(total_s=LOOK_S, allowed=allowed_networks(config, allow_private=allow_private))
        finding = run_async(_look(source, limits))
        # A password stays out of the message.
        command = ["smartfeeds", "source", "add", "URL" if source.settings.user else url]
        for option, value in (("--node", node), ("--tell", tell), ("--config", config)):
            command += [] if value is None else [option, str(value)]
        _check_found(finding.look.first, [*command, *(["--allow-private"] if allow_private else [])])
        feed = _at(source, finding.look.first.url)
        source = _new(feed.url, node, feed.settings, own_url)
    person = None if tell is None else parse_jid(tell)

    def work(tx: WriteTx, context: Context) -> Source:
        stored = _stored(tx, context, source, node)
        if person is not None:
            # Only a node that exists can be followed; the first poll would create it.
            describe_node(tx, context, stored.node, publisher_of(stored, context.policy.domain), {})
            follow(tx, context, person, stored.node)
        return stored

    source = write_offline(config, work, OpenMode.CREATE)
    print_out(f"{source.source_no}  {source.node}  {display_url(source.url)}")
    for line in () if finding is None else _found_lines(finding.look):
        print_err(line)
    print_err("A running service polls the source within seconds; smartfeeds source list shows its state.")
    if finding is not None and (mirror := _mirror_command(source, finding.report, config)):
        print_err(
            "The feed has sync data (FeedSync or SSE), which a source leaves out. To merge it, run "
            f"smartfeeds source remove {source.source_no}, and:"
        )
        print_err(mirror)


class _Finding(NamedTuple):
    """The feeds at an address, and the report of the first one."""

    look: AddressLook
    report: SourceReport


async def _look(source: Source, limits: FetchLimits) -> _Finding:
    """Looks for the feeds at the address of a source, with its settings."""
    reports: dict[str, SourceReport] = {}
    async with Fetcher(limits) as fetcher:

        async def check(url: str) -> SourceReport:
            reports[url] = await check_source(fetcher, _at(source, url), now_us())
            return reports[url]

        look = await look_at(check, source.url)
        return _Finding(look, reports[look.first.url])


def _at(source: Source, url: str) -> Source:
    """Returns the source at another address. The password is for the host of the first one only (SRC-015)."""
    same_host = host_of(url) == source.host
    settings = source.settings if same_host else replace(source.settings, user="", password="")
    return replace(source, url=url, first_url=url, settings=settings)


def _check_found(feed: SeenFeed, command: list[str]) -> None:
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


def _found_lines(look: AddressLook) -> Iterator[str]:
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


def _given(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in chosen.items() if value is not None}


def _new(url: str, node: str | None, settings: SourceSettings, own_url: str) -> Source:
    """The source of an address. Raises ConfigError."""
    if is_own(url, own_url):
        raise ConfigError(f"{url} is a feed of this service; a node cannot be filled from itself")
    return new_source(node or url, url, now_us(), settings)


def _stored(tx: WriteTx, context: Context, source: Source, node: str | None) -> Source:
    """The source after it was added to `node`, or to a node of its feed alone. Raises ConfigError."""
    return add_source(tx, context, source if node else in_own_node(tx, source, lambda _node: True))


@source_command.command("follow")
@click.argument("url", metavar="LIST")
@click.option("--node", help="One node for all feeds. Default: a new node for each feed, named by its address.")
@_settings_options
@private_option
@config_option
def follow_list(url: str, node: str | None, config: Path | None, *, allow_private: bool, **chosen: Any) -> None:
    """Follow the subscription list LIST: its feeds become sources, with the settings given here.

    LIST is the address of an OPML document, or a node of this service that holds a list. A feed that the list does not
    name any more is paused. Other sources are not changed.
    """
    settings = replace(SourceSettings(allow_private=allow_private), **_given(chosen), is_list=True)
    work = partial(add_list, text=url, node=node or "", settings=settings, own_url=read_settings(config).http.base_url)
    source = write_offline(config, work, OpenMode.CREATE)
    print_out(f"{source.source_no}  {display_url(source.url)}")
    print_err("A running service reads the list within seconds; smartfeeds source list shows its feeds.")


@source_command.command("set")
@click.argument("source")
@_node_option
@_settings_options
@click.option("--adaptive", is_flag=True, help="No fixed interval any more.")
@click.option("--allow-private/--public-only", default=None, help="Allow or forbid addresses in private networks.")
@config_option
def set_source(source: str, node: str | None, config: Path | None, *, adaptive: bool, **chosen: Any) -> None:
    """Change the settings of SOURCE, a number or address of the list."""
    changes = _given(chosen) | ({"every_s": None} if adaptive else {})
    if not changes:
        raise click.UsageError("name a setting to change, for example --every 900")

    def change(row: Source, now_us: int) -> Source:
        if row.configured:
            raise ConfigError(f"the source {row.first_url} comes from the configuration; change its [[source]] section")
        filter_of(changes.get("only", ""))
        for rule in changes.get("prefetch_rules", ()):
            parse_rule(rule)
        settings = replace(row.settings, **changes)
        if "prefetch_hold" in changes:
            check_hold(settings)
        return replace(row, settings=settings, due_us=row.due_us and now_us)

    row = _change(config, source, node, partial(change_source, change=change))
    print_out(f"Changed the source {row.source_no} of the node {row.node}.")


def _change(
    config: Path | None, text: str, node: str | None, change: Callable[[WriteTx, Context, Source], Source]
) -> Source:
    """Apply a change to the source that a command names, and return the source after it."""
    own_url = read_settings(config).http.base_url
    return write_offline(config, lambda tx, context: change(tx, context, find_source(tx, context, text, node, own_url)))


@source_command.command("list")
@click.option("--node", help="Only the sources of this node.")
@click.option("--failing", is_flag=True, help="Only sources that wait, are slowed or stopped.")
@config_option
@json_option
def list_sources(node: str | None, config: Path | None, *, failing: bool, as_json: bool) -> None:
    """List sources with their state, its reason, the last good answer, the next poll, and the state of push."""
    sources = read_offline(
        config,
        lambda tx, context: [
            SourceStatus(row, newest_push(tx, context, row)) for row in source_rows.sources(tx, 0, NO_LIMIT)
        ],
    )
    listed = (
        entry for entry in sources if node in (None, entry.source.node) and (not failing or _is_failing(entry.source))
    )
    print_list(SOURCES, listed, as_json=as_json, empty="There are no such sources." if node or failing else "")


def _is_failing(source: Source) -> bool:
    return source.reason.removeprefix(REPAIRED) == source.reason != ""


@source_command.command("remove")
@click.argument("source")
@_node_option
@config_option
@click.option("--with-sources", is_flag=True, help="Of a list that is followed: remove the sources that it has added.")
def remove(source: str, node: str | None, config: Path | None, *, with_sources: bool) -> None:
    """End SOURCE, a number or address of the list. Nodes and items remain, and so do the sources of a list."""

    def work(tx: WriteTx, context: Context, row: Source) -> Source:
        for member in source_rows.sources_of_list(tx, row.source_no) if with_sources else ():
            remove_source(tx, context, member)
        remove_source(tx, context, row)
        return row

    row = _change(config, source, node, work)
    remains = f"the node {row.node} remains" if row.node else "the nodes remain"
    print_out(f"Removed the source {display_url(row.url)}; {remains}.")


@source_command.command("poll")
@click.argument("source")
@_node_option
@config_option
def poll(source: str, node: str | None, config: Path | None) -> None:
    """Make a running service poll SOURCE now, a number or address of the list.

    At most once a minute, and not during a pause that its server asked for.
    """
    row = _change(config, source, node, poll_now)
    print_out(f"The source {row.source_no} of the node {row.node} is due now.")


@source_command.command("renew")
@click.argument("source")
@_node_option
@config_option
def renew(source: str, node: str | None, config: Path | None) -> None:
    """Make a running service subscribe SOURCE, a number or address of the list, at its hub or cloud again."""

    def work(tx: WriteTx, context: Context, row: Source) -> Source:
        renew_push(tx, context, row)
        return row

    row = _change(config, source, node, work)
    print_out(f"The subscription of the source {row.source_no} of the node {row.node} is due now.")


@source_command.command("pause")
@click.argument("source")
@_node_option
@config_option
def pause(source: str, node: str | None, config: Path | None) -> None:
    """Stop the polls of SOURCE, a number or address of the list, until it is resumed."""
    change = partial(change_source, change=lambda row, now_us: paused(row, "the operator", now_us))
    row = _change(config, source, node, change)
    print_out(f"Paused the source {row.source_no} of the node {row.node}.")


@source_command.command("resume")
@click.argument("source")
@_node_option
@config_option
def resume(source: str, node: str | None, config: Path | None) -> None:
    """Poll SOURCE again, a number or address of the list, after it was paused or stopped."""
    row = _change(config, source, node, partial(change_source, change=resumed))
    print_out(f"The source {row.source_no} of the node {row.node} is due now.")


@source_command.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--node", help="One node for all feeds. Default: a node for each feed, named by its address.")
@_settings_options
@private_option
@config_option
def import_sources(file: Path, node: str | None, config: Path | None, *, allow_private: bool, **chosen: Any) -> None:
    """Add the feeds of FILE, a subscription list in OPML."""
    configuration = read_settings(config)
    listed = read_source_list(file.read_bytes(), configuration.component.jid)
    if not listed:
        raise ConfigError(f"{file} lists no feeds; its outlines need the attribute xmlUrl")
    settings = replace(SourceSettings(allow_private=allow_private), **_given(chosen))
    own_url = configuration.http.base_url

    def work(tx: WriteTx, context: Context) -> tuple[int, list[str]]:
        added, refusals = 0, []
        for feed in listed:
            try:
                target = node or feed.node
                _stored(tx, context, _new(feed.url, target, settings, own_url), target)
                added += 1
            except ConfigError as error:
                refusals.append(str(error))
        return added, refusals

    added, refusals = write_offline(config, work, OpenMode.CREATE)
    print_lines(refusals)
    print_out(f"Added {counted(added, 'source')}; {len(refusals)} of {len(listed)} were left out.")
    exit_failed_if(not added)


@source_command.command("export")
@click.option("--node", help="Only the sources of this node.")
@output_option
@config_option
def export_sources(node: str | None, output: Path | None, config: Path | None) -> None:
    """Write the sources as a subscription list in OPML, which `source import` and feed readers read."""
    domain = read_settings(config).component.jid
    sources = read_offline(config, lambda tx, _: source_rows.sources(tx, 0, NO_LIMIT))
    feeds = [row for row in sources if node in (None, row.node) and not row.settings.is_list]
    data = b"".join(write_source_list(feeds, domain, now_us()))
    if output is None:
        click.echo(data, nl=False)
        return
    with whole_file(output) as file:
        file.write(data)


@source_command.command("check")
@click.argument("url")
@_settings_options
@private_option
@config_option
@json_option
def check(url: str, config: Path | None, *, allow_private: bool, as_json: bool, **chosen: Any) -> None:
    """Explain what a poll of URL sees: redirects, format, items, hints, and the feeds that a web page offers.

    Nothing is stored. Exit code 1: the address cannot be a source.
    """
    source = new_source("check", url, now_us(), replace(SourceSettings(allow_private=allow_private), **_given(chosen)))
    limits = FetchLimits(allowed=allowed_networks(config, allow_private=allow_private))
    report = run_async(_check(source, limits))
    row = _report_row(report)
    row["mirror"] = _mirror_command(replace(source, node=next(node_names_of(source))), report, config)
    if as_json:
        print_json(row)
    else:
        for line in _report_lines(row):
            print_out(line)
    exit_failed_if(report.problem)


async def _check(source: Source, limits: FetchLimits) -> SourceReport:
    async with Fetcher(limits) as fetcher:
        return await check_source(fetcher, source, now_us())


def _mirror_command(source: Source, report: SourceReport, config: Path | None) -> str:
    """The command that mirrors a feed with sync data, "" for any other feed."""
    if report.document is None or not report.document.synced:
        return ""
    words = ["smartfeeds", "mirror", "add", source.url, "--node", source.node]
    words += ["--allow-private"] if source.settings.allow_private else []
    return shlex.join([*words, "--config", str(config)] if config is not None else words)


def _report_row(report: SourceReport) -> Row:
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


def _report_lines(row: Row) -> Iterator[str]:
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
