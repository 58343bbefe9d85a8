"""Sets up this process among the processes on a database (docs/scaling.md)."""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from lxml import etree

from smartfeeds import __version__
from smartfeeds.app.config import Settings
from smartfeeds.app.group import Group, GroupLink, Spawn
from smartfeeds.delivery.changes import ChangeNotifier
from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.cluster.canary import Canary
from smartfeeds.features.cluster.database_watch import DatabaseWatch
from smartfeeds.features.cluster.letter import ANY_PROCESS, HANDED, OUTGOING, SHARED, write_letter
from smartfeeds.features.cluster.letters import Letterbox
from smartfeeds.features.cluster.locks import ShardLocks
from smartfeeds.features.cluster.metrics import OwnershipReading, ProcessReading
from smartfeeds.features.cluster.notices import SessionEvents
from smartfeeds.features.cluster.ownership import SharedOwnership
from smartfeeds.features.cluster.relay import StanzaRelay, read_stanza
from smartfeeds.features.cluster.shards import pings_for
from smartfeeds.features.cluster.shared_stanzas import SharedStanzas
from smartfeeds.formats.atom import read_traits
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.migrate import HEAD

if TYPE_CHECKING:
    from smartfeeds.features.cluster.letter_table import HeardLetters

# The least number of links for which pings are sent (49 of them): the count of processes may be a second old.
LINKS = 4


def make_process_group(settings: Settings, service: FeedService, changes: ChangeNotifier, spawn: Spawn) -> Group:
    """Returns the group of the processes on the database of the settings."""
    if settings.store.is_shared:
        return SharedGroup(settings, service, changes, spawn)
    return ProcessGroup(settings, service, spawn)


class ProcessGroup(Group):
    """A process with a database of its own, its canary and its metrics. `spawn` starts a task that has a name."""

    def __init__(self, settings: Settings, service: FeedService, spawn: Spawn) -> None:
        super().__init__(service)
        self._settings = settings
        self._spawn = spawn
        self._online = asyncio.Event()
        self._canary: Canary | None = None

    def attach(self, link: GroupLink) -> None:
        """Connects the group to the link of this process."""
        super().attach(link)
        self._online = link.online
        if self._settings.component.link != "off":
            is_online, answer_s = link.online.is_set, self._settings.link.answer_s
            self._canary = Canary(link.stream, is_online, asyncio.sleep, answer_s=answer_s)

    def start(self) -> None:
        """Starts to send pings."""
        if self._canary is not None:
            self._spawn(self._canary.run(), "canary")

    @property
    def role(self) -> str:
        """`active` with a link, `standby` without one, `http` if this process never has a link."""
        if self._settings.component.link == "off":
            return "http"
        return "active" if self._online.is_set() else "standby"

    def readings(self) -> Iterator[object]:
        """Returns the metrics of this process."""
        yield self._ownership_reading()
        if self._canary is not None:
            yield self._canary.reading()
        yield ProcessReading(self.role, __version__, HEAD)

    def report(self) -> dict[str, dict[str, float]]:
        """Returns what the status file has about the link."""
        return {} if self._canary is None else {"canary": asdict(self._canary.reading())}

    def _ownership_reading(self) -> OwnershipReading:
        return OwnershipReading(len(self.ownership.owned), self.ownership.processes)


