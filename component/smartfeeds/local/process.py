"""An XMPP server process on the loopback interface, with all its files in one folder.

Chooses ports, starts the server, waits until it listens and stops it by its process id. The servers of the system are
left alone. The tests run ejabberd in the same way.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from smartfeeds.errors import ConfigError, LinkError

HOST = "127.0.0.1"
START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 10.0
_POLL_S = 0.05
# Below the range that the kernel uses for outgoing connections, so that a port stays free while its server restarts.
PORTS = range(15_000, 31_000)
_used: set[int] = set()
_LOG_TAIL_LINES = 40


@dataclass(frozen=True, slots=True)
class LocalAccount:
    """A client account: its bare JID and its password."""

    jid: str
    password: str


def free_port() -> int:
    """Returns a free TCP port of PORTS, never the same twice in a process. Raises LinkError."""
    for _ in range(1000):
        port = random.choice(PORTS)
        if port in _used:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            _used.add(port)
            return port
    raise LinkError("no free TCP port on loopback")


def is_listening(port: int) -> bool:
    """Returns whether a process accepts connections on this port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


class LocalServer(ABC):
    """An XMPP server that runs in `folder` until `stop`.

    `components` maps the names of components to their secrets. A port of 0 is replaced by a free port. Raises
    ConfigError if the program is not installed, LinkError if it does not start.
    """

    software: ClassVar[str]
    program: ClassVar[str]
    packages: ClassVar[str]

    def __init__(
        self,
        folder: Path,
        components: Mapping[str, str],
        *,
        domain: str = "localhost",
        client_port: int = 0,
        component_port: int = 0,
    ) -> None:
        self.folder = folder.resolve()
        self.components = dict(components)
        self.domain = domain
        self.client_port = client_port or free_port()
        self.component_port = component_port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the server process is alive."""
        return self.process is not None and self.process.poll() is None

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The log file of the server."""
        return (self.folder / "output.log",)

    @classmethod
    def find_program(cls) -> str:
        """Returns the path of the program. Raises ConfigError, whose text names the packages to install."""
        path = shutil.which(cls.program) or shutil.which(cls.program, path="/usr/sbin:/usr/local/sbin")
        if not path:
            raise ConfigError(
                f"{cls.software} is not installed: apt-get install --no-install-recommends {cls.packages}"
            )
        return path

    def start(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Starts the server. Returns when its ports accept connections. Raises ConfigError, LinkError."""
        program = self.find_program()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._end_leftover()
        for port in (self.client_port, self.component_port):
            if is_listening(port):
                raise LinkError(f"port {port} is in use by another program; stop that program or choose another port")
        self.write_config()
        with (self.folder / "output.log").open("ab") as output:
            # A separate session: Ctrl-C reaches only this process, which stops the server in order.
            self.process = subprocess.Popen(  # noqa: S603 - a fixed command line
                self.command(program),
                env={**os.environ, **self.environment()},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid_file.write_text(str(self.process.pid))
        self._wait(deadline_s)

    def stop(self) -> None:
        """Stops the server with SIGTERM, and with SIGKILL after a timeout."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the server as a crash would."""
        self._end(signal.SIGKILL)

    def log_text(self) -> str:
        """Returns the last lines of each log file of the server."""
        parts = []
        for path in self.log_files:
            if path.exists():
                lines = path.read_text("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:]
                parts.append(f"--- {path}\n" + "\n".join(lines))
        return "\n".join(parts)

    @abstractmethod
    def write_config(self) -> None:
        """Writes the configuration into the folder."""

    @abstractmethod
    def command(self, program: str) -> list[str]:
        """Returns the command line that runs the server in the foreground."""

    def environment(self) -> dict[str, str]:
        """Returns variables to add to the environment of this process."""
        return {}

    @abstractmethod
    def account(self, name: str, password: str = "secret") -> LocalAccount:  # noqa: S107 - a throw-away account
        """Creates a client account if it does not exist."""

    @property
    def _pid_file(self) -> Path:
        return self.folder / "server.pid"

    def _wait(self, deadline_s: float) -> None:
        deadline = time.monotonic() + deadline_s
        waiting = [self.client_port, *([self.component_port] if self.components else [])]
        while waiting:
            if not self.running:
                raise LinkError(f"{self.software} ended while it started:\n{self.log_text()}")
            if time.monotonic() > deadline:
                self.kill()
                raise LinkError(f"{self.software} did not start within {deadline_s:.0f} s:\n{self.log_text()}")
            waiting = [port for port in waiting if not is_listening(port)]
            if waiting:
                time.sleep(_POLL_S)

    def _end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._pid_file.unlink(missing_ok=True)

    def _end_leftover(self) -> None:
        """Ends the server of an earlier run in this folder that was killed. Otherwise its ports would be in use."""
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_DEADLINE_S
            if self._is_ours(pid):
                os.kill(pid, how)
            while self._is_ours(pid) and time.monotonic() < deadline:
                time.sleep(_POLL_S)

    def _is_ours(self, pid: int) -> bool:
        """Returns whether this process runs a server in the folder. The command line of an ended process is empty."""
        try:
            return os.fsencode(self.folder) in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
