"""The news about rooms that the processes of a domain exchange.

The bot is in a room once. The server sends each stanza of a room to any process, so each process must be able to
answer.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.delivery.letters import Letters, LetterTopic

ROOM: Final = LetterTopic("room")
PASSED_ON_S: Final = 1.0  # the wait for a stanza that another process passes on, which takes milliseconds


@dataclass(frozen=True, slots=True)
class RoomNews:
    """The state of a room, as one process sends it to the others.

    `managers` are the nicks of owners and admins, `people` the real addresses of occupants by nick. `own_ids` has the
    ids of messages of the bot by the ids that the room gave them.
    """

    room: str
    nick: str
    is_in: bool
    has_sponsor: bool
    managers: frozenset[str] = frozenset()
    people: dict[str, Jid] = field(default_factory=dict)
    own_ids: dict[str, str] = field(default_factory=dict)


def write_news(news: RoomNews) -> bytes:
    """Returns the news as JSON."""
    row = {
        "room": news.room,
        "nick": news.nick,
        "is_in": news.is_in,
        "has_sponsor": news.has_sponsor,
        "managers": sorted(news.managers),
        "people": {nick: str(jid) for nick, jid in news.people.items()},
        "own_ids": news.own_ids,
    }
    return json.dumps(row).encode()


def read_news(data: bytes) -> RoomNews:
    """Returns the news that another process has written."""
    row = json.loads(data)
    people = {nick: jid for nick, text in row["people"].items() if (jid := parse_jid(text)) is not None}
    return RoomNews(
        row["room"],
        row["nick"],
        row["is_in"],
        row["has_sponsor"],
        frozenset(row["managers"]),
        people,
        row["own_ids"],
    )


class OtherProcesses:
    """The other processes of the domain, as the bot knows them: each may receive a stanza that is for this one."""

    def __init__(self, letters: Letters, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._letters = letters
        self._sleep = sleep

    def exist(self) -> bool:
        """Returns whether another process may have a link, too."""
        return self._letters.has_others()

    async def settle(self) -> None:
        """Returns when the stanzas that another process has received before now are here. Alone it returns at once."""
        if self.exist():
            await self._sleep(PASSED_ON_S)

    def share(self, news: RoomNews) -> None:
        """Sends the news to all of them."""
        if self.exist():
            self._letters.share(ROOM, write_news(news))

    def read(self, reader: Callable[[RoomNews], object]) -> None:
        """Passes their news to this reader."""
        self._letters.read(ROOM, lambda body: reader(read_news(body)))
