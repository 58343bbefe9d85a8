"""`smartfeeds source`: feeds of other servers that fill nodes (docs/webfeeds.md).

A running service applies each change within seconds.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartfeeds.cli.common import (
    bare_jid,
    config_option,
    json_option,
    node_argument,
    output_option,
    private_option,
    read_settings,
)
from smartfeeds.cli.fetching import allowed_networks
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import (
    Commands,
    exit_failed_if,
    print_err,
    print_json,
    print_lines,
    print_out,
    print_result,
    run_async,
)
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.text import counted
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.command_options import given, node_option, settings_options
from smartfeeds.system import now_us

if TYPE_CHECKING:
    from smartfeeds.features.polling.requests import SourceStatus
    from smartfeeds.features.polling.source import Source, SourceSettings
    from smartfeeds.service.context import Context
    from smartfeeds.store.base import ReadTx, WriteTx

_SECRETS = ("user", "password")  # settings that no command shows (SRC-015)
_OF_LISTS = ("is_list", "list_no")
LOOK_S = 5.0  # for the look at a feed that is added


@click.group("source", cls=Commands)
def source_command() -> None:
    """Fill nodes with feeds of other servers (docs/webfeeds.md)."""


@source_command.command("add")
@click.argument("url")
@node_argument(required=False)
@click.option("--tell", type=bare_jid, metavar="JID", help="Send new items to this person by chat.")
@click.option("--unread", is_flag=True, help="Add URL itself, and do not request it now.")
@settings_options
@private_option
@config_option
@json_option
def add(
    url: str,
    node: str | None,
    tell: str | None,
    config: Path | None,
    *,
    unread: bool,
    allow_private: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Fill a node with the feed at URL, or with the first feed that the page at URL links to.

    The feed is read once, and the command prints what was found. If there is no feed, nothing is added.

    A name and a password for HTTP Basic may be part of URL; lists and logs do not show them.
    """
    from smartfeeds.features.polling.adding import at_address, check_found, found_lines, look_for_source, mirror_command
    from smartfeeds.features.polling.source import SourceSettings, publisher_of
    from smartfeeds.net.fetch import FetchLimits, display_url
    from smartfeeds.service.chat_follows import follow
    from smartfeeds.service.importing import describe_node
    from smartfeeds.store.base import OpenMode

    settings = replace(SourceSettings(allow_private=allow_private), **given(chosen))
    own_url = read_settings(config).http.base_url
    source, finding = _new(url, node, settings, own_url), None
    if not unread:
        limits = FetchLimits(total_s=LOOK_S, allowed=allowed_networks(config, allow_private=allow_private))
        finding = run_async(look_for_source(source, limits))
        # A password stays out of the message.
        command = ["smartfeeds", "source", "add", "URL" if source.settings.user else url]
        for option, value in (("", node), ("--tell", tell), ("--config", config)):
            command += [] if value is None else [*filter(None, [option]), str(value)]
        check_found(finding.look.first, [*command, *(["--allow-private"] if allow_private else [])])
        feed = at_address(source, finding.look.first.url)
        source = _new(feed.url, node, feed.settings, own_url)
    person = None if tell is None else parse_jid(tell)

    def work(tx: "WriteTx", context: "Context") -> "Source":
        stored = _stored(tx, context, source, node)
        if person is not None:
            # Only a node that exists can be followed; the first poll would create it.
            describe_node(tx, context, stored.node, publisher_of(stored, context.policy.domain), {})
            follow(tx, context, person, stored.node)
        return stored

    source = write_offline(config, work, OpenMode.CREATE)
    text = f"{source.source_no}  {source.node}  {display_url(source.url)}"
    print_result(text, _facts(source), as_json=as_json)
    for line in () if finding is None else found_lines(finding.look):
        print_err(line)
    print_err("A running service polls the source within seconds; smartfeeds source list shows its state.")
    if finding is not None and (mirror := mirror_command(source, finding.report, config)):
        print_err(
            "The feed has sync data (FeedSync or SSE), which a source leaves out. To merge it, run "
            f"smartfeeds source remove {source.source_no}, and:"
        )
        print_err(mirror)