class SharedGroup(ProcessGroup):
    """A process whose database others may serve, too."""

    def __init__(self, settings: Settings, service: FeedService, changes: ChangeNotifier, spawn: Spawn) -> None:
        super().__init__(settings, service, spawn)
        self._changes = changes
        self._database = DatabaseWatch(service)
        self._shared: SharedStanzas | None = None
        self._heard: HeardLetters | None = None
        self.ownership: SharedOwnership = SharedOwnership(
            self._open_locks,
            lease_s=settings.store.lease_s,
            is_linked=lambda: self._online.is_set(),
            # Any spread over the shards will do (`plan_shards`).
            start_shard=crc32(self.instance.encode()) % SHARDS,
        )
        self.letters: Letterbox = Letterbox(self.ownership.send_letter, lambda: self.ownership.processes > 1)
        self.relay: StanzaRelay = StanzaRelay(
            self.instance, self.letters.post, self.letters.has_others, lambda message: self._concerns(message)
        )
        changes.forward(self.ownership.announce)
        if settings.component.link == "lease":
            self.may_connect = self.ownership.await_link

    async def _open_locks(self) -> ShardLocks:
        # psycopg is an extra: a service on SQLite starts without it.
        from smartfeeds.features.cluster.letter_table import HeardLetters
        from smartfeeds.features.cluster.lock_session import LockSession

        # It outlives the session: what the former one has read must not be read again.
        self._heard = self._heard or HeardLetters()
        store = self._settings.store
        events = SessionEvents(
            self._on_changed, self.letters.receive, self.ownership.note_lost, self._on_joined, self._on_missed
        )
        return await LockSession.open(
            store.address,
            self.instance,
            lease_s=store.lease_s,
            events=events,
            reader=read_traits,
            heard=self._heard,
        )

    def attach(self, link: GroupLink) -> None:
        """Connects the group to the link of this process."""
        super().attach(link)
        stream = link.stream
        self._shared = SharedStanzas(link.router.addresses, link.stanzas, link.router.start)
        self.letters.read(SHARED, self._receive)
        self.letters.read(HANDED, lambda body: stream.receive_handed(read_stanza(body)))
        self.letters.read(OUTGOING, stream.outbox.reply)
        self.ownership.on_link_lost = partial(stream.drop, "lease-lost")

    def start(self) -> None:
        """Starts to send beats and pings, and to watch the database."""
        self._spawn(self.ownership.run(), "ownership")
        super().start()
        self._spawn(self._database.run(), "database watch")

    async def stop(self) -> None:
        """Sends the last letters and closes the locks, whose session carries the letters."""
        await self.letters.close()
        await self.ownership.stop()

    def leave(self) -> None:
        """Passes new stanzas to another process from now on, if one has a link."""
        if self.ownership.has_linked_peer:
            self.relay.leave()

    def has_lease(self) -> bool:
        """Returns whether this process may use its new link. Closes it if its lease was lost meanwhile."""
        if self.may_connect is None or self.ownership.has_link:
            return True
        self.ownership.on_link_lost()
        return False

    def burst(self) -> int:
        """Returns how many pings find a sound link. A process that is starting is not counted yet."""
        return pings_for(max(LINKS, self.ownership.processes))

    def send(self, stanza: bytes) -> None:
        """Sends a stanza by the link of this process, or else by that of another one."""
        if self._online.is_set():
            super().send(stanza)
        else:
            self.letters.post(ANY_PROCESS, write_letter(OUTGOING, stanza))

    def readings(self) -> Iterator[object]:
        """Returns the metrics of this process and of what it shares."""
        yield from super().readings()
        yield from self._database.load()
        yield from self._database.standbys()
        yield from self._database.standby_lag()

    def report(self) -> dict[str, dict[str, float]]:
        """Returns what the status file has about the link and the database."""
        report = super().report()
        report["ownership"] = asdict(self._ownership_reading())
        report["standbys"] = {reading.state: reading.count for reading in self._database.standbys()}
        for load in self._database.load():
            report["database"] = asdict(load)
        return report

    def _ownership_reading(self) -> OwnershipReading:
        return self.ownership.reading()

    def _concerns(self, message: etree._Element) -> bool:
        return self._shared is not None and self._shared.concerns(message)

    def _receive(self, body: bytes) -> None:
        """Reads a stanza that the server has sent to another process of this domain."""
        element = read_stanza(body)
        if self._shared is not None and not self._shared.note(element) and self.link is not None:
            self.link.stream.receive_shared(element)

    def _on_joined(self) -> None:
        self.ownership.note_joined()
        self.letters.note_joined()

    def _on_missed(self) -> None:
        """Connects again, which reads everything anew that the lost letters may have said."""
        if self.link is not None and self.letters.has_others():
            self.link.stream.drop("letters-missed")

    def _on_changed(self, node_nos: Collection[int] | None) -> None:
        if node_nos is None:
            self._spawn(self._changes.look(), "look")
        else:
            self._changes.receive(node_nos)
