"""The deliverer of chat messages: sends the new items of a feed to one person or room, in order and once.

XEP-0114 has no acknowledgements. After a batch the deliverer therefore pings the recipient. A server processes the
stanzas between two addresses in order (RFC 6120 section 10.1), so the error response to a message arrives before that
to the ping: with an error the batch is tried again later, and without one it is delivered. A receipt (XEP-0184) proves
more, but many clients send none, and waiting for it would repeat messages to them for ever.

Each batch is stored before it is sent, together with the mark that it begins at. After a crash the same batch is sent
again with the same ids, by which clients recognise it. Everything before it was delivered, so nothing else is repeated.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from smartfeeds.core.backoff import Backoff
from smartfeeds.core.consumers import Consumer, SentBatch
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import Item, Mark, Node, Subscription, SubscriptionState
from smartfeeds.core.position import MAX_GROUP
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import Order, ViewStanding, from_canonical
from smartfeeds.delivery.deliverer import (
    ConsumerKind,
    ConsumerPosition,
    Delivered,
    Gone,
    Outcome,
    Planned,
    RetryAfter,
    StanzaSender,
)
from smartfeeds.delivery.slices import mark_at, read_changes
from smartfeeds.errors import LinkError
from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.bot.render import (
    Links,
    answered_titles,
    quotation_of,
    render_item,
    render_list,
    title_of_item,
)
from smartfeeds.features.bot.room_letters import OtherProcesses
from smartfeeds.features.bot.schedule import due_us
from smartfeeds.features.bot.stanzas import MessageKind, OutgoingChat, encode_message
from smartfeeds.formats.xml import Element
from smartfeeds.service.chat_follows import chat_subscriptions
from smartfeeds.service.context import Context, recipient_access, refusal_of
from smartfeeds.service.damage import note_damaged
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.pulls import WHOLE, key_of
from smartfeeds.service.replies import AnsweredItems, find_answered
from smartfeeds.service.steps import IndexFirst, index_first
from smartfeeds.store.base import ReadTx, WriteTx
from smartfeeds.texts import ENGLISH, Texts
from smartfeeds.xmpp.stanza_errors import error_condition

ITEMS = 20  # of one message: as many as a person reads in one piece
SINGLE = 3  # up to so many items come as messages of their own, to which people can reply
# A person may be away for weeks. The service gives up after a month, and the person resumes by writing to the bot.
GIVE_UP_S = 30 * 86_400.0
# Long waits delay nobody who is back: a message or a presence of the recipient starts an attempt (`take_failed`).
BACKOFF = Backoff(first_s=30.0, longest_s=3_600.0)
ANSWER_S = 30.0  # for the response to the ping; without it the batch is sent again with the same ids
# While a person is known to be away, items are collected for so long and come in one message. A longer wait would keep
# news from people whose phone is woken by messages that their server stores (XEP-0357).
AWAY_US = 3_600 * US_PER_S
_PING = b"<ping xmlns='urn:xmpp:ping'/>"
# The own server answers so for a server that it cannot reach.
_UNREACHABLE = frozenset({"remote-server-not-found", "remote-server-timeout"})
_ITEM_ID = re.compile(r"chat-([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,18})-[0-9]{1,18}", re.ASCII)
_LIST_ID = re.compile(r"chat-[0-9]{1,18}--?[0-9]{1,18}to[0-9]{1,18}", re.ASCII)


Call = Callable[[str, str, bytes, float], Awaitable[Element]]


@dataclass(frozen=True, slots=True)
class MessageKey:
    """The item that a message of the bot shows: its node, its key in created order, and its number."""

    node_no: int
    created_us: int
    item_no: int


def item_message_id(node: Node, item: Item) -> str:
    """Returns the id of the message for an item: the same each time, another one for each version."""
    return f"chat-{node.node_no}-{item.created_us}-{item.item_no}-{item.revision}"


def list_message_id(node: Node, start: Mark, batch: SentBatch) -> str:
    """Returns the id of the message for the items between two keys, even if some of them are edited meanwhile."""
    return f"chat-{node.node_no}-{start.key_us}to{batch.end_us}"


def parse_message_id(text: str) -> MessageKey | None:
    """Returns what a message shows, by its id; None if it is no message for an item."""
    match = _ITEM_ID.fullmatch(text)
    return None if match is None else MessageKey(int(match[1]), int(match[2]), int(match[3]))


def is_message_id(text: str) -> bool:
    """Whether an id is that of a delivery."""
    return _ITEM_ID.fullmatch(text) is not None or _LIST_ID.fullmatch(text) is not None


def find_item(tx: ReadTx, key: MessageKey) -> tuple[Node, str] | None:
    """Returns the node and the item id that a message showed. An edit does not change the key in created order."""
    node = tx.node_by_no(key.node_no)
    if node is None:
        return None
    group = tx.group(key.node_no, Order.CREATED, key.created_us, MAX_GROUP)
    return next(((node, item_id) for item_no, item_id in group if item_no == key.item_no), None)


@dataclass(frozen=True, slots=True)
class ChatBatch:
    """The next items for a recipient, between the mark `start` and the position `end`.

    `sent` is how they are sent, and `repeated` says that they may have been sent before. `answered` are the items that
    they answer, of those that the recipient may read. `singles` are the numbers of those items of the node that were
    sent to the recipient as messages of their own.
    """

    node: Node
    row: ChatRow
    items: tuple[Item, ...]
    start: Mark
    end: ConsumerPosition
    more: bool
    sent: SentBatch
    repeated: bool = False
    answered: AnsweredItems = field(default_factory=dict)
    singles: frozenset[int] = frozenset()


def read_batch(
    tx: ReadTx, context: Context, consumer: Consumer, position: ConsumerPosition, base_url: str = ""
) -> ChatBatch | IndexFirst | None:
    """Returns the next items, or None if the recipient follows the feed no more. `base_url` is that of the site."""
    jid = parse_jid(consumer.target)
    rows = chat_subscriptions(tx, consumer.node_no, consumer.target)
    if jid is None or not rows:
        return None
    view = WHOLE[Order.MODIFIED]
    changes = read_changes(tx, context, consumer, position, view, ITEMS)
    start = position.marks.get(view.order) or tx.mark(consumer.node_no, view.order, consumer.name)
    if changes is None or start is None:
        return None
    node = changes.node
    rows = [row for row in rows if _may_read(tx, context, node, jid, row)]
    for row in rows:
        if (behind := index_first(tx, node, from_canonical(row.view))) is not None:
            return behind
    # Of the first document of a blog people are told of the newest entries only (SRC-057).
    origins = context.hooks.origins_of(tx, node.name)
    quiet = [origin.quiet_us for origin in origins if origin.quiet_us is not None]
    news = [item for item in changes.items if not any(first <= item.modified_us <= last for first, last in quiet)]
    note_damaged(context, node, news)
    items = tuple(item for item in news if _is_sent(tx, node, item, jid, rows))
    known = chat_rows.chat(tx, consumer.target)
    chat = known or ChatRow(consumer.target)

    def was_single(item: Item) -> bool:
        # Nothing records the lists that a recipient without settings was sent.
        if known is None or item.modified_us <= known.settings.joined_us:
            return False
        return not any(first <= item.modified_us <= last for first, last in quiet) and _is_sent(
            tx, node, item, jid, rows
        )

    def make(items: tuple[Item, ...], end: ConsumerPosition, more: bool, sent: SentBatch, repeated: bool) -> ChatBatch:
        answered = find_answered(tx, context, jid, [(node, item) for item in items], base_url)
        here = {value.item.item_no: value.item for value in answered.values() if value.node.node_no == node.node_no}
        singles = frozenset(item_no for item_no, item in here.items() if was_single(item))
        return ChatBatch(node, chat, items, start, end, more, sent, repeated, answered, singles)

    # Items of a batch that was sent without a known outcome keep its form and its ids, so that clients recognise them.
    # Items edited since then have a later key: they come with the next batch.
    former = tx.batch(consumer)
    repeated = tuple(item for item in items if former is not None and item.modified_us <= former.end_us)
    if former is not None and repeated:
        end = ConsumerPosition({view.order: mark_at(tx, node.node_no, view.order, repeated[-1])})
        return make(repeated, end, True, former, True)
    end_us = changes.end.marks[view.order].key_us if changes.items else start.key_us
    joined = len(items) > SINGLE or chat.settings.digest is not None
    return make(items, changes.end, changes.more, SentBatch(end_us, joined), False)


def _store_batch(tx: WriteTx, _context: Context, consumer: Consumer, batch: ChatBatch) -> None:
    """Stores a batch with the mark that it begins at, because marks are stored some time after the delivery."""
    # Without a mark the consumer was removed after the batch was read, and must not come back.
    if tx.mark(consumer.node_no, Order.MODIFIED, consumer.name) is not None:
        tx.set_mark(consumer.node_no, Order.MODIFIED, consumer.name, batch.start)
        tx.put_batch(consumer, batch.sent)
        known = chat_rows.chat(tx, consumer.target) if batch.sent.joined else None
        if known is not None and known.settings.joined_us < batch.sent.end_us:
            chat_rows.put(tx, replace(known, settings=replace(known.settings, joined_us=batch.sent.end_us)))


def _may_read(tx: ReadTx, context: Context, node: Node, jid: Jid, row: Subscription) -> bool:
    if row.state is not SubscriptionState.SUBSCRIBED or refusal_of(tx, context.policy, jid) is not None:
        return False
    return recipient_access(tx, context, node, jid, row.state).may_read


def _is_sent(tx: ReadTx, node: Node, item: Item, jid: Jid, rows: list[Subscription]) -> bool:
    """Whether one of the views contains the item. Deletions are not sent, nor are the recipient's own items."""
    if item.deleted or item.damaged or item.publisher == str(jid):
        return False
    rows = [row for row in rows if item.modified_us > row.since_us]
    views = [view for view in (from_canonical(row.view) for row in rows) if _has_event(view.order, item)]
    smart = [view for view in views if view.smart]
    standings = tx.standings(node.node_no, item, smart) if smart else []
    return len(smart) < len(views) or ViewStanding.PRESENT in standings


