"""PostgreSQL servers that tests start: one for each test process, with a database for each test."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.abc import ConnDict
from psycopg.conninfo import timeout_from_conninfo

from smartfeeds.local.process import free_port
from smartfeeds.store import postgres_answers, postgres_session
from support.logs import LOGS
from support.waiting import HANG_S, block_until

_SYSTEM_USER = "postgres"
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "log_min_messages": "warning",
    "deadlock_timeout": "50ms",  # a second by default, which each test of a deadlock waits for
}
# A test database is thrown away, so waiting for the disk would only cost time. Tests of crashes start their own server
# with `durable=True`.
_VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SHORT_S = 0.1  # how long a frozen server is waited for


class PostgresServer:
    """A running server with its data under `folder`. It may be stopped, killed and started again on the same port."""

    def __init__(self, folder: Path, port: int, options: dict[str, str]) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = port
        self.options = options
        self.is_frozen = False
        self._databases = 0
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The address of a database, for `store.url` and for psycopg."""
        return f"postgresql://{_SYSTEM_USER}@127.0.0.1:{self.port}/{database}"

    def create_database(self, template: str = "template0", *, locale: LiteralString = "") -> str:
        """Creates an empty database, or a copy of `template`, with these options of CREATE DATABASE. Returns its
        address.
        """
        self._databases += 1
        name = f"test_{self._databases}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} {}").format(
                    sql.Identifier(name), sql.Identifier(template), sql.SQL(locale)
                )
            )
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Removes a database and ends the connections to it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            name = sql.Identifier(url.rpartition("/")[2])
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The server's first process."""
        assert self._process is not None, "the server was never started"
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the server and returns when it accepts connections."""
        settings = [f"-c{name}={value}" for name, value in self.options.items()]
        LOGS.follow("PostgreSQL", [self.folder / "log"])
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [postgres_program("postgres"), "-D", str(self.data), f"-p{self.port}", f"-k{self.folder}", *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                user=_user(),
                group=_group(),
            )
        self.wait()

    def wait(self) -> None:
        """Returns when the server accepts connections."""

        def accepts() -> bool:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                if not self.is_running:
                    raise
                return False
            return True

        block_until(accepts, "PostgreSQL to accept connections")

    def stop(self) -> None:
        """Ends all connections and stops the server."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(HANG_S)

    def freeze(self) -> None:
        """Stops all processes of the server where they are (SIGSTOP)."""
        self._send(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        """Lets the processes of a frozen server go on."""
        self.is_frozen = False
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """Kills all processes of the server, and returns when they have ended."""
        pids = self._send(signal.SIGKILL)
        self.process.wait(HANG_S)
        block_until(lambda: not any(map(_is_alive, pids)), "the end of PostgreSQL's processes")
        (self.data / "postmaster.pid").unlink()

    def _send(self, number: signal.Signals) -> list[int]:
        """Sends a signal to all processes of the server. Returns their ids."""
        first = self.process.pid
        os.kill(first, signal.SIGSTOP)  # no child is added or forgotten while the list is read
        # Each child leads a session of its own, and would run until it notices that the first process is gone.
        children = Path(f"/proc/{first}/task/{first}/children").read_text("ascii").split()
        pids = [first, *map(int, children)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids


def shorten_waits(server: PostgresServer, patch: pytest.MonkeyPatch) -> None:
    """Lets a service wait for a frozen server for a short time only, when it connects and when it ends. The address
    could name 2 s for connecting, as libpq knows no shorter time."""

    def timeout_s(params: ConnDict) -> float:
        return SHORT_S if server.is_frozen else timeout_from_conninfo(params)

    patch.setattr("psycopg.connection.timeout_from_conninfo", timeout_s)
    patch.setattr(postgres_session, "RECONNECT_S", SHORT_S)
    patch.setattr(postgres_answers, "ENDING_ANSWER_S", SHORT_S)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def postgres_program(name: str) -> str:
    """The path of a program of the newest PostgreSQL that is installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    path = shutil.which(name, path=":".join(str(folder) for folder in reversed(folders)))
    assert path is not None, f"{name} is not installed: tools/setup test installs it"
    return path


def run_as_postgres(*command: str) -> None:
    """Runs a program as the user that owns the data, because PostgreSQL refuses to run as root."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=HANG_S, cwd="/", user=_user(), group=_group(), check=False
    )
    assert done.returncode == 0, done.stderr


def new_folder() -> Path:
    """A folder that the user of the server may write."""
    folder = Path(tempfile.mkdtemp(prefix="smartfeeds-postgres-"))
    if os.getuid() == 0:
        account = pwd.getpwnam(_SYSTEM_USER)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


@contextmanager
def running_postgres(*, durable: bool = False, **options: str) -> Iterator[PostgresServer]:
    """A new server. `durable`: with every sync to the disk; `options` are settings of postgresql.conf."""
    folder = new_folder()
    server = PostgresServer(folder, free_port(), {**_OPTIONS, **({} if durable else _VOLATILE), **options})
    try:
        run_as_postgres(
            postgres_program("initdb"),
            *("-D", str(server.data), "-U", _SYSTEM_USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "-N"),
        )
        server.start()
        try:
            yield server
        finally:
            if server.is_running:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    return _SYSTEM_USER if os.getuid() == 0 else None


def _group() -> str | None:
    return _SYSTEM_USER if os.getuid() == 0 else None
