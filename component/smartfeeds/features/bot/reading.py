"""The commands that read: list, search, show, latest, subscriptions.

Every list has a bounded number of lines, because an answer is one message. A list over several feeds leaves out those
that were closed to the user.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from smartfeeds.chat.commands import NAME_CHARACTERS, ChatReply, Offer, UsageError
from smartfeeds.chat.grammar import READ_CHARACTERS, arguments, view_name
from smartfeeds.core.filters import MAX_QUERY_WORDS
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, Node, Subscription, SubscriptionState
from smartfeeds.core.nearest import nearest
from smartfeeds.core.options import AccessModel
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.text import cut, words
from smartfeeds.core.view import PARAMETERS
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.render import (
    TEXT_CHARACTERS,
    answered_titles,
    feed_name,
    quotation_of,
    render_item,
    render_line,
)
from smartfeeds.features.bot.usages import LATEST, LIST, SHOW, SUBSCRIBE, SUBSCRIPTIONS, UNSUBSCRIBE
from smartfeeds.service.chat_follows import list_follows
from smartfeeds.service.context import Context, recipient_access
from smartfeeds.service.replies import AnsweredItems, find_answered
from smartfeeds.service.requests import GetNodeInfo, GetNodes, NodeInfo, NodeList, Page, Pull
from smartfeeds.store.base import ReadTx

PAGE = 20  # feeds of one answer
SEARCHED = 500  # feeds whose names one search compares
SHOWN = 5  # items of one answer if the command names no number
MOST = 20  # items of one answer
LISTED = 40  # subscriptions of one answer
FEEDS = 200  # followed feeds in which one command looks for items: some 0.3 s


async def list_feeds(c: Conversation, rest: str) -> ChatReply:
    """Lists the feeds that the user may see, page by page."""
    number = _number(rest, 1, 10_000) if rest else 1
    # One feed more than is shown tells whether another page follows.
    page = ResultSetRequest(max=str(PAGE + 1), index=str((number - 1) * PAGE))
    nodes = (await c.ask(GetNodes(c.actor, c.service, page), NodeList)).nodes
    if not nodes:
        return ChatReply(c.say("There are no feeds.") if number == 1 else c.say("There are no more feeds."))
    lines = [c.say("Feeds:"), *(f"- {feed_name(node)}" for node in nodes[:PAGE])]
    more = c.command(LIST, str(number + 1))
    if len(nodes) > PAGE:
        lines.append(c.say("More: {command}", command=more))
    first = nodes[0].name
    return ChatReply("\n".join(lines), (c.offer(SHOW, first), *((Offer(more),) if len(nodes) > PAGE else ())))


async def search(c: Conversation, rest: str) -> ChatReply:
    """Searches the names of feeds, and the items of the feeds that the user follows."""
    query = words(rest[:READ_CHARACTERS])
    if not query or len(query) > MAX_QUERY_WORDS:
        raise UsageError
    page = ResultSetRequest(max=str(SEARCHED))
    nodes = (await c.ask(GetNodes(c.actor, c.service, page), NodeList)).nodes
    matches = [node for node in nodes if query <= words(f"{node.name} {node.options.title} {node.options.description}")]
    lines = [f"- {feed_name(node)}" for node in matches[:PAGE]]
    if lines:
        lines.insert(0, c.say("Feeds:"))
    if len(matches) > PAGE:
        lines.append(more(c, len(matches) - PAGE))
    followed = {node.name: node for node, _ in await _follows(c)}
    pairs: list[tuple[Node, Item]] = []
    others: list[str] = []
    for node in list(followed.values())[:FEEDS]:
        words_filter = f"q={' '.join(sorted(query))}"
        # One item more than is shown tells whether others follow.
        items = await _newest_if_readable(c, view_name(node.name, [words_filter]), SHOWN + 1) or []
        pairs += [(node, item) for item in items[-SHOWN:]]
        if len(items) > SHOWN:
            others.append(c.command(LATEST, node.name, words_filter, str(MOST)))
    if pairs:
        lines += [c.say("Items:"), *await _item_lines(c, pairs[:MOST])]
        lines += [more(c, len(pairs) - MOST)] if len(pairs) > MOST else []
        lines += [c.say("More: {command}", command=command) for command in others[:SHOWN]]
    if not lines:
        return ChatReply(
            c.say("Nothing found. Items are searched in the feeds that you follow; show FEED q=WORD searches one feed.")
        )
    return ChatReply("\n".join(lines), (c.offer(SHOW, matches[0].name),) if matches else ())


async def show(c: Conversation, rest: str) -> ChatReply:
    """Describes a feed and shows its newest items."""
    tokens = arguments(rest)
    name, filters = view_of(c, tokens), tokens[1:]
    info = await c.ask(GetNodeInfo(c.actor, c.service, name), NodeInfo)
    node = info.node
    lines = [feed_name(node), cut(node.options.description, TEXT_CHARACTERS)]
    if not info.readable and node.options.access_model is AccessModel.WHITELIST:
        lines.append(closed_text(c, node))
        return ChatReply("\n".join(line for line in lines if line))
    if not info.readable:
        lines.append(
            c.say("You may not read this feed. To ask its owner: {command}", command=c.command(SUBSCRIBE, name))
        )
        return ChatReply("\n".join(line for line in lines if line), (c.offer(SUBSCRIBE, name),))
    lines.append(c.texts.count(info.subscribers, "{number} subscriber", "{number} subscribers"))
    items = await pull_newest(c, name, SHOWN)
    lines += (
        [c.say("Newest items:"), *await _item_lines(c, [(node, item) for item in items])]
        if items
        else [c.say("The feed has no items yet.") if not filters else c.say("No item matches.")]
    )
    return ChatReply("\n".join(line for line in lines if line), (c.offer(SUBSCRIBE, name),))


def closed_text(c: Conversation, node: Node | None) -> str:
    """Returns what users hear of a feed that is closed to them, with whom to ask: the contact that its owner has
    named. `node` has what they may know."""
    contact = next(iter(node.options.contact), "") if node is not None else ""
    if contact:
        return c.say(
            "This feed is closed to you. Only its members may read it; to become one, ask {person}",
            person=cut(contact, NAME_CHARACTERS),
        )
    return c.say("This feed is closed to you. Only its members may read it; to become one, ask its owner.")


async def latest(c: Conversation, rest: str) -> ChatReply:
    """Shows the newest items of a feed, or of all feeds that the user follows."""
    tokens = arguments(rest)
    count = SHOWN
    if tokens and tokens[-1].isdecimal():
        count = _number(tokens.pop(), 1, MOST)
    pairs: list[tuple[Node, Item]] = []
    if tokens:
        name = view_of(c, tokens)
        node = (await c.ask(GetNodeInfo(c.actor, c.service, name), NodeInfo)).node
        pairs = [(node, item) for item in await pull_newest(c, name, count)]
    else:
        follows = await _follows(c)
        if not follows:
            return ChatReply(c.say("You follow no feed yet."), (c.offer(LIST),))
        pairs, closed = await _newest_of(c, follows, count)
        if closed and not pairs:
            return ChatReply(_closed(c, closed), (c.offer(SUBSCRIPTIONS),))
    if not pairs:
        return ChatReply(c.say("There are no items yet."))
    if len(pairs) == 1:
        (node, item), links = pairs[0], c.tools.links
        titles = answered_titles(await _answered(c, pairs))
        quotation = quotation_of(titles[item.item_no]) if item.item_no in titles else ""
        return ChatReply(quotation + await asyncio.to_thread(render_item, c.texts, links, node, item))
    return ChatReply("\n".join(await _item_lines(c, pairs)))


async def subscriptions(c: Conversation, _rest: str) -> ChatReply:
    """Lists what the user follows by chat."""
    rows = await c.read(partial(_read_subscriptions, jid=c.actor))
    if not rows:
        return ChatReply(c.say("You follow no feed yet."), (c.offer(LIST),))
    lines = [c.say("You follow:")]
    for node, row, is_closed in rows[:LISTED]:
        text = cut(row.node_text, NAME_CHARACTERS)
        title = cut(node.options.title, NAME_CHARACTERS)
        pending = c.say(" - waits for approval") if row.state is SubscriptionState.PENDING else ""
        closed = c.say(" - closed to you now, so nothing arrives") if is_closed else ""
        lines.append(f"- {text}{f': {title}' if title else ''}{pending}{closed}")
    if len(rows) > LISTED:
        lines.append(more(c, len(rows) - LISTED))
    return ChatReply("\n".join(lines), (c.offer(LATEST), c.offer(UNSUBSCRIBE, rows[0][1].node_text)))


def _read_subscriptions(tx: ReadTx, context: Context, jid: Jid) -> list[tuple[Node, Subscription, bool]]:
    """The nodes and subscriptions that a bare JID follows by chat, each with a flag for a feed that was closed to
    it."""
    return [
        (
            node,
            row,
            row.state is SubscriptionState.SUBSCRIBED
            and not recipient_access(tx, context, node, jid, row.state).may_read,
        )
        for node, row in list_follows(tx, jid.bare_text)
    ]


def more(c: Conversation, number: int) -> str:
    """The last line of a list of which so many lines are left out."""
    return c.say("and {number} more", number=number)


def _closed(c: Conversation, number: int) -> str:
    return c.texts.count(
        number,
        "{number} feed that you follow is closed to you now.",
        "{number} feeds that you follow are closed to you now.",
    )


def view_of(c: Conversation, tokens: Sequence[str]) -> str:
    """Returns the name of a view from a feed and filters. Raises UsageError, which says what is wrong with a filter."""
    name = view_name(tokens[0], tokens[1:]) if tokens else None
    if name is not None:
        return name
    pairs = [text.partition("=")[::2] for text in tokens[1:]]
    unknown = [key for key, value in pairs if value and key.casefold() not in PARAMETERS]
    if not unknown:
        raise UsageError(
            c.say("Filters are written NAME=VALUE, such as author=bob or category=music.") if tokens else ""
        )
    key = cut(unknown[0], NAME_CHARACTERS)
    meant = nearest(key, PARAMETERS)
    raise UsageError(
        c.say("There is no filter {name}. Did you mean {filter}?", name=key, filter=meant)
        if meant
        else c.say("There is no filter {name}. There are: {filters}", name=key, filters=", ".join(PARAMETERS))
    )


def _number(text: str, least: int, most: int) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 7 and least <= int(text) <= most):
        raise UsageError
    return int(text)


async def _follows(c: Conversation) -> list[tuple[Node, str]]:
    """The views that the user follows by chat and that were approved, the one with the newest change first."""
    rows = await c.read(lambda tx, _context: list_follows(tx, c.jid))
    follows = [(node, row.node_text) for node, row in rows if row.state is SubscriptionState.SUBSCRIBED]
    return sorted(follows, key=lambda follow: follow[0].last_modified_us, reverse=True)


async def _newest_of(
    c: Conversation, follows: list[tuple[Node, str]], count: int
) -> tuple[list[tuple[Node, Item]], int]:
    """The newest items of all views together, oldest first, and the number of views that were closed to the user.

    `follows` has the newest change first, so the rest of the feeds is not read once they cannot have newer items.
    """
    newest: list[tuple[Node, Item]] = []
    closed = 0
    for node, text in follows[:FEEDS]:
        if len(newest) == count and node.last_modified_us <= newest[0][1].modified_us:
            break
        items = await _newest_if_readable(c, text, count)
        closed += items is None
        # Two views of one feed may both contain an item.
        unique = {(feed.node_no, item.item_no): (feed, item) for feed, item in newest}
        unique |= {(node.node_no, item.item_no): (node, item) for item in items or ()}
        newest = sorted(unique.values(), key=lambda pair: pair[1].modified_us)[-count:]
    return newest, closed


async def pull_newest(c: Conversation, name: str | None, count: int) -> list[Item]:
    """The newest live items of a view, oldest first. Raises FeedError."""
    page = ResultSetRequest(max=str(count), before="")
    answer = await c.ask(Pull(c.actor, c.service, name, page=page), Page)
    return [item for item in answer.items if not item.deleted]


async def _newest_if_readable(c: Conversation, name: str | None, count: int) -> list[Item] | None:
    """As `pull_newest`, but None if the feed has been closed to the user."""
    try:
        return await pull_newest(c, name, count)
    except FeedError as error:
        # A list of many feeds goes on without one that is closed. A busy service would refuse the others, too.
        if error.condition is Condition.BUSY:
            raise
        return None


async def _item_lines(c: Conversation, pairs: list[tuple[Node, Item]]) -> list[str]:
    titles, links = answered_titles(await _answered(c, pairs)), c.tools.links
    return await asyncio.to_thread(lambda: [render_line(c.texts, links, node, item, titles) for node, item in pairs])


async def _answered(c: Conversation, pairs: list[tuple[Node, Item]]) -> AnsweredItems:
    """The items that these answer, as far as the actor may read them. Without an answer this reads nothing."""
    return await c.read(partial(find_answered, actor=c.actor, entries=pairs, base_url=c.tools.links.http_base_url))
