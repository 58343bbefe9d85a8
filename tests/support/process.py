"""`smartfeeds run` as a process of its own, for tests that kill it."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from campaign.service import Preload
from support.logs import LOGS
from support.waiting import wait_for

ROOT = Path(__file__).parents[2]


class ServiceProcess:
    """The service of one configuration file; may be started again and again. What it writes is in `log`.

    An async context manager that leaves no process behind.
    """

    def __init__(self, config: Path, environment: Mapping[str, str] | None = None) -> None:
        self.config = config
        self.log = config.with_suffix(".log")
        LOGS.follow("smartfeeds", [self.log])
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT / "component"), **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "ServiceProcess":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            await self.end(signal.SIGKILL)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts it; it connects by itself."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "smartfeeds", "run", "--config", str(self.config)),
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it, by SIGKILL as a crash would; its exit code."""
        process = self._process
        assert process is not None
        if process.returncode is None:
            process.send_signal(how)
        return await self.ended()

    async def ended(self) -> int:
        """Waits for its end; its exit code."""
        assert self._process is not None
        return await wait_for(self._process.wait(), f"the end of process {self.pid}")

    @property
    def said(self) -> str:
        """Everything that it wrote, in all its lives."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""


class ForkedService:
    """A service like `ServiceProcess`, forked from a process that has loaded the modules.

    A start takes a tenth of the processor time. For tests that start the service dozens of times.
    """

    def __init__(self, preload: Preload, config: Path) -> None:
        self.config = config
        self.log = config.with_suffix(".log")
        LOGS.follow("smartfeeds", [self.log])
        self._preload = preload
        self._pid = 0

    async def __aenter__(self) -> "ForkedService":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pid:
            await self.end(signal.SIGKILL)

    async def start(self) -> None:
        """Starts it; it connects by itself."""
        self._pid = await asyncio.to_thread(self._preload.start, self.config, self.log)

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it, by SIGKILL as a crash would. Returns its exit code."""
        pid, self._pid = self._pid, 0
        return await wait_for(asyncio.to_thread(self._preload.end, pid, how), f"the end of process {pid}")

    @property
    def said(self) -> str:
        """Everything that it wrote, in all its lives."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""
