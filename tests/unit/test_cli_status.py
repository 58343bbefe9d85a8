"""`smartfeeds status`: what it tells from the file, and from the process that wrote it."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from smartfeeds.app.config import load
from smartfeeds.cli import main, run
from smartfeeds.console import Exit
from smartfeeds.errors import ConfigError
from smartfeeds.local.process import free_port
from smartfeeds.store.lock import lock_database
from smartfeeds.xmpp.settings import LinkSettings
from smartfeeds.xmpp.stream import ComponentStream
from smartfeeds.xmpp.supervisor import Supervisor
from support.shell import Run
from support.waiting import until

NOW = 1_000_000.0


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.time, "time", lambda: NOW)


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def status(path: Path) -> tuple[str, int]:
    found = CliRunner().invoke(main, ["status", str(path)])
    return found.stdout.strip(), found.exit_code


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def put(path: Path, **changes: Any) -> Path:
    """What a running service that is this process has written, with changes; None takes a key out."""
    run._write(path, online=True, report={})
    state = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in state.items() if value is not None}))
    return path


async def test_service_that_runs_is_online(tmp_path: Path) -> None:
    online = asyncio.Event()
    online.set()
    async with run.status_file(tmp_path / "s", online):
        assert await asyncio.to_thread(status, tmp_path / "s") == ("online", Exit.OK)
    assert status(tmp_path / "s") == ("not running", Exit.FAILED)


def test_status_needs_no_file(ready: Run) -> None:
    """`run` writes the file beside the database of the configuration, unless --status names another one."""
    assert "not running" in ready("status", code=Exit.FAILED).stdout
    file = load(Path("smartfeeds.toml")).store.status_file
    assert file is not None and file.name == "smartfeeds.db.status"

    put(file)
    assert ready("status").stdout == "online\n"
    assert json.loads(ready("status", "--json").stdout)["online"] is True
    assert "not running" in ready("status", "other.json", code=Exit.FAILED).stdout


def test_status_of_a_service_with_another_file_asks_for_it(ready: Run) -> None:
    ready("node", "create", "news")
    release = lock_database(Path("smartfeeds.db"), "smartfeeds run")
    try:
        stderr = ready("status", code=Exit.CONFIG).stderr
    finally:
        release()
    assert f"process {os.getpid()} (smartfeeds run) uses the database" in stderr
    assert "name the FILE of smartfeeds run --status" in stderr


def test_status_of_processes_on_postgres_asks_for_their_file(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", "postgresql://db.example/feeds")
    assert "name the FILE of smartfeeds run --status" in " ".join(ready("status", code=Exit.CONFIG).stderr.split())


def test_rates_of_a_running_service_are_in_the_json(tmp_path: Path) -> None:
    rates = {"published": 2.5, "notified": 40.0, "pulled": 0.0, "refused": 0.1}
    running = CliRunner().invoke(main, ["status", str(put(tmp_path / "s", rates=rates, version="1.2.3")), "--json"])
    ended = CliRunner().invoke(main, ["status", str(put(tmp_path / "s", rates=rates, at=0)), "--json"])

    assert json.loads(running.stdout) == {"running": True, "online": True, "version": "1.2.3", "rates": rates}
    assert json.loads(ended.stdout) == {"running": False, "online": False, "version": "", "rates": {}}


async def test_status_says_why_the_server_does_not_accept_the_service(tmp_path: Path) -> None:
    """With the advice of the log; while the link is up it says nothing of earlier failures."""
    supervisor = Supervisor(
        ComponentStream("feeds.example.org", "secret", port=free_port(), on_stanza=lambda _stanza: True),
        LinkSettings(retry_first_s=0.001, retry_most_s=0.001),
        clock=time.monotonic,
        sleep=asyncio.sleep,
        random=lambda: 0.5,
    )
    assert supervisor.report() == {}
    task = asyncio.create_task(supervisor.run())
    await until(supervisor.report, "a report of the supervisor")
    await supervisor.stop()
    await task

    text, code = status(put(tmp_path / "s", online=False, link=supervisor.report()))
    first, *rest = text.splitlines()
    second = " ".join(line.strip() for line in rest)
    assert (first, code) == ("running, not online", Exit.FAILED)
    assert second.startswith("connect-failed: ")
    assert second.endswith(
        ": is the server running, and does it accept components at component.host and component.port?"
    )
    assert len(rest) > 1 and all(len(line) <= 80 for line in rest) and all(line[:2] == "  " for line in rest[1:])
    supervisor.online.set()
    assert supervisor.report() == {}


def test_status_names_the_processes_on_a_shared_database(tmp_path: Path) -> None:
    """[OPS-081]"""
    ownership = {"shards": 32, "processes": 2, "lease_age_s": 0.25}
    path = put(tmp_path / "s", ownership=ownership)

    text, code = status(path)
    assert (text, code) == (
        "online\n2 processes on the database, 32 of 64 shards here, last beat 0.2 s ago",
        Exit.OK,
    )
    assert json.loads(CliRunner().invoke(main, ["status", str(path), "--json"]).stdout)["ownership"] == ownership


def test_status_shows_the_canary_and_the_state_of_the_database(tmp_path: Path) -> None:
    """[OPS-082] [OPS-084] [TOP-033]"""
    canary = {"sent": 3, "lost": 0, "seconds": 0.0031, "lost_lately": 0, "lately": 3}
    load = {"free_connections": 74, "waiting_sessions": 1, "longest_wait_s": 2.5}
    shared = {"canary": canary, "database": load, "standbys": {"sync": 1, "async": 2, "quorum": 0}}

    text, _ = status(put(tmp_path / "s", **shared))
    assert text.splitlines() == [
        "online",
        "a stanza to itself comes back after 3 ms",
        "database: 74 connections free, 1 sessions wait for a lock, standbys: 1 sync, 2",
        "  async",
    ]
    report = CliRunner().invoke(main, ["status", str(tmp_path / "s"), "--json"]).stdout
    assert {name: json.loads(report)[name] for name in shared} == shared
    text, _ = status(put(tmp_path / "s", canary={**canary, "lost_lately": 2, "lately": 64}))
    assert text.splitlines() == [
        "online",
        "2 of the last 64 stanzas to itself were lost: another connection of this",
        "  component swallows stanzas",
    ]
    assert status(put(tmp_path / "s", canary={**canary, "lately": 0}, database=None)) == ("online", Exit.OK)


async def test_status_is_written_where_a_link_leads_and_taken_away_there(tmp_path: Path) -> None:
    """The link stays."""
    (tmp_path / "link").symlink_to(tmp_path / "s")
    async with run.status_file(tmp_path / "link", asyncio.Event()):
        assert status(tmp_path / "s") == ("running, not online", Exit.FAILED)
    assert names_in(tmp_path) == ["link"]


def test_status_that_cannot_be_written_leaves_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="cannot write the status file"):
        run._write(tmp_path / "folder", online=True, report={})
    assert names_in(tmp_path) == ["folder"]


def test_killed_service_is_not_running_at_once(tmp_path: Path, child: "subprocess.Popen[bytes]") -> None:
    """The file it leaves is young; that its process is gone counts, also before its parent has looked."""
    path = put(tmp_path / "s", pid=child.pid, began=run._began(child.pid))
    assert status(path) == ("online", Exit.OK)

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not reaped yet
    assert status(path) == ("not running", Exit.FAILED)
    child.wait()
    assert status(path) == ("not running", Exit.FAILED)


def test_number_that_another_process_has_now_is_not_the_service(tmp_path: Path) -> None:
    assert status(put(tmp_path / "s", began="1")) == ("not running", Exit.FAILED)


def test_process_of_another_user_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may not signal it may look at the file all the same, also where /proc hides it."""

    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    path = put(tmp_path / "s")
    monkeypatch.setattr(run.os, "kill", refuse)
    assert status(path) == ("online", Exit.OK)
    monkeypatch.setattr(run, "_began", lambda _pid: None)
    assert status(path) == ("online", Exit.OK)


