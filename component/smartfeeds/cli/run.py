"""Starts the service for `smartfeeds run`, and reads for `smartfeeds status` whether it runs and is connected."""

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from smartfeeds import __version__
from smartfeeds.hidden import hidden

# structlog would import them for tracebacks that the service does not write and threads that it does not have: 9 MB.
with hidden("rich", "greenlet"):
    import structlog

from smartfeeds.app.config import Settings
from smartfeeds.cli.common import load_settings, read_settings, refuse_devices
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import Exit, exit_failed_if, print_json, print_out, run_async
from smartfeeds.core.backoff import Backoff
from smartfeeds.errors import ConfigError, SmartfeedsError, UnknownOutcomeError
from smartfeeds.store.engine import TransientError
from smartfeeds.store.lock import database_holder
from smartfeeds.telemetry import set_up_logging
from smartfeeds.watchdog import Watchdog

if TYPE_CHECKING:
    from smartfeeds.app.lifecycle import App

STATUS_S: Final = 5.0  # interval of writing the status file
PAUSES: Final = Backoff(first_s=1.0, longest_s=10.0)  # before a start is repeated
STALE_S: Final = 20.0  # an older status file comes from a process that has ended or does not respond
M_TRIM_THRESHOLD: Final = -1  # parameters of glibc's mallopt(3)
M_MMAP_THRESHOLD: Final = -3
MAX_FREE_BYTES: Final = 16 * 1024 * 1024  # freed memory that glibc may keep
MAPPED_BYTES: Final = 1024 * 1024  # larger blocks are mapped one by one, and returned when freed
RETURN_S: Final = 60.0  # interval at which freed memory is returned after a burst
GROWTH_BYTES: Final = 32 * 1024 * 1024  # growth since the last return that counts as a burst
GC_THRESHOLD: Final = 10_000  # with Python's default, 700, collection takes a tenth of the time of a publish

TURN_S: Final = 1.0  # interval at which the event loop reports to the watchdogs

_PARTS: Final = ("link", "ownership", "canary", "database", "standbys")  # of the status file, which --json repeats

Report = Callable[[], Mapping[str, Mapping[str, object]]]

log = structlog.get_logger()


def run_service(config: Path | None, status: Path | None) -> bool:
    """Run the service until it is stopped. Returns whether an admin wants it to be started again."""
    settings = read_settings(config)
    set_up_logging(settings.log.format, settings.log.level)
    loop_factory = _uvloop_factory() if settings.run.event_loop == "uvloop" else None
    return run_async(_serve(settings, status or settings.store.status_file), loop_factory)


