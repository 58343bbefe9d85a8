"""The composition root: what fails in one part is seen, and an end is an end (design section 3; xep-map 9)."""

import asyncio
import os
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.app.config import settings_of
from smartfeeds.app.feature import Running
from smartfeeds.app.lifecycle import App
from smartfeeds.core.consumers import PUSH
from smartfeeds.delivery import changes as changes_module
from smartfeeds.errors import ConfigError, StoreError
from smartfeeds.service.publishing import purge
from smartfeeds.service.requests import CreateNode, Publish, Purge
from support.world import FEED, SERVICE, draft, entry, jid

CLOSED_PORT = 1  # nobody listens there


def make_app(folder: Path, **options: object) -> App:
    return app_on(folder / "feeds.db", options)


def app_on(database: Path, options: dict[str, Any] | None = None, **sections: object) -> App:
    settings = {
        "component": {"jid": "feeds.example.org", "secret": "s", "port": CLOSED_PORT},
        "store": {"url": f"sqlite:///{database}"},
        "http": {"listen": "127.0.0.1:0"},
        **sections,
    }
    return App(settings_of(**settings), **(options or {}))


async def test_app_whose_marks_cannot_be_saved_ends_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(tmp_path)
    await app.start()

    async def refuse() -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(app.dispatcher, "stop", refuse)
    await app.stop()

    assert not app.online.is_set() and not app.tasks and not app.tasks.failed
    with pytest.raises(StoreError, match="closed"):
        await app.service.read(lambda tx, _context: tx.node_count())


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


# The steps of a start that can fail, in their order.
STEPS = ("site.listener.bind", "service.store.open", "a client", "site.listener.start", "a feature")


def service_threads() -> set[threading.Thread]:
    """The threads that the service must end. Those of the executor belong to the event loop, which ends them."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


@pytest.mark.parametrize("step", STEPS)
async def test_start_that_fails_undoes_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Threads of the store would keep the process from ending, and the lock would keep out the next one."""
    threads, database = service_threads(), tmp_path / "feeds.db"
    app = app_on(database)

    async def fail() -> None:
        raise StoreError("the disk is full")

    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        await fail()
        yield

    if step == "a client":
        app._running.append(Running(clients=(failing(),)))
    elif step == "a feature":
        app._running.append(Running(start=fail))
    else:
        *path, name = step.split(".")
        part: Any = app
        for key in path:
            part = getattr(part, key)
        monkeypatch.setattr(part, name, fail)
    with pytest.raises(StoreError, match="the disk is full"):
        await app.start()

    assert service_threads() == threads
    assert not app.tasks and not app.tasks.failed and not (tmp_path / "feeds.db.lock").exists()
    with pytest.raises(StoreError, match="closed"):
        await app.service.read(lambda tx, _context: tx.node_count())
    await app.stop()
    again = app_on(database)
    await again.start()
    await again.stop()
    assert service_threads() == threads


async def test_address_in_use_says_so_and_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConfigError) as failure:
            await app_on(tmp_path / "feeds.db", http={"listen": listen}).start()

    assert str(failure.value) == (
        f"http.listen: cannot bind {listen}, the address is in use; stop the other process or choose another port"
    )
    assert not files(tmp_path), "a start that fails leaves no empty database behind"


async def test_address_that_was_taken_since_it_was_bound_says_so(tmp_path: Path) -> None:
    """Two processes can bind an address; the first one to listen has it."""
    app = app_on(tmp_path / "feeds.db")
    assert app.site is not None
    await app.site.listener.bind()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", app.site.listener.port))
        other.listen()

        with pytest.raises(ConfigError, match=r"http\.listen: cannot bind .* the address is in use"):
            await app.site.listener.start()
    await app.site.stop()


