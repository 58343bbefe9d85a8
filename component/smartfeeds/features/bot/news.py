"""News for authors: somebody has answered an entry of theirs.

The message goes to people who use the bot (`notices`). The answer is under the entry in any case.
"""

from dataclasses import dataclass, replace
from functools import partial

from smartfeeds.app.feature import Host
from smartfeeds.chat.commands import ChatReply, UsageError
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.limits import Rate
from smartfeeds.core.model import Item, Node, Subscription, SubscriptionState
from smartfeeds.core.suboptions import CHAT
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import from_canonical
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.delivery import item_message_id
from smartfeeds.features.bot.following import OFF
from smartfeeds.features.bot.notices import NoticeSender, find_recipient, person_limits
from smartfeeds.features.bot.posting import LIKE
from smartfeeds.features.bot.render import Links, render_item, title_of_item
from smartfeeds.formats.entry import read_entry
from smartfeeds.service.context import Context, NewReply, recipient_access
from smartfeeds.service.replies import Answered, find_answered, linked_node
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import N_, Texts

ON = frozenset({"on", "an", "ein"})
_OFF_USAGE = N_("answers off")
# Of one person: an author hears of each answer that somebody writes, and a program that answers thousands of entries
# cannot make the service look for their authors all the time.
ACTOR_RATE = Rate(per_s=1.0, burst=20)
# An answer with an older date was brought from elsewhere with its discussion. The reply of a guest waits for as long.
NEWS_S = 30 * 86_400


@dataclass(frozen=True, slots=True)
class News:
    """An answer to an entry of a person."""

    author: Jid
    row: ChatRow
    answered: Item
    node: Node
    reply: Item


class AnswerNews:
    """Sends the news. `links` are the addresses of the service."""

    def __init__(self, host: Host, links: Links) -> None:
        self._host = host
        self._links = links
        self._actors = person_limits(ACTOR_RATE)
        self._sender = NoticeSender(host, links.domain)

    def tell(self, reply: NewReply) -> None:
        """Tells the authors of the entries that a new entry answers, in a task of its own."""
        if self._actors.admit(reply.actor):
            self._host.process.spawn(partial(self._tell, reply), "answer news")

    async def _tell(self, reply: NewReply) -> None:
        for news in await self._host.service.read(partial(find_news, reply=reply), turn=reply.actor.bare_text):
            # With the id of a delivery of this item, so that the author can answer it in turn.
            message_id = item_message_id(news.node, news.reply)
            await self._sender.send(news.author, news.row, partial(self._write, news), message_id)

    def _write(self, news: News, texts: Texts) -> ChatReply:
        lines = [
            texts.say("An answer to your entry “{title}”:", title=title_of_item(news.answered)),
            render_item(texts, self._links, news.node, news.reply),
            texts.say("To hear of no more answers, write: {command}", command=texts.say(_OFF_USAGE)),
        ]
        return ChatReply("\n".join(lines))


def find_news(tx: ReadTx, context: Context, *, reply: NewReply) -> list[News]:
    """The news of an answer, one for each author who gets any."""
    place = tx.node(reply.node)
    answer = None if place is None else tx.item(place.node_no, reply.item_id)
    if place is None or answer is None or answer.deleted or answer.damaged:
        return []
    entry = read_entry(answer)
    if entry.title.plain == LIKE or context.now_us - entry.issued_us > NEWS_S * US_PER_S:
        return []
    # Without a public address that the operator has set, the site has the host of each request.
    base_url = context.policy.base_url or None
    answered = find_answered(tx, context, reply.actor, [(place, answer)], base_url)
    candidates = (_news_of(tx, context, each, Answered(place, answer), reply.actor) for each in answered.values())
    return list({news.author: news for news in candidates if news is not None}.values())


def _news_of(tx: ReadTx, context: Context, answered: Answered, answer: Answered, actor: Jid) -> News | None:
    """The news of an answer for the author of an entry, None if the author gets none.

    The answer must be in the feed of the entry, or in the feed that the entry names for its comments. The author must
    use the bot, want such messages, and be able to read the answer. An author to whom the whole feed of the answer is
    sent by chat gets it anyway. One who follows a part of it, or with a client, may not: clients that do not show feeds
    are subscribed, too, and programs that ended long ago.
    """
    (node, item), (place, reply) = answered, answer
    if item.deleted:
        return None
    # Anybody may answer in a feed of their own, with any text. That must not reach an author who did not choose it.
    links = read_entry(item).links
    if place.node_no != node.node_no and all(linked_node(context.policy.domain, link) != place.name for link in links):
        return None
    author = parse_jid(item.publisher)
    if author is None or not author.local or author.bare == actor.bare:
        return None
    row = find_recipient(tx, context, author)
    if row is None or not row.settings.answers:
        return None
    accesses = [recipient_access(tx, context, each, author.bare) for each in (node, place)]
    if not all(access.may_read for access in accesses):
        return None
    subscriptions = tx.subscriptions_on(place.node_no, author.bare_text, now_us=context.now_us)
    if any(_brings_all(subscription) for subscription in subscriptions):
        return None
    return News(author.bare, row, item, place, reply)


def _brings_all(subscription: Subscription) -> bool:
    """Whether every new item of the feed is sent by chat."""
    is_approved = subscription.state is SubscriptionState.SUBSCRIBED
    return is_approved and CHAT in subscription.options and not from_canonical(subscription.view).filtered


async def answers(c: Conversation, rest: str) -> ChatReply:
    """Sets whether the person hears of answers to own entries."""
    word = rest.strip().casefold()
    if word not in ON | OFF:
        raise UsageError
    is_on = word in ON
    await c.save(lambda settings: replace(settings, answers=is_on))
    if is_on:
        return ChatReply(c.say("I tell you when somebody answers an entry of yours."))
    return ChatReply(c.say("I do not tell you of answers to your entries any more."))
