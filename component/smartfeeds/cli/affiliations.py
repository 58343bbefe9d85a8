"""The commands of `smartfeeds node` about people: lists, allows and bans JIDs (XEP-0060 8.9)."""

from functools import partial
from pathlib import Path

import click

from smartfeeds.cli.common import bare_jid, config_option, json_option
from smartfeeds.cli.list_commands import print_list
from smartfeeds.cli.offline import operator, read_offline, run_offline
from smartfeeds.console import print_out
from smartfeeds.core.model import Affiliation
from smartfeeds.service.answers import check_applied
from smartfeeds.service.context import Context, governor_of, locate
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.node_people import MEMBERS
from smartfeeds.service.requests import AffiliationShown, SetAffiliations
from smartfeeds.store.base import OpenMode, ReadTx

_ALLOWING = (Affiliation.MEMBER, Affiliation.PUBLISHER, Affiliation.PUBLISH_ONLY, Affiliation.OWNER)


@click.command("affiliations")
@click.argument("name")
@config_option
@json_option
def affiliations(name: str, config: Path | None, *, as_json: bool) -> None:
    """List the affiliations of the node NAME by JID."""
    print_list(MEMBERS, read_offline(config, partial(_members, name=name)), as_json=as_json)


@click.command("allow")
@click.argument("name")
@click.argument("jid", type=bare_jid)
@click.option(
    "--as",
    "affiliation",
    type=click.Choice([affiliation.value for affiliation in _ALLOWING]),
    default=Affiliation.MEMBER.value,
    help="Members may read, publishers also publish, owners also configure. Default: member.",
)
@config_option
def allow(name: str, jid: str, affiliation: str, config: Path | None) -> None:
    """Give the bare JID an affiliation with the node NAME, also if it was banned."""
    _set(config, name, jid, affiliation)
    print_out(f"{jid} is {affiliation} of {name}.")


@click.command("deny")
@click.argument("name")
@click.argument("jid", type=bare_jid)
@click.option("--forget", is_flag=True, help="Remove the affiliation. The access model of the node then decides.")
@config_option
def deny(name: str, jid: str, config: Path | None, *, forget: bool) -> None:
    """Ban the bare JID from the node NAME: it may neither read nor publish, and its subscriptions end."""
    affiliation = Affiliation.NONE if forget else Affiliation.OUTCAST
    _set(config, name, jid, affiliation.value)
    print_out(f"{jid} has no affiliation with {name}." if forget else f"{jid} is banned from {name}.")


def _set(config: Path | None, name: str, jid: str, affiliation: str) -> None:
    async def work(service: FeedService) -> None:
        request = SetAffiliations(operator(service), service.policy.domain, name, ((jid, affiliation),))
        check_applied(await service.handle(request))

    run_offline(config, work, OpenMode.WRITE)


def _members(tx: ReadTx, context: Context, name: str) -> list[AffiliationShown]:
    node = locate(tx, name).node
    governor = governor_of(tx, context, node) or node
    return [AffiliationShown(affiliation, jid=jid) for jid, affiliation in tx.affiliations(governor.node_no)]
