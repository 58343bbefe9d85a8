"""A service that starts while PostgreSQL is away, or that loses its sessions during the start."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from smartfeeds.app.lifecycle import App
from smartfeeds.cli import run
from smartfeeds.cli.run import start_app
from smartfeeds.core.backoff import Backoff
from smartfeeds.errors import StoreError
from smartfeeds.features.mirrors.mirrors import Mirrors
from smartfeeds.features.polling.finding import FeedFinder
from support.component import settings
from support.postgres import PostgresServer
from support.waiting import HANG_S

# Steps of a start with open sessions: the first beat on the lock session (None), and reads and writes of the store by
# the features that run these parts.
STEPS = (None, Mirrors, FeedFinder)


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PAUSES", Backoff(0.01, 0.1))
    monkeypatch.setattr("smartfeeds.store.postgres_session.RECONNECT_S", 0.1)


def admin(postgres: PostgresServer, statement: str, url: str) -> None:
    """Runs a statement with the name of the database in place of {}."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(statement.format(url.rpartition("/")[2]).encode())


def refuse(postgres: PostgresServer, url: str) -> None:
    """Ends all sessions of a database, and lets nobody in."""
    admin(postgres, "ALTER DATABASE {} ALLOW_CONNECTIONS false", url)
    admin(postgres, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{}'", url)


def before_step(app: App, step: type | None, action: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does something in a thread before a step of the start."""

    def after_action(start: Callable[[], Awaitable[None]]) -> Callable[[], Coroutine[None, None, None]]:
        async def act_and_start() -> None:
            await asyncio.to_thread(action)
            await start()

        return act_and_start

    if step is None:
        monkeypatch.setattr(app.ownership, "start", after_action(app.ownership.start))
        return
    for index, running in enumerate(app._running):
        if any(type(part) is step for part in running.parts):
            assert running.start is not None
            app._running[index] = replace(running, start=after_action(running.start))


@pytest.mark.parametrize("step", STEPS)
async def test_start_that_loses_its_sessions_is_repeated(
    postgres: PostgresServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: type | None
) -> None:
    """[CAM-001] [CAM-011] The second attempt finds a database that lets nobody in, the third one succeeds."""
    apps: list[App] = []

    def make() -> App:
        app = App(settings(1, url, store={"files": tmp_path / "files"}))
        apps.append(app)
        if len(apps) == 1:
            before_step(app, step, lambda: refuse(postgres, url), monkeypatch)
        if len(apps) == 3:
            admin(postgres, "ALTER DATABASE {} ALLOW_CONNECTIONS true", url)
        return app

    with capture_logs() as logs:
        async with asyncio.timeout(HANG_S):
            app = await start_app(make, asyncio.Event())
            assert app is not None
            await app.stop()

    assert len(apps) == 3 and app is apps[2]
    reasons = [entry["reason"] for entry in logs if entry["event"] == "start_repeated"]
    assert len(reasons) == 2
    assert "is not currently accepting connections" in reasons[1]


async def test_stop_ends_the_wait_for_a_server(tmp_path: Path) -> None:
    """[CAM-011] Nobody listens on this port."""
    stop = asyncio.Event()

    def make() -> App:
        stop.set()
        return App(settings(1, "postgresql://nobody@127.0.0.1:1/feeds", store={"files": tmp_path / "files"}))

    async with asyncio.timeout(HANG_S):
        assert await start_app(make, stop) is None


async def test_start_without_the_database_is_not_repeated(postgres: PostgresServer, tmp_path: Path) -> None:
    """[PG-006]"""
    address = postgres.url("nowhere")

    with pytest.raises(StoreError, match="it does not exist; create it with createdb"):
        await start_app(
            lambda: App(settings(1, address, store={"files": tmp_path / "files"})),
            asyncio.Event(),
        )
