"""This process among the processes on a database, from the settings (docs/scaling.md)."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from smartfeeds import __version__, system
from smartfeeds.app.config import Settings
from smartfeeds.app.feature import Work
from smartfeeds.delivery.changes import ChangeNotifier
from smartfeeds.delivery.duties import Duty
from smartfeeds.delivery.indexing import Indexer
from smartfeeds.delivery.sweeps import SWEEPS
from smartfeeds.features.cluster.canary import Canary
from smartfeeds.features.cluster.database_watch import DatabaseWatch
from smartfeeds.features.cluster.group_readings import ProcessReading
from smartfeeds.features.cluster.letter import ANY_PROCESS, LetterTopic, write_letter
from smartfeeds.features.cluster.letters import Letterbox
from smartfeeds.features.cluster.locks import ShardLocks
from smartfeeds.features.cluster.notices import SessionEvents
from smartfeeds.features.cluster.ownership import Ownership, sole_ownership
from smartfeeds.features.cluster.relay import StanzaRelay
from smartfeeds.features.cluster.shards import SHARDS
from smartfeeds.features.polling.setup import Polls
from smartfeeds.formats.atom import read_traits
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.migrate import HEAD
from smartfeeds.xmpp.stream import ComponentStream

if TYPE_CHECKING:
    from smartfeeds.features.cluster.letter_table import HeardLetters

LINKS = 4  # the least number of links for which pings are sent: the count of processes may be a second old


Spawn = Callable[[Coroutine[None, None, None], str], "asyncio.Task[None]"]


class ProcessGroup:
    """The processes on a database, as this process sees them. `instance` is its id among them.

    `spawn` starts a task that has a name. `attach` is called once, before the start.
    """

    def __init__(self, settings: Settings, service: FeedService, changes: ChangeNotifier, spawn: Spawn) -> None:
        self.instance = system.new_instance()
        self._settings = settings
        self._service = service
        self._changes = changes
        self._spawn = spawn
        self._stream: ComponentStream | None = None
        self._canary: Canary | None = None
        self._database = DatabaseWatch(service)
        self._online = asyncio.Event()
        self._heard: HeardLetters | None = None
        self.ownership = self._make_ownership()
        self.letters = Letterbox(self.ownership.send_letter, self.has_others)
        self.relay = StanzaRelay(self.instance, self.letters.post, self.has_others)
        changes.forward(self.ownership.announce)

    def _make_ownership(self) -> Ownership:
        store = self._settings.store
        if not store.is_shared:
            return sole_ownership(self._service)
        events = SessionEvents(
            self._on_changed,
            lambda letter: self.letters.receive(letter),
            lambda reason: self.ownership.note_lost(reason),
            self._on_joined,
            self._on_missed,
        )

        async def open_locks() -> ShardLocks:
            # psycopg is an extra: a service on SQLite starts without it.
            from smartfeeds.features.cluster.letter_table import HeardLetters
            from smartfeeds.features.cluster.lock_session import LockSession

            self._heard = self._heard or HeardLetters()
            return await LockSession.open(
                store.address,
                self.instance,
                lease_s=store.lease_s,
                events=events,
                reader=read_traits,
                heard=self._heard,
            )

        return Ownership(
            open_locks,
            lease_s=store.lease_s,
            is_linked=lambda: self._online.is_set(),
            start_shard=crc32(self.instance.encode()) % SHARDS,
        )

    def attach(self, stream: ComponentStream, online: asyncio.Event) -> None:
        """Connects the group to the link of this process."""
        self._stream, self._online = stream, online
        for topic in (LetterTopic.SHARED, LetterTopic.HANDED):
            self.letters.read(topic, partial(stream.receive_stanza, topic))
        self.letters.read(LetterTopic.OUTGOING, stream.outbox.reply)
        self.ownership.on_link_lost = partial(stream.drop, "lease-lost")
        if self._settings.component.link != "off":
            self._canary = Canary(stream, online.is_set, asyncio.sleep, answer_s=self._settings.link.answer_s)

    def start(self) -> None:
        """Starts to send beats and pings, and to watch the database. The start of `ownership` comes before."""
        self._spawn(self.ownership.run(), "ownership")
        if self._canary is not None:
            self._spawn(self._canary.run(), "canary")
        if self._settings.store.is_shared:
            self._spawn(self._database.run(), "database watch")

    def add_duties(self, indexer: Indexer, polls: Polls) -> None:
        """Adds the background work that one process does at a time."""
        service = self._service
        duties: list[tuple[str, Work]] = [
            ("filter index", indexer.run),
            *((sweep.name, partial(sweep.run, service)) for sweep in SWEEPS),
            *polls.duties(),
        ]
        self.add(duties)

    def add(self, duties: Iterable[tuple[str, Work]]) -> None:
        """Adds works that one process at a time does, with their names."""
        for name, work in duties:
            self.ownership.register(Duty(name, work, self._spawn))

    @property
    def role(self) -> str:
        """`active` with a link, `standby` without one, `http` if this process never has a link."""
        if self._settings.component.link == "off":
            return "http"
        return "active" if self._online.is_set() else "standby"

    def readings(self) -> Iterator[object]:
        """Returns the metrics of this process and of what it shares."""
        yield self.ownership.reading()
        if self._canary is not None:
            yield self._canary.reading()
        yield ProcessReading(self.role, __version__, HEAD)
        yield from self._database.load()
        yield from self._database.standbys()
        yield from self._database.standby_lag()

    def report(self) -> dict[str, dict[str, float]]:
        """Returns what the status file has about the link, and about a database that several processes may use."""
        report = {} if self._canary is None else {"canary": asdict(self._canary.reading())}
        if self._settings.store.is_shared:
            report["ownership"] = asdict(self.ownership.reading())
            report["standbys"] = {reading.state: reading.count for reading in self._database.standbys()}
            for load in self._database.load():
                report["database"] = asdict(load)
        return report

    def link_count(self) -> int:
        """Returns how many links of this domain there may be. A process that is starting is not counted yet."""
        return max(LINKS, self.ownership.processes) if self._settings.store.is_shared else 1

    def has_others(self) -> bool:
        """Whether another process may have a link, too: the server may send to it what is for this process."""
        return self.ownership.processes > 1

    async def unless_shared(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Does work that ends the service for users, unless another process goes on to serve them."""
        if not self.has_others():
            await work()

    def send(self, stanza: bytes) -> None:
        """Sends a stanza by the link of this process, or else by that of another one."""
        if self._stream is not None and self._online.is_set():
            self._stream.outbox.reply(stanza)
        else:
            self.letters.post(ANY_PROCESS, write_letter(LetterTopic.OUTGOING, stanza))

    async def stop(self) -> None:
        """Sends the last letters and closes the locks. The link is closed before."""
        await self.letters.close()
        await self.ownership.stop()

    def leave(self) -> None:
        """Passes new stanzas to another process from now on, if one has a link."""
        if self.ownership.has_linked_peer:
            self.relay.leave()

    def check_lease(self) -> bool:
        """Returns whether this process may use its new link. Closes it if its lease was lost meanwhile."""
        if self._settings.component.link != "lease" or self.ownership.has_link:
            return True
        self.ownership.on_link_lost()
        return False

    def _on_joined(self) -> None:
        self.ownership.note_joined()
        self.letters.note_joined()

    def _on_missed(self) -> None:
        """Connects again, which reads everything anew that the lost letters may have said."""
        if self._stream is not None and self.has_others():
            self._stream.drop("letters-missed")

    def _on_changed(self, node_nos: Collection[int] | None) -> None:
        if node_nos is None:
            self._spawn(self._changes.look(), "look")
        else:
            self._changes.receive(node_nos)