def _uvloop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Returns the function that creates an event loop of uvloop. Raises ConfigError if the package is not installed."""
    try:
        import uvloop  # an extra, so it may be absent
    except ImportError:
        raise ConfigError(
            "run.event_loop: the package uvloop is not installed; install it with pip install uvloop, or choose asyncio"
        ) from None
    return cast(Callable[[], asyncio.AbstractEventLoop], uvloop.new_event_loop)


async def _serve(settings: Settings, status: Path | None) -> bool:
    """Run the service until its end. Returns whether an admin wants it to be started again."""
    stop = asyncio.Event()
    restarts: list[bool] = []

    def on_stop(restart: bool) -> None:
        restarts.append(restart)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stop)
    # slixmpp would import them to colour stanzas and to look up servers, aiohttp to look up hosts, which `net.resolver`
    # does. The start is in it, because it imports aiohttp if the service has pages.
    with hidden("pygments", "aiodns"):
        # Loading modules leaves no garbage; collections during it are an eighth of the time of a start.
        gc.disable()
        from smartfeeds.app.lifecycle import App  # imported here, because other commands do not need it

        gc.enable()
        app = await start_app(lambda: App(settings, on_failure=stop.set, on_stop=on_stop), stop)
    if app is None:
        return False
    _spare_the_collector()
    _keep_freed_memory()
    log.info(
        "started",
        version=__version__,
        component=settings.component.jid,
        store=settings.store.address.name,
        http=f"http://{settings.http.listen}/" if settings.http.listen else "",
    )
    try:
        report = report_of(app)
        async with _watched(settings.run.watchdog_s), status_file(status, app.online, report), _memory_returned():
            _notify("READY=1")
            await stop.wait()
            _notify("STOPPING=1")
    finally:
        await app.stop()
        log.info("stopped")
    if app.tasks.loss is not None:
        raise app.tasks.loss
    if app.tasks.failed:
        raise SmartfeedsError("a part of the service failed; see the log")
    return restarts[-1:] == [True]


async def start_app(make: Callable[[], "App"], stop: asyncio.Event) -> "App | None":
    """Start the app that `make` returns, and again with a new one while the database server is away.

    Return None if `stop` is set before a start succeeds. Raise the other errors of `App.start`.
    """
    failures = 0
    while not stop.is_set():
        app = make()
        try:
            await app.start()
        except (TransientError, UnknownOutcomeError) as error:
            failures += 1
            pause_s = PAUSES.pause_s(failures, random.random())
            log.error("start_repeated", reason=str(error), pause_s=round(pause_s, 1))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await stop.wait()
        else:
            return app
    return None


def report_of(app: "App") -> "Report":
    """Return the function that returns what the status file has beside the state."""
    return lambda: {"rates": app.recent.rates()._asdict(), "link": app.supervisor.report(), **app.group.report()}


@contextlib.asynccontextmanager
async def _watched(limit_s: int) -> AsyncIterator[None]:
    """End the process if the event loop hangs for `limit_s` seconds, and tell systemd that it turns; 0: no limit."""
    watchdog = Watchdog(limit_s) if limit_s else None

    async def turn() -> None:
        while True:
            if watchdog is not None:
                watchdog.turn()
            _notify("WATCHDOG=1")
            await asyncio.sleep(TURN_S)

    task = asyncio.create_task(turn())
    if watchdog is not None:
        watchdog.start()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
        if watchdog is not None:
            watchdog.stop()


def _spare_the_collector() -> None:
    """Exclude loaded modules from garbage collection, and collect rarely: requests create no reference cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)


def _keep_freed_memory() -> None:
    """Let glibc reuse freed memory for the next page. By default it would return the memory and request it again."""
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, MAX_FREE_BYTES)
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


@contextlib.asynccontextmanager
async def _memory_returned() -> AsyncIterator[None]:
    """Return freed memory to the system from time to time.

    glibc returns by itself only what is free at the end of a heap. Thirty large documents left 60 MB of free blocks.
    """
    task = asyncio.create_task(_return_memory(asyncio.sleep))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _return_memory(sleep: Callable[[float], Awaitable[None]]) -> None:
    kept_bytes = _resident_bytes()
    while True:
        await sleep(RETURN_S)
        if _resident_bytes() > kept_bytes + GROWTH_BYTES:
            await asyncio.to_thread(_trim)
            kept_bytes = _resident_bytes()


def _trim() -> None:
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


