"""Faults for several processes on one database (`campaign.shared`): kills, pauses, ended sessions, cuts, partitions."""

import asyncio
import random
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from campaign.clients import writes_again
from campaign.group import LEASE_S, Group, Member
from campaign.observer import Observer
from support.postgres import PostgresServer

LONGEST_HOLD_S = 4 * LEASE_S


@dataclass
class Breaker:
    """What a fault needs. No partition lasts longer than `longest_hold_s`.

    `takeovers` has the seconds until other sessions had all shards, by fault.
    """

    group: Group
    observer: Observer
    database: PostgresServer
    chance: random.Random
    longest_hold_s: float = LONGEST_HOLD_S
    takeovers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)
    database_free: asyncio.Lock = field(default_factory=asyncio.Lock)

    def begin(self, name: str, member: Member) -> "asyncio.Task[None]":
        """Notes a fault of one process, and measures in a task how long its shards have no other owner."""
        self.group.history.fault(name)
        self.group.hit(member.name)
        return asyncio.create_task(self._measure(name, member.name))

    async def _measure(self, name: str, member: str) -> None:
        former = self.observer.sessions(member)
        if not (former and self.observer.members - {member}):  # nothing to take over, or no process that could
            return
        try:
            self.takeovers[name].append(await self.observer.taken_over(former))
        except TimeoutError:
            self.problems.append(f"after {name} of {member} not all shards have another owner")

    async def pause(self, least_s: float, most_s: float) -> None:
        """Waits for a random time."""
        await asyncio.sleep(self.chance.uniform(least_s, most_s))

    async def writes_again(self) -> None:
        """Returns when the clients can write."""
        await writes_again(self.group.history)


Fault = Callable[[Breaker, Member], Awaitable[None]]


async def kill(breaker: Breaker, member: Member) -> None:
    """SIGKILL. The process starts again after at most a second."""
    async with member.life:
        takeover = breaker.begin("kill", member)
        breaker.group.kill(member)
        await breaker.pause(0, 1)
        # Otherwise the process itself takes its shards again: this is no takeover.
        await takeover
        await breaker.group.start(member)


async def restart_at_once(breaker: Breaker, member: Member) -> None:
    """SIGKILL, and the next life begins at once."""
    async with member.life:
        breaker.group.history.fault("kill, restart at once")
        breaker.group.kill(member)
        await breaker.group.start(member)


async def stop_short(breaker: Breaker, member: Member) -> None:
    """SIGSTOP for less than the lease."""
    breaker.group.history.fault("pause shorter than the lease")
    await _stop(breaker, member, 0.05 * LEASE_S, 0.45 * LEASE_S)


async def stop_long(breaker: Breaker, member: Member) -> None:
    """SIGSTOP for longer than the lease: another process takes over, and the first one wakes."""
    takeover = breaker.begin("pause longer than the lease", member)
    await _stop(breaker, member, 1.5 * LEASE_S, 3 * LEASE_S)
    await takeover


async def _stop(breaker: Breaker, member: Member, least_s: float, most_s: float) -> None:
    group = breaker.group
    async with member.life:
        group.hit(member.name)
        group.set_up(member, is_up=False)  # requests in progress wait
        member.send(signal.SIGSTOP)
        try:
            await breaker.pause(least_s, most_s)
        finally:
            group.hit(member.name)  # it may write late what it had begun
            member.send(signal.SIGCONT)
        group.set_up(member, is_up=True)


async def end_lock_session(breaker: Breaker, member: Member) -> None:
    """The database ends the session that has the locks."""
    takeover = breaker.begin("lock session ended", member)
    await breaker.observer.end_sessions(member.name, member.database.target_ports, locks_only=True)
    await takeover


async def end_all_sessions(breaker: Breaker, member: Member) -> None:
    """The database ends all sessions of the process."""
    takeover = breaker.begin("all sessions ended", member)
    await breaker.observer.end_sessions(member.name, member.database.target_ports, locks_only=False)
    await takeover


