"""What keeps `smartfeeds run` from starting, or from being let in: one clear line that says what to do, and its code.

Nothing is half written: what was there is there as it was, and what was not there is not.
"""

import asyncio
import contextlib
import hashlib
import os
import resource
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from pathlib import Path

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from smartfeeds.app.lifecycle import App
from smartfeeds.cli import main
from smartfeeds.console import Exit
from smartfeeds.local.process import free_port
from smartfeeds.store import migrate
from support.component import settings
from support.process import ServiceProcess
from support.raw import connected, request
from support.servers import SECRET, TestServer
from support.waiting import HANG_S, wait_for

GOOD = """\
[component]
jid = "feeds.localhost"
secret = "s3cr3t"
port = {port}
[store]
url = "sqlite:///{folder}/feeds.db"
[http]
listen = ""
"""


def configured(folder: Path, more: str = "", *, base: str = GOOD) -> Path:
    """A configuration file in the folder."""
    path = folder / "smartfeeds.toml"
    path.write_text(base.format(folder=folder, port=free_port()) + more)
    return path


def state_of(folder: Path) -> dict[str, str]:
    """What is in a folder, but for logs and configuration: names and digests."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.iterdir()
        if path.suffix not in (".log", ".toml")
    }


def database(folder: Path, *statements: str) -> None:
    """A database with our tables, changed by these statements."""
    path = folder / "feeds.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate.prepare(connection, path)
        for statement in statements:
            connection.execute(statement)


def newer(folder: Path) -> None:
    database(folder, "UPDATE alembic_version SET version_num = '9999'")
    database(folder, "UPDATE compatibility SET oldest = '9998'")


def foreign(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "feeds.db")) as connection:
        connection.execute("CREATE TABLE song (title TEXT)")


def text(folder: Path) -> None:
    (folder / "feeds.db").write_text("this is no database\n" * 1_000)


def damaged(folder: Path) -> None:
    database(folder)
    path = folder / "feeds.db"
    content = bytearray(path.read_bytes())
    content[4_096:] = b"\xa5" * (len(content) - 4_096)
    path.write_bytes(content)


def cut_short(folder: Path) -> None:
    database(folder)
    path = folder / "feeds.db"
    path.write_bytes(path.read_bytes()[:10_000])


def a_folder(folder: Path) -> None:
    (folder / "feeds.db").mkdir()


def nothing(folder: Path) -> None:
    """Nothing is there."""


# How it is prepared, what the configuration adds, the environment, the exit code, and what the message must name.
REFUSED: dict[str, tuple[Callable[[Path], None], str, dict[str, str], Exit, tuple[str, ...]]] = {
    "unknown key": (nothing, "creater = ['x']\n", {}, Exit.CONFIG, ("http.creater", "no such key")),
    "misspelt key": (
        nothing,
        "[pubsub]\ncreater = ['x']\n",
        {},
        Exit.CONFIG,
        ("pubsub.creater", "did you mean creators"),
    ),
    "unknown section": (nothing, "[pubsubs]\n", {}, Exit.CONFIG, ("pubsubs", "did you mean pubsub")),
    "wrong value": (nothing, "[push]\nmax_age_s = 'long'\n", {}, Exit.CONFIG, ("push.max_age_s", "number")),
    "no TOML": (nothing, "[[[", {}, Exit.CONFIG, ("smartfeeds.toml", "not TOML", "line")),
    "unknown section in the environment": (
        nothing,
        "",
        {"SMARTFEEDS_PUBSUBS__ADMINS": "[]"},
        Exit.CONFIG,
        ("SMARTFEEDS_PUBSUBS__ADMINS", "did you mean pubsub"),
    ),
    "list in the environment that is none": (
        nothing,
        "",
        {"SMARTFEEDS_PUBSUB__ADMINS": "a@b"},
        Exit.CONFIG,
        ("JSON",),
    ),
    "no secret": (nothing, "", {"SMARTFEEDS_COMPONENT__SECRET": ""}, Exit.CONFIG, ("component", "secret is empty")),
    "secret file that does not exist": (
        nothing,
        "",
        {"SMARTFEEDS_COMPONENT": '{"secret": null, "secret_file": "/none/secret"}'},
        Exit.CONFIG,
        ("cannot read secret_file /none/secret", "No such file"),
    ),
    "component port that is none": (
        nothing,
        "",
        {"SMARTFEEDS_COMPONENT__PORT": "70000"},
        Exit.CONFIG,
        ("component.port", "must be at most 65535"),
    ),
    "address for HTTP that is none": (
        nothing,
        "",
        {"SMARTFEEDS_HTTP__LISTEN": "8280"},
        Exit.CONFIG,
        ("http.listen", "HOST:PORT", "8280"),
    ),
    "folder of the database that does not exist": (
        nothing,
        "",
        {"SMARTFEEDS_STORE__URL": "sqlite:////none/feeds.db"},
        Exit.STORE,
        ("/none/feeds.db", "no such file or directory", "check that the directory exists"),
    ),
    "newer database": (newer, "", {}, Exit.NEWER, ("feeds.db", "9999", "newer", "install a newer smartfeeds")),
    "database of another program": (foreign, "", {}, Exit.STORE, ("feeds.db", "belongs to another program")),
    "file that is no database": (text, "", {}, Exit.STORE, ("feeds.db", "not a SQLite database", "backup")),
    "damaged database": (damaged, "", {}, Exit.STORE, ("feeds.db", "corrupt", "restore a backup")),
    "database cut short": (cut_short, "", {}, Exit.STORE, ("feeds.db", "corrupt", "restore a backup")),
    "folder in its place": (a_folder, "", {}, Exit.STORE, ("feeds.db",)),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_run_that_cannot_start_says_why_and_touches_nothing(tmp_path: Path, case: str) -> None:
    prepare, more, environment, code, words = REFUSED[case]
    prepare(tmp_path)
    before = state_of(tmp_path)
    async with ServiceProcess(configured(tmp_path, more), environment) as service:
        await service.start()
        assert await service.ended() == code

    lines = service.said.splitlines()
    assert len(lines) <= 3, service.said
    assert all(word in service.said for word in words), service.said
    assert "Traceback" not in service.said and "s3cr3t" not in service.said
    assert state_of(tmp_path) == before


async def test_run_with_an_http_port_that_is_taken_ends(tmp_path: Path) -> None:
    """It does not wait for the threads of its store, and creates no database."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        async with ServiceProcess(configured(tmp_path), {"SMARTFEEDS_HTTP__LISTEN": listen}) as service:
            await service.start()
            assert await service.ended() == Exit.CONFIG

    assert service.said == (
        f"smartfeeds: http.listen: cannot bind {listen}, the address is in use; "
        "stop the other process or choose another port\n"
    )
    assert not state_of(tmp_path), "the address is bound before the database is created"


