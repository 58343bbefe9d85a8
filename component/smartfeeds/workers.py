"""Documents of strangers are read in processes of their own, with limits of time and memory (xep-map 246).

A document within all limits of size can still take seconds of processor time and hundreds of megabytes, and a fault of
a parser can end its process. So at most two processes read documents. The first document starts a process. A process
ends at a limit, and the document then has an error that names the limit. A process that has grown is replaced.

Parties take turns by the processor time that their documents take, so a cheap document does not wait for many expensive
ones.
"""

import asyncio
import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock, Thread, Timer
from typing import Any, Final, NamedTuple, TypeVar

from smartfeeds.core.fairness import FairOrder, Share, Shares
from smartfeeds.errors import Condition, FeedError
from smartfeeds.worker_codec import load_value
from smartfeeds.worker_process import OUT_OF_MEMORY, WorkerLimits, read_frame

T = TypeVar("T")

AT_ONCE: Final = 2  # one reads while the other one is occupied for seconds, or is being replaced
IDLE_S: Final = 60.0  # after which an idle process is ended; starting one takes a third of a second
# A process that waits for the disk uses no processor time, but must not wait for ever.
ELAPSED_FACTOR: Final = 12
# A cheap feed takes less for each byte. This is the guess before the first document of a party was read.
CPU_S_PER_BYTE: Final = 3e-7
REMEMBERED: Final = 4_096  # parties without a request whose cost is remembered; a forgotten one starts as a new one
_MB: Final = 1024 * 1024


class WorkerError(RuntimeError):
    """A function failed in a process, and the text is the traceback; or the service ends."""


class _Party(Share):
    """A party, the requests of it that wait, and the processor time that its last document took."""

    __slots__ = ("jobs", "last_s")

    def __init__(self) -> None:
        super().__init__()
        self.jobs: deque[_Job] = deque()
        self.last_s = 0.0


class _Job(NamedTuple):
    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    guess_s: float