def _resident_bytes() -> int:
    """Return the resident memory of this process, 0 on systems without /proc."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _on_signal(stop: asyncio.Event) -> None:
    if stop.is_set():
        os._exit(Exit.INTERRUPTED)  # sys.exit would still wait for the end of the stop
    stop.set()


@contextlib.asynccontextmanager
async def status_file(path: Path | None, online: asyncio.Event, report: Report = dict) -> AsyncIterator[None]:
    """Update the status file while the service runs, and remove it at the end."""
    if path is None:
        yield
        return
    refuse_devices(path)
    _write(path, online=online.is_set(), report=report())
    task = asyncio.create_task(_update_status(path, online, report))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
        # The file that `whole_file` has written. A symbolic link to it stays.
        path.resolve().unlink(missing_ok=True)  # noqa: ASYNC240 - once, at the end


async def _update_status(path: Path, online: asyncio.Event, report: Report) -> None:
    while True:
        if online.is_set():
            await asyncio.sleep(STATUS_S)
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATUS_S):
                    await online.wait()
        try:
            _write(path, online=online.is_set(), report=report())
        except ConfigError as error:
            log.error("status_not_written", reason=str(error))


def _write(path: Path, *, online: bool, report: Mapping[str, Mapping[str, object]]) -> None:
    process = {"pid": os.getpid(), "began": _began(os.getpid()), "place": _place()}
    state = {"online": online, "at": time.time(), "version": __version__, **report, **process}
    with whole_file(path, f"the status file {path}") as file:
        file.write(json.dumps(state).encode())


def _place() -> str:
    """Return an identifier of the space of process ids: boot id and pid namespace, or outside Linux the host name."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _began(pid: int) -> str | None:
    """Return the start time of a process in kernel ticks, empty if it has ended, None if unknown (proc(5))."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]


def _lives(state: dict[str, Any]) -> bool:
    """Return whether the process that wrote the file is running. True if this cannot be determined from here."""
    pid = int(state.get("pid", 0))
    if pid <= 0 or state.get("place") != _place():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process of another user is running
    began = _began(pid)
    return began is None or began == state.get("began")  # otherwise another process has the id now


def _notify(state: str) -> None:
    """Notify systemd (sd_notify(3)). A leading @ stands for the abstract namespace."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, contextlib.suppress(OSError):
            sock.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


def _lines(state: Mapping[str, Any]) -> Iterator[str]:
    """Return what the file says about the link, and about a database that several processes use."""
    if link := state.get("link"):
        yield f"{link['reason']}: {link['advice']}"
    if canary := state.get("canary"):
        if canary["lost_lately"]:
            yield (
                f"{canary['lost_lately']} of the last {canary['lately']} stanzas to itself were lost: "
                "another connection of this component swallows stanzas"
            )
        elif canary["lately"]:
            yield f"a stanza to itself comes back after {canary['seconds'] * 1_000:.0f} ms"
    if ownership := state.get("ownership"):
        yield (
            f"{ownership['processes']} processes on the database, {ownership['shards']} of 64 shards here, "
            f"last beat {ownership['lease_age_s']:.1f} s ago"
        )
    if database := state.get("database"):
        standbys = {name: count for name, count in state.get("standbys", {}).items() if count}
        text = ", ".join(f"{count} {name}" for name, count in standbys.items()) or "none"
        yield (
            f"database: {database['free_connections']} connections free, {database['waiting_sessions']} sessions wait "
            f"for a lock, standbys: {text}"
        )


def default_status_file(config: Path | None) -> Path:
    """Return the file that a service writes without --status. Raises ConfigError if there is another one."""
    store = load_settings(config).store
    file = store.status_file
    if file is None:
        raise ConfigError(
            f"the database {store.address.name} is PostgreSQL, and each process has a status file of its own; name the "
            "FILE of smartfeeds run --status"
        )
    if not file.exists() and (holder := database_holder(store.path)):
        raise ConfigError(f"{holder} uses the database and writes no {file}; name the FILE of smartfeeds run --status")
    return file


def read_status(file: Path) -> tuple[bool, dict[str, Any]]:
    """Return whether the service that has written a file is running, and what it has written, {} if it is not."""
    try:
        state: dict[str, Any] = json.loads(file.read_text())
        running = time.time() - float(state["at"]) < STALE_S and _lives(state)
        bool(state["online"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):  # the file may have any content
        return False, {}
    return running, state if running else {}


def print_status(running: bool, state: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the state of the service that `read_status` returns."""
    online = running and bool(state["online"])
    if as_json:
        report = {name: state.get(name, empty) for name, empty in (("version", ""), ("rates", {}))}
        report |= {name: state[name] for name in _PARTS if name in state}
        print_json({"running": running, "online": online, **report})
    else:
        print_out("not running" if not running else "online" if online else "running, not online")
        from smartfeeds.lists import folded  # here, because the service prints nothing

        for text in _lines(state):
            for line in folded(text, indent=2):
                print_out(line)
    exit_failed_if(not online)
