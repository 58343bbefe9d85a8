"""`smartfeeds run` and `smartfeeds status`: the service, and whether it is well."""

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import click
import structlog

from smartfeeds import __version__
from smartfeeds.cli.common import config_option, json_option, read_settings, refuse_devices
from smartfeeds.cli.files import whole_file
from smartfeeds.config import Settings
from smartfeeds.console import Exit, out, print_json, run_async
from smartfeeds.errors import ConfigError, SmartfeedsError
from smartfeeds.telemetry import set_up_logging

STATUS_S: Final = 5.0
STALE_S: Final = 20.0
M_TRIM_THRESHOLD: Final = -1  # glibc's mallopt(3)
M_MMAP_THRESHOLD: Final = -3
KEPT_FREE_BYTES: Final = 16 * 1024 * 1024
MAPPED_BYTES: Final = 1024 * 1024
GC_THRESHOLD: Final = 10_000  # Python's own 700 takes a tenth of the time of a publish

log = structlog.get_logger()


@click.command("run")
@config_option
@click.option(
    "--status",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file to keep the state in, for smartfeeds status.",
)
def run_command(config: Path | None, status: Path | None) -> None:
    """Run the service until SIGTERM or Ctrl-C; a second signal ends it at once.

    While the server is away, or another process has the name, it tries again for ever. Ends with an error only where
    the configuration or the store cannot be used.
    """
    settings = read_settings(config)
    set_up_logging(settings.log.format, settings.log.level)
    run_async(_serve(settings, status))


async def _serve(settings: Settings, status: Path | None) -> None:
    from smartfeeds.app import App  # what the whole service needs is loaded when it is to run

    stop = asyncio.Event()
    app = App(settings, on_failure=stop.set)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stop)
    await app.start()
    _spare_the_collector()
    _keep_freed_memory()
    log.info("started", version=__version__, component=settings.component.jid, store=str(settings.store.path))
    try:
        async with _kept(status, app.online):
            _notify("READY=1")
            await stop.wait()
            _notify("STOPPING=1")
    finally:
        await app.stop()
        log.info("stopped")
    if app.failed:
        raise SmartfeedsError("a part of the service has failed; the log says why")


def _spare_the_collector() -> None:
    """Leaves what was loaded out of garbage collection, and collects seldom: requests leave no cycles behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)


def _keep_freed_memory() -> None:
    """Lets glibc keep what was freed for the next page, instead of giving it back and asking for it again."""
    with contextlib.suppress(OSError, AttributeError):  # another C library, which has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_FREE_BYTES)
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def _on_signal(stop: asyncio.Event) -> None:
    if stop.is_set():
        os._exit(Exit.INTERRUPTED)
    stop.set()


@contextlib.asynccontextmanager
async def _kept(path: Path | None, online: asyncio.Event) -> AsyncIterator[None]:
    """Keeps the status file current; it goes when the service goes."""
    if path is None:
        yield
        return
    refuse_devices(path)
    _write(path, online=online.is_set())
    task = asyncio.create_task(_keep(path, online))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
        path.resolve().unlink(missing_ok=True)  # noqa: ASYNC240 - once, at the end


async def _keep(path: Path, online: asyncio.Event) -> None:
    while True:
        if online.is_set():
            await asyncio.sleep(STATUS_S)
        else:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(online.wait(), STATUS_S)
        try:
            _write(path, online=online.is_set())
        except ConfigError as error:
            log.error("status_not_written", reason=str(error))


def _write(path: Path, *, online: bool) -> None:
    process = {"pid": os.getpid(), "began": _began(os.getpid()), "place": _place()}
    state = {"online": online, "at": time.time(), "version": __version__, **process}
    with whole_file(path, f"the status file {path}") as file:
        file.write(json.dumps(state).encode())


def _place() -> str:
    """Where process numbers mean the same: a start of the kernel and a namespace, or the host where Linux is not."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _began(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; empty where it is over, None where nobody tells (proc(5))."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]


def _lives(state: dict[str, Any]) -> bool:
    """Whether the process that wrote the file is there; True where that cannot be told from here."""
    pid = int(state.get("pid", 0))
    if pid <= 0 or state.get("place") != _place():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, and it lives
    began = _began(pid)
    return began is None or began == state.get("began")  # else the number is another process's by now


def _notify(state: str) -> None:
    """Tells systemd (sd_notify): an abstract name starts with @."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, contextlib.suppress(OSError):
            sock.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


@click.command("status")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def status_command(file: Path, *, as_json: bool) -> None:
    """Tell from the status FILE of smartfeeds run whether it runs and the server accepts it; 1 where not."""
    try:
        state = json.loads(file.read_text())
        online, age_s = bool(state["online"]), time.time() - float(state["at"])
        running = age_s < STALE_S and _lives(state)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        running, online = False, False
    if as_json:
        print_json({"running": running, "online": running and online})
    else:
        out.print("not running" if not running else "online" if online else "running, not online")
    if not (running and online):
        click.get_current_context().exit(Exit.FAILED)