def _new(url: str, node: str | None, settings: "SourceSettings", own_url: str) -> "Source":
    """The source of an address. Raises ConfigError."""
    from smartfeeds.features.polling.own_address import is_own
    from smartfeeds.features.polling.source import new_source

    if is_own(url, own_url):
        raise ConfigError(f"{url} is a feed of this service; a node cannot be filled from itself")
    return new_source(node or url, url, now_us(), settings)


def _stored(tx: "WriteTx", context: "Context", source: "Source", node: str | None) -> "Source":
    """The source after it was added to `node`, or to a node of its feed alone. Raises ConfigError."""
    from smartfeeds.features.polling.sources import add_source, in_own_node

    return add_source(tx, context, source if node else in_own_node(tx, source, lambda _node: True))


@source_command.command("follow")
@click.argument("url", metavar="LIST")
@node_argument(required=False)
@settings_options
@private_option
@config_option
@json_option
def follow_list(
    url: str, node: str | None, config: Path | None, *, allow_private: bool, as_json: bool, **chosen: Any
) -> None:
    """Follow the subscription list LIST: its feeds become sources, with the settings given here.

    LIST is the address of an OPML document, or a node of this service that holds a list. All feeds fill NODE, by
    default each a new node, named by its address. A feed that the list does not name any more is paused. Other sources
    are not changed.
    """
    from smartfeeds.features.polling.source import SourceSettings
    from smartfeeds.features.polling.subscription_lists import add_list
    from smartfeeds.net.fetch import display_url
    from smartfeeds.store.base import OpenMode

    settings = replace(SourceSettings(allow_private=allow_private), **given(chosen), is_list=True)
    work = partial(add_list, text=url, node=node or "", settings=settings, own_url=read_settings(config).http.base_url)
    source = write_offline(config, work, OpenMode.CREATE)
    print_result(f"{source.source_no}  {display_url(source.url)}", _facts(source), as_json=as_json)
    if not as_json:
        print_err("A running service reads the list within seconds; smartfeeds source list shows its feeds.")


def _facts(source: "Source") -> dict[str, object]:
    from smartfeeds.net.fetch import display_url

    return {"number": source.source_no, "node": source.node, "address": display_url(source.url)}


@source_command.command("set")
@click.argument("source")
@node_option
@settings_options
@click.option("--adaptive", is_flag=True, help="No fixed interval any more.")
@click.option("--allow-private/--public-only", default=None, help="Allow or forbid addresses in private networks.")
@config_option
@json_option
def set_source(
    source: str, node: str | None, config: Path | None, *, adaptive: bool, as_json: bool, **chosen: Any
) -> None:
    """Change the settings of SOURCE, a number or address of the list."""
    from smartfeeds.features.polling.enclosure_rules import parse_rule
    from smartfeeds.features.polling.source import check_hold, filter_of
    from smartfeeds.features.polling.sources import change_source

    changes = given(chosen) | ({"every_s": None} if adaptive else {})
    if not changes:
        raise click.UsageError("name a setting to change, for example --every 900")

    def change(row: "Source", now_us: int) -> "Source":
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
    print_result(f"Changed the source {row.source_no} of the node {row.node}.", _facts(row), as_json=as_json)


def _change(
    config: Path | None, text: str, node: str | None, change: "Callable[[WriteTx, Context, Source], Source]"
) -> "Source":
    """Apply a change to the source that a command names, and return the source after it."""
    from smartfeeds.features.polling.sources import find_source

    own_url = read_settings(config).http.base_url
    return write_offline(config, lambda tx, context: change(tx, context, find_source(tx, context, text, node, own_url)))


@source_command.command("list")
@node_argument(required=False)
@click.option("--failing", is_flag=True, help="Only sources that wait, are slowed or stopped.")
@list_options
def list_sources(node: str | None, config: Path | None, *, failing: bool, as_json: bool, wide: bool) -> None:
    """List sources, of NODE or of all nodes, with their state, the next poll, and what is wrong.

    `smartfeeds source show` shows all that is known of one.
    """
    from smartfeeds.features.polling import rows as source_rows
    from smartfeeds.features.polling.requests import SourceStatus
    from smartfeeds.features.polling.resources import SOURCES
    from smartfeeds.features.polling.source_push import newest_push

    sources = read_offline(
        config,
        lambda tx, context: [
            SourceStatus(row, newest_push(tx, context, row)) for row in source_rows.sources(tx, 0, NO_LIMIT)
        ],
    )
    listed = (
        entry for entry in sources if node in (None, entry.source.node) and (not failing or _is_failing(entry.source))
    )
    empty = "There are no such sources." if node or failing else ""
    print_list(SOURCES, listed, as_json=as_json, wide=wide, empty=empty)


