"""Ad-hoc commands for the affiliations and subscriptions of a node: list and change them (XEP-0060 8.8, 8.9)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted
from smartfeeds.service import requests as r
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import CommandField, choice_field, jids_field
from smartfeeds.xmpp.command_lists import ListPage, list_steps, position_of
from smartfeeds.xmpp.commands import CommandForm, CommandNote, CommandResult, Step, StepInput, project_command
from smartfeeds.xmpp.node_field import NODE, ask_node, node_field

_JIDS = jids_field("jids", "JIDs")
_AFFILIATION = choice_field(
    "affiliation",
    "Affiliation",
    {
        Affiliation.MEMBER.value: "Member: may read",
        Affiliation.PUBLISHER.value: "Publisher: may publish and read",
        Affiliation.PUBLISH_ONLY.value: "Publish-only: may publish, not read",
        Affiliation.OWNER.value: "Owner: may do everything",
        Affiliation.NONE.value: "None: the access model decides",
        Affiliation.OUTCAST.value: "Outcast: may do nothing",
    },
)
_STATE = choice_field("state", "Subscription", {"subscribed": "Approve or subscribe", "none": "Unsubscribe or deny"})


@dataclass(frozen=True, slots=True)
class _Relation:
    """Affiliations, or subscriptions, of a node: the requests that list and change them, and the field for a change."""

    listing: Callable[[Jid, str, str, ResultSetRequest], r.Request]
    change: Callable[[Jid, str, str, tuple[tuple[str, str], ...]], r.Request]
    field: CommandField[str]


_AFFILIATIONS = _Relation(
    lambda actor, service, node, page: r.GetAffiliations(actor, service, node, True, page),
    r.SetAffiliations,
    _AFFILIATION,
)
_SUBSCRIPTIONS = _Relation(r.GetNodeSubscriptions, r.SetSubscriptions, _STATE)


async def _page(relation: _Relation, step: StepInput) -> ListPage:
    node, position = NODE.read(step), position_of(step)
    answer = await step.answer(relation.listing(step.actor, step.service, node, position.request), r.Answer)
    assert isinstance(answer, r.AffiliationList | r.SubscriptionList)
    rows = [(entry.jid, _value(entry)) for entry in answer.entries]
    return position.page(step.page, rows, answer.result_set, (NODE.hide(node),))


async def _ask(relation: _Relation, step: StepInput) -> CommandForm:
    return CommandForm((await node_field(step), _JIDS.again(step), relation.field.again(step)))


async def _change(relation: _Relation, step: StepInput) -> CommandResult:
    """Returns how many entries were changed, and which were refused."""
    node, jids, value = NODE.read(step), _JIDS.read(step), relation.field.read(step)
    entries = tuple((jid, value) for jid in jids)
    answer = await step.answer(relation.change(step.actor, step.service, node, entries), r.Answer)
    rest = (answer.affiliations or answer.subscriptions) if isinstance(answer, r.PartlyRefused) else None
    refused = rest.entries if rest else ()
    notes = tuple(CommandNote(f"Not changed: {entry.jid} stays {_value(entry)}.", "error") for entry in refused)
    done = CommandNote(f"Changed {counted(len(jids) - len(refused), 'JID')} of {node}.")
    return CommandResult((done, *notes) if len(jids) > len(refused) else notes)


def _value(entry: r.AffiliationShown | r.SubscriptionShown) -> str:
    return entry.affiliation.value if isinstance(entry, r.AffiliationShown) else entry.state.value


def _list_steps(relation: _Relation, what: str) -> tuple[Step, ...]:
    columns = (("jid", "JID"), (relation.field.var, relation.field.label))
    return (ask_node, *list_steps(columns, what, partial(_page, relation)))


def _change_steps(relation: _Relation) -> tuple[Step, ...]:
    return partial(_ask, relation), partial(_change, relation)


COMMANDS = (
    project_command(
        "list-affiliations",
        "List the affiliations of a node",
        Audience.OWNERS,
        *_list_steps(_AFFILIATIONS, "affiliation"),
    ),
    project_command("set-affiliations", "Change affiliations", Audience.OWNERS, *_change_steps(_AFFILIATIONS)),
    project_command(
        "list-subscriptions",
        "List the subscriptions of a node",
        Audience.OWNERS,
        *_list_steps(_SUBSCRIPTIONS, "subscription"),
    ),
    project_command("set-subscriptions", "Change subscriptions", Audience.OWNERS, *_change_steps(_SUBSCRIPTIONS)),
)
