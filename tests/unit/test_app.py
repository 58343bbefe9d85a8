"""The composition root: what fails in one part is seen, and an end is an end (design section 3; xep-map 9)."""

import asyncio

import pytest

from smartfeeds.app import App
from smartfeeds.config import Settings
from smartfeeds.errors import StoreError

CLOSED_PORT = 1  # nobody listens there


def make_app(**options: object) -> App:
    settings = Settings.model_validate(
        {
            "component": {"jid": "feeds.example.org", "secret": "s", "port": CLOSED_PORT},
            "store": {"url": "memory:"},
            "http": {"listen": "127.0.0.1:0"},
        }
    )
    return App(settings, **options)  # type: ignore[arg-type]


async def test_app_whose_marks_cannot_be_saved_ends_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    await app.start()

    async def refuse() -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(app.dispatcher, "stop", refuse)
    await app.stop()

    assert not app.online.is_set() and not app._tasks and not app.failed
    with pytest.raises(StoreError, match="closed"):
        await app.service.read(lambda tx, _context: tx.node_count())


async def test_app_whose_link_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would notice a service that runs on without a link."""
    told: list[bool] = []
    app = make_app(on_failure=lambda: told.append(app.failed))

    async def fail() -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(app.supervisor, "run", fail)
    await app.start()
    link = next(task for task in app._tasks if task.get_name() == "link")
    with pytest.raises(ValueError, match="unforeseen"):
        await link
    await app.stop()

    assert told == [True]


async def test_app_whose_watch_on_slow_readers_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """http.unread_s: else nobody would be cut any more, and nobody would know."""
    told = asyncio.Event()
    app = make_app(on_failure=told.set)
    assert app.site is not None

    def fail(_now_s: float) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr("smartfeeds.http.server.SWEEP_S", 0)
    monkeypatch.setattr(app.site.listener, "sweep", fail)
    await app.start()
    await told.wait()
    assert app.failed
    await app.stop()


async def test_app_whose_filter_index_fails_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    monkeypatch.setattr("smartfeeds.app.INDEX_REST_S", 0)
    calls: list[int] = []

    async def write(_work: object) -> int:
        calls.append(len(calls))
        app._written.set()
        if len(calls) == 1:
            raise ValueError("unforeseen")
        if len(calls) == 3:
            raise asyncio.CancelledError
        return 1

    monkeypatch.setattr(app.service, "write", write)
    app._written.set()
    with pytest.raises(asyncio.CancelledError):
        await app._index()

    assert calls == [0, 1, 2]
