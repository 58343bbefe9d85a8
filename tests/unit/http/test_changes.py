"""A change whose client disconnects ends, and its error is logged once."""

import asyncio

import pytest
from structlog.testing import capture_logs

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.http.changes import Changes
from smartfeeds.service.requests import Answer, Request, Retract

REQUEST = Retract(Jid("alice", "example.org"), "feeds.example.org", "news", "a")


@pytest.mark.parametrize(
    ("error", "events"),
    [
        (StoreError("the database is gone"), [("store_failed", "the database is gone")]),
        (FeedError(Condition.ITEM_NOT_FOUND, "no such item"), []),
        (ValueError("a bug"), [("request_failed", None)]),
    ],
)
async def test_error_of_a_change_without_a_client_is_logged_and_not_left_behind(
    error: Exception, events: list[tuple[str, str | None]]
) -> None:
    """An error that nobody reads would be written by asyncio, with a traceback, when the task is collected."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(_request: Request) -> Answer:
        begun.set()
        await go_on.wait()
        raise error

    changes = Changes(handle)
    caller = asyncio.create_task(changes.perform(REQUEST))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
    with capture_logs() as logs:
        go_on.set()
        await changes.stop()
        await asyncio.sleep(0)
    assert [(entry["event"], entry.get("reason")) for entry in logs] == events
    assert problems == []


async def test_error_of_a_change_reaches_its_client_and_no_log() -> None:
    async def handle(_request: Request) -> Answer:
        raise StoreError("the database is gone")

    with capture_logs() as logs, pytest.raises(StoreError):
        await Changes(handle).perform(REQUEST)
    assert logs == []
