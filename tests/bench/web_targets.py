"""What is measured over HTTP: our component, and what serves the same bytes beside it."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench import targets
from bench.wire import BenchError, Wire
from smartfeeds.local.process import free_port

MANY = 20_000  # connections of one client
START_S = 20.0
RIVAL = targets.ROOT / ".venv-bench" / "bin" / "python"

_NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=16;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    types {{ application/json json; application/atom+xml atom; }}
    server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""


@dataclass(slots=True)
class WebTarget:
    """Something that serves pages on a port of this machine."""

    folder: Path
    port: int
    pid: int
    stop: Callable[[], None]


@dataclass(slots=True)
class OurWeb(WebTarget):
    """Ours, with the link by which items are published."""

    wire: Wire


@dataclass(frozen=True, slots=True)
class Got:
    """An answer."""

    status: int
    body: bytes
    etag: str


def get(port: int, path: str, accept: str = "*/*", etag: str = "") -> Got:
    """One request. Raises BenchError where it is refused."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Accept": accept} | ({"If-None-Match": etag} if etag else {}))
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status not in (200, 304):
        raise BenchError(f"GET {path}: {answer.status} {body[:500].decode('utf-8', 'replace')}")
    return Got(answer.status, body, answer.getheader("ETag") or "")


def ours(folder: Path, database: Path) -> OurWeb:
    """Our component, which holds as many polls of one client as are wanted."""
    port = free_port()
    http = {"listen": f"127.0.0.1:{port}", "connections_per_address": MANY, "poll_max_s": 600}
    target, _ = targets.ours(folder, targets.sqlite_url(database), http=http)
    return OurWeb(folder, port, target.pid, target.stop, target.wire)


def bare(folder: Path, pages: list[Path]) -> WebTarget:
    """A handler of aiohttp that returns prepared bytes."""
    port = free_port()
    return _started("aiohttp", folder, port, targets.python(folder, "-m", "bench.bare", str(port), *map(str, pages)))


def nginx(folder: Path, pages: list[Path]) -> WebTarget:
    """The same bytes as static files."""
    port = free_port()
    for page in pages:
        (folder / page.name).write_bytes(page.read_bytes())
    file = folder / "nginx.conf"
    file.write_text(_NGINX.format(folder=folder, port=port))
    return _started("nginx", folder, port, _run(folder, "nginx", "-p", str(folder), "-c", str(file)))


def rival(folder: Path, pages: list[Path]) -> WebTarget:
    """Starlette under uvicorn, which makes the same page of what it has in memory."""
    port = free_port()
    program = Path(__file__).with_name("rival.py")
    return _started("starlette", folder, port, _run(folder, str(RIVAL), str(program), str(port), str(pages[0])))


PEERS: dict[str, Callable[[Path, list[Path]], WebTarget]] = {"aiohttp": bare, "nginx": nginx, "starlette": rival}


def _run(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    with (folder / "output.log").open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _started(name: str, folder: Path, port: int, process: subprocess.Popen[bytes]) -> WebTarget:
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return WebTarget(folder, port, process.pid, lambda: targets.end(process))
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                targets.end(process)
                raise BenchError(f"{name} did not start: see its output.log") from None
            time.sleep(0.05)


def clients(kind: str, port: int, count: int, rounds: int, path: str) -> subprocess.Popen[str]:
    """A crowd (`bench.crowd`) in a process of its own."""
    command = (sys.executable, "-m", "bench.crowd", kind, str(port), str(count), str(rounds), path)
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=targets.environment()
    )
