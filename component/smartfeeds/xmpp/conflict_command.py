"""The ad-hoc command that shows the conflicts of a node and settles those of an item (A-62).

Four steps: which node, which of its items in conflict, which version is to stay, done. The third form carries the tags
of the versions that it shows, so that nobody decides about what they have not seen: but for their own versions, which
any change of theirs settles (FS-051). What versions say is read beside the event loop: many long ones take a while.
"""

import asyncio
from collections.abc import Sequence
from urllib.parse import unquote

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import counted
from smartfeeds.core.times import format_datetime
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.conflicts import (
    ConflictedItem,
    ConflictList,
    ListConflicts,
    ResolveConflicts,
    Resolved,
)
from smartfeeds.sync.record import Version
from smartfeeds.xmpp.commands import Ask, Command, Finished, Note, Severity, Stage
from smartfeeds.xmpp.forms import Field
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault

NODE = "urn:smartfeeds:0#conflicts"
LISTED = 25  # items to choose from, and versions of one item: more would not fit into a stanza, nor on a screen
_TAGS_BYTES = 8_192
_NAME_CHARACTERS = 100
_TEXT_CHARACTERS = 300
_TITLE = "Conflicts"


async def _ask_node(ask: Ask) -> Stage:
    known = ask.values.get("node", ())[:1]
    return Stage(
        (Field("node", "text-single", known, "Node", required=True),),
        _TITLE,
        "Items that were changed in two places at once keep all versions until somebody decides. Which node?",
    )


async def _choose_item(ask: Ask) -> Stage | Finished:
    node = ask.one("node")
    request = ListConflicts(ask.actor, ask.service, node, ResultSetRequest(max=str(LISTED)))
    page = await ask.answer(request, ConflictList)
    if not page.entries:
        return Finished((Note(f"No item of {node} has a conflict."),))
    choices = await asyncio.to_thread(_choices, page.entries)
    total = page.result_set.count if page.result_set is not None else None
    more = (Note(f"These are {len(choices)} of {total}; settle some to see the others."),)
    return Stage(
        (
            Field("node", "hidden", (node,)),
            Field("item", "list-single", (choices[0][0],), "Item", choices, required=True),
        ),
        _TITLE,
        f"Which item of {node}?",
        more if total is not None and total > len(choices) else (),
    )


async def _choose_version(ask: Ask) -> Stage:
    node, item_id = ask.one("node"), ask.one("item")
    request = ListConflicts(ask.actor, ask.service, node, item_id=item_id)
    entries = (await ask.answer(request, ConflictList)).entries
    if not entries:
        raise FeedError(Condition.ITEM_NOT_FOUND, "this item has no conflicts, or none any more: begin again")
    tags, shown = entries[0].tags, entries[0].versions[:LISTED]
    told = await asyncio.to_thread(lambda: [_told(version) for _, version in shown])
    choices = tuple((tag, facts) for (tag, _), (facts, _) in zip(shown, told, strict=True))
    texts = (Field("", "fixed", (described,)) for _, described in told)
    unseen = len(tags) - len(shown)
    more = (Note(f"There are {counted(unseen, 'version')} more. But for your own, they stay until they are shown."),)
    return Stage(
        (
            Field("node", "hidden", (node,)),
            Field("item", "hidden", (item_id,)),
            Field("tags", "hidden", (" ".join(tags),)),
            *texts,
            Field("keep", "list-single", (tags[0],), "Keep", choices, required=True),
        ),
        _TITLE,
        "The first version is the one that all see now. Which one is to stay? The others shown here go.",
        more if unseen else (),
    )


async def _resolve(ask: Ask) -> Finished:
    node, item_id, keep = ask.one("node"), ask.one("item"), ask.one("keep")
    seen = tuple(ask.one("tags", _TAGS_BYTES).split())
    shown = seen[:LISTED]
    if keep not in shown:
        raise CommandError(CommandFault.BAD_PAYLOAD, "keep is one of the versions shown")
    request = ResolveConflicts(ask.actor, ask.service, node, item_id, keep, shown[1:], seen)
    resolved = await ask.answer(request, Resolved)
    settled = counted(len(shown) - 1, "conflict")
    name = await asyncio.to_thread(_item_name, resolved.item.id, resolved.item.payload)
    notes = [Note(f"Settled {settled}: {name} is as you decided.")]
    if resolved.left:
        notes.append(Note(f"{counted(resolved.left, 'conflict')} left.", Severity.WARN))
    return Finished(tuple(notes))


def _choices(entries: Sequence[ConflictedItem]) -> tuple[tuple[str, str], ...]:
    return tuple((entry.item.id, _choice(entry)) for entry in entries)


def _choice(entry: ConflictedItem) -> str:
    name = _item_name(entry.item.id, entry.version.payload)
    return f"{name}: {counted(len(entry.version.conflicts), 'conflict')}"


def _item_name(item_id: str, payload: bytes) -> str:
    title = _cut(read_meta(payload).body, _NAME_CHARACTERS) or "(no title)"
    return f"{title} ({_cut(item_id, _NAME_CHARACTERS)})"


def _told(version: Version) -> tuple[str, str]:
    """Who, when, whether deleted, and the title; and the same with what it says beside its title on another line."""
    meta = read_meta(version.payload)
    when = "" if version.top.when_us is None else format_datetime(version.top.when_us)
    parts = (
        _cut(unquote(version.top.by), _NAME_CHARACTERS) or "nobody known",
        when,
        "deleted" if version.deleted.on else "",
        _cut(meta.body, _NAME_CHARACTERS),
    )
    facts = ", ".join(part for part in parts if part)
    text = _cut(" ".join(meta.text.split("\n")[1:]), _TEXT_CHARACTERS)
    return facts, "\n".join(part for part in (facts, text) if part)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 3]}..."


CONFLICTS = Command(NODE, "Conflicts of a node", NODE, (_ask_node, _choose_item, _choose_version, _resolve))
