"""The commands for the outline of a feed: show it, and move an item by a step (SSE 3.2).

Items are named by a code of their id. The number of a line would be that of another item after a move by somebody else.
"""

import asyncio
import hashlib

from smartfeeds.chat.commands import NAME_CHARACTERS, ChatReply, RefusalError, UsageError
from smartfeeds.chat.grammar import arguments
from smartfeeds.core.model import Item
from smartfeeds.core.text import cut
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.reading import more
from smartfeeds.features.bot.usages import MOVE, OUTLINE
from smartfeeds.formats.atom import read_meta
from smartfeeds.service.placing import GetOutline, MoveItem, OutlineShown
from smartfeeds.service.requests import GetItem, ItemShown, Published
from smartfeeds.sync.moves import MoveStep
from smartfeeds.texts import N_

LISTED = 40  # lines of one answer
# 16 million codes. In an outline of 1,000 items two share a code with a chance of 3 %; `move` refuses such a code.
_CODE_DIGITS = 6
_DEEPEST = 8  # a phone has no room for more
# The words for a step, those of buttons first.
_STEPS = {
    MoveStep.UP: (N_("up"), "hoch"),
    MoveStep.DOWN: (N_("down"), "runter"),
    MoveStep.INDENT: (N_("indent"), "einrücken", "in"),
    MoveStep.OUTDENT: (N_("outdent"), "ausrücken", "out"),
}
_BY_WORD = {word: step for step, words in _STEPS.items() for word in words}


async def outline(c: Conversation, rest: str) -> ChatReply:
    """Shows the outline of a feed with the codes of its items."""
    tokens = arguments(rest)
    if len(tokens) != 1:
        raise UsageError
    feed = tokens[0]
    answer = await c.ask(GetOutline(c.actor, c.service, feed, LISTED), OutlineShown)
    lines, name = answer.lines, cut(feed, NAME_CHARACTERS)
    if not lines:
        return ChatReply(c.say("{feed} has no items.", feed=name))
    titles = await asyncio.to_thread(lambda: {item_id: _title(item) for item_id, item in answer.items.items()})
    texts = [c.say("Outline of {feed}:", feed=name)]
    for level, item_id in lines[:LISTED]:
        texts.append(f"{'  ' * min(level, _DEEPEST)}- {titles[item_id]} ({_code(item_id)})")
    if len(lines) > LISTED:
        texts.append(more(c, len(lines) - LISTED))
    texts.append(c.say("To move an item: {command}", command=c.command(MOVE, feed, _code(lines[0][1]), c.say("down"))))
    return ChatReply("\n".join(texts))


async def move(c: Conversation, rest: str) -> ChatReply:
    """Moves an item by a step."""
    tokens = arguments(rest)
    if len(tokens) != 3 or tokens[2].casefold() not in _BY_WORD:
        raise UsageError
    feed, code, word = tokens
    answer = await c.ask(GetOutline(c.actor, c.service, feed), OutlineShown)
    item_ids = [item_id for _, item_id in answer.lines if _code(item_id) == code.casefold()]
    if len(item_ids) != 1:
        raise RefusalError(c.say("No item has this code. To see them: {command}", command=c.command(OUTLINE, feed)))
    try:
        await c.ask(MoveItem(c.actor, c.service, feed, item_ids[0], _BY_WORD[word.casefold()]), Published)
    except FeedError as error:
        if error.condition is not Condition.CONFLICT:
            raise
        raise RefusalError(c.say("The item cannot move that way.")) from error
    item = (await c.ask(GetItem(c.actor, c.service, feed, item_ids[0]), ItemShown)).item
    title = await asyncio.to_thread(_title, item)
    steps = [c.offer(MOVE, feed, code, c.say(words[0])) for words in _STEPS.values()]
    return ChatReply(c.say("Moved in {feed}: {title}", feed=cut(feed, NAME_CHARACTERS), title=title), tuple(steps))


def _code(item_id: str) -> str:
    return hashlib.sha256(item_id.encode()).hexdigest()[:_CODE_DIGITS]


def _title(item: Item) -> str:
    return cut(read_meta(item.payload).body, NAME_CHARACTERS) or item.id
