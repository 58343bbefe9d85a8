"""The notifications of the service on the wire to a real Prosody, with a subscriber that is online."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from campaign.history import DELETED, Event, History, Kind, Status, digest_of
from smartfeeds.core.cursor import parse_cursor
from support.client import log_in
from support.component import NS
from support.relay import Relay
from support.servers import TestServer
from support.world import read_event

SUBSCRIBER = "bob"
IN_STEP_S = 30.0


@dataclass(slots=True)
class PushWire:
    """Writes each notification that passes `relay` into the history. `last_us` is the key of the last one."""

    relay: Relay
    history: History
    last_us: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _announcements: set["asyncio.Task[None]"] = field(default_factory=set)

    def see(self, stanza: bytes) -> bool:
        """Notes a notification. Returns False, because none of them gets lost here."""
        if stanza.startswith(b"<message") and b"/pubsub#event'" in stanza:
            self._note(stanza)
            announcement = asyncio.get_running_loop().create_task(self._announce())
            self._announcements.add(announcement)
            announcement.add_done_callback(self._announcements.discard)
        return False

    async def _announce(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _note(self, stanza: bytes) -> Event:
        event = read_event(stanza)
        content = event.xml.findtext(".//a:content", "", NS)
        self.last_us = _key(event.last)
        return self.history.note(
            *(f"push:{event.to}", Kind.PUSH, Status.OK),
            node=event.node.partition("?")[0],
            item=event.item_id,
            life=self.relay.life,
            digest=DELETED if event.deleted else digest_of(event.text, content),
            key_us=self.last_us,
            previous_us=_key(event.previous) if event.previous else 0,
        )

    async def until(self, key_us: int) -> None:
        """Returns when the notification of this key or a later one has passed, or after `IN_STEP_S`."""
        with suppress(TimeoutError):  # the checker reports a subscriber that is behind
            async with asyncio.timeout(IN_STEP_S), self.changed:
                await self.changed.wait_for(lambda: self.last_us >= key_us)


def _key(cursor: str | None) -> int:
    position = None if cursor is None else parse_cursor(cursor.rpartition("~")[2])
    assert position is not None, cursor
    return position.key_us


@asynccontextmanager
async def notified(server: TestServer, history: History) -> AsyncIterator[PushWire]:
    """A relay between the service and the server, and a client that is logged in as the subscriber."""
    subscriber = await log_in(server, SUBSCRIBER)
    try:
        async with Relay(server.component_port) as relay:
            wire = PushWire(relay, history)
            relay.lost = wire.see
            yield wire
    finally:
        await subscriber.logout()