class WorkerProcess:
    """One process. Its methods block, so they are called in a thread; only `kill` may be called in another one."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        # The process must find this package also where it is not installed, such as in a checkout.
        package = str(Path(__file__).resolve().parents[1])
        paths = os.environ.get("PYTHONPATH", "")
        self._process = subprocess.Popen(
            (sys.executable, "-m", "smartfeeds.worker_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (package, paths)))},
            start_new_session=True,  # an interrupt at the terminal is for the service, which ends this process
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self.pid = self._process.pid

    def read(self, work: Callable[..., Any], arguments: Sequence[Any]) -> tuple[tuple[bool, Any], float, bool]:
        """Returns the reply, its processor time, and whether the process can read another document.

        Raises FeedError for a document that ended the process.
        """
        limits = self._limits.of(_size_bytes(arguments))
        timer = Timer(limits.cpu_s * ELAPSED_FACTOR, self.kill)
        timer.daemon = True
        timer.start()
        try:
            # A process that has ended takes no request, and then has no reply either.
            with contextlib.suppress(OSError):
                # Large texts are written without a copy, which would take memory, and the interpreter's lock for long.
                pickle.dump((limits, work, arguments), self._requests, protocol=5)
                self._requests.flush()
            # A process of this memory cannot have made a longer reply.
            head = read_frame(self._replies, limits.memory_bytes)
            body = read_frame(self._replies, limits.memory_bytes) if head is not None else None
        finally:
            timer.cancel()
        if head is None or body is None:
            raise FeedError(Condition.INVALID_PAYLOAD, self._reason(limits))
        # Not pickle.load: the process may have been taken over by its document (`worker_codec`).
        cpu_s, is_last = load_value(head)
        return load_value(body), cpu_s, not is_last

    def _reason(self, limits: WorkerLimits) -> str:
        code = self.end()
        if code == OUT_OF_MEMORY:
            return f"reading the document took more than {limits.memory_bytes // _MB} MB of memory"
        if code == -signal.SIGXCPU:
            return f"reading the document took more than {limits.cpu_s} s of processor time"
        if code == -signal.SIGKILL:
            return f"reading the document took more than {limits.cpu_s * ELAPSED_FACTOR} s, or the system ended it"
        return f"reading the document ended the process that read it ({_exit_name(code)})"

    def kill(self) -> None:
        """Ends the process at once. `read` returns then."""
        self._process.kill()

    def end(self) -> int:
        """Ends the process, and returns its exit code."""
        for stream in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                stream.close()
        try:
            return self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class DocumentWorkers:
    """Calls functions in processes, at most `at_once` at a time.

    The functions and their arguments are pickled; results are those that `worker_codec` admits.
    """

    def __init__(self, limits: WorkerLimits | None = None, at_once: int = AT_ONCE, idle_s: float = IDLE_S) -> None:
        self._limits = limits or WorkerLimits()
        self._at_once = at_once
        self._idle_s = idle_s
        self._parties: Shares[str, _Party] = Shares(lambda _name: _Party(), lambda party: not party.entry, REMEMBERED)
        self._order: FairOrder[_Party] = FairOrder()
        self._lock = Lock()  # guards `_idle`, `_all` and `_closed`, which threads change
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._closed = False
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, work: Callable[..., T], /, *arguments: Any, party: str = "") -> T:
        """Calls the function with these arguments and returns its result. Requests of one party keep their order.

        Raises FeedError beyond a limit, what the function raises, WorkerError for an exception that is not ours.
        """
        share = self._parties[party]
        guess_s = max(share.last_s, _size_bytes(arguments) * CPU_S_PER_BYTE)
        job = _Job(work, arguments, asyncio.get_running_loop().create_future(), guess_s)
        share.jobs.append(job)
        self._enter(share)
        self._start()
        result: T = await job.future
        return result

    def close(self) -> None:
        """Ends all processes. Requests that wait are cancelled."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._closed = True
            for process in self._all:
                process.kill()
            idle, self._idle = self._idle, []
        for process in idle:
            self._discard(process)
        for share in self._parties.values():
            for job in share.jobs:
                job.future.cancel()
            share.jobs.clear()
        self._order.clear()

    @property
    def pids(self) -> frozenset[int]:
        """The ids of the processes."""
        with self._lock:
            return frozenset(process.pid for process in self._all)

    def _enter(self, share: _Party) -> None:
        """Adds a party to the order, behind those whose documents are cheaper."""
        if not share.entry:
            share.cost = max(share.cost, self._order.reached) + share.jobs[0].guess_s
            self._order.enter(share)

    def _start(self) -> None:
        while self._order.waiting and self._running < self._at_once and not self._closed:
            share = self._order.pop()
            job = share.jobs.popleft()
            if job.future.cancelled():
                share.cost -= job.guess_s  # charged when the party entered the order
                if share.jobs:
                    self._enter(share)
                continue
            self._running += 1
            arguments = (asyncio.get_running_loop(), share, job)
            # Pipes block, so each document has a thread. As a daemon it does not delay the exit.
            Thread(target=self._run, args=arguments, name="document", daemon=True).start()

    def _run(self, loop: asyncio.AbstractEventLoop, share: _Party, job: _Job) -> None:
        """Reads one document, in a thread."""
        cpu_s: float = self._limits.cpu_s  # what a document costs that ends its process
        process = None
        outcome: tuple[bool, Any]
        try:
            process = self._take()
            outcome, cpu_s, is_usable = process.read(job.work, job.arguments)
            if is_usable:
                self._put_back(process)
                process = None
        except Exception as error:  # noqa: BLE001 - it belongs to the caller
            outcome = False, error
        if process is not None:
            self._discard(process)
        # The loop may be closed when a document is read.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end, share, job, outcome, cpu_s)

    def _end(self, share: _Party, job: _Job, outcome: tuple[bool, Any], cpu_s: float) -> None:
        self._running -= 1
        share.last_s = cpu_s
        share.cost += cpu_s - job.guess_s
        if share.jobs:
            self._enter(share)
        if not job.future.done():
            succeeded, value = outcome
            if succeeded:
                job.future.set_result(value)
            else:
                job.future.set_exception(WorkerError(value) if isinstance(value, str) else value)
        self._start()
        if self._timer is not None:
            self._timer.cancel()
        if not self._running and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._rest)

    def _rest(self) -> None:
        """Ends the processes, which have had nothing to do."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            # The end of a process may take a second (`WorkerProcess.end`), which the event loop must not wait for.
            Thread(target=self._discard, args=(process,), name="document", daemon=True).start()

    def _take(self) -> WorkerProcess:
        """An idle process or a new one. Raises WorkerError."""
        with self._lock:
            if self._closed:
                raise WorkerError("the service ends")
            if self._idle:
                return self._idle.pop()
            process = WorkerProcess(self._limits)
            self._all.add(process)
        return process

    def _put_back(self, process: WorkerProcess) -> None:
        with self._lock:
            self._idle.append(process)

    def _discard(self, process: WorkerProcess) -> None:
        process.end()
        with self._lock:
            self._all.discard(process)


def _size_bytes(arguments: Sequence[object]) -> int:
    """The size of the documents among the arguments of a function."""
    bodies = (getattr(argument, "body", argument) for argument in arguments)
    return sum(len(body) for body in bodies if isinstance(body, bytes))


def _exit_name(code: int) -> str:
    """The name of a signal, or an exit code."""
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"
