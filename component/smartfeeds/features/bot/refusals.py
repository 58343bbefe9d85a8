"""The answers to what cannot be done: who may do it, whom to ask, and what the user may have meant.

Suggestions are names that the lists show to the user, so they reveal no closed feed.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from smartfeeds.chat.commands import NAME_CHARACTERS, ChatCommand, ChatReply, CommandRights, Offer
from smartfeeds.chat.grammar import command_text, split_command, take
from smartfeeds.core.model import Node
from smartfeeds.core.nearest import nearest, similarity
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import cut
from smartfeeds.core.web_address import read_address
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.bot import posting, usages
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.reading import SEARCHED, closed_text
from smartfeeds.service.requests import GetNodeInfo, GetNodes, NodeInfo, NodeList
from smartfeeds.texts import ENGLISH

WORD_CHARACTERS = 40  # of a word that an answer repeats
_OFFERED_CHARACTERS = 200  # of a corrected command that an answer offers
_FEED = "FEED"  # in the usage of a command
# What may not be known does not exist. Every other failure, such as that of a busy service, is told.
_UNKNOWN = frozenset(
    {
        *(Condition.ITEM_NOT_FOUND, Condition.FORBIDDEN, Condition.CLOSED_NODE),
        *(Condition.NOT_SUBSCRIBED_READER, Condition.PENDING_SUBSCRIPTION),
    }
)


class _LikeFeed(NamedTuple):
    """A feed whose name or title is like a text, and how much (`core.nearest.similarity`)."""

    name: str
    likeness: float


_NO_FEED = _LikeFeed("", 0.0)


def feed_in(command: ChatCommand, rest: str) -> str:
    """Returns the feed that the arguments of a command name, an empty text if the command takes none."""
    words = command.usage.split()
    return take(rest)[0] if len(words) > 1 and words[1].strip("[]") == _FEED else ""


async def refusal(c: Conversation, command: ChatCommand, rest: str, error: FeedError) -> ChatReply:
    """Answers a command that the service refuses."""
    try:
        return await _refusal(c, command, rest, error)
    except FeedError:
        # The refusal itself is certain: it is told without what could not be looked up.
        return ChatReply(c.error(error))


async def _refusal(c: Conversation, command: ChatCommand, rest: str, error: FeedError) -> ChatReply:
    feed = feed_in(command, rest)
    if feed and error.condition is Condition.FORBIDDEN:
        return ChatReply(await _who_may(c, command, feed) + c.details(error))
    if feed and error.condition is Condition.CLOSED_NODE:
        info = await _info(c, feed)
        return ChatReply(closed_text(c, None if info is None else info.node))
    if feed and error.condition is Condition.ITEM_NOT_FOUND:
        name = (await _nearest_feed(c, feed)).name
        if name and name != feed:  # an item may be missing, too
            return _meant(c, c.error(error), command_text(c.texts, command.usage, name), take(rest)[1])
    return ChatReply(c.error(error))


async def _who_may(c: Conversation, command: ChatCommand, feed: str) -> str:
    """Returns who may do what a command does, as far as the user may know it."""
    info = await _info(c, feed)
    owners = info.owners if info is not None else ()
    people = c.names_of(owners)
    name = cut(feed, NAME_CHARACTERS)
    if command.rights is CommandRights.AUTHOR:
        if people:
            return c.say("You may not do that. To write in {feed}, ask its owner: {people}", feed=name, people=people)
        return c.say("You may not do that. To write in {feed}, ask its owner.", feed=name)
    if people:
        return c.say("You may not do that. The owner of {feed} may: {people}", feed=name, people=people)
    return c.say("You may not do that. Ask the owner of {feed}.", feed=name)


async def _info(c: Conversation, feed: str) -> NodeInfo | None:
    """Returns what the user may know of a feed, None if that is nothing."""
    try:
        return await c.ask(GetNodeInfo(c.actor, c.service, feed), NodeInfo)
    except FeedError as error:
        if error.condition not in _UNKNOWN:
            raise
        return None


async def unknown_command(c: Conversation) -> ChatReply:
    """The answer to a message that is no command, with the command that the user may have meant."""
    try:
        return await _unknown(c)
    except FeedError as error:
        return ChatReply(c.error(error))


async def _unknown(c: Conversation) -> ChatReply:
    if c.message.reply_to:
        return ChatReply(c.say(posting.NO_ITEM))
    for answer in c.tools.others:
        if (reply := await answer(c, c.message.text)) is not None:
            return reply
    word, rest = split_command(c.message.text)
    text = c.say("I do not know “{word}”. Write help to see what I can do.", word=cut(word, WORD_CHARACTERS))
    follow = c.tools.commands.get("follow")
    if follow is not None and "://" in word and read_address(word):
        return _meant(c, text, command_text(c.texts, follow.usage, split_word(c.message.text)), "")
    feed = await _nearest_feed(c, take(c.message.text)[0])
    name = nearest(word, _command_words(c))
    if name and similarity(name, word) > feed.likeness:
        return _meant(c, text, name, rest)
    if feed.name:
        return _meant(c, text, c.command(usages.SHOW, feed.name), "")
    return ChatReply(text, (c.offer(usages.HELP),))


def _command_words(c: Conversation) -> list[str]:
    """Returns the names of the commands in English and in the language of the user."""
    rows = {row.name: row for row in c.tools.commands.values()}.values()
    return [
        word
        for row in rows
        for word in (row.name, *row.aliases.get(ENGLISH, ()), *row.aliases.get(c.texts.language, ()))
    ]


def split_word(text: str) -> str:
    """Returns the first word of a message as it was written. A path in an address has capital letters."""
    return text.split(maxsplit=1)[0]


def encrypted_message(c: Conversation) -> ChatReply:
    """The answer to an encrypted message."""
    return ChatReply(
        c.say(
            "I cannot read this message, because it is encrypted ({encryption}). Switch encryption off for this chat, "
            "and write again.",
            encryption=c.message.encryption,
        ),
        done=False,
    )


def _meant(c: Conversation, text: str, command: str, rest: str) -> ChatReply:
    """Returns an answer with a command that the user may have meant, and a button for it."""
    whole = f"{command} {rest}".strip()
    offers = (Offer(whole), c.offer(usages.HELP)) if len(whole) <= _OFFERED_CHARACTERS and "\n" not in whole else ()
    line = cut(whole.partition("\n")[0], NAME_CHARACTERS)
    return ChatReply(f"{text} {c.say('Did you mean: {command}', command=line)}", offers)


async def _nearest_feed(c: Conversation, text: str) -> _LikeFeed:
    """Returns the feed that is most like a text, among those that the user may see; _NO_FEED if none is like it."""
    page = ResultSetRequest(max=str(SEARCHED))
    try:
        nodes = (await c.ask(GetNodes(c.actor, c.service, page), NodeList)).nodes
    except FeedError as error:
        if error.condition not in _UNKNOWN:
            raise
        return _NO_FEED
    return await asyncio.to_thread(_nearest_node, text, nodes)


def _nearest_node(text: str, nodes: Sequence[Node]) -> _LikeFeed:
    names: dict[str, str] = {}
    for node in nodes:
        for name in (node.options.title, node.name):  # of equal texts the name of a node counts
            if 0 < len(name) <= NAME_CHARACTERS:
                names[name.casefold()] = node.name
    name = nearest(text, names)
    return _LikeFeed(names[name], similarity(name, text)) if name else _NO_FEED
