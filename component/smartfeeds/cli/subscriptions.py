"""`smartfeeds sub`: lists, adds and removes subscriptions."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartfeeds.cli.common import config_option, json_option, node_argument
from smartfeeds.cli.list_commands import list_options
from smartfeeds.cli.nodes import all_nodes
from smartfeeds.cli.offline import actor_of, operator, run_offline
from smartfeeds.console import Commands, print_result
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import NO_LIMIT, Node, SubscriptionState
from smartfeeds.core.times import format_second
from smartfeeds.lists import print_rows

if TYPE_CHECKING:
    from smartfeeds.service.context import Context
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.store.base import ReadTx


def any_jid(text: str) -> str:
    """Return the normal form of a JID, as the type of an argument. Raises BadParameter."""
    jid = parse_jid(text)
    if jid is None:
        raise click.BadParameter(f"{text!r} is not a JID such as alice@example.org")
    return str(jid)


@click.group("sub", cls=Commands)
def sub_command() -> None:
    """List, add and remove subscriptions."""


@sub_command.command("list")
@node_argument(required=False)
@click.option("--jid", help="Only subscriptions of this bare JID and its resources.")
@list_options
def list_subscriptions(node: str | None, jid: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List subscriptions, to NODE or to all nodes, in the order of their creation."""
    rows = run_offline(config, partial(_subscriptions, name=node, jid=jid))
    brief = ("node", "view", "jid", "state")
    print_rows(rows, as_json=as_json, empty="There are no such subscriptions.", wide=wide, brief=brief)


@sub_command.command("add")
@click.argument("node")
@click.argument("jid", type=any_jid)
@config_option
@json_option
def add(node: str, jid: str, config: Path | None, *, as_json: bool) -> None:
    """Subscribe JID to NODE, or approve its request. NODE may be a view, such as news?category=sport.

    Nothing changes if JID is subscribed to a view and NODE is the whole node.
    """
    state = SubscriptionState.SUBSCRIBED
    _set(config, node, jid, state)
    result = {"node": node, "jid": jid, "state": state.value}
    print_result(f"{jid} is subscribed to {node}.", result, as_json=as_json)


@sub_command.command("remove")
@click.argument("node")
@click.argument("jid", type=any_jid)
@config_option
@json_option
def remove(node: str, jid: str, config: Path | None, *, as_json: bool) -> None:
    """End all subscriptions of JID to NODE and its views. A bare JID includes all its resources."""
    state = SubscriptionState.NONE
    _set(config, node, jid, state)
    result = {"node": node, "jid": jid, "state": state.value}
    print_result(f"{jid} is not subscribed to {node} any more.", result, as_json=as_json)


def _set(config: Path | None, node: str, jid: str, state: SubscriptionState) -> None:
    from smartfeeds.service.answers import check_applied
    from smartfeeds.service.requests import SetSubscriptions
    from smartfeeds.store.base import OpenMode

    async def work(service: "FeedService") -> None:
        # The operator may subscribe anybody, whatever owners may do.
        service.policy = replace(service.policy, owners_subscribe_others=True)
        request = SetSubscriptions(operator(service), service.policy.domain, node, ((jid, state.value),))
        check_applied(await service.handle(request), ends=state is SubscriptionState.NONE)

    run_offline(config, work, OpenMode.WRITE)


async def _subscriptions(service: "FeedService", name: str | None, jid: str | None) -> list[dict[str, Any]]:
    from smartfeeds.service.context import locate

    bare = str(actor_of(service, jid).bare) if jid else None

    def work(tx: "ReadTx", _context: "Context") -> list[dict[str, Any]]:
        nodes = [locate(tx, name).node] if name else all_nodes(tx)
        return [row for node in nodes for row in _subscription_rows(tx, node, bare)]

    return await service.read(work)


def _subscription_rows(tx: "ReadTx", node: Node, bare: str | None) -> list[dict[str, Any]]:
    return [
        {
            "node": node.name,
            "view": sub.view,
            "jid": sub.jid,
            "state": sub.state.value,
            "since": format_second(sub.created_us),
        }
        for sub in tx.subscriptions(node.node_no, 0, NO_LIMIT)
        if bare is None or sub.jid == bare or sub.jid.startswith(f"{bare}/")
    ]
