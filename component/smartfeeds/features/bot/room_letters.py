"""The news about rooms that the processes of a domain exchange.

The bot is in a room once. The server sends each stanza of a room to any process, so each process must be able to
answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from smartfeeds.core.jid import Jid
from smartfeeds.delivery.letters import Letters, LetterTopic
from smartfeeds.json_form import JsonForm

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


ROOM_NEWS: Final = JsonForm(RoomNews, lenient=True)


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
            self._letters.share(ROOM, ROOM_NEWS.write(news).encode())

    def read(self, reader: Callable[[RoomNews], object]) -> None:
        """Passes their news to this reader."""
        self._letters.read(ROOM, lambda body: reader(ROOM_NEWS.read(body)))