async def test_run_on_uvloop_serves_both_wires(prosody: TestServer, tmp_path: Path) -> None:
    """Its transports are no instances of asyncio.Transport."""
    name, http_port = prosody.take_name(), free_port()
    environment = {
        "SMARTFEEDS_COMPONENT__JID": name,
        "SMARTFEEDS_COMPONENT__SECRET": SECRET,
        "SMARTFEEDS_COMPONENT__PORT": str(prosody.component_port),
        "SMARTFEEDS_HTTP__LISTEN": f"127.0.0.1:{http_port}",
        "SMARTFEEDS_RUN__EVENT_LOOP": "uvloop",
    }
    async with ServiceProcess(configured(tmp_path), environment) as service:
        await service.start()
        async with asyncio.timeout(HANG_S):
            # Ready means that the store can be read and that the XMPP server has accepted the component.
            while await ready(http_port) != HTTPStatus.OK:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)
        assert "uvloop" in maps(service.pid)
        assert await service.end() == Exit.OK


def maps(pid: int) -> str:
    """What a process has mapped, shared libraries among it."""
    return Path(f"/proc/{pid}/maps").read_text()


async def ready(http_port: int) -> int:
    """The status of /readyz; 0 as long as nothing listens."""
    try:
        async with connected(http_port) as connection:
            connection.say(request("/readyz"))
            return (await connection.hear()).status
    except ConnectionError:
        return 0


