"""Messages to people that answer none of theirs: answers to their entries, and what waits for their decision.

A notice is sent at once or when the quiet hours of the person end. It is no delivery of a feed and is not repeated,
because its matter is stored elsewhere. So a restart loses what waits, and nothing has to be stored.
"""

import asyncio
import secrets
from collections.abc import Iterable
from functools import partial

from smartfeeds import system
from smartfeeds.app.feature import Host
from smartfeeds.chat.notices import ChatNotices, WriteNotice
from smartfeeds.core.jid import Jid
from smartfeeds.core.limits import DOMAIN_SHARE, Rate, RateLimits
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.bot import rows
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.bot.schedule import due_us
from smartfeeds.features.bot.stanzas import OutgoingChat, encode_message, responses_of
from smartfeeds.service.context import Context, refusal_of
from smartfeeds.store.base import ReadTx
from smartfeeds.texts import ENGLISH, Texts

# To one person: a discussion stays readable, and nobody can flood a person with answers, or with what waits.
RATE = Rate(per_s=1 / 60, burst=10)
# Messages that wait for the end of quiet hours. They are in memory, a few kB each; more are dropped.
WAITING = 1_000


def person_limits(person: Rate) -> RateLimits:
    """Returns the limits of a rate for each person, and of a greater one for all people of a domain: a server with
    thousands of people is served, and one that accepts every address cannot make the service send without end."""
    domain = Rate(person.per_s * DOMAIN_SHARE, person.burst * DOMAIN_SHARE)
    return RateLimits(per_sender=person, per_domain=domain, clock=system.monotonic)


def find_recipient(tx: ReadTx, context: Context, person: Jid) -> ChatRow | None:
    """The settings of a person who uses the bot, None for a room, and for everybody else."""
    row = rows.chat(tx, person.bare_text)
    return None if row is None or row.room or refusal_of(tx, context.policy, person) is not None else row


def find_recipients(tx: ReadTx, context: Context, people: Iterable[Jid]) -> list[tuple[Jid, ChatRow]]:
    """Those of some people who use the bot, with their settings."""
    return [(person, row) for person in people if (row := find_recipient(tx, context, person)) is not None]


class NoticeSender:
    """Sends the notices of one kind, each person at most so many. `domain` is the address of the service."""

    def __init__(self, host: Host, domain: str) -> None:
        self._host = host
        self._domain = domain
        self._limits = person_limits(RATE)
        self._waiting = 0

    async def send(self, person: Jid, row: ChatRow, write: WriteNotice, message_id: str) -> None:
        """Sends what `write` returns in the language of a person. `write` may take long: it runs in a thread."""
        if not self._limits.admit(person):
            return
        texts = Texts(row.settings.language or ENGLISH)
        notice = await asyncio.to_thread(write, texts)
        chat = OutgoingChat(row.jid, notice.text, message_id, "chat", texts.language, responses_of(notice))
        stanza, now_us = encode_message(chat, self._domain), self._host.now_us()
        due = due_us(row.settings, now_us, now_us)
        if due <= now_us:
            self._host.send(stanza)
        elif self._waiting < WAITING:
            self._waiting += 1
            wait_s = (due - now_us) / US_PER_S
            self._host.process.spawn(partial(self._send_later, stanza, wait_s), "notice after quiet hours")

    async def _send_later(self, stanza: bytes, wait_s: float) -> None:
        try:
            await self._host.process.sleep(wait_s)
            self._host.send(stanza)
        finally:
            self._waiting -= 1


def notices_of(host: Host, domain: str) -> ChatNotices:
    """Returns the part by which other features send notices."""
    sender = NoticeSender(host, domain)

    async def send(people: tuple[Jid, ...], write: WriteNotice) -> None:
        for person, row in await host.service.read(partial(find_recipients, people=people), turn="notices"):
            await sender.send(person, row, write, secrets.token_hex(8))

    return ChatNotices(lambda people, write: host.process.spawn(partial(send, people, write), "notices"))
