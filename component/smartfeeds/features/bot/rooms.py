"""Group chats: entering, staying and leaving rooms, and who speaks there (XEP-0045, XEP-0249, XEP-0359).

The store has the rooms that the bot stays in; everything else is learnt again with each connection. An admin of the
bot may bring it into any room, and so may the room itself, which passes on only invitations of occupants who may
invite. For other users the bot enters, and stays if the user is an owner or admin of the room. Most rooms hide the
addresses of their occupants. There the bot waits until an owner or admin writes to it. Until then it writes nothing in
the room, and the next connection ends its stay.

With several processes the bot is in a room once, and the room sends each stanza to any of them. The process that enters
a room decides whether the bot stays. The others follow (`room_letters`), so that each of them can answer.

Anybody may name any address as a room. So a request changes nothing in the store, an address without an answer is
given up after a minute, and only the room itself or its managers end the subscriptions of a room. What an address says
about itself needs no proof. What it says about others does: see `claimed_author` and `is_believed`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import structlog

from smartfeeds.core.consumers import Consumer
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.bot.room_letters import OtherProcesses, RoomNews
from smartfeeds.features.bot.room_verifier import RoomVerifier
from smartfeeds.features.bot.settings import BotSettings
from smartfeeds.features.bot.stanzas import ChatMessage, RoomInvitation, RoomPresence, encode_join, encode_leave
from smartfeeds.service.chat_follows import unfollow_all
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx
from smartfeeds.texts import N_
from smartfeeds.xmpp.avatar import presence_mark
from smartfeeds.xmpp.stream import ComponentStream

MAX_NICKS = 4  # attempts with another nick if the nick is taken
MAX_WAITING = 10  # rooms that wait for an owner or admin; with more the bot leaves the oldest
WAITING_PER_USER = 3  # of them those that one user requested
SHARES = 4  # rooms of one other site take at most this part of the places, so that it cannot take all
ENTER_S = 60.0  # an address that does not answer for so long is no room; entering one takes seconds
MAX_OCCUPANTS = 1_000  # nicks that are remembered for a room
MAX_OWN_IDS = 200  # messages of the bot that are remembered for a room
_MANAGERS = frozenset({"owner", "admin"})
_SELF = "110"
_CREATED = "201"
# XEP-0045 section 15.6: removed by a ban, a kick, a change of affiliation, or because the room is for members only.
_REMOVED = frozenset({"301", "307", "321", "322"})
_RENAMED = "303"
# The room does not exist for the bot, or does not admit it: another attempt would fail as well.
_FINAL = frozenset({"forbidden", "registration-required", "not-authorized", "item-not-found", "not-allowed", "gone"})

_log = structlog.get_logger()

_IS_IN = N_("I am in that room already.")
_TOO_MANY = N_("I am in too many rooms; ask the operator of this service.")
_ENTERED = N_("I am in the room now. Write my name and a command there, such as: {nick}: help")
_NO_MANAGER = N_("I left the room again, because you are not one of its admins. An admin of the room can invite me.")
_PROVE = N_("I am in the room, but it does not show me who its admins are. If you are one, write there: {nick}: help")
_NO_ROOM = N_("There is no such room.")
PASSWORD = N_("The room has a password. I do not enter rooms with passwords, because I would have to store them.")
_REFUSED = N_("The room does not let me in.")

# A user who requested a room, or the invitation that the room itself passed on.
Requester = Jid | RoomInvitation
# Informs the requester. Parameters: the requester, a text to translate, the nick of the bot in the room.
Tell = Callable[[Requester, str, str], Awaitable[None]]


@dataclass(slots=True)
class Room:
    """A room that the bot is in or enters. `managers` are the nicks of its owners and admins.

    `since_s` is when the bot began to enter. `requester` is informed once the bot is in or was refused; `user` is the
    bare JID of the user who requested the room first. `has_sponsor`: somebody with the right to do so has brought the
    bot here. `is_own`: this process decides whether the bot stays, and `is_deciding` now. `people` has the real
    addresses of occupants by nick, as far as the room shows them. `own_ids` has the ids of the bot's messages by the
    ids that the room gave them, oldest first.
    """

    nick: str
    since_s: float
    is_in: bool = False
    attempts: int = 1
    managers: set[str] = field(default_factory=set)
    requester: Requester | None = None
    user: Jid | None = None
    has_sponsor: bool = True
    is_own: bool = True
    is_deciding: bool = False
    people: dict[str, Jid] = field(default_factory=dict)
    own_ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoomEvents:
    """The actions of the bot on events of its rooms. `tell` informs a requester. `entered` receives the room, `removed`
    the consumers that have ended."""

    tell: Tell
    entered: Callable[[str], None]
    removed: Callable[[Iterable[Consumer]], None]


class Rooms:
    """The rooms of the bot. `nick` is the name that it prefers. `monotonic` returns seconds."""

    def __init__(
        self,
        service: FeedService,
        settings: BotSettings,
        link: ComponentStream,
        events: RoomEvents,
        others: OtherProcesses,
        monotonic: Callable[[], float],
    ) -> None:
        self._service = service
        self._sender = service.policy.domain
        self.nick = settings.name
        self._picture = presence_mark(settings.read_picture())
        self._most = settings.rooms_max
        self._configured = settings.rooms
        self._send = link.outbox.reply
        self._is_room = RoomVerifier(link.call, monotonic).is_room
        self._events = events
        self._others = others
        self._monotonic = monotonic
        self._rooms: dict[str, Room] = {}
        self.known = self._rooms.keys()  # the bare JIDs of rooms that the bot is in or enters
        # A request must not read the row of a room that is being forgotten: it would need no sponsor.
        self._forgetting = asyncio.Lock()
        others.read(self.receive)

    def knows(self, room: str) -> bool:
        """Whether the bot is in this room or enters it."""
        return room in self._rooms

    def is_in(self, room: str) -> bool:
        """Whether the bot is in this room."""
        state = self._rooms.get(room)
        return state is not None and state.is_in

    def nick_in(self, room: str) -> str | None:
        """Returns the bot's nick in a room, or None if it is not in it; then it enters, unless it does so already."""
        self._give_up()
        state = self._rooms.get(room)
        if state is None:
            self._enter(room)
        return state.nick if state is not None and state.is_in else None

    def is_manager(self, occupant: Jid) -> bool:
        """Whether an occupant is an owner or admin of the room."""
        state = self._rooms.get(occupant.bare_text)
        return state is not None and occupant.resource in state.managers

    def claimed_author(self, occupant: Jid) -> Jid | None:
        """Returns the bare JID of an occupant as the room shows it, or None if no proof could make it believed.

        Anybody can run a room and name any address as that of an occupant. A room may therefore speak only about the
        users of the server that it belongs to (its service is a subdomain), unless the operator chose the room. The
        claim counts only if `is_believed`.
        """
        room = occupant.bare_text
        state = self._rooms.get(room)
        jid = state.people.get(occupant.resource) if state is not None else None
        if jid is None or not (occupant.domain.endswith(f".{jid.domain}") or room in self._configured):
            return None
        return jid.bare

    async def is_believed(self, room: Jid, author: Jid) -> bool:
        """Whether the claim of a room about an occupant counts: the operator chose it, or it is proved to be a room of
        the author's server.

        The server has other subdomains with accounts, whose clients can send whatever a room sends.
        """
        return str(room) in self._configured or await self._is_room(room, author.domain)

    def note_own(self, message: ChatMessage) -> None:
        """Remembers the id that a room gave to a message of the bot, which the room returns to it."""
        state = self._rooms[message.actor.bare_text]
        if message.stanza_id:
            own_ids = {message.stanza_id: message.message_id}
            _add_own_ids(state, own_ids)
            room = message.actor.bare_text
            self._others.share(RoomNews(room, state.nick, state.is_in, state.has_sponsor, own_ids=own_ids))

    def own_id(self, room: str, message_id: str) -> str:
        """Returns the id of the bot's message that an id in a room means; the id itself if it is not known."""
        state = self._rooms.get(room)
        return message_id if state is None else state.own_ids.get(message_id, message_id)

    async def listens_to(self, occupant: Jid) -> bool:
        """Whether the bot answers an occupant. The message of an owner or admin proves the right to have it there."""
        room = occupant.bare_text
        state = self._rooms.get(room)
        if state is None or not state.is_in:
            return False
        if not state.has_sponsor and occupant.resource in state.managers:
            state.has_sponsor = True
            await self._service.write(partial(_remember_room, room=room))
        elif not state.has_sponsor and self._others.exist():
            # The message of an owner or admin may have reached another process.
            state.has_sponsor = await self._is_stored(room)
        return state.has_sponsor

    def reset(self) -> None:
        """Forgets in which rooms the bot is, because the link has come up and the rooms have removed the bot."""
        self._rooms.clear()

    async def rejoin(self) -> None:
        """Enters all rooms after `reset`, except those for which a request came in between. Raises StoreError."""
        rows = await self._service.read(lambda tx, _context: chat_rows.rooms(tx))
        for jid in dict.fromkeys([*self._configured, *(row.jid for row in rows)]):
            if jid not in self._rooms:
                self._enter(jid)

    async def request(self, room: Jid, requester: Requester, *, trusted: bool) -> str:
        """Enters a room for a user, or because of an invitation. Returns why not (a text to translate), or an empty
        text. Raises StoreError."""
        name = room.bare_text
        async with self._forgetting:
            row = await self._service.read(lambda tx, _context: chat_rows.chat(tx, name))
        if row is not None and not row.room:
            return _NO_ROOM  # the address of a user of the bot
        self._give_up()
        state = self._rooms.get(name)
        if state is not None and state.is_in:
            return _IS_IN
        if state is not None:
            state.requester = requester
            state.has_sponsor = state.has_sponsor or trusted
            return ""
        # The bot has a right to be in a room that it stayed in before, whoever reminds it.
        if row is not None or name in self._configured:
            self._enter(name, requester=requester)
            return ""
        user = requester.bare if isinstance(requester, Jid) else None
        if len(self._rooms) >= self._most or not self._has_place(room.domain) or self._waits_for_many(user):
            return _TOO_MANY
        self._enter(name, requester=requester, user=user, has_sponsor=trusted)
        waiting = [jid for jid, room in self._rooms.items() if not room.has_sponsor]
        if len(waiting) > MAX_WAITING:
            self._withdraw(waiting[0])
        return ""

    def _has_place(self, service: str) -> bool:
        """Whether a site has less than its share. The server of this service has no share of its own.

        The site is the domain of the server, which may have any number of services for rooms.
        """
        if service.partition(".")[2] == self._sender.partition(".")[2]:
            return True
        site = _site(service)
        return sum(_site(jid.rpartition("@")[2]) == site for jid in self._rooms) < max(1, self._most // SHARES)

    def _waits_for_many(self, user: Jid | None) -> bool:
        """Whether as many rooms wait as one user may request."""
        if user is None:
            return False
        return sum(room.user == user and not room.has_sponsor for room in self._rooms.values()) >= WAITING_PER_USER

    def _give_up(self) -> None:
        """Withdraws from addresses that have not answered. A stored room is entered again by its next delivery."""
        before_s = self._monotonic() - ENTER_S
        for room in [jid for jid, entry in self._rooms.items() if not entry.is_in and entry.since_s <= before_s]:
            if self._rooms[room].is_own:
                self._withdraw(room)
            else:
                del self._rooms[room]

    def _withdraw(self, room: str) -> None:
        """Leaves a room, or stops to enter it. Its subscriptions stay."""
        state = self._rooms.pop(room)
        self._send(encode_leave(self._sender, room, state.nick))

    async def leave(self, room: str) -> None:
        """Leaves a room and ends its subscriptions. Raises StoreError."""
        if room in self._rooms:
            self._withdraw(room)
        await self._forget(room)

    async def on_presence(self, presence: RoomPresence) -> None:
        """Follows who is in the rooms. Raises StoreError."""
        room = presence.actor.bare_text
        state = self._rooms.get(room)
        if state is None:
            return
        if presence.kind == "error":
            await self._on_refused(room, state, presence.condition)
        elif _SELF in presence.statuses or presence.actor.resource == state.nick:
            await self._on_self(room, state, presence)
        else:
            self._on_occupant(state, presence)

    def _enter(
        self, room: str, *, requester: Requester | None = None, user: Jid | None = None, has_sponsor: bool = True
    ) -> None:
        now_s = self._monotonic()
        state = Room(self.nick, now_s, requester=requester, user=user, has_sponsor=has_sponsor)
        self._rooms[room] = state
        self._join(room, state)

    def _join(self, room: str, state: Room) -> None:
        # Before the stanza: the presence of the room may reach the other processes.
        self._tell_others(room, state)
        self._send(encode_join(self._sender, room, state.nick, self._picture))

    def _tell_others(self, room: str, state: Room) -> None:
        managers, people, own_ids = frozenset(state.managers), state.people, state.own_ids
        self._others.share(RoomNews(room, state.nick, state.is_in, state.has_sponsor, managers, people, own_ids))

    def receive(self, news: RoomNews) -> None:
        """Notes what another process knows of a room."""
        state = self._rooms.get(news.room)
        if state is None:
            state = Room(news.nick, self._monotonic(), has_sponsor=news.has_sponsor, is_own=False)
            self._rooms[news.room] = state
        is_new = news.is_in and not state.is_in and not state.is_own
        state.is_in = state.is_in or is_new
        state.has_sponsor = state.has_sponsor or news.has_sponsor
        state.managers |= news.managers
        state.people = {**news.people, **state.people}
        _add_own_ids(state, news.own_ids)
        if is_new:
            self._events.entered(news.room)

    def _on_occupant(self, state: Room, presence: RoomPresence) -> None:
        nick = presence.actor.resource
        state.managers.discard(nick)
        state.people.pop(nick, None)
        if presence.kind:
            return
        if presence.jid is not None and len(state.people) < MAX_OCCUPANTS:
            state.people[nick] = presence.jid.bare
        if presence.affiliation in _MANAGERS and len(state.managers) < MAX_OCCUPANTS:
            state.managers.add(nick)

    async def _on_self(self, room: str, state: Room, presence: RoomPresence) -> None:
        if presence.kind == "unavailable":
            if _RENAMED in presence.statuses:
                return
            if presence.destroyed or presence.statuses & _REMOVED:
                _log.info("room_removed_bot", room=room, statuses=sorted(presence.statuses))
                await self._forget(room)
            else:
                # The room or its service stops; the next delivery or connection enters again.
                self._rooms.pop(room, None)
            return
        # Texts name the nick that the bot chose. The one in the presence is a text of the room, which may be hostile.
        chosen, state.nick = state.nick, presence.actor.resource
        if state.is_in or state.is_deciding:
            return
        if not state.is_own:
            state.is_in = True
            self._events.entered(room)
            return
        if self._others.exist():
            state.is_deciding = True
            try:
                # Another process may have the presence of occupants, and may have noted a sponsor.
                await self._others.settle()
                state.has_sponsor = state.has_sponsor or await self._is_stored(room)
            finally:
                state.is_deciding = False
            if self._rooms.get(room) is not state:
                return
        # The room sends the presence of all others before that of the bot, so the managers are known now. A room that
        # the bot has just created is nobody's room, and disappears when the bot leaves.
        requester, state.requester = state.requester, None
        managers = {state.people[nick] for nick in state.managers & state.people.keys()}
        state.has_sponsor = state.has_sponsor or (isinstance(requester, Jid) and requester.bare in managers)
        hidden = not state.people
        refusal = _NO_ROOM if _CREATED in presence.statuses else "" if state.has_sponsor or hidden else _NO_MANAGER
        if refusal:
            self._withdraw(room)
        else:
            state.is_in = True
            if state.has_sponsor:
                await self._service.write(partial(_remember_room, room=room))
            self._tell_others(room, state)
            self._events.entered(room)
        if requester is not None:
            await self._events.tell(requester, refusal or (_ENTERED if state.has_sponsor else _PROVE), chosen)

    async def _on_refused(self, room: str, state: Room, condition: str) -> None:
        """The room did not admit the bot."""
        if state.is_in:
            return
        if not state.is_own:
            # The process that enters may try another nick, and shares it then.
            del self._rooms[room]
            return
        if condition == "conflict" and state.attempts < MAX_NICKS:
            state.attempts += 1
            state.nick = f"{self.nick}{state.attempts}"
            self._join(room, state)
            return
        _log.warning("room_refused_bot", room=room, reason=condition)
        if condition in _FINAL:
            await self._forget(room)
        else:
            self._rooms.pop(room, None)
        if state.requester is not None:
            await self._events.tell(
                state.requester, PASSWORD if condition == "not-authorized" else _REFUSED, state.nick
            )

    async def _is_stored(self, room: str) -> bool:
        """Whether the bot stays in a room, as any process has noted."""
        row = await self._service.read(lambda tx, _context: chat_rows.chat(tx, room))
        return row is not None and row.room

    async def _forget(self, room: str) -> None:
        self._rooms.pop(room, None)
        jid = parse_jid(room)
        assert jid is not None  # rooms are named by stanzas, settings and rows, all of them checked addresses
        async with self._forgetting:
            consumers = await self._service.write(partial(_forget_room, jid=jid))
        self._events.removed(consumers)


def _add_own_ids(state: Room, own_ids: dict[str, str]) -> None:
    state.own_ids.update(own_ids)
    while len(state.own_ids) > MAX_OWN_IDS:
        del state.own_ids[next(iter(state.own_ids))]


def _site(domain: str) -> str:
    """The domain of the server to which a service for rooms belongs."""
    # Below a public suffix such as co.uk all servers count as one site: the limit is then stricter, never laxer.
    return ".".join(domain.split(".")[-2:])


def _remember_room(tx: WriteTx, _context: Context, room: str) -> None:
    if chat_rows.chat(tx, room) is None:
        chat_rows.put(tx, ChatRow(room, room=True))


def _forget_room(tx: WriteTx, context: Context, jid: Jid) -> list[Consumer]:
    row = chat_rows.chat(tx, jid.bare_text)
    if row is None or not row.room:
        return []  # the address of a user of the bot, which somebody named as a room
    chat_rows.remove(tx, row.jid)
    return unfollow_all(tx, context, jid)
