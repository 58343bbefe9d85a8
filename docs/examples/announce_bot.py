"""Posts each new entry of a feed to a room or a person, exactly once across restarts (docs/bots.md has the limits).

Settings: BOT_JID, BOT_PASSWORD, BOT_FEED (xmpp:feeds.example?;node=comments%3Forder=created), BOT_TARGET (the address
of a person or a room), BOT_NICK (only for a room), BOT_POSITION (a file), BOT_SERVER (host:port, no TLS; for tests).
"""

import asyncio
import os
import sys
from hashlib import sha256

from slixmpp.exceptions import IqTimeout, PresenceError

from smartfeeds.client import ChangeKind, ClientLink, Follower, FollowError

NEEDED = ("BOT_JID", "BOT_PASSWORD", "BOT_FEED", "BOT_TARGET", "BOT_POSITION")
if missing := [name for name in NEEDED if name not in os.environ]:
    print(f"announce_bot: set {', '.join(missing)} in the environment", file=sys.stderr)
    sys.exit(2)
TARGET, NICK = os.environ["BOT_TARGET"], os.environ.get("BOT_NICK")


class Announcer:
    def __init__(self, bot):
        self.bot, self.joined, self.posted = bot, asyncio.Event(), set()
        self.refused = asyncio.get_running_loop().create_future()
        bot.register_plugin("xep_0045")
        bot.register_plugin("xep_0199")
        bot.add_event_handler("session_start", self.join)
        bot.add_event_handler("disconnected", lambda _: self.joined.clear())
        bot.add_event_handler("presence_error", self.on_presence_error)
        bot.add_event_handler(f"muc::{TARGET}::self-presence", self.on_self_presence)

    async def join(self, _event):
        if NICK:  # entries in the history of the room were posted before the restart
            try:
                room = self.bot.plugin["xep_0045"]
                presence, _, _, history = await room.join_muc_wait(TARGET, NICK, maxstanzas=100, timeout=60)
            except (PresenceError, TimeoutError):
                if not self.joined.is_set():  # a later session may have joined meanwhile
                    self.refuse("no answer")
                return
            if 201 in presence["muc"]["status_codes"]:  # joining has created an empty room (XEP-0045 10.1.1)
                room.leave_muc(TARGET, NICK)
                self.refuse("the room does not exist; create it first")
                return
            self.posted |= {old["id"] for old in history if old["from"].resource == NICK}
        self.joined.set()

    def on_presence_error(self, presence):  # join_muc_wait does not see the errors of every server
        if presence["from"].bare == TARGET:
            self.refuse(f"{presence['error']['condition']} {presence['error']['text']}".strip())

    def on_self_presence(self, presence):
        if presence["type"] == "unavailable":
            self.refuse("the room has removed the bot, or was destroyed")

    def refuse(self, reason):
        if not self.refused.done():
            self.refused.set_exception(FollowError(f"cannot join {TARGET} as {NICK}: {reason}"))

    async def post(self, key, text):
        await self.joined.wait()
        while key not in self.posted:
            message = self.bot.make_message(TARGET, text, mtype="groupchat" if NICK else "chat")
            message["id"] = key  # the same at each attempt, so that readers recognise a repetition
            message.send()
            ping = self.bot.plugin["xep_0199"].send_ping(TARGET if NICK else self.bot.boundjid.host, timeout=30)
            (answer,) = await asyncio.gather(ping, return_exceptions=True)
            if isinstance(answer, IqTimeout):
                self.joined.clear()
                self.bot.abort()
                await self.joined.wait()
            else:  # an answer of any kind: what was sent before it has arrived
                self.posted.add(key)

    async def post_all(self, feed):
        async for change in feed:
            if change.kind not in (ChangeKind.DELETED, ChangeKind.LEFT):
                await self.post(sha256(change.item_id.encode()).hexdigest(), f"{change.title} {change.link}".strip())


async def main():
    host, _, port = os.environ.get("BOT_SERVER", "").rpartition(":")
    server = {"server": (host, int(port)), "plaintext": True} if host else {}
    link = ClientLink(os.environ["BOT_JID"], os.environ["BOT_PASSWORD"], **server)
    announcer = Announcer(link.client)
    async with Follower(link, os.environ["BOT_FEED"], store=os.environ["BOT_POSITION"]) as feed:
        await asyncio.gather(announcer.refused, announcer.post_all(feed))  # ends when one of them fails


try:
    asyncio.run(main())
except FollowError as error:
    sys.exit(f"announce_bot: {error}")
