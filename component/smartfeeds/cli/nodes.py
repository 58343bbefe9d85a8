"""`smartfeeds node`: lists, shows, creates, configures, purges and removes nodes."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartfeeds.cli.affiliations import affiliations, allow, deny
from smartfeeds.cli.common import config_option, json_option, yes_option
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import actor_of, operator, read_offline, run_offline
from smartfeeds.console import Commands, print_json, print_out, print_result
from smartfeeds.core.model import NO_LIMIT, Node, NodeKind
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.core.options import KIND, OPTIONS, PUBSUB, FormFields
from smartfeeds.core.text import counted
from smartfeeds.errors import Condition, FeedError

if TYPE_CHECKING:
    from smartfeeds.service.context import Context
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.managed_nodes import NodeSummary
    from smartfeeds.store.base import ReadTx


@click.group("node", cls=Commands)
def node_command() -> None:
    """List, show, create, configure, purge and remove nodes, and decide who may use them."""


@node_command.command("list")
@list_options
def list_nodes(config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List all nodes by name, with their numbers of items and subscriptions."""
    from smartfeeds.service.managed_nodes import NODES

    print_list(NODES, read_offline(config, _summaries), as_json=as_json, wide=wide)


@node_command.command("show")
@click.argument("node")
@config_option
@json_option
def show_node(node: str, config: Path | None, *, as_json: bool) -> None:
    """Show NODE: its counts, affiliations and current options."""
    from smartfeeds.service.context import locate

    details = read_offline(config, lambda tx, context: _described(tx, context, locate(tx, node).node))
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
@click.argument("node")
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
@json_option
def create_node(
    node: str, owner: str | None, kind: str | None, options: tuple[str, ...], config: Path | None, *, as_json: bool
) -> None:
    """Create NODE. A running service serves it at once."""
    from smartfeeds.store.base import OpenMode

    form = _form(kind, options)
    actor = run_offline(config, partial(_create, node=node, owner=owner, form=form), OpenMode.CREATE)
    print_result(f"Created the node {node}, owned by {actor}.", {"node": node, "owner": actor}, as_json=as_json)


@node_command.command("set")
@click.argument("node")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
@config_option
@json_option
def set_options(node: str, settings: tuple[str, ...], config: Path | None, *, as_json: bool) -> None:
    """Change options of NODE, such as title="Our news". Other options stay.

    `smartfeeds node show` lists the options. Repeat the name of an option that has several values.
    """
    from smartfeeds.store.base import OpenMode

    form = _form(None, settings, "NAME=VALUE")
    run_offline(config, partial(_configure, node=node, form=form), OpenMode.WRITE)
    options = {name.removeprefix(PUBSUB): " ".join(values) for name, values in form.items()}
    print_result(f"Configured the node {node}.", {"node": node, "options": options}, as_json=as_json)


@node_command.command("remove")
@click.argument("node")
@click.option("--redirect", default="", metavar="URI", help="The xmpp, http or https address of a node in its place.")
@yes_option
@config_option
@json_option
def remove_node(node: str, redirect: str, config: Path | None, *, yes: bool, as_json: bool) -> None:
    """Delete NODE with all its items, subscriptions and affiliations. Nothing can restore them."""
    from smartfeeds.service.context import locate
    from smartfeeds.service.managed_nodes import summary_of
    from smartfeeds.store.base import OpenMode

    if not yes:
        summary = read_offline(config, lambda tx, context: summary_of(tx, context, locate(tx, node).node))
        items, subscriptions = counted(summary.items, "item"), counted(summary.subscriptions, "subscription")
        click.confirm(f"Delete the node {summary.node.name} with {items} and {subscriptions}?", abort=True, err=True)
    run_offline(config, partial(_delete, node=node, redirect=redirect), OpenMode.WRITE)
    print_result(f"Deleted the node {node}.", {"node": node}, as_json=as_json)


@node_command.command("purge")
@click.argument("node")
@yes_option
@config_option
@json_option
def purge_node(node: str, config: Path | None, *, yes: bool, as_json: bool) -> None:
    """Retract all items of NODE. A feed keeps tombstones of them, and subscribers are notified."""
    from smartfeeds.service.context import locate
    from smartfeeds.service.managed_nodes import summary_of
    from smartfeeds.store.base import OpenMode

    if not yes:
        summary = read_offline(config, lambda tx, context: summary_of(tx, context, locate(tx, node).node))
        text = f"Retract {counted(summary.items, 'item')} of the node {summary.node.name}?"
        click.confirm(text, abort=True, err=True)
    run_offline(config, partial(_purge, node=node), OpenMode.WRITE)
    print_result(f"Retracted all items of {node}.", {"node": node}, as_json=as_json)


for _command in (affiliations, allow, deny):
    node_command.add_command(_command)


def _summaries(tx: "ReadTx", context: "Context") -> "list[NodeSummary]":
    from smartfeeds.service.managed_nodes import summary_of

    return [summary_of(tx, context, node) for node in all_nodes(tx)]


def all_nodes(tx: "ReadTx") -> list[Node]:
    """Return every node, by name."""
    return tx.nodes("", NO_LIMIT)


def _described(tx: "ReadTx", context: "Context", node: Node) -> dict[str, Any]:
    from smartfeeds.service.managed_nodes import NODES, summary_of

    options = {var: " ".join(node.options.values_of(option)) for var, option in OPTIONS.items()}
    affiliations = {jid: affiliation.value for jid, affiliation in tx.affiliations(node.node_no)}
    return {**NODES.row(summary_of(tx, context, node)), "affiliations": affiliations, "options": options}


def _form(kind: str | None, options: tuple[str, ...], hint: str = "--option") -> FormFields:
    form: dict[str, tuple[str, ...]] = {KIND: (kind,)} if kind else {}
    for text in options:
        name, equals, value = text.partition("=")
        known = f"there are: {', '.join(OPTIONS)}"
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE; {known}", param_hint=hint)
        if name not in OPTIONS:
            meant = did_you_mean(name.removeprefix(PUBSUB), OPTIONS) or f"; {known}"
            raise click.BadParameter(f"there is no option {name!r}{meant}", param_hint=hint)
        form[PUBSUB + name] = (*form.get(PUBSUB + name, ()), value)
    return form


async def _configure(service: "FeedService", node: str, form: FormFields) -> None:
    from smartfeeds.service.requests import Configure

    await service.handle(Configure(operator(service), service.policy.domain, node, form))


async def _delete(service: "FeedService", node: str, redirect: str) -> None:
    from smartfeeds.service.requests import DeleteNode

    await service.handle(DeleteNode(operator(service), service.policy.domain, node, redirect))


async def _purge(service: "FeedService", node: str) -> None:
    from smartfeeds.service.requests import Purge

    await service.handle(Purge(operator(service), service.policy.domain, node))


async def _create(service: "FeedService", node: str, owner: str | None, form: FormFields) -> str:
    from smartfeeds.service.nodes import add_node

    actor = actor_of(service, owner)
    try:
        await service.write(lambda tx, context: add_node(tx, context, actor, node, form, trusted=True))
    except FeedError as error:
        if error.condition is not Condition.CONFLICT:
            raise
        raise FeedError(Condition.CONFLICT, f"the node {node} exists already") from None
    return str(actor)
