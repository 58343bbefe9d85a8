"""The commands for conflicts: list the items that have any, show the versions of one, and keep one of them (A-62).

Versions are named by a code and a number. The code changes with each version of the item, so nobody decides about a
version that they have not seen, and nothing has to be remembered between two messages.
"""

import asyncio
import hashlib
from urllib.parse import unquote

from smartfeeds.chat.commands import (
    NAME_CHARACTERS,
    TITLE_CHARACTERS,
    Chat,
    ChatCommand,
    ChatReply,
    ChatTable,
    CommandRights,
    Offer,
    RefusalError,
    UsageError,
)
from smartfeeds.chat.grammar import arguments, take
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import cut
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
from smartfeeds.service.syncing import endpoint
from smartfeeds.sync.record import Version
from smartfeeds.texts import N_

CONFLICTS = N_("conflicts FEED")
SETTLE = N_("settle FEED [CODE] [NUMBER] [TEXT]")
LISTED = 20  # items of one answer; when some are settled, the next ones appear
SHOWN = 9  # versions of one answer; the others stay in conflict
_CODE_DIGITS = 6  # two of the 20 items of a list share a code with a chance of 1 in 88,000
_BUTTONS = 3  # of a list, which has the command of each item in its text, too
_MINE = frozenset({"mine", "meine"})
_THEIRS = frozenset({"theirs", "andere"})
_CHANGED = N_("The item has changed meanwhile. To see its versions: {command}")


async def conflicts(c: Chat, rest: str) -> ChatReply:
    """Lists the items of a feed that have conflicts."""
    tokens = arguments(rest)
    if len(tokens) != 1:
        raise UsageError
    feed, entries = tokens[0], await _entries(c, tokens[0])
    if not entries:
        return _none(c, feed)
    titles = await asyncio.to_thread(lambda: [_title(entry.version) or entry.item.id for entry in entries])
    steps = [c.command(SETTLE, feed, _code(entry)) for entry in entries]
    lines = [c.say("Items with conflicts in {feed}:", feed=cut(feed, NAME_CHARACTERS))]
    for entry, title, step in zip(entries, titles, steps, strict=True):
        count = c.texts.count(len(entry.tags), "{number} version", "{number} versions")
        lines.append(f"- {cut(title, NAME_CHARACTERS)}: {count}\n  {step}")
    return ChatReply("\n".join(lines), tuple(Offer(step) for step in steps[:_BUTTONS]))


async def settle(c: Chat, rest: str) -> ChatReply:
    """Shows the versions of an item, or keeps one of them. Without a code it is the first item with conflicts.

    A text behind the number replaces the text of that version: the author combines several versions in it.
    """
    feed, rest = take(rest)
    code, rest = take(rest)
    choice, text = take(rest)
    if not feed:
        raise UsageError
    entries = await _entries(c, feed)
    if not entries:
        return _none(c, feed)
    entry = next((candidate for candidate in entries if code.casefold() in ("", _code(candidate))), None)
    if entry is None:
        raise RefusalError(c.say(_CHANGED, command=c.command(CONFLICTS, feed)))
    return await (_keep(c, feed, entry, choice, text) if choice else _show(c, feed, entry))


async def _show(c: Chat, feed: str, entry: ConflictedItem) -> ChatReply:
    versions = entry.versions[:SHOWN]
    title, *lines = await asyncio.to_thread(
        lambda: [_title(entry.version) or entry.item.id, *(_describe(c, version) for _, version in versions)]
    )
    head = c.say("“{title}” was changed in two places at once. Readers see version 1 now.", title=title)
    example = c.command(SETTLE, feed, _code(entry), "1")
    tail = [
        c.say("To combine the versions, write your own text behind a number."),
        c.say("To keep version 1: {command}", command=example),
    ]
    offers = (
        Offer(c.command(SETTLE, feed, _code(entry), str(number)), c.say("Keep {number}", number=number))
        for number in range(1, len(versions) + 1)
    )
    return ChatReply("\n".join([head, *(f"{n}. {line}" for n, line in enumerate(lines, 1)), *tail]), tuple(offers))


