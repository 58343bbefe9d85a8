"""Ad-hoc commands for users: the admins, the counts of a user (XEP-0133), the erasure of a person.

A component has no accounts, so the counts of a user are those of its nodes, subscriptions, items and tokens. XEP-0133
has no fields for them, so their form has a type of this project.
"""

from typing import Final

from smartfeeds.features.administration.counts import (
    AdminList,
    CountItems,
    GetAdmins,
    GetUserStatistics,
    ItemCount,
    UserStatistics,
)
from smartfeeds.features.administration.work import ErasureShown, GetErasure
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import form_step, jid_field
from smartfeeds.xmpp.commands import Command, CommandNote, CommandResult, StepInput, project_command
from smartfeeds.xmpp.forms import FormField, FormTable
from smartfeeds.xmpp.namespaces import ADMIN, PROJECT

# A client waits for some seconds, and a million items take one or two.
MOST_ITEMS: Final = 2_000_000
FOLLOWERS_SHOWN: Final = 100
_USER = jid_field("accountjid", "JID of the user")
_PERSON = jid_field("jid", "JID of the person")
_STATISTICS: Final = f"{PROJECT}#user-statistics"
_STATES: Final = {True: "has received the deletions", False: "waiting", None: "reads only, cannot be told"}
_COLUMNS: Final = (("node", "Node"), ("follower", "Follower"), ("state", "State"))


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


async def _erasure(step: StepInput) -> CommandResult:
    jid = _PERSON.read(step)
    status = (await step.answer(GetErasure(step.actor, step.service, jid), ErasureShown)).status
    counts = ", ".join(f"{name} {count}" for name, count in sorted(status.job.counts.items()))
    waiting = sum(follower.confirmed is False for follower in status.confirmations)
    notes = (
        CommandNote(f"The erasure of {jid} is in the phase {status.job.phase.value}. Counts: {counts or 'none'}."),
        CommandNote(f"Followers that have not received the deletions yet: {waiting}."),
    )
    # Those that wait come first, because a long list is cut.
    followers = sorted(status.confirmations, key=lambda follower: follower.confirmed is not False)
    rows = tuple((one.node, one.consumer, _STATES[one.confirmed]) for one in followers[:FOLLOWERS_SHOWN])
    return CommandResult(notes, (), FormTable(_COLUMNS, rows) if rows else None)


COMMANDS = (
    Command(f"{ADMIN}#edit-admin", "Show the administrators", ADMIN, (_admins,), Audience.ADMINS),
    Command(
        f"{ADMIN}#get-user-statistics",
        "Show the counts of a user",
        ADMIN,
        (form_step(_USER), _statistics),
        Audience.ADMINS,
    ),
    project_command("erasure-status", "Show the erasure of a person", Audience.ADMINS, form_step(_PERSON), _erasure),
)
