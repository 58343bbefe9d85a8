"""`smartfeeds node`: lists, shows, creates, configures, purges and deletes nodes."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from smartfeeds.cli.affiliations import affiliations, allow, deny
from smartfeeds.cli.common import config_option, json_option, yes_option
from smartfeeds.cli.list_commands import print_list
from smartfeeds.cli.offline import actor_of, operator, read_offline, run_offline
from smartfeeds.console import Commands, print_json, print_out
from smartfeeds.core.model import NO_LIMIT, Node, NodeKind
from smartfeeds.core.options import KIND, OPTIONS, PUBSUB, FormFields
from smartfeeds.core.text import counted
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, locate
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.managed_nodes import NODES, NodeSummary, summary_of
from smartfeeds.service.nodes import add_node
from smartfeeds.service.requests import Configure, DeleteNode, Purge
from smartfeeds.store.base import OpenMode, ReadTx


@click.group("node", cls=Commands)
def node_command() -> None:
    """List, show, create, configure, purge and delete nodes, and decide who may use them."""


@node_command.command("list")
@config_option
@json_option
def list_nodes(config: Path | None, *, as_json: bool) -> None:
    """List all nodes by name, with their numbers of items and subscriptions."""
    print_list(NODES, read_offline(config, _summaries), as_json=as_json)


@node_command.command("show")
@click.argument("name")
@config_option
@json_option
def show_node(name: str, config: Path | None, *, as_json: bool) -> None:
    """Show a node: its counts, affiliations and current options."""
    details = read_offline(config, lambda tx, context: _described(tx, context, locate(tx, name).node))
    if as_json:
        print_json(details)
        return
    for key in ("node", "kind", "created", "creator", "items", "deleted", "subscriptions"):
        print_out(f"{key:14} {details[key]}")
    for jid, affiliation in details["affiliations"].items():
        print_out(f"{affiliation:14} {jid}")
    for option, value in details["options"].items():
        print_out(f"  {option} = {value}")


@node_command.command("create")
@click.argument("name")
@click.option("--owner", help="The bare JID of the owner. Default: the component. Admins own every node.")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in NodeKind]),
    help="The kind of node. Default: pubsub.default_kind.",
)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option such as title=News. Repeatable."
)
@config_option
def create_node(name: str, owner: str | None, kind: str | None, options: tuple[str, ...], config: Path | None) -> None:
    """Create the node NAME. A running service serves it at once."""
    form = _form(kind, options)
    actor = run_offline(config, partial(_create, name=name, owner=owner, form=form), OpenMode.CREATE)
    print_out(f"Created the node {name}, owned by {actor}.")


@node_command.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@config_option
def set_options(name: str, settings: tuple[str, ...], config: Path | None) -> None:
    """Change options of the node NAME, such as title="Our news". Other options stay.

    `smartfeeds node show` lists the options. Repeat the key of an option that has several values.
    """
    form = _form(None, settings, "KEY=VALUE")
    run_offline(config, partial(_configure, name=name, form=form), OpenMode.WRITE)
    print_out(f"Configured the node {name}.")


@node_command.command("delete")
@click.argument("name")
@click.option("--redirect", default="", metavar="URI", help="The xmpp, http or https address of a node in its place.")
@yes_option
@config_option
def delete_node(name: str, redirect: str, config: Path | None, *, yes: bool) -> None:
    """Delete the node NAME with all its items, subscriptions and affiliations. Nothing can restore them."""
    if not yes:
        summary = read_offline(config, lambda tx, context: summary_of(tx, context, locate(tx, name).node))
        items, subscriptions = counted(summary.items, "item"), counted(summary.subscriptions, "subscription")
        click.confirm(f"Delete the node {summary.node.name} with {items} and {subscriptions}?", abort=True, err=True)
    run_offline(config, partial(_delete, name=name, redirect=redirect), OpenMode.WRITE)
    print_out(f"Deleted the node {name}.")


@node_command.command("purge")
@click.argument("name")
@yes_option
@config_option
def purge_node(name: str, config: Path | None, *, yes: bool) -> None:
    """Retract all items of the node NAME. A feed keeps tombstones of them, and subscribers are notified."""
    if not yes:
        summary = read_offline(config, lambda tx, context: summary_of(tx, context, locate(tx, name).node))
        click.confirm(
            f"Retract {counted(summary.items, 'item')} of the node {summary.node.name}?", abort=True, err=True
        )
    run_offline(config, partial(_purge, name=name), OpenMode.WRITE)
    print_out(f"Retracted all items of {name}.")


for _command in (affiliations, allow, deny):
    node_command.add_command(_command)


def _summaries(tx: ReadTx, context: Context) -> list[NodeSummary]:
    return [summary_of(tx, context, node) for node in all_nodes(tx)]


def all_nodes(tx: ReadTx) -> list[Node]:
    """Return every node, by name."""
    return tx.nodes("", NO_LIMIT)


def _described(tx: ReadTx, context: Context, node: Node) -> dict[str, Any]:
    options = {var: " ".join(node.options.values_of(option)) for var, option in OPTIONS.items()}
    affiliations = {jid: affiliation.value for jid, affiliation in tx.affiliations(node.node_no)}
    return {**NODES.row(summary_of(tx, context, node)), "affiliations": affiliations, "options": options}


def _form(kind: str | None, options: tuple[str, ...], hint: str = "--option") -> FormFields:
    form: dict[str, tuple[str, ...]] = {KIND: (kind,)} if kind else {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or name not in OPTIONS:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE with one of: {', '.join(OPTIONS)}", param_hint=hint)
        form[PUBSUB + name] = (*form.get(PUBSUB + name, ()), value)
    return form


async def _configure(service: FeedService, name: str, form: FormFields) -> None:
    await service.handle(Configure(operator(service), service.policy.domain, name, form))


async def _delete(service: FeedService, name: str, redirect: str) -> None:
    await service.handle(DeleteNode(operator(service), service.policy.domain, name, redirect))


async def _purge(service: FeedService, name: str) -> None:
    await service.handle(Purge(operator(service), service.policy.domain, name))


async def _create(service: FeedService, name: str, owner: str | None, form: FormFields) -> str:
    actor = actor_of(service, owner)
    try:
        await service.write(lambda tx, context: add_node(tx, context, actor, name, form, trusted=True))
    except FeedError as error:
        if error.condition is not Condition.CONFLICT:
            raise
        raise FeedError(Condition.CONFLICT, f"the node {name} exists already") from None
    return str(actor)
