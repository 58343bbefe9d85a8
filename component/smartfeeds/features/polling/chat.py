"""The chat commands `follow` and `unfollow`, which deliver a feed of another server by its web address (SRC-083,
SRC-084).

`follow` adds a source with a node that the author owns, and subscribes to the node. If an open node has the feed
already, `follow` subscribes to that node, and the service does not poll the feed twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from smartfeeds.chat.commands import (
    LINK_CHARACTERS,
    NAME_CHARACTERS,
    SUBSCRIBE,
    TITLE_CHARACTERS,
    Chat,
    ChatCommand,
    ChatReply,
    ChatTable,
    CommandRights,
    RefusalError,
    UsageError,
)
from smartfeeds.chat.grammar import arguments
from smartfeeds.core.text import cut
from smartfeeds.core.web_address import address_key, read_address
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.failures import words_of_reason
from smartfeeds.features.polling.follower import AddressFollower, NoFeedError
from smartfeeds.features.polling.requests import EndUnreadSources, MayNotAddError, SourcesEnded
from smartfeeds.features.polling.sources import TooManySourcesError
from smartfeeds.service.chat_follows import list_follows
from smartfeeds.service.requests import GetNodeInfo, NodeInfo
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_

FOLLOW: Final = N_("follow ADDRESS [NAME]")
UNFOLLOW: Final = N_("unfollow FEED")
_SENTENCE_ENDS: Final = ".,;:!?\u2026"
# The reason why an address cannot be followed, and what the author can do.
_REFUSALS: Final = {
    MayNotAddError: N_("You may not add feeds of other servers here. Ask an admin of this service to add {url}"),
    TooManySourcesError: N_("You have as many feeds as this service allows. End one with: unfollow FEED"),
    Condition.NOT_ACCEPTABLE: N_("{url} is not the address of a public feed of another server."),
    Condition.CONFLICT: N_("Another feed has the name {name}. Choose a name: follow {url} NAME"),
}


async def follow(c: Chat, rest: str) -> ChatReply:
    """Delivers the new entries of a feed of another server, or of this one."""
    words = arguments(rest)
    if len(words) == 1 and (here := await c.part(AddressFollower).find_here(c.actor, _without_end(words[0]))):
        return await c.subscribe(here)
    url = _address_in(words[0]) if words else ""
    if not url or len(words) > 2:
        raise UsageError(await _no_address(c, words[0]) if words and not url else "")
    name = words[1] if len(words) == 2 else ""
    try:
        # In a room the node belongs to the author of the message, and the room is the subscriber.
        author, address = c.by_author().actor, _without_end(words[0])
        # The occupants would see what a private network has.
        placed = await c.part(AddressFollower).place(author, address, name, is_public=c.in_room, subscriber=c.actor)
    except NoFeedError as error:
        failure = words_of_reason(error.text)
        # The reasons are for operators, and name their options.
        texts = [c.say(failure.what), c.say(failure.advice) if failure.advice else ""]
        reason = " ".join(filter(None, (*texts, "" if failure.is_known else f"({c.texts.message(error.text)})")))
        raise RefusalError(
            c.say("I found no feed at {url}: {reason}", url=cut(error.url, LINK_CHARACTERS), reason=reason)
        ) from None
    except FeedError as error:
        text = _REFUSALS.get(type(error)) or _REFUSALS.get(error.condition)
        if text is None:
            raise
        raise RefusalError(c.say(text, url=cut(url, LINK_CHARACTERS), name=cut(name, NAME_CHARACTERS))) from None
    head = ""
    if placed.seen is not None:
        link = cut(placed.url, LINK_CHARACTERS)
        head = c.say("I found {title}: {url}", title=cut(placed.seen.title, TITLE_CHARACTERS) or link, url=link)
    reply = await c.subscribe(placed.node)
    return replace(reply, text=f"{head}\n{reply.text}" if head else reply.text)


async def _no_address(c: Chat, text: str) -> str:
    """The answer to a text that is no address: it may be the name of a feed here that `show` describes."""
    try:
        await c.ask(GetNodeInfo(c.actor, c.service, text), NodeInfo)
    except FeedError as error:
        if error.condition in (Condition.BUSY, Condition.INTERNAL):
            raise
        return c.say("{name} is no web address, and no feed here has this name.", name=cut(text, NAME_CHARACTERS))
    return c.say("A feed of this service: {command}", command=c.command(SUBSCRIBE, text))


async def unfollow(c: Chat, rest: str) -> ChatReply:
    """Ends the delivery of a feed of another server. It is no longer fetched if nobody else subscribes to it."""
    words = arguments(rest)
    if len(words) != 1:
        raise UsageError
    url, here = _address_in(words[0]), c.part(AddressFollower).names_here(_without_end(words[0])) or ()
    node = await c.read(lambda tx, _context: _followed_node(tx, c.jid, words[0], url, here))
    reply = await c.unsubscribe(node)
    if c.author is None:
        return reply
    request = EndUnreadSources(c.author.bare, c.service, node)
    if not (await c.ask(request, SourcesEnded)).count:
        return reply
    return replace(reply, text=f"{reply.text} {c.say('It is not fetched any more, because nobody subscribes to it.')}")


def _followed_node(tx: ReadTx, jid: str, text: str, url: str, here: Sequence[str]) -> str:
    """Returns the node that a subscriber means by a text, or the text itself if there is none.

    The text is the name of the node, its own address, that of its feed, or the start of its path, such as that of the
    blog. A start must lead to one node only. A query is no start, because it selects another feed (`channel_id=...`).
    `here` are the names that the text means if it is an address of this service; they may be those of views.
    """
    nodes = [node.name for node, _ in list_follows(tx, jid)]
    own = next((name for name in here if name in nodes or name.partition("?")[0] in nodes), "")
    if text in nodes or own or not url:
        return own or text
    sources = [(name, source) for name in nodes for source in source_rows.sources_of(tx, name)]
    feed = address_key(url)
    exact = {name for name, source in sources if feed in (address_key(source.url), address_key(source.first_url))}
    start = f"{feed.rstrip('/')}/"
    names = exact or {name for name, source in sources if f"{address_key(source.url)}/".startswith(start)}
    return names.pop() if len(names) == 1 else text


def _address_in(text: str) -> str:
    """Returns the web address in a word of a message, "" if it has none."""
    return read_address(_without_end(text))


def _without_end(text: str) -> str:
    """Returns an address without the punctuation at the end of a sentence that may follow it."""
    return text.rstrip(_SENTENCE_ENDS)


CHAT = ChatTable(
    (
        ChatCommand(
            "follow",
            FOLLOW,
            N_("delivers the new entries of a blog, such as follow https://blog.example/"),
            follow,
            {"de": ("folge", "folgen")},
            rights=CommandRights.ROOM,
        ),
        ChatCommand(
            "unfollow",
            UNFOLLOW,
            N_("ends that; the blog is no longer fetched if nobody else subscribes"),
            unfollow,
            {"de": ("entfolge", "entfolgen")},
            rights=CommandRights.ROOM,
        ),
    ),
    before="post",
)
