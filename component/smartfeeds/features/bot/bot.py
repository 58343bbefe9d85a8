"""The chat bot: receives messages, decides whether to answer, and runs commands.

It writes only to people who wrote to it, or whom an admin of the service subscribed. Errors, history, its own messages
in rooms, and messages of servers are never answered. Answers to one person have a rate, and words that are no commands
a low one, so that two programs that answer each other stop soon.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from smartfeeds import system
from smartfeeds.app.feature import Host
from smartfeeds.chat.commands import NAME_CHARACTERS, ChatReply, joined_commands
from smartfeeds.core.consumers import Consumer
from smartfeeds.core.jid import Jid
from smartfeeds.core.limits import Rate
from smartfeeds.core.model import NO_LIMIT, Node, NodeEvent
from smartfeeds.core.text import cut
from smartfeeds.errors import StoreError
from smartfeeds.features.bot import rows
from smartfeeds.features.bot.approvals import explain
from smartfeeds.features.bot.chat import ChatSettings
from smartfeeds.features.bot.commands import COMMANDS, by_word, run_command
from smartfeeds.features.bot.conversation import Conversation, Tools
from smartfeeds.features.bot.delivery import ChatSender, Reachability, parse_message_id
from smartfeeds.features.bot.notices import person_limits
from smartfeeds.features.bot.refusals import encrypted_message, unknown_command
from smartfeeds.features.bot.render import Links
from smartfeeds.features.bot.room_letters import OtherProcesses
from smartfeeds.features.bot.rooms import PASSWORD, Requester, RoomEvents, Rooms
from smartfeeds.features.bot.schedule import find_zone
from smartfeeds.features.bot.settings import BotSettings
from smartfeeds.features.bot.stanzas import (
    ChatMessage,
    MessageError,
    MessageKind,
    OutgoingChat,
    RoomInvitation,
    RoomPresence,
    encode_contact_request,
    encode_decline,
    encode_message,
    encode_receipt,
    responses_of,
)
from smartfeeds.service.chat_follows import KIND
from smartfeeds.service.consumers import FIRST
from smartfeeds.service.context import is_admin, refusal_of
from smartfeeds.service.requests import Request
from smartfeeds.texts import ENGLISH, N_, Texts, choose_language

BODY_CHARACTERS = 10_000  # a longer answer is cut; no command needs that much
BURST = 20  # messages that one person may send at once
# Answers to unknown words: a person makes few such mistakes, a program that answers the bot makes nothing else.
UNKNOWN = Rate(per_s=1 / 300, burst=5)
_FAULT = N_("That did not work, because of a fault of this service. If it happens again, tell its operator.")
_UNAVAILABLE = N_("The service is not available now. Try again later.")


class Bot:
    """Answers chat. `links` are the addresses of the service."""

    def __init__(
        self,
        settings: BotSettings,
        links: Links,
        host: Host,
        new_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        service, dispatcher = host.service, host.dispatcher
        self._service = service
        self._dispatcher = dispatcher
        self._new_id = new_id
        self._outbox = host.link.outbox
        self._domain = links.domain
        processes = OtherProcesses(host.letters)
        events = RoomEvents(self._tell, lambda room: self._serve(self.sender.take_failed(room)), self._serve)
        self.rooms = Rooms(service, settings, host.link, events, processes, system.monotonic)
        reach = Reachability(self.rooms.nick_in, host.is_available)
        self.sender = ChatSender(service, self._outbox, host.link.call, links, reach, processes, host.now_us)
        dispatcher.register(KIND, self.sender.kind())
        dispatcher.ownership.register(self)
        commands = by_word(joined_commands(COMMANDS, host.chat))
        others = [table.answer_other for table in host.chat if table.answer_other is not None]
        self._tools = Tools(host, links, self.rooms, self._introduce, commands, others)
        # Whoever runs a server can write from any number of addresses, so its domain has a rate, too.
        self._limits = person_limits(Rate(settings.messages_per_minute / 60, BURST))
        self._unknown = person_limits(UNKNOWN)
        self._handlers: dict[type[Request], Callable[[Any], Coroutine[Any, Any, None]]] = {
            ChatMessage: self._on_message,
            RoomInvitation: self._on_invitation,
            RoomPresence: self.rooms.on_presence,
            MessageError: self._on_error,
        }

    async def start(self) -> None:
        """Serves all stored consumers. Raises StoreError."""
        # The first use of the time zones reads a file of each.
        await asyncio.to_thread(find_zone, "UTC")
        for row in await self._service.read(lambda tx, _context: tx.consumers(FIRST, NO_LIMIT)):
            if row.consumer.kind == KIND:
                self._dispatcher.follow(row.consumer)

    async def begin(self, shards: frozenset[int]) -> None:
        """Reads which deliveries failed before this process served their feeds, so that a message of the recipient
        starts them again. Raises StoreError."""
        for consumer, _ in await self._service.read(lambda tx, _context: tx.failures()):
            if consumer.kind == KIND and self._dispatcher.shard_of(consumer) in shards:
                self.sender.note_failed(consumer)

    async def end(self, shards: frozenset[int]) -> None:
        """Changes nothing: what another process serves now does no harm here."""

    def drop(self, shards: frozenset[int]) -> None:
        """Changes nothing, for the same reason."""

    async def resume(self) -> None:
        """Enters the rooms and starts the deliveries, after the link came up. Raises StoreError."""
        await self.rooms.rejoin()
        await self._dispatcher.resume(KIND)

    async def handle(self, request: Request) -> None:
        """Handles a stanza of chat. Raises StoreError."""
        await self._handlers[type(request)](request)

    async def _on_error(self, error: MessageError) -> None:
        self.sender.note_error(error.actor, error.message_id, error.condition)

    async def _on_invitation(self, invitation: RoomInvitation) -> None:
        """Enters a room that somebody invites the bot to. A room with a password is refused.

        Anybody can pretend to be a room that passes an invitation on. So the limits are those of the room, the answer
        goes to the room alone, and the inviter that it names receives nothing.
        """
        requester = invitation if invitation.from_room else invitation.inviter
        sender = invitation.room if invitation.from_room else invitation.inviter
        if not self._is_person(sender) or not self._limits.admit(sender):
            return
        if not await self._are_admitted(sender, invitation.room):
            return
        refusal = PASSWORD
        if not invitation.password:
            trusted = invitation.from_room or is_admin(self._service.policy, sender)
            refusal = await self.rooms.request(invitation.room, requester, trusted=trusted)
        if refusal:
            await self._tell(requester, refusal, self.rooms.nick)

    async def _on_message(self, message: ChatMessage) -> None:
        in_room = message.kind == "groupchat"
        conversation = await (self._in_room(message) if in_room else self._with_person(message))
        if conversation is None:
            return
        if message.encryption:
            # Another program may answer each answer, so the rate is that of words that are no commands.
            if self._unknown.admit(message.actor):
                self._answer(conversation, encrypted_message(conversation))
            return
        try:
            answer = await run_command(conversation)
        except Exception as error:
            # Any error, because the person waits for an answer. It learns only that there was one; the router logs it.
            text = _UNAVAILABLE if isinstance(error, StoreError) else _FAULT
            self._answer(conversation, ChatReply(conversation.say(text)))
            raise
        if answer is None and self._unknown.admit(message.actor):
            answer = await unknown_command(conversation)
        # In a room, people reply to items without a thought of the bot. It then speaks only of what it did.
        if answer is not None and answer.text and (conversation.addressed or answer.done):
            self._answer(conversation, answer)

    async def _with_person(self, message: ChatMessage) -> Conversation | None:
        """The conversation with a person, or None if the message gets no answer."""
        actor = message.actor.bare
        # Messages of one occupant through a room come from the address of the room, whose rights nobody may use so.
        if message.private or not self._is_person(actor):
            return None
        if not self._limits.admit(actor):
            return None
        if message.wants_receipt and (receipt := encode_receipt(message)):
            self._outbox.reply(receipt)
        if not await self._are_admitted(actor):
            return None
        self._serve(self.sender.take_failed(str(actor)))
        return await self._conversation(actor, message)

    async def _in_room(self, message: ChatMessage) -> Conversation | None:
        """The conversation with a room, or None if the message is not for the bot.

        A message is for the bot if it begins with the bot's nick. A reply or a reaction to an item is too, if the room
        proves who its author is.
        """
        room, occupant = message.actor.bare, message.actor
        nick = self.rooms.nick_in(str(room)) if self.rooms.knows(str(room)) else None
        if nick is None or not occupant.resource:
            return None
        # The room returns the bot's own messages.
        if occupant.resource == nick:
            self.rooms.note_own(message)
            return None
        text, claim = addressed_text(message.text, nick), self.rooms.claimed_author(occupant)
        # Another occupant may have the nick when the proof has arrived. So the right must hold before and after it.
        is_manager = self.rooms.is_manager(occupant)
        reply_to, reacts_to = self._item_id(room, message.reply_to), self._item_id(room, message.reacts_to)
        if message.history or (text is None and not (claim is not None and (reply_to or reacts_to))):
            return None
        if not await self.rooms.listens_to(occupant) or not self._limits.admit(room):
            return None
        # After the rate: a proof asks two servers.
        author = claim if claim is not None and await self.rooms.is_believed(room, claim) else None
        if text is None and author is None:
            return None
        if not await self._are_admitted(room, *(() if author is None else (author,))):
            return None
        spoken = message.text if text is None else text
        message = replace(message, text=spoken, reply_to=reply_to, reacts_to=reacts_to)
        conversation = await self._conversation(room, message)
        return conversation and replace(
            conversation,
            in_room=True,
            author=author,
            addressed=text is not None,
            may_change=is_manager and self.rooms.is_manager(occupant),
        )

    def _item_id(self, room: Jid, message_id: str) -> str:
        """Returns the id of the message for one item that an id in a room means, or an empty text."""
        own_id = self.rooms.own_id(str(room), message_id)
        return own_id if parse_message_id(own_id) is not None else ""

    async def _conversation(self, actor: Jid, message: ChatMessage) -> Conversation | None:
        """The conversation; None for a message to the bot alone from the address of a room that it stays in."""
        row = await self._service.read(lambda tx, _context: rows.chat(tx, str(actor)), turn=str(actor))
        # The room may still show the bot after a restart, when the bot has not entered again.
        if row is not None and row.room and message.kind != "groupchat":
            return None
        settings = row.settings if row is not None else ChatSettings()
        # The choice of a person comes first, because most servers and clients send the language of their set-up.
        texts = Texts(choose_language(filter(None, (settings.language, message.language))))
        return Conversation(actor, message, texts, settings, self._tools, actor)

    async def _are_admitted(self, *jids: Jid) -> bool:
        """Whether persons and rooms may use the service. Others get no answer."""
        policy = self._service.policy
        return await self._service.read(
            lambda tx, _context: all(refusal_of(tx, policy, jid) is None for jid in jids), turn=str(jids[0])
        )

    def _is_person(self, jid: Jid) -> bool:
        """Whether an address may get an answer: no server, no component, no room, and not this service itself."""
        return bool(jid.local) and jid.domain != self._domain and not self.rooms.is_in(jid.bare_text)

    def _introduce(self, jid: str) -> None:
        """Sends a request to subscribe to the presence of a person, whose client then offers to add the bot."""
        self._outbox.reply(encode_contact_request(self._domain, jid, self.rooms.nick))

    def note_available(self, user: Jid) -> None:
        """Delivers what failed before, because the person is available now."""
        # Each attempt costs more than a presence, so they count as messages.
        if self.sender.has_failed(user.bare_text) and self._limits.admit(user):
            self._serve(self.sender.take_failed(user.bare_text))

    def _answer(self, c: Conversation, answer: ChatReply) -> None:
        to, text = str(c.message.actor), answer.text
        if c.in_room:
            to, text = c.jid, f"{cut(c.message.actor.resource, NAME_CHARACTERS)}: {text}"
        offers = () if c.in_room else responses_of(answer)
        sender = self._domain if c.in_room else c.message.service
        chat = OutgoingChat(to, text[:BODY_CHARACTERS], self._new_id(), c.message.kind, c.texts.language, offers)
        self._outbox.reply(encode_message(chat, sender))

    async def explain(self, node: Node, event: NodeEvent) -> list[bytes]:
        """Returns the chat message for an event about a subscription, if it goes to a user of the bot."""
        explanation = await self._service.read(partial(explain, node=node, event=event), turn=event.to)
        if explanation is None:
            return []
        row, reply = explanation
        kind: MessageKind = "groupchat" if row.room else "chat"
        language = row.settings.language or ENGLISH
        offers = () if row.room else responses_of(reply)
        chat = OutgoingChat(row.jid, reply.text, f"chat-event-{event.event_no}", kind, language, offers)
        return [encode_message(chat, self._domain)]

    async def _tell(self, requester: Requester, text: str, nick: str) -> None:
        """Informs the requester of a room of the outcome: a user by chat, an inviter through the room."""
        to = requester.bare if isinstance(requester, Jid) else requester.room
        row = await self._service.read(lambda tx, _context: rows.chat(tx, str(to)))
        texts = Texts(choose_language([row.settings.language] if row is not None else []))
        text = texts.say(text, nick=nick)
        if isinstance(requester, RoomInvitation) and not self.rooms.is_in(str(to)):
            self._outbox.reply(encode_decline(self._domain, requester, text))
            return
        chat = OutgoingChat(str(to), text, self._new_id(), "chat" if isinstance(requester, Jid) else "groupchat")
        self._outbox.reply(encode_message(chat, self._domain))

    def _serve(self, consumers: Iterable[Consumer]) -> None:
        for consumer in consumers:
            self._dispatcher.hurry(consumer)


def addressed_text(text: str, nick: str) -> str | None:
    """Returns the command in a message that begins with the nick, as `feeds: help`, `@feeds help` or `feeds, help`."""
    stripped = text.lstrip().removeprefix("@")
    # The whole text may be long.
    if stripped[: len(nick)].casefold() != nick.casefold():
        return None
    rest = stripped[len(nick) :]
    return rest.lstrip(":, \t\n") if not rest or rest[0] in ":, \t\n" else None