def _has_event(order: Order, item: Item) -> bool:
    """Whether a view in this order announces the item: an edit moves it in modified order only."""
    return order is Order.MODIFIED or item.revision == 1


@dataclass(frozen=True, slots=True)
class Reachability:
    """The presence of recipients. `nick_in` returns the bot's nick in a room, or None if it is not in it; the caller
    then tries to enter. `is_available` returns whether a bare JID is available, None if that is not known."""

    nick_in: Callable[[str], str | None]
    is_available: Callable[[str], bool | None]


class ChatSender:
    """Sends items as chat messages (`delivery.deliverer.Deliverer`)."""

    def __init__(
        self,
        service: FeedService,
        link: StanzaSender,
        call: Call,
        links: Links,
        reach: Reachability,
        others: OtherProcesses,
        clock: Callable[[], int],
    ) -> None:
        self._service = service
        self._link = link
        self._call = call
        self._links = links
        self._reach = reach
        self._others = others
        self._clock = clock
        # The error of each recipient with a delivery in flight, empty while there is none.
        self._errors: dict[tuple[str, int], str] = {}
        # Consumers whose last batch failed or waits, by recipient: they are tried at once when the recipient writes or
        # comes online.
        self._failed: dict[str, set[Consumer]] = {}

    def kind(self) -> ConsumerKind:
        """Returns the rules of these consumers."""
        # `smartfeeds source add --tell` adds consumers beside a running service.
        return ConsumerKind(self, backoff=BACKOFF, give_up_s=GIVE_UP_S, stored=True)

    def host(self, consumer: Consumer) -> str:
        """The recipient's domain."""
        return consumer.target.rpartition("@")[2]

    def note_failed(self, consumer: Consumer) -> None:
        """Records that the last delivery to a consumer failed."""
        self._failed.setdefault(consumer.target, set()).add(consumer)

    def has_failed(self, jid: str) -> bool:
        """Whether a recipient has consumers that wait after a failure."""
        return jid in self._failed

    def take_failed(self, jid: str) -> set[Consumer]:
        """Returns the consumers of a recipient that wait after a failure, once."""
        return self._failed.pop(jid, set())

    def note_error(self, sender: Jid, message_id: str, condition: str) -> None:
        """Records the error response to a message in flight."""
        node_no = int(message_id.split("-")[1])  # `is_message_id` has checked the form
        key = (sender.bare_text, node_no)
        if key in self._errors:
            self._errors[key] = condition or "undefined-condition"

    async def deliver(self, consumer: Consumer, position: ConsumerPosition) -> Outcome:
        """Sends one batch and waits until the recipient's server has processed it. Raises LinkError, StoreError."""
        if not self._link.online:
            raise LinkError("the link to the XMPP server is down")
        batch = await self._service.read(
            partial(read_batch, consumer=consumer, position=position, base_url=self._links.http_base_url),
            turn=f"chat {consumer.target}",
        )
        if batch is None:
            self._forget_failure(consumer)
            return Gone("the recipient follows the feed no more")
        if not batch.items:
            return Delivered(batch.end, batch.more)
        now_us = self._clock()
        oldest_us = key_of(Order.MODIFIED, batch.items[0])
        # None counts as available: a person need not share the presence with the service.
        if self._reach.is_available(consumer.target) is False and oldest_us + AWAY_US > now_us:
            self.note_failed(consumer)
            return Planned(oldest_us + AWAY_US)
        due = due_us(batch.row.settings, oldest_us, now_us)
        if due > now_us:
            return Planned(due)
        # The batch is stored before its first message: after a crash in between, it is sent with the same ids.
        nick = self._reach.nick_in(consumer.target) if batch.row.room else ""
        if nick is not None and not batch.repeated:
            await self._service.write(partial(_store_batch, consumer=consumer, batch=batch))
        error = "the bot is not in the room" if nick is None else await self._send(consumer, batch, nick)
        if error:
            self.note_failed(consumer)
            return RetryAfter(error)
        self._forget_failure(consumer)
        return Delivered(batch.end, batch.more)

    def _forget_failure(self, consumer: Consumer) -> None:
        failed = self._failed.get(consumer.target, set())
        failed.discard(consumer)
        if not failed:
            self._failed.pop(consumer.target, None)

    async def _send(self, consumer: Consumer, batch: ChatBatch, nick: str) -> str:
        """Sends the messages of a batch and a ping behind them. Returns why they were not delivered, or ""."""
        messages = await asyncio.to_thread(self._messages, consumer.target, batch)
        frames = [encode_message(message, self._links.domain) for message in messages]
        key = (consumer.target, consumer.node_no)
        self._errors[key] = ""
        try:
            await self._link.notify(frames)
            # In a room the ping to the own nick also shows whether the bot is still there (XEP-0410).
            to = f"{consumer.target}/{nick}" if nick else consumer.target
            pong = await self._call("get", to, _PING, ANSWER_S)
            if not self._errors[key]:
                # The server may have sent the error to another process, which passes it on.
                await self._others.settle()
        except TimeoutError:
            return "the recipient's server does not answer"
        finally:
            error = self._errors.pop(key)
        unreachable = error_condition(pong) if pong.get("type") == "error" else ""
        if unreachable in _UNREACHABLE or (nick and unreachable == "not-acceptable"):
            error = error or unreachable
        return f"the recipient's server returned the message: {error}" if error else ""

    def _messages(self, jid: str, batch: ChatBatch) -> list[OutgoingChat]:
        texts = Texts(batch.row.settings.language or ENGLISH)
        node, items, answered = batch.node, list(batch.items), answered_titles(batch.answered)
        kind: MessageKind = "groupchat" if batch.row.room else "chat"
        if batch.sent.joined:
            body, message_id = (
                render_list(texts, self._links, node, items, answered),
                list_message_id(node, batch.start, batch.sent),
            )
            return [OutgoingChat(jid, body, message_id, kind, texts.language)]
        return [self._message(texts, jid, batch, item) for item in items]

    def _message(self, texts: Texts, jid: str, batch: ChatBatch, item: Item) -> OutgoingChat:
        """The message for one item. An answer begins with the title of what it answers, as a quotation."""
        node = batch.node
        kind: MessageKind = "groupchat" if batch.row.room else "chat"
        body = render_item(texts, self._links, node, item, edited=item.revision > 1)
        chat = OutgoingChat(jid, body, item_message_id(node, item), kind, texts.language)
        answered = next((value for (item_no, _), value in batch.answered.items() if item_no == item.item_no), None)
        if answered is None or answered.item.deleted:
            return chat
        quotation = quotation_of(title_of_item(answered.item))
        chat = replace(chat, text=quotation + body)
        # A room gives messages ids of its own. An item that was edited after its answer comes behind it.
        places = [(each.modified_us, each.item_no) for each in (answered.item, item)]
        is_here = answered.node.node_no == node.node_no and answered.item.item_no in batch.singles
        if batch.row.room or not is_here or places[0] > places[1]:
            return chat
        return replace(chat, answers=item_message_id(node, answered.item), quoted=len(quotation))
