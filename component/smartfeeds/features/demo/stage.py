"""The environment of the demonstrations: a Prosody, services with their configuration, and users with clients.

The services are separate processes, so that a demonstration can kill them.
"""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from smartfeeds.errors import FollowError, LinkError
from smartfeeds.features.demo.person import DemoUser
from smartfeeds.local.prosody import Prosody

STEP_S: Final = 60.0  # after this a step has failed
_RETRY_S: Final = 0.1

Tell = Callable[[str], None]
_SERVICE_CONFIG = """\
# Written by smartfeeds demo at each start.
[component]
jid = "{service}"
secret = "{secret}"
port = {port}

[store]
url = "sqlite:///{folder}/feeds.db"

[http]
listen = "{listen}"
base_url = "{base_url}"

[pubsub]
admins = ["{owner}"]

[sources]
allowed_networks = {networks}

[link]
retry_first_s = 0.1

[log]
level = "{log_level}"
"""
OWNER = "alice@localhost"  # of the feeds of all demonstrations


def write_config(
    folder: Path,
    service: str,
    secret: str,
    port: int,
    *,
    listen: str = "",
    log_level: str = "warning",
    networks: Sequence[str] = (),
) -> Path:
    """Writes the configuration of a service with its database in `folder`. Sources may read from `networks` although
    they are not public. Returns the path of the file."""
    path = folder / "smartfeeds.toml"
    path.touch(mode=0o600)  # it contains the secret
    values = {"service": service, "secret": secret, "port": port, "listen": listen, "log_level": log_level}
    # Feeds name a hub and a cloud only at an address of their own.
    base_url = f"http://{listen}" if listen else ""
    extras = {"base_url": base_url, "folder": folder, "owner": OWNER, "networks": json.dumps(list(networks))}
    path.write_text(_SERVICE_CONFIG.format(**values, **extras))
    return path


class DemoService:
    """A service as a separate process, so that it can be killed. Its database stays in `folder`."""

    def __init__(self, folder: Path, service: str, secret: str, port: int) -> None:
        folder.mkdir()
        self.service = service
        self.config = write_config(folder, service, secret, port, log_level="error")
        self._status = folder / "status.json"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the process, which connects by itself."""
        arguments = self._line("run", "--status", str(self._status))
        # A separate session: Ctrl-C reaches only this process, which ends the service in order.
        self._process = await asyncio.create_subprocess_exec(*arguments, start_new_session=True)

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends the process. SIGKILL simulates a crash."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.wait()

    async def command(self, *arguments: str) -> str:
        """Runs a command of the operator and returns its output. Raises LinkError with the error output if it fails."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self._line(*arguments), stdout=pipe, stderr=pipe)
        output, errors = await process.communicate()
        if process.returncode:
            raise LinkError(f"smartfeeds {' '.join(arguments)} failed: {errors.decode().strip()}")
        return output.decode().strip()

    def _line(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "smartfeeds", *arguments, "--config", str(self.config)]


class Stage:
    """Prosody with these services as its components, and the transcript."""

    def __init__(self, folder: Path, console: Console, services: Sequence[str]) -> None:
        self.folder = folder
        self._console = console
        keys = {service: secrets.token_urlsafe(12) for service in services}
        self._server = Prosody(folder / "prosody", keys)
        port = self._server.component_port
        self.components = [DemoService(folder / service, service, key, port) for service, key in keys.items()]

    def tell(self, text: str) -> None:
        """Prints a line of the transcript."""
        self._console.print(text, markup=False, style="bold" if not text.startswith(" ") else None)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Runs Prosody until the block ends, and then ends all services. Raises LinkError, ConfigError."""
        try:
            await asyncio.to_thread(self._server.start)
            yield
        except TimeoutError:
            raise LinkError(f"a step took more than {STEP_S:.0f} s") from None
        finally:
            for component in self.components:
                await component.end()
            await asyncio.to_thread(self._server.stop)

    async def person(self, name: str) -> DemoUser:
        """Creates an account and returns its user, who is not logged in yet."""
        account = await asyncio.to_thread(self._server.account, name)
        return DemoUser(account, self._server.client_port)


async def when_online(work: Callable[[], Awaitable[object]]) -> None:
    """Repeats a request until the service is connected. Raises TimeoutError."""
    async with asyncio.timeout(STEP_S):
        while True:
            try:
                await work()
            except (LinkError, FollowError):
                await asyncio.sleep(_RETRY_S)
            else:
                return
