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
# Below the range that the kernel gives to outgoing connections: a port stays ours while its server is down.
PORTS = range(15_000, 31_000)
_given: set[int] = set()
_LOG_TAIL_LINES = 40


@dataclass(frozen=True, slots=True)
class DemoAccount:
    """A client account: its bare JID and its password."""

    jid: str
    password: str


def free_port() -> int:
    """A TCP port of PORTS that nobody on this machine listens on, never the same twice in a process."""
    for _ in range(1000):
        port = random.choice(PORTS)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise LinkError("no free TCP port on loopback")


def is_listening(port: int) -> bool:
    """Whether somebody accepts connections on this port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


class LocalServer(ABC):
    """An XMPP server that runs in `folder` until `stop`.

    `components` maps the names of components to their secrets. Ports that are not given are chosen. Raises
    ConfigError where the program is not installed, LinkError where it does not come up.
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
        """Whether our process is alive."""
        return self.process is not None and self.process.poll() is None

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The log file of the server."""
        return (self.folder / "output.log",)

    @classmethod
    def find_program(cls) -> str:
        """The path of the program. Raises ConfigError with what to install."""
        found = shutil.which(cls.program) or shutil.which(cls.program, path="/usr/sbin:/usr/local/sbin")
        if not found:
            raise ConfigError(
                f"{cls.software} is not installed: apt-get install --no-install-recommends {cls.packages}"
            )
        return found

    def start(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Starts the server and returns when its ports answer."""
        program = self.find_program()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._end_leftover()
        for port in (self.client_port, self.component_port):
            if is_listening(port):
                raise LinkError(f"port {port} is taken by another program: stop that program or choose another port")
        self.write_config()
        with (self.folder / "output.log").open("ab") as output:
            # A session of its own: Ctrl-C goes to us, and we stop the server in order.
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
        """Stops the server in good order, and by force when it does not stop."""
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
        """The command line that runs the server in the foreground."""

    def environment(self) -> dict[str, str]:
        """Variables beside those of our own process."""
        return {}

    @abstractmethod
    def account(self, name: str, password: str = "secret") -> DemoAccount:  # noqa: S107 - a throw-away account
        """Makes a client account, or finds it."""

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
        """Ends the server that an earlier run in this folder left behind when it was killed."""
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
        """Whether this process runs a server in our folder. The command line of an ended process is empty."""
        try:
            return os.fsencode(self.folder) in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
