"""The ad-hoc command that lists the conflicts of a node and resolves those of one item (A-62).

It has four steps: choose a node, an item in conflict, the version to keep; then the result. The third form carries the
tags of the versions that it shows. The last step resolves these only, so that nobody decides about versions that they
have not seen. The requester's own versions are an exception: any edit by their author settles them (FS-051). Version
payloads are read in a thread, because many long payloads would stall the event loop.
"""

import asyncio
from urllib.parse import unquote

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted, cut
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.conflicts.requests import (
    CombinedText,
    ConflictedItem,
    ConflictList,
    ListConflicts,
    ResolveConflicts,
    ResolvedItem,
)
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.standing import Audience
from smartfeeds.sync.record import Version
from smartfeeds.xmpp.command_fields import form_step, text_field
from smartfeeds.xmpp.commands import (
    CommandForm,
    CommandNote,
    CommandResult,
    StepInput,
    note_result,
    project_command,
)
from smartfeeds.xmpp.forms import FormField
from smartfeeds.xmpp.side import XmppSide
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

# These bounds keep a form below the size of a stanza, whatever users write into items.
LISTED = 25  # items or versions in one form
_TAGS_BYTES = 8_192  # 480 tags, which a client sends back as one field
_NAME_CHARACTERS = 100
_TEXT_CHARACTERS = 300
_TITLE = "Conflicts"
_NODE = text_field("node", "Node", MAX_ID_BYTES, any_character=True)
_ask_node = form_step(
    _NODE,
    instructions="An item that was changed in two places at once keeps all versions until a user decides.",
)


async def _choose_item(step: StepInput) -> CommandForm | CommandResult:
    node = _NODE.read(step)
    request = ListConflicts(step.actor, step.service, node, ResultSetRequest(max=str(LISTED)))
    page = await step.answer(request, ConflictList)
    if not page.entries:
        return note_result(f"No item of {node} has a conflict.")
    choices = await asyncio.to_thread(lambda: tuple((entry.item.id, _choice(entry)) for entry in page.entries))
    total = page.result_set.count if page.result_set is not None else None
    more = (CommandNote(f"The list shows {len(choices)} of {total} items; resolve some to see the others."),)
    return CommandForm(
        (
            FormField("node", "hidden", (node,)),
            FormField("item", "list-single", (choices[0][0],), "Item", choices, "xs:string", required=True),
        ),
        _TITLE,
        f"Choose an item of {node}.",
        more if total is not None and total > len(choices) else (),
    )


async def _choose_version(step: StepInput) -> CommandForm:
    node, item_id = step.one("node"), step.one("item")
    request = ListConflicts(step.actor, step.service, node, item_id=item_id)
    entries = (await step.answer(request, ConflictList)).entries
    if not entries:
        raise FeedError(Condition.ITEM_NOT_FOUND, "the item has no conflicts now; start the command again")
    tags, versions = entries[0].tags, entries[0].versions[:LISTED]
    descriptions = await asyncio.to_thread(lambda: [_describe(version) for _, version in versions])
    choices = tuple((tag, facts) for (tag, _), (facts, _) in zip(versions, descriptions, strict=True))
    texts = (FormField("", "fixed", (text,)) for _, text in descriptions)
    hidden_count = len(tags) - len(versions)
    more = (CommandNote(f"{counted(hidden_count, 'version')} not shown. They stay in conflict, except your own."),)
    return CommandForm(
        (
            FormField("node", "hidden", (node,)),
            FormField("item", "hidden", (item_id,)),
            FormField("tags", "hidden", (" ".join(tags),)),
            *texts,
            FormField("keep", "list-single", (tags[0],), "Keep", choices, "xs:string", required=True),
            FormField("text", "text-multi", (), "Combined text"),
        ),
        _TITLE,
        "The first version is the current one. Choose the version to keep. The others shown here are discarded. A "
        "combined text replaces title and text of the version to keep; its first line is the title.",
        more if hidden_count else (),
    )


async def _resolve(step: StepInput) -> CommandResult:
    node, item_id, keep = step.one("node"), step.one("item"), step.one("keep")
    tags = tuple(step.one("tags", _TAGS_BYTES).split())
    listed_tags = tags[:LISTED]
    if keep not in listed_tags:
        raise CommandError(CommandFault.BAD_PAYLOAD, "the value of keep is not one of the versions shown")
    text = "\n".join(step.values.get("text", ())).strip()
    combined = CombinedText(text) if text else None
    request = ResolveConflicts(step.actor, step.service, node, item_id, keep, listed_tags[1:], tags, combined)
    answer = await step.answer(request, ResolvedItem)
    conflicts = counted(len(listed_tags) - 1, "conflict")
    name = await asyncio.to_thread(_item_name, answer.item.id, answer.item.payload)
    notes = [CommandNote(f"Resolved {conflicts} of {name}.")]
    if answer.left:
        notes.append(CommandNote(f"{counted(answer.left, 'conflict')} left.", "warn"))
    return CommandResult(tuple(notes))


def _choice(entry: ConflictedItem) -> str:
    name = _item_name(entry.item.id, entry.version.payload)
    return f"{name}: {counted(len(entry.version.conflicts), 'conflict')}"


def _item_name(item_id: str, payload: bytes) -> str:
    title = cut(read_meta(payload).body, _NAME_CHARACTERS) or "(no title)"
    return f"{title} ({cut(item_id, _NAME_CHARACTERS)})"


def _describe(version: Version) -> tuple[str, str]:
    """Returns a line with author, date, deletion and title of a version, and this line with the text below."""
    meta = read_meta(version.payload)
    when = "" if version.top.when_us is None else format_datetime(version.top.when_us)
    parts = (
        cut(unquote(version.top.by), _NAME_CHARACTERS) or "nobody known",
        when,
        "deleted" if version.deleted.on else "",
        cut(meta.body, _NAME_CHARACTERS),
    )
    facts = ", ".join(part for part in parts if part)
    text = cut(" ".join(meta.text.split("\n")[1:]), _TEXT_CHARACTERS)
    return facts, "\n".join(part for part in (facts, text) if part)


COMMANDS = (
    project_command(
        "conflicts", "Conflicts of a node", Audience.EVERYBODY, _ask_node, _choose_item, _choose_version, _resolve
    ),
)
XMPP = XmppSide(commands=COMMANDS)