@source_command.command("show")
@click.argument("source")
@node_option
@config_option
@json_option
def show(source: str, node: str | None, config: Path | None, *, as_json: bool) -> None:
    """Show SOURCE, a number or address of the list: its state, its last answers and its settings."""
    from smartfeeds.features.polling.requests import SourceStatus
    from smartfeeds.features.polling.resources import SOURCES
    from smartfeeds.features.polling.source import NO_SETTINGS
    from smartfeeds.features.polling.source_push import newest_push
    from smartfeeds.features.polling.sources import find_source

    own_url = read_settings(config).http.base_url

    def work(tx: "ReadTx", context: "Context") -> "SourceStatus":
        row = find_source(tx, context, source, node, own_url)
        return SourceStatus(row, newest_push(tx, context, row))

    status = read_offline(config, work)
    facts = SOURCES.row(status)
    settings = {
        name: value
        for name, value in asdict(status.source.settings).items()
        if name not in _SECRETS and value not in (None, "", ())
    }
    if as_json:
        print_json({**facts, "settings": settings})
        return
    for name, value in facts.items():
        if value not in ("", None, 0):
            print_out(f"{name.replace('_', ' '):11} {value}")
    # A default says nothing about this source, and the fact `from` says what the fields of lists do.
    own = {
        name: value for name, value in settings.items() if name not in _OF_LISTS and value != getattr(NO_SETTINGS, name)
    }
    for name, value in own.items():
        # Numbers, texts, truth values and lists of texts are the same in TOML, which the configuration is written in.
        print_out(f"  {name} = {json.dumps(value, ensure_ascii=False)}")


def _is_failing(source: "Source") -> bool:
    from smartfeeds.features.polling.polls import REPAIRED

    return source.reason.removeprefix(REPAIRED) == source.reason != ""


@source_command.command("remove")
@click.argument("source")
@node_option
@config_option
@json_option
@click.option("--with-sources", is_flag=True, help="Of a list that is followed: remove the sources that it has added.")
def remove(source: str, node: str | None, config: Path | None, *, with_sources: bool, as_json: bool) -> None:
    """End SOURCE, a number or address of the list. Nodes and items remain, and so do the sources of a list."""
    from smartfeeds.features.polling import rows as source_rows
    from smartfeeds.features.polling.sources import remove_source
    from smartfeeds.net.fetch import display_url

    def work(tx: "WriteTx", context: "Context", row: "Source") -> "Source":
        for member in source_rows.sources_of_list(tx, row.source_no) if with_sources else ():
            remove_source(tx, context, member)
        remove_source(tx, context, row)
        return row

    row = _change(config, source, node, work)
    remains = f"the node {row.node} remains" if row.node else "the nodes remain"
    print_result(f"Removed the source {display_url(row.url)}; {remains}.", _facts(row), as_json=as_json)


@source_command.command("poll")
@click.argument("source")
@node_option
@config_option
@json_option
def poll(source: str, node: str | None, config: Path | None, *, as_json: bool) -> None:
    """Make a running service poll SOURCE now, a number or address of the list.

    At most once a minute, and not during a pause that its server asked for.
    """
    from smartfeeds.features.polling.sources import poll_now

    row = _change(config, source, node, poll_now)
    print_result(f"The source {row.source_no} of the node {row.node} is due now.", _facts(row), as_json=as_json)