@pytest.mark.parametrize("place", ["another host", None])
def test_process_of_another_place_cannot_be_looked_for(tmp_path: Path, place: str | None) -> None:
    """A file seen from another container or host, or of an older version: its age decides."""
    assert status(put(tmp_path / "s", place=place, pid=2**22 + 1)) == ("online", Exit.OK)
    assert status(put(tmp_path / "s", place=place, at=NOW - run.STALE_S)) == ("not running", Exit.FAILED)


@pytest.mark.parametrize("pid", [0, -1, None])
def test_number_that_is_no_process_is_not_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pid: int | None
) -> None:
    """0 and -1 would mean groups of processes."""
    path = put(tmp_path / "s", pid=pid)
    monkeypatch.setattr(run.os, "kill", lambda *_: pytest.fail("signalled"))
    assert status(path) == ("online", Exit.OK)


@pytest.mark.parametrize("text", ["", "[]", "1", '{"online": true}', '{"online": true, "at": "x"}'])
def test_file_that_is_none_of_ours_says_not_running(tmp_path: Path, text: str) -> None:
    (tmp_path / "s").write_text(text)
    assert status(tmp_path / "s") == ("not running", Exit.FAILED)


@pytest.mark.parametrize("pid", ["x", [1], 2**80])
def test_number_that_makes_no_sense_says_not_running(tmp_path: Path, pid: object) -> None:
    assert status(put(tmp_path / "s", pid=pid)) == ("not running", Exit.FAILED)
