"""The replies of guests in chat: the message to those who decide, and the command by which they do.

Replies are named by a code that the list shows, so nobody decides on a reply that they have not seen.
"""

from dataclasses import replace

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
from smartfeeds.chat.grammar import arguments, command_text
from smartfeeds.core.text import cut
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding.guests import GuestReply, quotation_of
from smartfeeds.features.embedding.requests import DecideReplies, ListReplies, QueueNews, RepliesDecided, ReplyList
from smartfeeds.texts import N_, Texts

GUESTS = N_("guests FEED [DECISION CODE]")
LISTED = 5  # replies of one answer; when some are decided, the next ones appear
_CODE_DIGITS = 8  # two of 200 replies share a code with a chance of 1 in 200,000
_PUBLISH, _REFUSE = N_("publish"), N_("refuse")
_PUBLISH_WORDS = frozenset({_PUBLISH, "veröffentlichen"})
_REFUSE_WORDS = frozenset({_REFUSE, "ablehnen"})
_GONE = N_("This reply waits no more. Somebody decided, or it was older than 30 days.")


def write_news(news: QueueNews, texts: Texts) -> ChatReply:
    """Returns the message to those who decide."""
    command = command_text(texts, GUESTS, news.node.name)
    beginning = replace(news.reply, text=news.reply.text.partition("\n")[0])
    lines = [
        texts.count(
            news.count,
            "A reply of a guest waits in {feed}:",
            "{number} replies of guests wait in {feed}. The newest one:",
            feed=cut(news.node.name, NAME_CHARACTERS),
        ),
        quotation_of(beginning, TITLE_CHARACTERS),
        texts.say("To decide: {command}", command=command),
        news.page,
    ]
    return ChatReply("\n".join(filter(None, lines)), (Offer(command),))


async def guests(c: Chat, rest: str) -> ChatReply:
    """Lists the replies to a feed that wait, publishes one or refuses it."""
    match arguments(rest):
        case [feed]:
            return _list(c, feed, await _waiting(c, feed))
        case [feed, decision, code] if decision.casefold() in _PUBLISH_WORDS | _REFUSE_WORDS:
            return await _decide(c, feed, code.casefold(), publish=decision.casefold() in _PUBLISH_WORDS)
    raise UsageError


def _list(c: Chat, feed: str, waiting: tuple[GuestReply, ...]) -> ChatReply:
    if not waiting:
        return ChatReply(c.say("No reply waits."))
    name = cut(feed, NAME_CHARACTERS)
    lines = [c.say("Replies of guests that wait in {feed}: {number}", feed=name, number=len(waiting))]
    offers = []
    for number, reply in enumerate(waiting[:LISTED], 1):
        publish, refuse = (c.command(GUESTS, feed, c.say(word), _code(reply)) for word in (_PUBLISH, _REFUSE))
        lines += [f"{number}. {c.local_time(reply.created_us)}", quotation_of(reply)]
        lines += [publish, refuse]
        offers += [
            Offer(publish, c.say("Publish {number}", number=number)),
            Offer(refuse, c.say("Refuse {number}", number=number)),
        ]
    return ChatReply("\n".join(lines), tuple(offers))


async def _decide(c: Chat, feed: str, code: str, *, publish: bool) -> ChatReply:
    waiting = await _waiting(c, feed)
    chosen = tuple(reply.reply_id for reply in waiting if _code(reply) == code)
    if len(chosen) != 1:
        raise RefusalError(c.say(_GONE))
    approve, refuse = (chosen, ()) if publish else ((), chosen)
    try:
        decided = await c.ask(DecideReplies(c.actor, c.service, feed, approve, refuse), RepliesDecided)
    except FeedError as error:
        if error.condition is not Condition.CONFLICT:
            raise
        raise RefusalError(c.say(_GONE)) from error
    if not decided.approved + decided.refused:  # somebody else has decided the same just now
        raise RefusalError(c.say(_GONE))
    text = c.say("The reply is published.") if publish else c.say("Refused. What the guest wrote is deleted.")
    return ChatReply(text, (c.offer(GUESTS, feed),) if len(waiting) > 1 else ())


async def _waiting(c: Chat, feed: str) -> tuple[GuestReply, ...]:
    return (await c.ask(ListReplies(c.actor, c.service, feed), ReplyList)).replies


def _code(reply: GuestReply) -> str:
    return reply.reply_id[:_CODE_DIGITS]


CHAT = ChatTable(
    (
        ChatCommand(
            "guests",
            GUESTS,
            N_("shows the replies of guests that wait, with commands that publish or refuse each"),
            guests,
            {"de": ("gäste",)},
            rights=CommandRights.ROOM,
        ),
    ),
    before="requests",
)
