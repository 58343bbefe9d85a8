"""The commands of `smartfeeds node` about people: lists, allows and bans JIDs (XEP-0060 8.9)."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import bare_jid, config_option, json_option
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import operator, read_offline, run_offline
from smartfeeds.console import print_result
from smartfeeds.core.model import Affiliation

if TYPE_CHECKING:
    from smartfeeds.service.context import Context
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.requests import AffiliationShown
    from smartfeeds.store.base import ReadTx

_ALLOWING = (Affiliation.MEMBER, Affiliation.PUBLISHER, Affiliation.PUBLISH_ONLY, Affiliation.OWNER)


@click.command("affiliations")
@click.argument("node")
@list_options
def affiliations(node: str, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List the affiliations of NODE by JID."""
    from smartfeeds.service.node_people import MEMBERS

    print_list(MEMBERS, read_offline(config, partial(_members, node=node)), as_json=as_json, wide=wide)


@click.command("allow")
@click.argument("node")
@click.argument("jid", type=bare_jid)
@click.option(
    "--as",
    "affiliation",
    type=click.Choice([affiliation.value for affiliation in _ALLOWING]),
    default=Affiliation.MEMBER.value,
    help="Members may read, publishers also publish, owners also configure. Default: member.",
)
@config_option
@json_option
def allow(node: str, jid: str, affiliation: str, config: Path | None, *, as_json: bool) -> None:
    """Give the bare JID an affiliation with NODE, also if it was banned."""
    _set(config, node, jid, affiliation)
    result = {"node": node, "jid": jid, "affiliation": affiliation}
    print_result(f"{jid} is {affiliation} of {node}.", result, as_json=as_json)


@click.command("deny")
@click.argument("node")
@click.argument("jid", type=bare_jid)
@click.option("--forget", is_flag=True, help="Remove the affiliation. The access model of the node then decides.")
@config_option
@json_option
def deny(node: str, jid: str, config: Path | None, *, forget: bool, as_json: bool) -> None:
    """Ban the bare JID from NODE: it may neither read nor publish, and its subscriptions end."""
    affiliation = Affiliation.NONE if forget else Affiliation.OUTCAST
    _set(config, node, jid, affiliation.value)
    text = f"{jid} has no affiliation with {node}." if forget else f"{jid} is banned from {node}."
    print_result(text, {"node": node, "jid": jid, "affiliation": affiliation.value}, as_json=as_json)


def _set(config: Path | None, node: str, jid: str, affiliation: str) -> None:
    from smartfeeds.service.answers import check_applied
    from smartfeeds.service.requests import SetAffiliations
    from smartfeeds.store.base import OpenMode

    async def work(service: "FeedService") -> None:
        request = SetAffiliations(operator(service), service.policy.domain, node, ((jid, affiliation),))
        check_applied(await service.handle(request))

    run_offline(config, work, OpenMode.WRITE)


def _members(tx: "ReadTx", context: "Context", node: str) -> "list[AffiliationShown]":
    from smartfeeds.service.context import governor_of, locate
    from smartfeeds.service.requests import AffiliationShown

    located = locate(tx, node).node
    governor = governor_of(tx, context, located) or located
    return [AffiliationShown(affiliation, jid=jid) for jid, affiliation in tx.affiliations(governor.node_no)]
