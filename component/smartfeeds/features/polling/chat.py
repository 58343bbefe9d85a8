"""The commands for feeds of other servers: follow and unfollow by web address (SRC-083, SRC-084).

A feed becomes a node that the author owns, and the node is delivered as the command `subscribe` does. A feed that an
open node has already is not requested a second time.
"""

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
from smartfeeds.features.polling.finding import FeedFinder
from smartfeeds.features.polling.requests import (
    AddSource,
    EndUnreadSources,
    FindSourceNode,
    SourceNode,
    SourcesEnded,
    SourceShown,
)
from smartfeeds.service.chat_follows import list_follows
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_

FOLLOW: Final = N_("follow ADDRESS [NAME]")
UNFOLLOW: Final = N_("unfollow FEED")
_SENTENCE_ENDS: Final = ".,;:!?\u2026"
# What a person can do about a refusal; `name` is the node, `url` the address.
_REFUSALS: Final = {
    Condition.FORBIDDEN: N_("You may not add feeds of other servers here. Ask an admin of this service to add {url}"),
    Condition.POLICY_VIOLATION: N_("You have as many feeds as this service allows. End one with: unfollow FEED"),
    Condition.NOT_ACCEPTABLE: N_("{url} is not the address of a public feed of another server."),
}
_TAKEN: Final = N_("Another feed has the name {name}. Choose a name: follow {url} NAME")


async def follow(c: Chat, rest: str) -> ChatReply:
    """Delivers the new entries of a feed of another server."""
    words = arguments(rest)
    url = _address_in(words[0]) if words else ""
    if not url or len(words) > 2:
        hint = c.say("A feed of this service: {command}", command=c.command(SUBSCRIBE, words[0])) if words else ""
        raise UsageError(hint)
    # In a room the feed belongs to the person who asks, and the room is the subscriber.
    adder = c.by_author()
    name = words[1] if len(words) == 2 else ""
    has_no_scheme = url.startswith("https:") and "https:" not in words[0].lower() and "feeds:" not in words[0].lower()
    insecure = f"http{url.removeprefix('https')}" if has_no_scheme else ""
    try:
        node, head = await _node_of(adder, url, name, insecure)
    except FeedError as error:
        text = _REFUSALS.get(error.condition)
        if text is None:
            raise
        raise RefusalError(c.say(text, url=cut(url, LINK_CHARACTERS))) from None
    reply = await c.subscribe(node)
    return replace(reply, text=f"{head}\n{reply.text}" if head else reply.text)


async def _node_of(c: Chat, url: str, name: str, insecure: str) -> tuple[str, str]:
    """The node of the feed at an address, and what was found there. Raises FeedError, RefusalError.

    `insecure` is the address without TLS, "" if the person has chosen a scheme.
    """
    node = await _known_node(c, url)
    if node:
        return node, ""
    feed = await c.part(FeedFinder).find(url, by_admin=c.is_admin)
    if feed.is_silent and insecure:
        second = await c.part(FeedFinder).find(insecure, by_admin=c.is_admin)
        feed = feed if second.problem else second
    if feed.problem:
        reason = c.texts.message(feed.problem)
        raise RefusalError(c.say("I found no feed at {url}: {reason}", url=cut(url, LINK_CHARACTERS), reason=reason))
    title = cut(feed.title, TITLE_CHARACTERS) or cut(feed.url, LINK_CHARACTERS)
    head = c.say("I found {title}: {url}", title=title, url=cut(feed.url, LINK_CHARACTERS))
    node = await _known_node(c, feed.url) or await _add(c, feed.url, name)
    return node, head


async def _known_node(c: Chat, url: str) -> str:
    return (await c.ask(FindSourceNode(c.actor, c.service, url), SourceNode)).node


async def _add(c: Chat, url: str, name: str) -> str:
    request = AddSource(c.actor, c.service, name, url=url, may_create=True)
    try:
        source = (await c.ask(request, SourceShown)).source
    except FeedError as error:
        if error.condition is not Condition.FORBIDDEN or not name:
            raise
        # The author may add feeds, so it is the node that belongs to somebody else.
        short_name = cut(name, NAME_CHARACTERS)
        raise RefusalError(c.say(_TAKEN, name=short_name, url=cut(url, LINK_CHARACTERS))) from None
    # Before the subscription begins: what the feed has already is not news.
    await c.part(FeedFinder).poll(source)
    return source.node


async def unfollow(c: Chat, rest: str) -> ChatReply:
    """Ends the delivery of a feed of another server. It is no longer fetched if nobody else subscribes to it."""
    words = arguments(rest)
    if len(words) != 1:
        raise UsageError
    url = _address_in(words[0])
    node = await c.read(lambda tx, _context: _followed_node(tx, c.jid, words[0], url))
    reply = await c.unsubscribe(node)
    if c.author is None:
        return reply
    request = EndUnreadSources(c.author.bare, c.service, node)
    if not (await c.ask(request, SourcesEnded)).count:
        return reply
    return replace(reply, text=f"{reply.text} {c.say('It is not fetched any more, because nobody subscribes to it.')}")


def _followed_node(tx: ReadTx, jid: str, text: str, url: str) -> str:
    """The node that a person means who follows it: by its name, by the address of its feed, or by that of a page above
    the only feed of the host. A query names another feed (`channel_id=...`)."""
    nodes = [node.name for node, _ in list_follows(tx, jid)]
    if text in nodes or not url:
        return text
    sources = [(name, source) for name in nodes for source in source_rows.sources_of(tx, name)]
    feed = address_key(url)
    exact = {name for name, source in sources if feed in (address_key(source.url), address_key(source.first_url))}
    page = f"{feed.rstrip('/')}/"
    near = exact or {name for name, source in sources if f"{address_key(source.url)}/".startswith(page)}
    return near.pop() if len(near) == 1 else text


def _address_in(text: str) -> str:
    """The web address that a person means, "" if the text is none. The end of a sentence may follow it."""
    return read_address(text.rstrip(_SENTENCE_ENDS))


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
