"""Requests to subscribe by chat: what owners and subscribers are told, and the commands of owners (XEP-0060 8.6).

The use cases are those of the forms and of the command. The messages repeat in words the events that are sent as forms
and as states; a crash may repeat them with the same id.
"""

from smartfeeds.chat.commands import NAME_CHARACTERS, ChatReply, Offer, RefusalError, UsageError
from smartfeeds.chat.grammar import arguments, command_text
from smartfeeds.core.model import Node, NodeEvent
from smartfeeds.core.text import cut
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot import usages
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.render import feed_name
from smartfeeds.service.authorization import (
    AnswerAuthorization,
    GetPendingNodes,
    PendingNodes,
    ResendPending,
    ResentRequests,
)
from smartfeeds.service.chat_follows import chat_subscriptions
from smartfeeds.service.context import Context
from smartfeeds.service.requests import EmptyResult
from smartfeeds.service.subscription_states import REFUSAL, REQUEST, read_notice
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import ENGLISH, Texts

NODES = 20  # feeds whose requests one command sends


def explain(tx: ReadTx, _context: Context, node: Node, event: NodeEvent) -> tuple[ChatRow, ChatReply] | None:
    """Returns the words for an event about a subscription, and the user of the bot to whom they go."""
    chat = chat_rows.chat(tx, event.to)
    if chat is None:
        return None
    notice = read_notice(event)
    texts, feed = Texts(chat.settings.language or ENGLISH), feed_name(node)
    if event.kind == REQUEST:
        person = cut(notice.jid, NAME_CHARACTERS)
        allow_command = command_text(texts, usages.ALLOW, notice.node_text, notice.jid)
        refuse_command = command_text(texts, usages.REFUSE, notice.node_text, notice.jid)
        text = texts.say(
            "{person} asks to follow {feed}. To allow it: {command}", person=person, feed=feed, command=allow_command
        )
        return chat, ChatReply(
            text, (Offer(allow_command, texts.say("Allow")), Offer(refuse_command, texts.say("Refuse")))
        )
    if event.kind == REFUSAL:
        return chat, ChatReply(texts.say("Your request to follow {feed} was refused.", feed=feed))
    # Other events report a new state: only the subscriber is told, and only of what arrives by chat.
    rows = chat_subscriptions(tx, node.node_no, event.to)
    if event.to != notice.jid or all(row.node_text != notice.node_text for row in rows):
        return None
    stop = Offer(command_text(texts, usages.UNSUBSCRIBE, notice.node_text))
    latest = Offer(command_text(texts, usages.LATEST, notice.node_text))
    return chat, ChatReply(texts.say("You may follow {feed} now. New items arrive here.", feed=feed), (latest, stop))


async def requests(c: Conversation, _rest: str) -> ChatReply:
    """Sends the requests that wait for the user, each as a message with buttons."""
    # The messages go to users of the bot only; this makes the sender one.
    await c.remember_language()
    count = 0
    nodes = await c.ask(GetPendingNodes(c.actor, c.service), PendingNodes)
    for name in nodes.names[:NODES]:
        count += (await c.ask(ResendPending(c.actor, c.service, name), ResentRequests)).count
    if not count:
        return ChatReply(c.say("No request waits for you."))
    return ChatReply(c.texts.count(count, "{number} request waits:", "{number} requests wait:"))


async def allow(c: Conversation, rest: str) -> ChatReply:
    """Approves a request to follow a feed."""
    person = await _answer(c, rest, allow=True)
    return ChatReply(c.say("{person} may follow the feed now.", person=person))


async def refuse(c: Conversation, rest: str) -> ChatReply:
    """Refuses a request to follow a feed."""
    person = await _answer(c, rest, allow=False)
    return ChatReply(c.say("The request of {person} is refused.", person=person))


async def _answer(c: Conversation, rest: str, *, allow: bool) -> str:
    """Answers a request. Returns the address of the person. Raises FeedError, RefusalError, UsageError."""
    tokens = arguments(rest)
    if len(tokens) != 2:
        raise UsageError
    feed, person = tokens
    try:
        await c.ask(AnswerAuthorization(c.actor, c.service, feed, person, "", allow), EmptyResult)
    except FeedError as error:
        if error.condition is Condition.INVALID_JID:  # the person mistyped the address: the usage helps more
            raise UsageError from error
        if error.condition is not Condition.NOT_SUBSCRIBED:
            raise
        raise RefusalError(
            c.say("This request waits no more. Another owner answered it, or it was withdrawn.")
        ) from error
    return cut(person, NAME_CHARACTERS)
