"""The service under test: `smartfeeds run` as a process that a campaign kills, stops and starts again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import SCOPES
from smartfeeds.features.accounts.tokens import add_token, new_token
from smartfeeds.local.process import free_port
from smartfeeds.service.requests import CreateNode, Subscribe
from smartfeeds.store.base import OpenMode
from support.service import stored_service

ROOT = Path(__file__).parents[2]
HOST, DOMAIN, OWNER, NODE = "127.0.0.1", "feeds.localhost", "alice@localhost", "news"
START_S = 60.0
POLL_S = 0.005
KEEP_S = 0.2


class Preload:
    """The process that forks services (`campaign.preload`). A context manager; leaves no service behind."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        path = f"{ROOT / 'component'}:{ROOT / 'tests'}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "campaign.preload"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {}), "PYTHONPATH": path},
        )
        self._pids: set[int] = set()

    def __enter__(self) -> "Preload":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in set(self._pids):
            self.end(pid, signal.SIGKILL)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(START_S)
        self._process.stdout.close()

    def start(self, config: Path, log: Path, defect: str = "", environment: Mapping[str, str] | None = None) -> int:
        """Forks a service. Returns its process id."""
        order: dict[str, object] = {
            "config": str(config),
            "log": str(log),
            "defect": defect,
            "environment": dict(environment or {}),
        }
        pid = self._ask(order)
        self._pids.add(pid)
        return pid

    def end(self, pid: int, how: signal.Signals) -> int:
        """Sends a signal and waits for the end of the service. Returns its exit code."""
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        code = self._ask({"reap": pid})
        self._pids.discard(pid)
        return code

    def _ask(self, order: dict[str, object]) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Service:
    """One service with its database in `folder`.

    The clients work while `up` is set, and `life` counts its starts. `sections` are added to the configuration.
    """

    def __init__(
        self,
        preload: Preload,
        folder: Path,
        *,
        store_url: str = "",
        defect: str = "",
        environment: Mapping[str, str] | None = None,
        **sections: Mapping[str, object],
    ) -> None:
        self.folder = folder
        self.domain = str(sections.get("component", {}).get("jid", DOMAIN))
        self.port = free_port()
        self.config = folder / "smartfeeds.toml"
        self.log = folder / "service.log"
        self.database = folder / "feeds.db"
        self.up = asyncio.Event()
        self.life = 0
        self.label = ""  # distinguishes services of one history
        self.pid = 0
        self.token = ""
        self.defect = defect
        self._environment = environment
        self._preload = preload
        folder.mkdir(parents=True, exist_ok=True)
        tables: dict[str, dict[str, object]] = {
            "component": {"jid": DOMAIN, "secret": "secret", "port": 1},
            "store": {"url": store_url or f"sqlite:///{self.database}"},
            "http": {"listen": f"{HOST}:{self.port}", "base_url": self.url},
            "pubsub": {"creators": ["localhost"], "page_max": 500},
            "link": {"retry_first_s": 0.05},
            "log": {"level": "warning"},
        }
        for name, values in sections.items():
            tables.setdefault(name, {}).update(values)
        self.config.write_text(
            "\n".join(
                f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
                for name, values in tables.items()
            )
        )

    @property
    def url(self) -> str:
        """The address of its HTTP side."""
        return f"http://{HOST}:{self.port}"

    async def prepare(self, *nodes: str, subscriber: str = "", fillers: int = 0) -> None:
        """Creates the database with open nodes of the owner, and a token for everything. `subscriber` subscribes to the
        nodes in modified order. After each node there are `fillers` nodes that nobody uses.
        """
        async with stored_service(self.config, mode=OpenMode.CREATE) as service:
            owner = parse_jid(OWNER)
            assert owner is not None
            for node in nodes or (NODE,):
                await service.handle(CreateNode(owner, self.domain, node, {"pubsub#access_model": ("open",)}))
                if subscriber and (jid := parse_jid(subscriber)) is not None:
                    await service.handle(Subscribe(jid, self.domain, f"{node}?order=modified", subscriber))
                names = (f"{node}-filler-{number}" for number in range(fillers))
                await asyncio.gather(*(service.handle(CreateNode(owner, self.domain, name, None)) for name in names))
            token, self.token = new_token(OWNER, SCOPES["admin"], "*", "campaign")
            await service.write(lambda tx, context: add_token(tx, context, token, None))

    async def start(self) -> None:
        """Starts it, returns when it accepts requests, and lets the clients work. Raises RuntimeError if it ends."""
        self.fork()
        await self.wait()
        self.up.set()

    def fork(self) -> None:
        """Starts its process."""
        self.pid = self._preload.start(self.config, self.log, self.defect, self._environment)
        self.life += 1

    async def wait(self) -> None:
        """Returns when it accepts requests. Raises RuntimeError if it ends instead."""
        until_s = time.monotonic() + START_S
        while True:
            try:
                _, writer = await asyncio.open_connection(HOST, self.port)
            except OSError as error:
                if time.monotonic() > until_s or not _is_running(self.pid):
                    raise RuntimeError(f"the service does not start: {self.said()[-2000:]}") from error
                await asyncio.sleep(POLL_S)
            else:
                writer.close()
                return

    @property
    def has_ended(self) -> bool:
        """Whether its process was started and has ended by itself."""
        return bool(self.pid) and not _is_running(self.pid)

    async def keep_running(self) -> None:
        """Starts it again whenever it has ended by itself, as systemd does."""
        while True:
            if self.has_ended:
                self.end()
                with suppress(RuntimeError):  # the database is still away
                    await self.start()
            await asyncio.sleep(KEEP_S)

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Ends it. Returns its exit code."""
        self.up.clear()
        pid, self.pid = self.pid, 0
        return self._preload.end(pid, how)

    def said(self) -> str:
        """What it has logged in all its lives."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
