"""`smartfeeds mirror`: nodes that are synchronised with a feed elsewhere (docs/mirrors.md).

A running service applies each change within seconds.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from smartfeeds.cli.common import bare_jid, config_option, json_option, load_settings, node_argument, private_option
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.console import Commands, exit_failed_if, print_err, print_json, print_out, print_result
from smartfeeds.core.text import counted
from smartfeeds.core.times import format_second
from smartfeeds.core.web_address import is_web
from smartfeeds.features.mirrors.mirror import EVERY_S, LEAST_EVERY_S, Direction

if TYPE_CHECKING:
    from smartfeeds.features.mirrors.mirror import Mirror
    from smartfeeds.features.mirrors.statuses import MirrorStanding, MirrorStatus

_WAYS: Final = {Direction.IN: "incoming", Direction.OUT: "outgoing"}


@click.group("mirror", cls=Commands)
def mirror_command() -> None:
    """Synchronise nodes with feeds elsewhere (docs/mirrors.md)."""


@mirror_command.command("add")
@click.argument("address")
@node_argument()
@click.option(
    "--direction",
    type=click.Choice([way.value for way in Direction]),
    default=Direction.IN.value,
    show_default=True,
    help="in: receive changes; out: send changes; both.",
)
@click.option("--name", default="", help="The name in commands and metrics. Default: derived from node and address.")
@click.option("--owner", type=bare_jid, metavar="JID", help="The owner of a new node. Default: the component.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(LEAST_EVERY_S),
    default=EVERY_S,
    show_default=True,
    help="Web: seconds between two requests. XMPP: seconds of silence before a request for changes.",
)
@click.option(
    "--own-edits", is_flag=True, help="Accept edits by this service that its database lacks (after a restored backup)."
)
@private_option
@config_option
@json_option
def add(address: str, config: Path | None, owner: str | None, *, as_json: bool, **settings: Any) -> None:
    """Synchronise NODE with the feed at ADDRESS, such as xmpp:feeds.b.example?;node=plans or https://b.example/feeds/plans/.

    NODE is created if it does not exist.
    """
    from smartfeeds.features.mirrors.mirror import make_mirror
    from smartfeeds.features.mirrors.statuses import add_mirror
    from smartfeeds.store.base import OpenMode

    mirror = make_mirror(address=address, owner=owner or "", **settings)
    write_offline(config, lambda tx, context: add_mirror(tx, context, mirror), OpenMode.CREATE)
    print_result(mirror.name, _facts(mirror), as_json=as_json)
    for line in () if as_json else _advice(mirror, load_settings(config).component.jid):
        print_err(line)


def _facts(mirror: "Mirror") -> dict[str, str]:
    return {
        "name": mirror.name,
        "node": mirror.node,
        "direction": mirror.direction.value,
        "address": mirror.address,
    }


def _advice(mirror: "Mirror", domain: str) -> list[str]:
    """Return what the remote service has to do."""
    lines = ["A running service starts the mirror within seconds; smartfeeds mirror status shows its state."]
    feed = mirror.feed
    if feed is not None and mirror.direction is not Direction.IN:
        lines.append(f"{feed.service} must make {domain} a publisher of its node {mirror.remote_node}.")
    if feed is not None and mirror.direction is not Direction.OUT:
        lines.append(f"If the node {mirror.remote_node} there is not open, {domain} needs the right to read it.")
    return lines


@mirror_command.command("remove")
@click.argument("name")
@config_option
@json_option
def remove(name: str, config: Path | None, *, as_json: bool) -> None:
    """End the mirror NAME. The node and its items remain."""
    from smartfeeds.features.mirrors.statuses import remove_mirror

    mirror = write_offline(config, lambda tx, context: remove_mirror(tx, context, name))
    print_result(f"Removed the mirror {name}; the node {mirror.node} remains.", _facts(mirror), as_json=as_json)


@mirror_command.command("restart")
@click.argument("name")
@config_option
@json_option
def restart(name: str, config: Path | None, *, as_json: bool) -> None:
    """Make the mirror NAME read and send everything again, for example after a backup was restored on either side."""
    from smartfeeds.features.mirrors.statuses import restart_mirror

    mirror = write_offline(config, lambda tx, context: restart_mirror(tx, context, name))
    text = f"The mirror {name} starts again; items that are equal on both sides do not change."
    print_result(text, _facts(mirror), as_json=as_json)


@mirror_command.command("list")
@list_options
def list_mirrors(config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List all mirrors, including those in the configuration."""
    from smartfeeds.features.mirrors.resources import MIRRORS, SETTINGS

    print_list(MIRRORS, _statuses(config), SETTINGS, as_json=as_json, wide=wide)


