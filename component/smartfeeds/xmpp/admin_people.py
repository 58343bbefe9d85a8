"""Ad-hoc commands for the affiliations and subscriptions of a node: list and change them (XEP-0060 8.8, 8.9)."""

from smartfeeds.core.model import Affiliation
from smartfeeds.core.text import counted
from smartfeeds.service import requests as r
from smartfeeds.xmpp.command_fields import choice_field, jids_field
from smartfeeds.xmpp.command_lists import ListPage, list_steps, position_of
from smartfeeds.xmpp.commands import Audience, Command, CommandForm, CommandNote, CommandResult, StepInput
from smartfeeds.xmpp.namespaces import PROJECT
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


async def _affiliations(step: StepInput) -> ListPage:
    node, position = NODE.read(step), position_of(step)
    request = r.GetAffiliations(step.actor, step.service, node, True, position.request)
    answer = await step.answer(request, r.AffiliationList)
    rows = [(entry.jid, entry.affiliation.value) for entry in answer.entries]
    return position.page(step.page, rows, answer.result_set, (NODE.hide(node),))


async def _subscriptions(step: StepInput) -> ListPage:
    node, position = NODE.read(step), position_of(step)
    request = r.GetNodeSubscriptions(step.actor, step.service, node, position.request)
    answer = await step.answer(request, r.SubscriptionList)
    rows = [(entry.jid, entry.state.value) for entry in answer.entries]
    return position.page(step.page, rows, answer.result_set, (NODE.hide(node),))


async def _ask_affiliations(step: StepInput) -> CommandForm:
    return CommandForm((await node_field(step), _JIDS.again(step), _AFFILIATION.again(step)))


async def _set_affiliations(step: StepInput) -> CommandResult:
    node, jids, affiliation = NODE.read(step), _JIDS.read(step), _AFFILIATION.read(step)
    entries = tuple((jid, affiliation) for jid in jids)
    return _report(
        await step.answer(r.SetAffiliations(step.actor, step.service, node, entries), r.Answer), len(jids), node
    )


async def _ask_subscriptions(step: StepInput) -> CommandForm:
    return CommandForm((await node_field(step), _JIDS.again(step), _STATE.again(step)))


async def _set_subscriptions(step: StepInput) -> CommandResult:
    node, jids, state = NODE.read(step), _JIDS.read(step), _STATE.read(step)
    entries = tuple((jid, state) for jid in jids)
    return _report(
        await step.answer(r.SetSubscriptions(step.actor, step.service, node, entries), r.Answer), len(jids), node
    )


def _report(answer: r.Answer, count: int, node: str) -> CommandResult:
    """Returns how many entries were changed, and which were refused."""
    refused: list[str] = []
    if isinstance(answer, r.PartlyRefused):
        affiliations, subscriptions = answer.affiliations, answer.subscriptions
        refused += [
            f"{one.jid} stays {one.affiliation.value}" for one in (affiliations.entries if affiliations else ())
        ]
        refused += [f"{one.jid} stays {one.state.value}" for one in (subscriptions.entries if subscriptions else ())]
    done = CommandNote(f"Changed {counted(count - len(refused), 'JID')} of {node}.")
    notes = tuple(CommandNote(f"Not changed: {text}.", "error") for text in refused)
    return CommandResult((done, *notes) if count > len(refused) else notes)


LIST_AFFILIATIONS = Command(
    f"{PROJECT}#list-affiliations",
    "List the affiliations of a node",
    f"{PROJECT}#list-affiliations",
    (ask_node, *list_steps((("jid", "JID"), ("affiliation", "Affiliation")), "affiliation", _affiliations)),
    Audience.OWNERS,
)
SET_AFFILIATIONS = Command(
    f"{PROJECT}#set-affiliations",
    "Change affiliations",
    f"{PROJECT}#set-affiliations",
    (_ask_affiliations, _set_affiliations),
    Audience.OWNERS,
)
LIST_SUBSCRIPTIONS = Command(
    f"{PROJECT}#list-subscriptions",
    "List the subscriptions of a node",
    f"{PROJECT}#list-subscriptions",
    (ask_node, *list_steps((("jid", "JID"), ("state", "State")), "subscription", _subscriptions)),
    Audience.OWNERS,
)
SET_SUBSCRIPTIONS = Command(
    f"{PROJECT}#set-subscriptions",
    "Change subscriptions",
    f"{PROJECT}#set-subscriptions",
    (_ask_subscriptions, _set_subscriptions),
    Audience.OWNERS,
)
