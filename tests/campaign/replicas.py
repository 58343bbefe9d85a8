"""A primary and a standby of PostgreSQL, for failovers [CAM-011]."""

import asyncio
import shutil
from pathlib import Path
from types import TracebackType

import psycopg

from campaign.cable import Cable
from smartfeeds.local.process import free_port
from support.postgres import PostgresServer, new_folder, postgres_program, run_as_postgres

_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "log_min_messages": "warning",
    "wal_level": "replica",
    "max_wal_senders": "8",
    "wal_keep_size": "128MB",
    "wal_receiver_timeout": "5s",
    "wal_sender_timeout": "5s",
}
STREAMING_S = 60.0


class Replicas:
    """A primary, reached through `link`, and a standby, which replicates through `replication`.

    An async context manager. `is_synchronous`: a commit waits until the standby has written it.
    """

    def __init__(self, *, is_synchronous: bool) -> None:
        self.link = Cable()
        self.replication = Cable()
        self._folder = new_folder()
        self._options = {**_OPTIONS, "synchronous_standby_names": "*" if is_synchronous else ""}
        self._number = 0
        self.primary = self._server()
        self.standby: PostgresServer | None = None

    async def __aenter__(self) -> "Replicas":
        await self.link.__aenter__()
        await self.replication.__aenter__()
        await asyncio.to_thread(self._create)
        self.link.target_port = self.replication.target_port = self.primary.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.link.__aexit__(kind, error, trace)
        await self.replication.__aexit__(kind, error, trace)
        for server in (self.standby, self.primary):
            if server is not None and server.is_running:
                await asyncio.to_thread(server.kill)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """The address of a database on whichever server is the primary."""
        return f"postgresql://postgres@127.0.0.1:{self.link.port}/{database}"

    async def add_standby(self) -> None:
        """Copies the primary to a new standby, and returns when it replicates."""
        await self.replication.cut()
        self.replication.target_port = self.primary.port
        await self.replication.heal()
        self.standby = await asyncio.to_thread(self._copy_primary)
        await asyncio.to_thread(self._wait_for_standby)

    async def fail_over(self) -> None:
        """Kills the primary and makes the standby the primary."""
        assert self.standby is not None
        old, new = self.primary, self.standby
        await asyncio.to_thread(old.kill)
        await self.link.cut()
        await self.replication.cut()  # the standby notices at once that its primary is gone
        await asyncio.to_thread(_promote, new)
        self.primary, self.standby = new, None
        self.link.target_port = new.port
        await self.link.heal()
        await asyncio.to_thread(shutil.rmtree, old.folder)

    def _server(self) -> PostgresServer:
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        shutil.chown(folder, *_owner(self._folder))
        return PostgresServer(folder, free_port(), dict(self._options))

    def _create(self) -> None:
        run_as_postgres(
            postgres_program("initdb"),
            *("-D", str(self.primary.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "-N"),
        )
        # Statements that prepare the database need no standby yet.
        standbys, self.primary.options["synchronous_standby_names"] = self._options["synchronous_standby_names"], ""
        self.primary.start()
        self.primary.options["synchronous_standby_names"] = standbys

    async def restart_primary(self) -> None:
        """Restarts the primary, which then has the options of the pair."""
        await asyncio.to_thread(self.primary.stop)
        await asyncio.to_thread(self.primary.start)

    def _copy_primary(self) -> PostgresServer:
        server = self._server()
        source = f"host=127.0.0.1 port={self.replication.port} user=postgres application_name=standby"
        run_as_postgres(
            postgres_program("pg_basebackup"),
            *("-d", source, "-D", str(server.data), "-R", "-X", "stream", "-c", "fast", "-N"),
        )
        server.start()
        return server

    def _wait_for_standby(self) -> None:
        """Returns when the standby receives what the primary writes."""
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            connection.execute(f"SET statement_timeout = {int(STREAMING_S * 1000)}".encode())
            query = "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming') LOOP "
            connection.execute(query + "PERFORM pg_stat_clear_snapshot(), pg_sleep(0.02); END LOOP; END $$")


def _promote(server: PostgresServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("SELECT pg_promote()")


def _owner(folder: Path) -> tuple[int, int]:
    state = folder.stat()
    return state.st_uid, state.st_gid
