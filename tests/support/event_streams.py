"""Event streams (`text/event-stream`), read as a browser reads them."""

import json
from dataclasses import dataclass, field

import aiohttp

from support.web import Web


@dataclass(slots=True)
class Event:
    """One event, or the heartbeat that a comment is."""

    id: str = ""
    name: str = "message"
    data: str = ""
    comment: bool = False

    @property
    def ids(self) -> list[str]:
        """The ids of its items."""
        return [item["id"] for item in json.loads(self.data)["items"]]


@dataclass(slots=True)
class Stream:
    """A stream that is being read as a browser reads it."""

    answer: aiohttp.ClientResponse
    seen: list[Event] = field(default_factory=list)

    async def block(self) -> Event:
        """The next block of lines."""
        event = Event()
        while line := (await self.answer.content.readline()).decode().rstrip("\n"):
            name, _, value = line.partition(": ") if not line.startswith(":") else ("comment", "", "")
            match name:
                case "id":
                    event.id = value
                case "event":
                    event.name = value
                case "data":
                    event.data = value
                case "comment":
                    event.comment = True
        self.seen.append(event)
        return event

    async def event(self) -> Event:
        """The next event that says something."""
        while not (block := await self.block()).data:
            assert block.comment
        return block


async def listen(web: Web, path: str, **headers: str) -> Stream:
    """Opens a stream."""
    sent = {"Accept": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
    answer = await web.session.get(f"{web.origin}{path}", headers=sent)
    assert answer.status == 200, await answer.text()
    return Stream(answer)
