"""What is measured: our component as a process of its own, the pubsub services of real servers, and a mere echo."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bench import stanzas
from bench.wire import Listener, Wire, connect
from smartfeeds.errors import ConfigError
from smartfeeds.local.process import LocalServer
from smartfeeds.local.prosody import Prosody
from support.ejabberd import Ejabberd

SECRET = "secret"
FEEDS = "feeds.localhost"
SERVICE = "pubsub.localhost"
MOST_ITEMS = 1_000_000
WITHOUT_HTTP: Mapping[str, object] = {"listen": ""}
STOP_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "component"
_SCHEMAS = ("/usr/share/ejabberd/sql/lite.sql", "/usr/lib/*/ejabberd-*/priv/sql/lite.sql")


@dataclass(slots=True)
class Target:
    """A pubsub service on the other end of the driver's link.

    `options` are what nodes are made with beside open access; `page` makes the request for the first page of a node.
    """

    name: str
    address: str
    wire: Wire
    pid: int
    stop: Callable[[], None]
    options: dict[str, str] = field(default_factory=dict)
    page: Callable[[str, str], bytes] = stanzas.page


# Ours


def sqlite_url(database: Path) -> str:
    """The address of a database file."""
    return f"sqlite:///{database}"


def config(
    folder: Path, port: int, store_url: str, http: Mapping[str, object], component: Mapping[str, object]
) -> Path:
    """A configuration of our component; `http` and `component` are settings of these sections."""
    tables: dict[str, Mapping[str, object]] = {
        "component": {"jid": FEEDS, "secret": SECRET, "port": port, **component},
        "store": {"url": store_url},
        "http": http,
        "pubsub": {"creators": ["*"]},
        "limits": {"nodes_per_jid": 1_000_000},
        # The driver reads no link while it works on another one, which may take minutes, and so answers no pings.
        "link": {"ping_idle_s": 3_600},
        # The first version has no such section, and is measured without HTTP.
        **({"webhooks": {"allowed_networks": ["127.0.0.0/8"]}} if http["listen"] else {}),
        "log": {"level": "warning"},
    }
    path = folder / "smartfeeds.toml"
    path.write_text(
        "\n".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
            for name, values in tables.items()
        )
    )
    return path


def run_ours(
    folder: Path,
    port: int,
    store_url: str,
    http: Mapping[str, object] = WITHOUT_HTTP,
    component: Mapping[str, object] = MappingProxyType({}),
    package: Path = PACKAGE,
) -> subprocess.Popen[bytes]:
    """Our component, started; `package` has another version of it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = config(folder, port, store_url, http, component)
    return python(folder, "-m", "smartfeeds", "run", "--config", str(file), package=package)


def ours(
    folder: Path, store_url: str, http: Mapping[str, object] = WITHOUT_HTTP, package: Path = PACKAGE
) -> tuple[Target, float]:
    """Our component on the driver's link, and after how many seconds it was there."""
    listener = Listener()
    start = time.perf_counter()
    process = run_ours(folder, listener.port, store_url, http, package=package)
    try:
        wire = listener.accept(FEEDS)
    except BaseException:
        end(process)
        raise
    finally:
        listener.close()
    taken_s = time.perf_counter() - start

    def stop() -> None:
        process.send_signal(signal.SIGTERM)
        wire.close()
        end(process)

    return Target("ours", FEEDS, wire, process.pid, stop), taken_s


def echo(folder: Path, events: int) -> Target:
    """A component that does nothing but answer from prepared bytes: what the harness itself can do at most."""
    listener = Listener()
    process = python(folder, "-m", "bench.echo", str(listener.port), str(events))
    try:
        wire = listener.accept(FEEDS)
    except BaseException:
        end(process)
        raise
    finally:
        listener.close()

    def stop() -> None:
        wire.close()
        end(process)

    return Target("echo", FEEDS, wire, process.pid, stop)


def version(package: Path, folder: Path) -> Target:
    """A version of our component, with a new database."""
    return ours(folder, sqlite_url(folder / "feeds.db"), package=package)[0]


def python(folder: Path, *args: str, package: Path = PACKAGE) -> subprocess.Popen[bytes]:
    """Python with the component and the benchmark, started."""
    output = folder / "output.log"
    with output.open("ab") as log:
        return subprocess.Popen(
            (sys.executable, *args),
            env=environment(package),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def environment(package: Path = PACKAGE) -> dict[str, str]:
    """In which Python finds the component and the benchmark, and stores what it compiles, as an installed one does."""
    stored = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**stored, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT / "tests")))}


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of ours and waits for it."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# Peers


class BenchProsody(Prosody):
    """Prosody with its own pubsub service; the benchmark's users may create nodes, and nodes keep what they get."""

    storage = ""

    def write_config(self) -> None:
        super().write_config()
        admins = ", ".join(f'"u{number}@{stanzas.DOMAIN}"' for number in range(stanzas.USERS))
        text = self.config_file.read_text()
        head, host, rest = text.partition("VirtualHost")
        self.config_file.write_text(
            f"{head}{self.storage.format(folder=self.folder)}\n{host}{rest}\n"
            f'Component "{SERVICE}" "pubsub"\n    pubsub_max_items = {MOST_ITEMS}\n    admins = {{ {admins} }}\n'
        )