async def _keep(c: Chat, feed: str, entry: ConflictedItem, choice: str, text: str) -> ChatReply:
    versions = entry.versions[:SHOWN]
    number = _number_of(c, [version for _, version in versions], choice)
    decided = tuple(tag for tag, _ in versions[1:])
    keep, version = versions[number]
    combined = CombinedText(text) if text else None
    request = ResolveConflicts(c.actor, c.service, feed, entry.item.id, keep, decided, entry.tags, combined)
    try:
        answer = await c.ask(request, ResolvedItem)
    except FeedError as error:
        if error.condition is not Condition.CONFLICT:
            raise
        raise RefusalError(c.say(_CHANGED, command=c.command(CONFLICTS, feed))) from error
    title = await asyncio.to_thread(_title, version._replace(payload=answer.item.payload) if text else version)
    names = {"feed": cut(feed, NAME_CHARACTERS), "title": title or entry.item.id}
    settled = (
        c.say("Settled. {feed} has your text now: {title}", **names)
        if text
        else c.say("Settled. {feed} has version {number} now: {title}", number=number + 1, **names)
    )
    return ChatReply(settled, (c.offer(CONFLICTS, feed),))


def _number_of(c: Chat, versions: list[Version], choice: str) -> int:
    """The place of the version that a choice names. Raises RefusalError, UsageError."""
    word = choice.casefold()
    if word in _MINE | _THEIRS:
        places = [place for place, version in enumerate(versions) if _is_own(c, version) is (word in _MINE)]
        if len(places) != 1:
            raise RefusalError(c.say("That is not clear here. Write the number of the version."))
        return places[0]
    if not (len(word) == 1 and word.isascii() and word.isdecimal() and 1 <= int(word) <= len(versions)):
        raise UsageError
    return int(word) - 1


async def _entries(c: Chat, feed: str) -> tuple[ConflictedItem, ...]:
    request = ListConflicts(c.actor, c.service, feed, ResultSetRequest(max=str(LISTED)))
    return (await c.ask(request, ConflictList)).entries


def _none(c: Chat, feed: str) -> ChatReply:
    return ChatReply(c.say("No item of {feed} has a conflict.", feed=cut(feed, NAME_CHARACTERS)))


def _code(entry: ConflictedItem) -> str:
    """The code of an item with exactly these versions."""
    return hashlib.sha256("\0".join((entry.item.id, *entry.tags)).encode()).hexdigest()[:_CODE_DIGITS]


def _title(version: Version) -> str:
    return cut(read_meta(version.payload).body, TITLE_CHARACTERS)


def _is_own(c: Chat, version: Version) -> bool:
    return version.top.by == endpoint(c.service, c.jid)


def _describe(c: Chat, version: Version) -> str:
    """A version on one line: its author, its time, and its text."""
    author = c.say("you") if _is_own(c, version) else cut(unquote(version.top.by), NAME_CHARACTERS)
    when = "" if version.top.when_us is None else c.local_time(version.top.when_us)
    facts = ", ".join(part for part in (author, when, c.say("deleted") if version.deleted.on else "") if part)
    return f"{facts}: {cut(read_meta(version.payload).text, TITLE_CHARACTERS)}"


CHAT = ChatTable(
    (
        ChatCommand(
            "conflicts",
            CONFLICTS,
            N_("lists items that were changed in two places at once"),
            conflicts,
            {"de": ("konflikte",)},
        ),
        ChatCommand(
            "settle",
            SETTLE,
            N_("shows the versions of an item with conflicts, and keeps one: its number, mine or theirs, or your text"),
            settle,
            {"de": ("entscheide", "entscheiden")},
            rights=CommandRights.ROOM,
        ),
    ),
    before="outline",
)