@mirror_command.command("status")
@click.argument("name", required=False)
@config_option
@json_option
def show_status(name: str | None, config: Path | None, *, as_json: bool) -> None:
    """Show the state of mirrors: lag, conflicts, rejected items with reasons. Exit code 1: a mirror is not in step."""
    from smartfeeds.features.mirrors.resources import MIRRORS
    from smartfeeds.features.mirrors.statuses import no_such_mirror

    known = _statuses(config)
    statuses = [status for status in known if name in (None, status.mirror.name)]
    if name is not None and not statuses:
        text = no_such_mirror(name, (status.mirror.name for status in known))
        raise click.BadParameter(text, param_hint="NAME")
    if as_json:
        print_json([MIRRORS.row(status) for status in statuses])
    else:
        for status in statuses:
            for line in _lines(status):
                print_out(line)
        if not statuses:
            print_err("There are no mirrors.")
    exit_failed_if(not all(standing.in_step for status in statuses for standing in status.standings))


def _lines(status: "MirrorStatus") -> list[str]:
    mirror = status.mirror
    lines = [f"{mirror.name}  {mirror.node}  {mirror.direction.value}  {mirror.address}"]
    lines += [] if status.node_there else [f"  the node {mirror.node} does not exist here yet"]
    for standing in status.standings:
        lines += _lines_of(standing, mirror)
    if status.conflicted:
        lines.append(f"  {counted(status.conflicted, 'item')} with conflicts: smartfeeds conflicts {mirror.node}")
    return lines


def _lines_of(standing: "MirrorStanding", mirror: "Mirror") -> list[str]:
    from smartfeeds.features.mirrors.statuses import describe_standing

    state = standing.state
    parts = [
        describe_standing(standing),
        f"{counted(state.items, 'change')} {'sent' if standing.direction is Direction.OUT else 'received'}",
    ]
    if standing.waiting:
        parts.append(f"{counted(standing.waiting, 'change')} waiting")
    if state.conflicts:
        parts.append(f"{counted(state.conflicts, 'conflict')} met")
    # The outgoing direction shows no time while it is in step: the database knows which items are still to be sent.
    if state.in_step_us is not None and (standing.direction is Direction.IN or standing.behind_us):
        parts.append(f"{'read' if is_web(mirror.address) else 'in step'} last at {format_second(state.in_step_us)}")
    lines = [f"  {_WAYS[standing.direction]}: {', '.join(parts)}"]
    if state.failure is not None:
        since = f"since {format_second(state.failure.since_us)}: " if state.failure.count else ""
        lines.append(f"    {since}{state.error}")
    if state.note:
        lines.append(f"    {state.note}")
    if state.refused:
        again = f"smartfeeds mirror restart {mirror.name} requests them again"
        lines.append(f"    {counted(state.refused, 'item')} refused ({again}), the last of them:")
        lines += [f"      {refusal.item_id}: {refusal.reason}" for refusal in state.reasons]
    return lines


def _statuses(config: Path | None) -> "list[MirrorStatus]":
    from smartfeeds.features.mirrors.settings import MirrorSettings
    from smartfeeds.features.mirrors.statuses import mirror_statuses

    configured = [section.to_mirror() for section in load_settings(config).sections(MirrorSettings)]
    return read_offline(config, lambda tx, context: mirror_statuses(tx, context, configured))