@pytest.mark.parametrize(
    ("listen", "reason"),
    [
        ("192.0.2.1:8280", "cannot bind 192.0.2.1:8280, this machine has no such address; choose 127.0.0.1"),
        ("nohost.invalid:8280", "cannot bind nohost.invalid:8280, the host name is unknown"),
    ],
)
async def test_address_that_cannot_be_bound_says_why(tmp_path: Path, listen: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        await app_on(tmp_path / "feeds.db", http={"listen": listen}).start()


async def test_second_app_on_a_database_names_the_first(tmp_path: Path) -> None:
    first, second = app_on(tmp_path / "feeds.db"), app_on(tmp_path / "feeds.db")
    await first.start()

    with pytest.raises(StoreError, match=rf"process {os.getpid()} \(smartfeeds, feeds.example.org\) is using it"):
        await second.start()
    assert await first.service.read(lambda tx, _context: tx.node_count()) == 0
    await first.stop()

    await second.start()
    await second.stop()


async def test_app_whose_link_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would notice a service that runs on without a link."""
    told: list[bool] = []
    ended = asyncio.Event()
    app = make_app(tmp_path, on_failure=lambda: (told.append(app.tasks.failed), ended.set()))

    async def fail() -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(app.supervisor, "run", fail)
    await app.start()
    await ended.wait()
    await app.stop()

    assert told == [True]


async def test_app_whose_watch_on_slow_readers_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """http.unread_s: else nobody would be cut any more, and nobody would know."""
    told = asyncio.Event()
    app = make_app(tmp_path, on_failure=told.set)
    assert app.site is not None

    def fail(_now_s: float) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr("smartfeeds.http.server.SWEEP_S", 0)
    monkeypatch.setattr(app.site.listener, "sweep", fail)
    await app.start()
    await told.wait()
    assert app.tasks.failed
    await app.stop()


async def test_store_that_fails_at_the_handshake_does_not_end_the_notifications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Push begins paused: without a repetition nothing would be sent before the link is connected again."""
    app = make_app(tmp_path)
    await app.start()
    resume, errors = app.dispatcher.resume, [StoreError("locked")]

    async def failing_resume(name: str) -> None:
        if errors:
            raise errors.pop()
        await resume(name)

    monkeypatch.setattr(app.dispatcher, "resume", failing_resume)
    monkeypatch.setattr(changes_module, "RETRY_S", 0.0)
    await app._resume()

    assert not errors and not app.dispatcher._lanes[PUSH].paused
    await app.stop()


async def test_start_continues_a_purge_that_the_last_process_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 81]"""
    monkeypatch.setattr("smartfeeds.service.publishing.PURGE_CHUNK", 1)
    owner = jid("alice@example.org")
    first = make_app(tmp_path)
    await first.service.store.open()
    await first.service.handle(CreateNode(owner, SERVICE, FEED, None))
    for item_id in "abc":
        await first.service.handle(Publish(owner, SERVICE, FEED, item_id, draft(entry(item_id))))
    context = first.service.new_context()
    await first.service.store.write(lambda tx: purge(tx, context, Purge(owner, SERVICE, FEED)))
    await first.service.store.close()

    ended = asyncio.Event()
    app = make_app(tmp_path)
    announce = app.service._on_change

    def look(node_nos: Collection[int]) -> None:
        announce(node_nos)
        changes.append(node_nos)
        if len(changes) == 2:
            ended.set()

    changes: list[Collection[int]] = []
    monkeypatch.setattr(app.service, "_on_change", look)
    await app.start()
    await ended.wait()
    node = await app.service.read(lambda tx, _context: tx.node(FEED))
    await app.stop()

    assert node is not None and node.live == 0


async def test_link_that_is_back_resumes_pushes_and_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of one of them does not keep the others waiting."""
    kinds: list[str] = []

    async def resume(kind: str) -> None:
        kinds.append(kind)
        if kinds.count(kind) == 1:
            raise StoreError("the database is locked")

    app = make_app(tmp_path)
    monkeypatch.setattr(app.dispatcher, "resume", resume)
    monkeypatch.setattr(changes_module, "RETRY_S", 0.0)
    app._running = [
        Running(load=partial(resume, "contacts"), resume=partial(resume, "held")),
        Running(),
        Running(resume=partial(resume, "mirror")),
    ]
    await app._resume()

    assert kinds[:2] == ["contacts", "contacts"]
    assert Counter(kinds) == dict.fromkeys(("contacts", "push", "held", "mirror"), 2)
