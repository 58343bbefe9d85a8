"""Ad-hoc commands that change the affiliations and subscriptions of a node (XEP-0060 8.8, 8.9)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation
from smartfeeds.core.text import counted
from smartfeeds.service.requests import (
    AffiliationShown,
    Answer,
    PartlyRefused,
    Request,
    SetAffiliations,
    SetSubscriptions,
    SubscriptionShown,
)
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import CommandField, choice_field, jids_field
from smartfeeds.xmpp.commands import CommandForm, CommandNote, CommandResult, Step, StepInput, project_command
from smartfeeds.xmpp.node_field import NODE, node_field

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
    """Affiliations, or subscriptions, of a node: the request that changes them, and the field for a change."""

    change: Callable[[Jid, str, str, tuple[tuple[str, str], ...]], Request]
    field: CommandField[str]


_AFFILIATIONS = _Relation(SetAffiliations, _AFFILIATION)
_SUBSCRIPTIONS = _Relation(SetSubscriptions, _STATE)


async def _ask(relation: _Relation, step: StepInput) -> CommandForm:
    return CommandForm((await node_field(step), _JIDS.again(step), relation.field.again(step)))


async def _change(relation: _Relation, step: StepInput) -> CommandResult:
    """Returns how many entries were changed, and which were refused."""
    node, jids, value = NODE.read(step), _JIDS.read(step), relation.field.read(step)
    entries = tuple((jid, value) for jid in jids)
    answer = await step.answer(relation.change(step.actor, step.service, node, entries), Answer)
    rest = (answer.affiliations or answer.subscriptions) if isinstance(answer, PartlyRefused) else None
    refused = rest.entries if rest else ()
    notes = tuple(CommandNote(f"Not changed: {entry.jid} stays {_value(entry)}.", "error") for entry in refused)
    done = CommandNote(f"Changed {counted(len(jids) - len(refused), 'JID')} of {node}.")
    return CommandResult((done, *notes) if len(jids) > len(refused) else notes)


def _value(entry: AffiliationShown | SubscriptionShown) -> str:
    return entry.affiliation.value if isinstance(entry, AffiliationShown) else entry.state.value


def _change_steps(relation: _Relation) -> tuple[Step, ...]:
    return partial(_ask, relation), partial(_change, relation)


COMMANDS = (
    project_command("set-affiliations", "Change affiliations", Audience.OWNERS, *_change_steps(_AFFILIATIONS)),
    project_command("set-subscriptions", "Change subscriptions", Audience.OWNERS, *_change_steps(_SUBSCRIPTIONS)),
)
