"""What doctor says of the HTTP side."""

import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

from smartfeeds.cli.probe import CheckState, check_all, check_http
from smartfeeds.config import Settings
from smartfeeds.store.lock import lock_database


def with_http(**http: str) -> Settings:
    return Settings(component={"jid": "feeds.example.org", "secret": "x"}, http=http)  # type: ignore[arg-type]


async def test_http_that_is_off_is_told_so() -> None:
    assert (await check_http(with_http(listen=""))).state is CheckState.NOTE


async def test_http_without_a_public_address_says_how_to_have_one() -> None:
    found = await check_http(with_http(listen="127.0.0.1:0"))
    assert found.state is CheckState.NOTE
    assert "http.base_url" in found.advice


async def test_http_with_its_address_is_well() -> None:
    found = await check_http(with_http(listen="127.0.0.1:0", base_url="https://feeds.example.org"))
    assert found.state is CheckState.OK
    assert "https://feeds.example.org" in found.found


async def test_http_address_that_is_taken_must_be_changed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = await check_http(with_http(listen=f"127.0.0.1:{port}"))
    assert found.state is CheckState.FIX
    assert str(port) in found.found


async def test_http_address_of_the_running_service_is_no_problem(tmp_path: Path) -> None:
    database = tmp_path / "feeds.db"
    release = lock_database(database, "smartfeeds, feeds.example.org")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings(
            component={"jid": "feeds.example.org", "secret": "x"},  # type: ignore[arg-type]
            store={"url": f"sqlite:///{database}"},  # type: ignore[arg-type]
            http={"listen": f"127.0.0.1:{taken.getsockname()[1]}"},  # type: ignore[arg-type]
        )
        beside = await check_http(settings)
        release()
        alone = await check_http(settings)
    assert (beside.state, alone.state) == (CheckState.NOTE, CheckState.FIX)
    assert f"process {os.getpid()} (smartfeeds, feeds.example.org)" in beside.found


async def test_every_problem_names_the_value_and_has_advice(tmp_path: Path) -> None:
    """An operator who has never seen the code can act on each line."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    database = tmp_path / "feeds.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('9999')")
        connection.commit()
    settings = Settings(
        component={"jid": "feeds.example.org", "secret_file": secret, "port": 1},  # type: ignore[arg-type]
        store={"url": f"sqlite:///{database}"},  # type: ignore[arg-type]
        http={"listen": ""},  # type: ignore[arg-type]
    )
    findings = {finding.check: finding async for finding in check_all(settings)}
    assert findings["secret"].found == f"all users of this machine can read {secret}"
    assert findings["secret"].advice == f"run: chmod 600 {secret}"
    assert "schema 9999, which is newer than this program" in findings["store"].found
    assert "install a newer version" in findings["store"].advice
    assert "feeds.example.org at 127.0.0.1:1: connect-failed" in findings["link"].found
    assert all(finding.advice for finding in findings.values() if finding.state is not CheckState.OK)
