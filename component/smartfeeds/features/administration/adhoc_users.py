"""Ad-hoc commands for users: the admins, and the counts of a user (XEP-0133).

A component has no accounts, so the counts of a user are those of its nodes, subscriptions, items and tokens. XEP-0133
has no fields for them, so their form has a type of this project.
"""

from typing import Final

from smartfeeds.features.administration.requests import (
    AdminList,
    CountItems,
    GetAdmins,
    GetUserStatistics,
    ItemCount,
    UserStatistics,
)
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import form_step, jid_field
from smartfeeds.xmpp.commands import Command, CommandNote, CommandResult, StepInput
from smartfeeds.xmpp.forms import FormField
from smartfeeds.xmpp.namespaces import ADMIN, PROJECT

# A client waits for some seconds, and a million items take one or two.
MOST_ITEMS: Final = 2_000_000
_USER = jid_field("accountjid", "JID of the user")
_STATISTICS: Final = f"{PROJECT}#user-statistics"


async def _admins(step: StepInput) -> CommandResult:
    """The list is shown and not changed: an admin whose account is stolen cannot make another admin."""
    answer = await step.answer(GetAdmins(step.actor, step.service), AdminList)
    note = CommandNote("Change pubsub.admins in the configuration of each process, and restart the processes.")
    return CommandResult((note,), (FormField("adminjids", "jid-multi", answer.jids, "The administrators"),))


async def _statistics(step: StepInput) -> CommandResult:
    jid = _USER.read(step)
    answer = await step.answer(GetUserStatistics(step.actor, step.service, jid), UserStatistics)
    facts = (
        ("nodes", "Nodes that the user owns", str(answer.nodes)),
        ("affiliations", "Affiliations", str(answer.affiliations)),
        ("subscriptions", "Subscriptions", str(answer.subscriptions)),
        ("items", "Items that the user has published", await _items(step, jid)),
        ("tokens", "Bearer tokens", str(answer.tokens)),
        ("sessions", "Web sessions", str(answer.sessions)),
        ("contacts", "Addresses here that know the presence of the user", str(answer.contacts)),
    )
    fields = (FormField(var, "text-single", (text,), label) for var, label, text in facts)
    return CommandResult((), (_USER.show(jid), *fields), form_type=_STATISTICS)


async def _items(step: StepInput, jid: str) -> str:
    total = examined = 0
    after_no: int | None = 0
    while after_no is not None:
        if examined >= MOST_ITEMS:
            return f"{total} of the oldest {MOST_ITEMS} items"
        part = await step.answer(CountItems(step.actor, step.service, jid, after_no), ItemCount)
        total += part.items
        examined += part.examined
        after_no = part.after_no
    return str(total)


COMMANDS = (
    Command(f"{ADMIN}#edit-admin", "Show the administrators", ADMIN, (_admins,), Audience.ADMINS),
    Command(
        f"{ADMIN}#get-user-statistics",
        "Show the counts of a user",
        ADMIN,
        (form_step(_USER), _statistics),
        Audience.ADMINS,
    ),
)
