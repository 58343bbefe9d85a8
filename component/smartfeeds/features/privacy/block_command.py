"""`smartfeeds blocklist`: adds, removes and lists addresses that may not use the service, or that only may use it."""

from functools import partial
from pathlib import Path

import click

from smartfeeds.cli.common import config_option, json_option
from smartfeeds.cli.list_commands import list_options
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.console import Commands, print_result
from smartfeeds.core.blocklist import ListKind, list_entry
from smartfeeds.errors import ConfigError
from smartfeeds.lists import print_rows


@click.group("blocklist", cls=Commands)
def blocklist_command() -> None:
    """Change the lists of addresses that may not use the service, or that only may use it."""


@blocklist_command.command("add")
@click.argument("name")
@click.option("--allow", is_flag=True, help="Add to the list of addresses that only may use the service.")
@config_option
@json_option
def add(name: str, config: Path | None, *, allow: bool, as_json: bool) -> None:
    """Deny the bare JID or domain NAME every request. The subscriptions of a JID end."""
    from smartfeeds.features.privacy.blocking import add_entries
    from smartfeeds.store.base import OpenMode

    entry = _entry(name)
    write_offline(config, partial(add_entries, kind=_kind(allow=allow), names=(entry,)), OpenMode.CREATE)
    kind = _kind(allow=allow).value
    print_result(f"{entry} is on the list {kind}.", {"list": kind, "name": entry}, as_json=as_json)


@blocklist_command.command("remove")
@click.argument("name")
@click.option("--allow", is_flag=True, help="Remove from the list of addresses that only may use the service.")
@config_option
@json_option
def remove(name: str, config: Path | None, *, allow: bool, as_json: bool) -> None:
    """Remove the bare JID or domain NAME from the list, also after the person was erased."""
    from smartfeeds.features.privacy.blocking import remove_entry

    entry, kind = _entry(name), _kind(allow=allow)
    was_listed = write_offline(config, lambda tx, _: remove_entry(tx, kind, entry))
    text = f"{entry} {'is no longer' if was_listed else 'was not'} on the list {kind.value}."
    print_result(text, {"list": kind.value, "name": entry, "removed": was_listed}, as_json=as_json)


@blocklist_command.command("list")
@list_options
def list_entries(config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List both lists. Erased persons with a lasting block are counted only."""
    from smartfeeds.features.privacy.blocking import read_list

    # B023: `read_offline` has called the function when it returns, so `kind` is still the one of this turn.
    lists = {kind: read_offline(config, lambda tx, _: read_list(tx, kind)) for kind in ListKind}  # noqa: B023
    rows = [{"list": kind.value, "name": name} for kind, entries in lists.items() for name in entries.names]
    nameless = sum(entries.nameless for entries in lists.values())
    if nameless:
        rows.append({"list": ListKind.DENY.value, "name": f"({nameless} erased)"})
    print_rows(rows, as_json=as_json, empty="Both lists are empty.", wide=wide)


def _entry(text: str) -> str:
    """Return an entry. Raises BadParameter."""
    try:
        return list_entry(text)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None


def _kind(*, allow: bool) -> ListKind:
    return ListKind.ALLOW if allow else ListKind.DENY
