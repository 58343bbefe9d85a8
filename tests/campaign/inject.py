"""Failing and slow system calls of a running process, by strace [CAM-004] [CAM-006]."""

import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType

from support.waiting import HANG_S

INJECTED = "(INJECTED)"


class Injection:
    """Makes the `when`-th call of each thread fail or wait. A context manager; afterwards the calls work again.

    `calls` are names of system calls with commas. `effect` and `when` are as in strace(1): `error=EIO`,
    `delay_enter=5000` (microseconds); 3, or 3+.
    """

    def __init__(self, pid: int, log: Path, calls: str, effect: str, when: str) -> None:
        self._log = log
        self._command = [
            *("strace", "-f", "-qq", "-p", str(pid), "-o", str(log)),
            *("-e", f"trace={calls}", "-e", f"inject={calls}:{effect}:when={when}"),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._threads = Path(f"/proc/{pid}/task")

    def __enter__(self) -> "Injection":
        self._log.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pause = threading.Event()
        for _ in range(int(HANG_S * 200)):
            if self._attached():
                return self
            assert self._process.poll() is None, "strace ended: it needs root and the system call ptrace"
            pause.wait(0.005)
        raise TimeoutError("strace does not attach to the service")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(HANG_S)

    @property
    def happened(self) -> bool:
        """Whether a call has failed."""
        return self._log.exists() and INJECTED in self._log.read_text("utf-8", "replace")

    def _attached(self) -> bool:
        """Whether strace traces every thread of the process."""
        assert self._process is not None
        tracer = f"TracerPid:\t{self._process.pid}\n"
        return all(tracer in (thread / "status").read_text("ascii", "replace") for thread in self._threads.iterdir())
