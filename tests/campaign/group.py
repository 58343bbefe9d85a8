"""Several processes of the service on one database, each behind cables that a campaign cuts (docs/scaling.md)."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from campaign.cable import Cable
from campaign.history import History
from campaign.moved_clock import VARIABLE, MovedClock
from campaign.pushes import SUBSCRIBER, PushProgress, PushWire
from campaign.service import Preload, Service
from support.client import log_in
from support.postgres import PostgresServer
from support.relay import Relay
from support.servers import TestServer

LEASE_S = 2.0
NODES = ("news0", "news1", "news2", "news3")
SUPERVISE_S = 0.2
START_ATTEMPTS = 50
FILLERS = 15  # between two of the nodes, so that they are in shards of both processes


@dataclass
class Member:
    """One process: `database` and `link` are its cables to the database and to the XMPP server.

    `relay` is behind `link` and sees its notifications. A fault holds `free`.
    `life` is held while something ends, stops or starts the process.
    """

    name: str
    service: Service
    database: Cable
    link: Cable
    relay: Relay
    free: asyncio.Lock = field(default_factory=asyncio.Lock)
    life: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_linked(self) -> bool:
        """Whether the XMPP server has accepted its link."""
        return self.relay.accepted == self.relay.life > self.relay.ended

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process."""
        assert self.service.pid, "the process is not running"
        os.kill(self.service.pid, number)


@dataclass
class Group:
    """The processes. For clients it is one service: each request goes to a random process that is up."""

    members: list[Member]
    history: History
    progress: PushProgress
    chance: random.Random
    up: asyncio.Event = field(default_factory=asyncio.Event)
    label: str = ""
    token: str = ""
    exits: int = 0
    _lives: dict[tuple[str, int, int], int] = field(default_factory=dict)
    _hits: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of a process that is up, or of any if none is."""
        up = [member for member in self.members if member.service.up.is_set()]
        return self.chance.choice(up or self.members).service.url

    def member_of(self, port: int) -> str:
        """The process that has this connection to the database; empty if there is none."""
        return next((member.name for member in self.members if port in member.database.target_ports), "")

    def hit(self, name: str) -> None:
        """Notes that a fault hits a process or ends: its notifications have another life from now on."""
        self._hits[name] = self._hits.get(name, 0) + 1
        self.history.hit(name)

    def life(self, name: str, connection: int) -> int:
        """The number of a life: a connection between two hits."""
        return self._lives.setdefault((name, connection, self._hits.get(name, 0)), len(self._lives) + 1)

    def set_up(self, member: Member, *, is_up: bool) -> None:
        """Whether clients choose the process from now on."""
        (member.service.up.set if is_up else member.service.up.clear)()
        is_any_up = any(each.service.up.is_set() for each in self.members)
        (self.up.set if is_any_up else self.up.clear)()

    async def start(self, member: Member) -> None:
        """Starts the process of a member, and returns when it accepts requests.

        A process gives up if the database ends its sessions while it starts. It is started again, as systemd does.
        Raises RuntimeError if that does not help.
        """
        for attempt in range(START_ATTEMPTS):
            member.service.fork()
            try:
                await member.service.wait()
            except RuntimeError:
                member.service.end()
                self.exits += 1
                if attempt == START_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(SUPERVISE_S)
            else:
                self.set_up(member, is_up=True)
                return

    async def supervise(self) -> None:
        """Starts processes again that ended by themselves. `exits` counts them."""
        while True:
            for member in self.members:
                if not member.life.locked() and member.service.has_ended:
                    async with member.life:
                        self.exits += 1
                        self.kill(member)
                        await self.start(member)
            await asyncio.sleep(SUPERVISE_S)

    def kill(self, member: Member) -> None:
        """Kills the process of a member."""
        self.set_up(member, is_up=False)
        self.hit(member.name)
        member.service.end()

    def end(self) -> None:
        """Kills all processes."""
        for member in self.members:
            if member.service.pid:
                self.kill(member)


@asynccontextmanager
async def prepared_group(
    preload: Preload,
    folder: Path,
    database: PostgresServer,
    server: TestServer,
    domain: str,
    history: History,
    seed: int,
    *,
    count: int = 2,
    link: str = "always",
    clock_step_s: float = 0.0,
    defect: str = "",
) -> AsyncIterator[tuple[Group, str]]:
    """Processes that are not started yet, and the address of their database. The subscriber is logged in.

    The clock of each process is `clock_step_s` seconds ahead of the clock of the process before.
    """
    url = await asyncio.to_thread(database.create_database)
    group = Group([], history, PushProgress(), random.Random(f"{seed} group"))
    async with AsyncExitStack() as stack:
        subscriber = await log_in(server, SUBSCRIBER)
        stack.push_async_callback(subscriber.logout)
        for number in range(count):
            name = f"p{number}"
            relay = await stack.enter_async_context(Relay(server.component_port))
            to_database = await stack.enter_async_context(Cable(database.port))
            to_server = await stack.enter_async_context(Cable(relay.port))
            relay.lost = PushWire(
                relay, history, name, lambda life, name=name: group.life(name, life), group.progress
            ).see
            to_database.on_end = lambda name=name: group.hit(name)
            (folder / name).mkdir()
            clock = MovedClock(folder / name / "clock")
            clock.move(number * clock_step_s)
            service = Service(
                preload,
                folder / name,
                environment={VARIABLE: str(clock.path)},
                store_url=f"postgresql://postgres@127.0.0.1:{to_database.port}/{url.rpartition('/')[2]}",
                defect=defect,
                component={"jid": domain, "port": to_server.port, "link": link},
                store={"lease_s": LEASE_S},
                link={"retry_most_s": 1.0},
                log={"level": "info"},
            )
            group.members.append(Member(name, service, to_database, to_server, relay))
        await _create_feeds(group.members)
        group.token = group.members[0].service.token
        stack.callback(group.end)
        yield group, url


async def _create_feeds(members: Sequence[Member]) -> None:
    """Creates the database with the feeds. All processes accept the token of the first one."""
    first = members[0].service
    await first.prepare(*NODES, subscriber=f"{SUBSCRIBER}@localhost", fillers=FILLERS)