def test_run_on_uvloop_that_is_not_installed_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    monkeypatch.setenv("SMARTFEEDS_RUN__EVENT_LOOP", "uvloop")
    result = CliRunner().invoke(main, ["run", "--config", str(configured(tmp_path))])
    assert result.exit_code == Exit.CONFIG
    assert "install it with pip install uvloop, or choose asyncio" in result.stderr


async def test_second_run_on_a_database_names_the_first_and_ends(tmp_path: Path) -> None:
    """[SF-028] Two services on one database would both push its changes. A killed one keeps nobody out."""
    config, lock = configured(tmp_path), tmp_path / "feeds.db.lock"
    async with ServiceProcess(config) as first, ServiceProcess(config) as second:
        await first.start()
        async with asyncio.timeout(HANG_S):
            while "started" not in first.said:  # noqa: ASYNC110 - another process's file
                await asyncio.sleep(0.02)
        told = len(first.said)

        await second.start()
        assert await second.ended() == Exit.STORE
        assert second.said[told:].count("\n") == 1
        assert f"{tmp_path}/feeds.db: process {first.pid} (smartfeeds, feeds.localhost) is using it" in second.said

        await first.end(signal.SIGKILL)
        assert lock.exists(), "nobody removed it"
        told = len(first.said)
        await second.start()
        async with asyncio.timeout(HANG_S):
            while "started" not in second.said[told:]:  # noqa: ASYNC110 - another process's file
                await asyncio.sleep(0.02)
        assert lock.read_text() == f"process {second.pid} (smartfeeds, feeds.localhost)"
        assert await second.end() == Exit.OK
    assert not lock.exists()