@source_command.command("renew")
@click.argument("source")
@node_option
@config_option
@json_option
def renew(source: str, node: str | None, config: Path | None, *, as_json: bool) -> None:
    """Make a running service subscribe SOURCE, a number or address of the list, at its hub or cloud again."""
    from smartfeeds.features.polling.source_push import renew_push

    def work(tx: "WriteTx", context: "Context", row: "Source") -> "Source":
        renew_push(tx, context, row)
        return row

    row = _change(config, source, node, work)
    text = f"The subscription of the source {row.source_no} of the node {row.node} is due now."
    print_result(text, _facts(row), as_json=as_json)


@source_command.command("pause")
@click.argument("source")
@node_option
@config_option
@json_option
def pause(source: str, node: str | None, config: Path | None, *, as_json: bool) -> None:
    """Stop the polls of SOURCE, a number or address of the list, until it is resumed."""
    from smartfeeds.features.polling.polls import paused
    from smartfeeds.features.polling.sources import change_source

    change = partial(change_source, change=lambda row, now_us: paused(row, "the operator", now_us))
    row = _change(config, source, node, change)
    print_result(f"Paused the source {row.source_no} of the node {row.node}.", _facts(row), as_json=as_json)


@source_command.command("resume")
@click.argument("source")
@node_option
@config_option
@json_option
def resume(source: str, node: str | None, config: Path | None, *, as_json: bool) -> None:
    """Poll SOURCE again, a number or address of the list, after it was paused or stopped."""
    from smartfeeds.features.polling.polls import resumed
    from smartfeeds.features.polling.sources import change_source

    row = _change(config, source, node, partial(change_source, change=resumed))
    print_result(f"The source {row.source_no} of the node {row.node} is due now.", _facts(row), as_json=as_json)


@source_command.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@node_argument(required=False)
@settings_options
@private_option
@config_option
@json_option
def import_sources(
    file: Path, node: str | None, config: Path | None, *, allow_private: bool, as_json: bool, **chosen: Any
) -> None:
    """Add the feeds of FILE, a subscription list in OPML.

    All feeds fill NODE, by default each a node of its own, named by its address.
    """
    from smartfeeds.features.polling.source import SourceSettings
    from smartfeeds.features.polling.source_lists import read_source_list
    from smartfeeds.store.base import OpenMode

    configuration = read_settings(config)
    listed = read_source_list(file.read_bytes(), configuration.component.jid)
    if not listed:
        raise ConfigError(f"{file} lists no feeds; its outlines need the attribute xmlUrl")
    settings = replace(SourceSettings(allow_private=allow_private), **given(chosen))
    own_url = configuration.http.base_url

    def work(tx: "WriteTx", context: "Context") -> tuple[int, list[str]]:
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
    if as_json:
        print_json({"added": added, "left_out": refusals})
    else:
        print_lines(refusals)
        print_out(f"Added {counted(added, 'source')}; {len(refusals)} of {len(listed)} were left out.")
    exit_failed_if(not added)


@source_command.command("export")
@node_argument(required=False)
@output_option
@config_option
def export_sources(node: str | None, output: Path | None, config: Path | None) -> None:
    """Write the sources, of NODE or of all nodes, as a subscription list in OPML, which `source import` and feed
    readers read.
    """
    from smartfeeds.features.polling import rows as source_rows
    from smartfeeds.features.polling.source_lists import write_source_list

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
@settings_options
@private_option
@config_option
@json_option
def check(url: str, config: Path | None, *, allow_private: bool, as_json: bool, **chosen: Any) -> None:
    """Explain what a poll of URL sees: redirects, format, items, hints, and the feeds that a web page offers.

    Nothing is stored. Exit code 1: the address cannot be a source.
    """
    from smartfeeds.features.polling.adding import check_address, mirror_command, report_lines, report_row
    from smartfeeds.features.polling.source import SourceSettings, new_source, node_names_of
    from smartfeeds.net.fetch import FetchLimits

    source = new_source("check", url, now_us(), replace(SourceSettings(allow_private=allow_private), **given(chosen)))
    limits = FetchLimits(allowed=allowed_networks(config, allow_private=allow_private))
    report = run_async(check_address(source, limits))
    row = report_row(report)
    row["mirror"] = mirror_command(replace(source, node=next(node_names_of(source))), report, config)
    if as_json:
        print_json(row)
    else:
        for line in report_lines(row):
            print_out(line)
    exit_failed_if(report.problem)
