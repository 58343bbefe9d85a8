"""What the database knows of several processes: who has which shard, and whose session writes marks [CAM-034].

The observer reads the locks again and again, on a session of its own that no fault cuts. A trigger notes each mark with
the session that writes it, and whether this session has the lock of the shard at that moment.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import TracebackType

import psycopg

from campaign.checker import RECOVERY_S
from campaign.history import History, Kind, Status
from smartfeeds.delivery.shards import SHARDS

SAMPLE_S = 0.05
_SHARD_LOCK = 0x5346_0001  # the first key of the locks of shards (docs/scaling.md)
_MEMBER_LOCK = 0x5346_0002  # the same of the locks that show which processes are there
_LOCKS = f"""
SELECT classid::bigint = {_SHARD_LOCK}, objid::int, pid, client_port FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid IN ({_SHARD_LOCK}, {_MEMBER_LOCK})
  AND datname = current_database() ORDER BY objid
"""
_TRIGGER = f"""
CREATE TABLE campaign_mark (
  no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node_no BIGINT NOT NULL, ord TEXT NOT NULL, consumer TEXT NOT NULL,
  former_us BIGINT NOT NULL, key_us BIGINT NOT NULL, session INT NOT NULL, owns BOOLEAN NOT NULL
);
CREATE FUNCTION campaign_note_mark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO campaign_mark (node_no, ord, consumer, former_us, key_us, session, owns)
  VALUES (NEW.node_no, NEW.ord, NEW.consumer, OLD.key_us, NEW.key_us, pg_backend_pid(), EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = {_SHARD_LOCK}
      AND objid = NEW.node_no % {SHARDS} AND pid = pg_backend_pid()));
  RETURN NEW;
END $$;
CREATE TRIGGER campaign_mark AFTER UPDATE OF key_us ON mark FOR EACH ROW
  WHEN (NEW.key_us IS DISTINCT FROM OLD.key_us) EXECUTE FUNCTION campaign_note_mark();
"""
Session = tuple[str, int]  # process of the service, process id of the database


class Observer:
    """Watches a database while the block runs. An async context manager.

    `member_of` returns the process of the service behind a port of a client of the database.
    """

    def __init__(self, url: str, history: History, member_of: Callable[[int], str]) -> None:
        self._url = url
        self._history = history
        self._member_of = member_of
        self._task: asyncio.Task[None] | None = None
        self.owners: Mapping[int, Session] = {}
        self.members: frozenset[str] = frozenset()  # processes with a lock session, which can take shards

    async def __aenter__(self) -> "Observer":
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(_TRIGGER.encode())
        self._task = asyncio.create_task(self._watch(), name="observer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def sessions(self, member: str) -> set[Session]:
        """The sessions of a process that have shards; of all processes if it is empty."""
        return {owner for owner in self.owners.values() if member in ("", owner[0])}

    async def taken_over(self, former: Collection[Session]) -> float:
        """Waits until other sessions have all shards. Returns the seconds. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        async with asyncio.timeout(RECOVERY_S):
            # The database reports no event.
            while len(self.owners) < SHARDS or not set(self.owners.values()).isdisjoint(former):  # noqa: ASYNC110
                await asyncio.sleep(SAMPLE_S)
        return loop.time() - began_s

    async def until_another(self, member: str) -> None:
        """Returns when another process has a lock session, or after `RECOVERY_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RECOVERY_S):
                while not self.members - {member}:  # noqa: ASYNC110 - the database reports no event
                    await asyncio.sleep(SAMPLE_S)

    async def shared(self, members: Collection[str], most: int) -> bool:
        """Returns whether these processes own all shards, and none more than `most`, within `RECOVERY_S` [CAM-037]."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RECOVERY_S):
                while True:
                    shares = [sum(owner[0] == member for owner in self.owners.values()) for member in members]
                    if sum(shares) == SHARDS and max(shares) <= most:
                        return True
                    await asyncio.sleep(SAMPLE_S)
        return False

    async def end_sessions(self, member: str, ports: Collection[int], *, locks_only: bool) -> None:
        """Ends the sessions of a process: that of its locks, or all."""
        locks = {session for _, session in self.sessions(member)}
        with suppress(psycopg.OperationalError):  # a database that is down has ended them already
            async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND (pid = ANY(%s) OR client_port = ANY(%s))",
                    (list(locks), [] if locks_only else list(ports)),
                )

    async def mark_problems(self) -> tuple[int, list[str]]:
        """Returns the number of marks that were written, and those that only two owners could have written."""
        problems = []
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            cursor = await connection.execute("SELECT count(*) FROM campaign_mark")
            row = await cursor.fetchone()
            cursor = await connection.execute(
                "SELECT node_no, consumer, former_us, key_us, session, owns FROM campaign_mark "
                "WHERE NOT owns OR key_us < former_us ORDER BY no LIMIT 20"
            )
            async for node_no, consumer, former_us, key_us, session, owns in cursor:
                what = "moved back" if owns else "written by a session without the lock of the shard"
                problems.append(f"mark of {consumer} of node {node_no}: {former_us} to {key_us} {what} ({session})")
        return (row[0] if row else 0), problems

    async def _watch(self) -> None:
        while True:
            with suppress(psycopg.OperationalError):
                async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
                    while True:
                        cursor = await connection.execute(_LOCKS.encode())
                        rows = await cursor.fetchall()
                        self.members = frozenset(self._member_of(port) for *_, port in rows)
                        self._note({no: (self._member_of(port), pid) for shard, no, pid, port in rows if shard})
                        await asyncio.sleep(SAMPLE_S)
            self._note({})  # a database that has ended has no locks
            self.members = frozenset()
            await asyncio.sleep(SAMPLE_S)

    def _note(self, owners: Mapping[int, Session]) -> None:
        """Adds what has changed to the history: first what was released."""
        former, self.owners = self.owners, owners
        for shard, owner in former.items():
            if owners.get(shard) != owner:
                self._hold(shard, owner, Status.OK)
        for shard, owner in owners.items():
            if former.get(shard) != owner:
                self._hold(shard, owner, Status.INVOKE)

    def _hold(self, shard: int, owner: Session, status: Status) -> None:
        self._history.note(f"{owner[0]} session {owner[1]}", Kind.HOLD, status, node=f"shard {shard}")
