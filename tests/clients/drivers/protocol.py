"""How the test talks to a client: lines of JSON on standard input and output.

The test writes `{"id": 1, "call": "publish", "arguments": {...}}`. The driver writes `{"id": 1, "result": ...}`,
`{"id": 1, "error": "..."}` for a stanza error or an answer that the library cannot read, or `{"id": 1, "missing":
"..."}` if the library has no such function. Calls run at the same time. Nothing here depends on the project, because
some drivers run in another virtual environment.
"""

import asyncio
import json
import sys
from typing import Any

PUBSUB = "http://jabber.org/protocol/pubsub"
ATOM = "http://www.w3.org/2005/Atom"
NOTE = "urn:example:note"
UPDATED = "2026-01-02T03:04:05Z"


class Missing(Exception):  # noqa: N818 - not an error of the driver
    """The library has no such function; the text says what it lacks."""


class Events:
    """The notifications that a client has read, for whoever waits for one of them."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._arrived = asyncio.Condition()

    async def add(self, event: dict[str, Any]) -> None:
        """Adds a notification: `kind`, `node`, and `id` and `title` where it has them."""
        async with self._arrived:
            self._events.append(event)
            self._arrived.notify_all()

    async def wait(self, **wanted: Any) -> dict[str, Any]:
        """Waits for a notification with these values."""

        def matches() -> list[dict[str, Any]]:
            return [event for event in self._events if wanted.items() <= event.items()]

        async with self._arrived:
            await self._arrived.wait_for(matches)
            return matches()[0]


async def serve(driver: Any) -> None:
    """Runs the calls that arrive until standard input ends.

    `driver` has a coroutine method for each call. With `CALLS` it has only those, whatever it inherits.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 22)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(_answer(driver, json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _answer(driver: Any, request: dict[str, Any]) -> None:
    answer: dict[str, Any] = {"id": request["id"]}
    method = getattr(driver, request["call"], None)
    try:
        if method is None or request["call"] not in getattr(driver, "CALLS", (request["call"],)):
            raise Missing("no such function")
        answer["result"] = await method(**request["arguments"])
    except Missing as error:
        answer["missing"] = str(error)
    except Exception as error:  # noqa: BLE001 - every failure of the library is a result
        answer["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(answer), flush=True)