async def test_run_with_a_database_that_stays_locked_ends_with_what_to_do(tmp_path: Path) -> None:
    database(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "feeds.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with ServiceProcess(configured(tmp_path)) as service:
            await service.start()
            assert await service.ended() == Exit.STORE
        assert "another process holds it locked" in service.said and "Traceback" not in service.said
        other.execute("ROLLBACK")


async def test_run_on_a_disk_without_room_leaves_nothing_half_made(tmp_path: Path) -> None:
    """The tables do not fit: the next start, with room, makes them as if nothing had been."""
    async with ServiceProcess(configured(tmp_path)) as service:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        try:
            await service.start()  # it inherits the limit
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert await service.ended() == Exit.STORE
    assert "check the disk and its free space" in service.said and "Traceback" not in service.said

    app = App(settings(free_port(), f"sqlite:///{tmp_path}/feeds.db"))
    await app.start()
    await app.stop()


@pytest.mark.parametrize(("mode", "folder_mode"), [(0o400, 0o700), (None, 0o500)], ids=["file", "folder"])
def test_run_without_the_right_to_write_says_so(unprivileged: Path, mode: int | None, folder_mode: int) -> None:
    path = configured(unprivileged)
    if mode is not None:
        database(unprivileged)
        (unprivileged / "feeds.db").chmod(mode)
    unprivileged.chmod(folder_mode)
    before = state_of(unprivileged)

    result = CliRunner().invoke(main, ["run", "--config", str(path)])

    assert result.exit_code == Exit.STORE
    assert "write permission" in result.output or "may write" in result.output, result.output
    assert state_of(unprivileged) == before


@contextlib.asynccontextmanager
async def started(server: TestServer, name: str, folder: Path, secret: str = SECRET) -> AsyncIterator[App]:
    """A component that tries to get in; quick in trying again."""
    link = {"retry_first_s": 0.05, "retry_most_s": 0.2}
    component = {"jid": name, "secret": secret}
    app = App(
        settings(server.component_port, f"sqlite:///{folder}/{os.urandom(4).hex()}.db", component=component, link=link)
    )
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def condition(app: App, attempts: int = 3) -> str:
    """Why it is not let in, after some attempts."""
    async with asyncio.timeout(HANG_S):
        while app.supervisor.connects <= attempts:  # noqa: ASYNC110 - nobody is told of attempts
            await asyncio.sleep(0.01)
    assert not app.online.is_set() and app.supervisor.last_error is not None
    return app.supervisor.last_error.condition


async def test_conflict_on_prosody_stands_by_and_takes_over(prosody: TestServer, tmp_path: Path) -> None:
    """Two components of one name. [xep-map 5] [xep-map 9]"""
    name = prosody.take_name()
    with capture_logs() as logs:
        async with started(prosody, name, tmp_path) as first:
            await wait_for(first.online.wait(), "the link")
            async with started(prosody, name, tmp_path) as second:
                assert await condition(second) == "conflict"
                assert first.online.is_set() and first.supervisor.epoch == 1, "who is in stays in"
                await first.stop()
                await wait_for(second.online.wait(), "the link")
                assert second.supervisor.epoch == 1

    told = [line for line in logs if line.get("condition") == "conflict"]
    assert len(told) == 1, "one line, however often it is tried"
    assert "another process is connected under this name" in told[0]["advice"]


async def test_second_connection_on_ejabberd_is_let_in(ejabberd: TestServer, tmp_path: Path) -> None:
    """There several processes share a name. [xep-map 5]"""
    name = ejabberd.take_name()
    async with started(ejabberd, name, tmp_path) as first, started(ejabberd, name, tmp_path) as second:
        for app in (first, second):
            await wait_for(app.online.wait(), "the link")


async def test_wrong_secret_is_told_once_and_tried_slowly(server: TestServer, tmp_path: Path) -> None:
    """[xep-map 2]"""
    with capture_logs() as logs:
        async with started(server, server.take_name(), tmp_path, "n0tth1s") as app:
            assert await condition(app) == "not-authorized"

    (told,) = [line for line in logs if line.get("condition") == "not-authorized"]
    assert told["log_level"] == "error"
    assert "the secret is not the one the server has" in told["advice"]
    assert "n0tth1s" not in str(logs), "the secret is told to nobody"


# What each server answers to a component of a name that it does not have.
UNKNOWN_DOMAIN = {
    "prosody": ("host-unknown", "the server has no component of this name, or component.port is its port for clients"),
    "ejabberd": (
        "not-authorized",
        "the secret is not the one the server has for this domain, or ejabberd has no such domain",
    ),
}


async def test_unknown_domain_is_told_once(server: TestServer, tmp_path: Path) -> None:
    """[xep-map 2]"""
    wanted, advice = UNKNOWN_DOMAIN[server.server.software.lower()]
    with capture_logs() as logs:
        async with started(server, "nobody.example", tmp_path) as app:
            assert await condition(app) == wanted

    (line,) = [line for line in logs if line.get("condition") == wanted]
    assert (line["log_level"], line["advice"], line["domain"]) == ("error", advice, "nobody.example")


async def test_server_that_is_away_is_waited_for(prosody: TestServer, tmp_path: Path) -> None:
    """[xep-map 9]"""
    port = free_port()
    with capture_logs() as logs:
        app = App(settings(port, f"sqlite:///{tmp_path}/feeds.db", link={"retry_first_s": 0.05, "retry_most_s": 0.2}))
        await app.start()
        try:
            assert await condition(app) == "connect-failed"
        finally:
            await app.stop()

    (told,) = [line for line in logs if line.get("condition") == "connect-failed"]
    assert "is the server running" in told["advice"] and str(port) in told["server"]


async def test_database_that_is_removed_ends_the_service_with_a_message(tmp_path: Path) -> None:
    """Nothing that SQLite stores in a file without a name is there after a restart."""
    path = configured(tmp_path)
    async with ServiceProcess(path) as service:
        await service.start()
        while "started" not in service.said:  # noqa: ASYNC110 - a log file tells nobody
            await asyncio.sleep(0.05)
        (tmp_path / "feeds.db").unlink()
        assert await service.ended() == Exit.STORE
    assert f"the database {tmp_path}/feeds.db: {tmp_path}/feeds.db was removed or moved" in service.said
    assert "Traceback" not in service.said
