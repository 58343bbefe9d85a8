"""Ad-hoc commands for the block lists, and for the erasure of a person (XEP-0133 sections 4.2, 4.10 and 4.11).

The deletion of a user erases the person's data here, because a component has no accounts. It asks for the JID twice.
"""

from functools import partial
from typing import Final

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.jid import parse_jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.privacy.blocking import BlockList, GetBlockList, SetBlockList
from smartfeeds.features.privacy.erasing import OF_ITEMS_LEFT, ErasePerson
from smartfeeds.features.privacy.erasure_list import ErasureShown, GetErasure
from smartfeeds.features.privacy.erasures import DELETE_NODES, KEEP_NODES, ErasureSettings
from smartfeeds.service.pulls import written_bytes
from smartfeeds.service.requests import EmptyResult
from smartfeeds.service.standing import Audience
from smartfeeds.xmpp.command_fields import CommandField, choice_field, form_step, jid_field, jids_field
from smartfeeds.xmpp.commands import (
    Command,
    CommandForm,
    CommandNote,
    CommandResult,
    StepInput,
    note_result,
    project_command,
)
from smartfeeds.xmpp.forms import FormTable, Values
from smartfeeds.xmpp.namespaces import ADMIN
from smartfeeds.xmpp.side import XmppSide
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

_MAX_ENTRIES = 1_000
_MAX_BYTES = 65_536  # of the entries; each has some 15 bytes around it


def _entries(values: Values) -> tuple[str, ...]:
    lines = [line.strip() for value in values for line in value.splitlines()]
    jids = [parse_jid(line) for line in lines if line]
    if len(jids) > _MAX_ENTRIES or any(jid is None or jid.resource for jid in jids):
        raise ValueError(f"up to {_MAX_ENTRIES:,} bare JIDs or domains")
    if sum(written_bytes(str(jid)) for jid in jids) > _MAX_BYTES:
        raise ValueError(f"bare JIDs or domains with up to {_MAX_BYTES:,} bytes together")
    return tuple(dict.fromkeys(map(str, jids)))


_LISTS = {
    ListKind.DENY: CommandField("blacklistjids", "Addresses that may not use the service", "jid-multi", _entries),
    ListKind.ALLOW: CommandField("whitelistjids", "Addresses that only may use it", "jid-multi", _entries),
}
FOLLOWERS_SHOWN: Final = 100  # in one stanza
_JID = jid_field("jid", "JID of the person")
_STATES: Final = {True: "has received the deletions", False: "waiting", None: "reads only, cannot be told"}
_COLUMNS: Final = (("node", "Node"), ("follower", "Follower"), ("state", "State"))
_PERSON = jids_field("accountjids", "JID to erase")
_AGAIN = jids_field("confirm", "The same JID again")
_NODES = choice_field(
    "nodes",
    "Nodes that only this JID owns",
    {"refuse": "Do not erase if there are any", DELETE_NODES: "Delete them"},
)


async def _ask_list(step: StepInput, kind: ListKind) -> CommandForm:
    answer = await step.answer(GetBlockList(step.actor, step.service, kind), BlockList)
    # The form that comes back replaces the list, so it must have the whole list.
    if len(answer.names) > _MAX_ENTRIES or sum(map(written_bytes, answer.names)) > _MAX_BYTES:
        raise FeedError(
            Condition.NOT_ALLOWED,
            f"the list {kind.value} has {len(answer.names):,} entries, which is more than a form can have; change it "
            "by smartfeeds blocklist, on the host of the service",
        )
    return CommandForm((_LISTS[kind].show(*answer.names),), instructions="Bare JIDs or domains, one in each line.")


async def _set_list(step: StepInput, kind: ListKind) -> CommandResult:
    names = _LISTS[kind].read(step)
    await step.answer(SetBlockList(step.actor, step.service, kind, names), EmptyResult)
    return note_result(f"The list {kind.value} has {len(names)} entries.")


async def _ask_person(step: StepInput) -> CommandForm:
    return CommandForm(
        (_PERSON.again(step), _NODES.again(step)), instructions="All data of the JID is erased for ever."
    )


async def _confirm(step: StepInput) -> CommandForm:
    carried = (_PERSON.hide(_one_person(step)), _NODES.hide(_NODES.read(step)))
    return CommandForm((*carried, _AGAIN.again(step)), instructions="This cannot be undone. Write the JID again.")


async def _erase(step: StepInput) -> CommandResult:
    jid = _one_person(step)
    if _AGAIN.read(step) != (jid,):
        raise CommandError(CommandFault.BAD_PAYLOAD, "the two JIDs differ")
    nodes = DELETE_NODES if _NODES.read(step) == DELETE_NODES else KEEP_NODES
    await step.answer(ErasePerson(step.actor, step.service, jid, ErasureSettings(nodes)), EmptyResult)
    number = (await step.answer(GetErasure(step.actor, step.service, jid), ErasureShown)).number
    return note_result(f"The data of {jid} is being erased. List work in progress shows it as {number}.")


async def _erasure(step: StepInput) -> CommandResult:
    jid = _JID.read(step)
    status = (await step.answer(GetErasure(step.actor, step.service, jid), ErasureShown)).status
    counts = ", ".join(f"{name} {count}" for name, count in sorted(status.job.counts.items()))
    left = sum(status.job.counts[name] for name in OF_ITEMS_LEFT) + sum(status.job.left_texts.values())
    waiting = sum(follower.confirmed is False for follower in status.confirmations)
    notes = (
        CommandNote(f"The erasure of {jid} is in the phase {status.job.phase.value}. Counts: {counts or 'none'}."),
        *((CommandNote(f"Items and texts that still have the address: {left}."),) if left else ()),
        CommandNote(f"Followers that have not received the deletions yet: {waiting}."),
    )
    # Those that wait come first, because a long list is cut.
    followers = sorted(status.confirmations, key=lambda follower: follower.confirmed is not False)
    rows = tuple((row.node, row.consumer, _STATES[row.confirmed]) for row in followers[:FOLLOWERS_SHOWN])
    return CommandResult(notes, (), FormTable(_COLUMNS, rows) if rows else None)


def _one_person(step: StepInput) -> str:
    jids = _PERSON.read(step)
    if len(jids) != 1:
        raise CommandError(CommandFault.BAD_PAYLOAD, "the field accountjids must have one JID")
    return jids[0]


def _list_command(name: str, title: str, kind: ListKind) -> Command:
    steps = (partial(_ask_list, kind=kind), partial(_set_list, kind=kind))
    return Command(f"{ADMIN}#{name}", title, ADMIN, steps, Audience.ADMINS)


COMMANDS = (
    _list_command("edit-blacklist", "Change the addresses that may not use the service", ListKind.DENY),
    _list_command("edit-whitelist", "Change the addresses that only may use the service", ListKind.ALLOW),
    Command(
        f"{ADMIN}#delete-user", "Erase the data of a person", ADMIN, (_ask_person, _confirm, _erase), Audience.ADMINS
    ),
    project_command("erasure-status", "Show the erasure of a person", Audience.ADMINS, form_step(_JID), _erasure),
)
XMPP = XmppSide(commands=COMMANDS)