class ProsodySqlite(BenchProsody):
    """The same over SQLite."""

    storage = 'storage = "sql"\nsql = {{ driver = "SQLite3", database = "{folder}/prosody.sqlite" }}'


def without_schedulers(command: list[str]) -> list[str]:
    """The command with as many schedulers as Erlang likes."""
    at = command.index("+S")
    return command[:at] + command[at + 2 :]


class BenchEjabberd(Ejabberd):
    """ejabberd with its own pubsub service, on as many schedulers as it likes."""

    def configuration(self) -> dict[str, object]:
        found = super().configuration()
        modules = found["modules"]
        assert isinstance(modules, dict)
        modules["mod_pubsub"] = {
            "host": SERVICE.replace("localhost", "@HOST@"),  # there are two hosts, and each has one
            "access_createnode": "all",
            "max_items_node": MOST_ITEMS,
            "plugins": ["flat"],
            **self.pubsub(),
        }
        return found

    def pubsub(self) -> dict[str, object]:
        """Where nodes are kept."""
        return {"db_type": "mnesia"}

    def command(self, program: str) -> list[str]:
        return without_schedulers(super().command(program))


class EjabberdSqlite(BenchEjabberd):
    """The same over SQLite."""

    @property
    def database(self) -> Path:
        """The database file."""
        return self.folder / "ejabberd.sqlite"

    def write_config(self) -> None:
        super().write_config()
        if not self.database.exists():
            with sqlite3.connect(self.database) as connection:
                connection.executescript(_ejabberd_schema().read_text("utf-8"))
            connection.close()

    def configuration(self) -> dict[str, object]:
        return {**super().configuration(), "sql_type": "sqlite", "sql_database": str(self.database)}

    def pubsub(self) -> dict[str, object]:
        return {"db_type": "sql"}

    def environment(self) -> dict[str, str]:
        found = super().environment()
        return {**found, "ERL_LIBS": f"{found['ERL_LIBS']}:/usr/lib/erlang/lib"}


def _ejabberd_schema() -> Path:
    for pattern in _SCHEMAS:
        for path in sorted(Path("/").glob(pattern[1:])):
            return path
    raise ConfigError("ejabberd's lite.sql is not there: is the package ejabberd installed?")


PEERS: dict[str, type[LocalServer]] = {
    "prosody-files": BenchProsody,
    "prosody-sqlite": ProsodySqlite,
    "ejabberd-mnesia": BenchEjabberd,
    "ejabberd-sqlite": EjabberdSqlite,
}


def peer(name: str, folder: Path) -> Target:
    """A server's own pubsub service, the driver being a component of that server."""
    shutil.rmtree(folder, ignore_errors=True)
    server = PEERS[name](folder, {stanzas.DOMAIN: SECRET})
    server.start()
    try:
        wire = connect(server.component_port, stanzas.DOMAIN, SECRET)
    except BaseException:
        server.stop()
        raise
    assert server.process is not None

    def stop() -> None:
        wire.close()
        server.stop()

    page = stanzas.newest if name.startswith("prosody") else stanzas.page
    return Target(
        name,
        SERVICE,
        wire,
        server.process.pid,
        stop,
        {"max_items": str(MOST_ITEMS), "persist_items": "true"},
        page,
    )


# Ours through a server


class RoutingEjabberd(Ejabberd):
    """ejabberd as a router between components: each connection has the name that it asks for, not all of them."""

    def configuration(self) -> dict[str, object]:
        found = super().configuration()
        listeners = found["listen"]
        assert isinstance(listeners, list)
        listeners[-1]["global_routes"] = False
        return found

    def command(self, program: str) -> list[str]:
        return without_schedulers(super().command(program))


ROUTERS: dict[str, type[LocalServer]] = {"prosody": Prosody, "ejabberd": RoutingEjabberd}


@dataclass(slots=True)
class Routed:
    """Our component behind a real server, the driver being another component of it."""

    target: Target
    server_pid: int


def routed(name: str, folder: Path) -> Routed:
    """Starts both."""
    shutil.rmtree(folder, ignore_errors=True)
    server = ROUTERS[name](folder / "server", {stanzas.DOMAIN: SECRET, FEEDS: SECRET})
    server.start()
    assert server.process is not None
    process = run_ours(folder / "ours", server.component_port, sqlite_url(folder / "ours" / "feeds.db"))
    try:
        wire = connect(server.component_port, stanzas.DOMAIN, SECRET)
    except BaseException:
        end(process)
        server.stop()
        raise

    def stop() -> None:
        end(process)
        wire.close()
        server.stop()

    return Routed(Target(f"ours behind {name}", FEEDS, wire, process.pid, stop), server.process.pid)
