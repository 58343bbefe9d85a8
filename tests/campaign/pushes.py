"""The notifications of the service on the wire to a real Prosody, with a subscriber that is online."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from campaign.history import DELETED, Event, History, Kind, Status, digest_of
from campaign.service import NODE
from smartfeeds.core.position import parse_cursor
from support.client import log_in
from support.component import NS
from support.relay import Relay
from support.servers import TestServer
from support.world import read_event

SUBSCRIBER = "bob"
IN_STEP_S = 30.0


@dataclass(slots=True)
class PushProgress:
    """The key of the last notification of each node, of all wires that share it."""

    last_us: dict[str, int] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _announcements: set["asyncio.Task[None]"] = field(default_factory=set)

    def reach(self, node: str, key_us: int) -> None:
        """Notes a notification."""
        self.last_us[node] = key_us
        announcement = asyncio.get_running_loop().create_task(self._announce())
        self._announcements.add(announcement)
        announcement.add_done_callback(self._announcements.discard)

    async def _announce(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, key_us: int, node: str = NODE) -> None:
        """Returns when the last notification has this key or a later one, or after `IN_STEP_S`."""
        with suppress(TimeoutError):  # the checker reports a subscriber that is behind
            async with asyncio.timeout(IN_STEP_S), self.changed:
                await self.changed.wait_for(lambda: self.last_us.get(node, 0) >= key_us)


@dataclass(slots=True)
class PushWire:
    """Writes each notification that passes `relay` into the history.

    `sender` is the process, if there are several. `life` returns the number of a connection of the process: it is a new
    number for each fault after which notifications may be repeated.
    """

    relay: Relay
    history: History
    sender: str = ""
    life: Callable[[int], int] = int
    progress: PushProgress = field(default_factory=PushProgress)

    def see(self, stanza: bytes) -> bool:
        """Notes a notification. Returns False, because none of them gets lost here."""
        if stanza.startswith(b"<message") and b"/pubsub#event'" in stanza:
            event = self._note(stanza)
            self.progress.reach(event.node, event.key_us)
        return False

    def _note(self, stanza: bytes) -> Event:
        event = read_event(stanza)
        content = event.xml.findtext(".//a:content", "", NS)
        return self.history.note(
            *(f"push:{event.to}", Kind.PUSH, Status.OK),
            node=event.node.partition("?")[0],
            item=event.item_id,
            life=self.life(self.relay.speaking),
            digest=DELETED if event.deleted else digest_of(event.text, content),
            key_us=_key(event.last),
            previous_us=_key(event.previous) if event.previous else 0,
            note=self.sender,
        )

    async def until(self, key_us: int) -> None:
        """Returns when the notification of this key or a later one has passed, or after `IN_STEP_S`."""
        await self.progress.until(key_us)


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