async def cut_link(breaker: Breaker, member: Member) -> None:
    """The link to the XMPP server is reset, and refused for a while."""
    breaker.group.history.fault("link cut")
    breaker.group.hit(member.name)
    await member.link.cut()
    await breaker.pause(0, 2)
    await member.link.heal()


async def cut_database(breaker: Breaker, member: Member) -> None:
    """The connections to the database are reset, and refused for longer than the lease."""
    takeover = breaker.begin("database cut", member)
    breaker.group.set_up(member, is_up=False)
    await member.database.cut()
    await breaker.pause(1.2 * LEASE_S, 2 * LEASE_S)
    await member.database.heal()
    await takeover
    breaker.group.set_up(member, is_up=True)


async def restart_database(breaker: Breaker, _member: Member) -> None:
    """PostgreSQL is killed or stopped, and starts again."""
    async with breaker.database_free:
        is_kill = breaker.chance.random() < 0.7
        breaker.group.history.fault("database killed" if is_kill else "database stopped")
        database = breaker.database
        await asyncio.to_thread(database.kill if is_kill else database.stop)
        await breaker.pause(0, 1)
        await asyncio.to_thread(database.start)
        await breaker.writes_again()


async def hold_database(breaker: Breaker, member: Member) -> None:
    """No byte passes between the process and the database, and nobody is told [CAM-055]."""
    takeover = breaker.begin("partition from the database", member)
    breaker.group.set_up(member, is_up=False)
    member.database.hold()
    await breaker.pause(1.2 * LEASE_S, breaker.longest_hold_s)
    await takeover
    breaker.group.hit(member.name)
    await member.database.heal()
    await breaker.pause(0.5, 1)
    breaker.group.set_up(member, is_up=True)


async def hold_database_short(breaker: Breaker, member: Member) -> None:
    """A partition that is shorter than the lease."""
    breaker.group.history.fault("short partition from the database")
    breaker.group.hit(member.name)
    member.database.hold()
    await breaker.pause(0.05 * LEASE_S, 0.6 * LEASE_S)
    breaker.group.hit(member.name)
    await member.database.heal()


async def hold_link(breaker: Breaker, member: Member) -> None:
    """No byte passes between the process and the XMPP server."""
    breaker.group.history.fault("partition from the XMPP server")
    breaker.group.hit(member.name)
    member.link.hold()
    await breaker.pause(0.5, breaker.longest_hold_s)
    breaker.group.hit(member.name)  # what it had sent arrives late
    await member.link.heal()


async def hold_both(breaker: Breaker, member: Member) -> None:
    """The machine of the process is cut off from everything but its HTTP clients."""
    takeover = breaker.begin("partition from both", member)
    breaker.group.set_up(member, is_up=False)
    member.database.hold()
    member.link.hold()
    await breaker.pause(1.2 * LEASE_S, breaker.longest_hold_s)
    await takeover
    breaker.group.hit(member.name)
    await member.link.heal()
    await member.database.heal()
    await breaker.pause(0.5, 1)
    breaker.group.set_up(member, is_up=True)


FAULTS: dict[str, Fault] = {
    "kill": kill,
    "restart": restart_at_once,
    "stop-short": stop_short,
    "stop-long": stop_long,
    "end-lock-session": end_lock_session,
    "end-sessions": end_all_sessions,
    "cut-link": cut_link,
    "cut-database": cut_database,
    "restart-database": restart_database,
}
PARTITIONS: dict[str, Fault] = {
    "hold-database": hold_database,
    "hold-database-short": hold_database_short,
    "hold-link": hold_link,
    "hold-both": hold_both,
}
# No two of these at a time, because most of them end only when another process has the shards. A process that starts
# takes nothing over, and after a restart of the database a start takes up to half a minute.
NEEDS_ANOTHER = {
    "kill",
    "restart",
    "stop-long",
    "end-lock-session",
    "end-sessions",
    "cut-database",
    "hold-database",
    "hold-both",
}
