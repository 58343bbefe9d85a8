"""What the processes of a domain tell each other about rooms.

The bot is in a room once. The server sends each stanza of a room to any process, so each process must be able to
answer.
"""

import json
from dataclasses import dataclass, field
from typing import Final

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.delivery.letters import LetterTopic

ROOM: Final = LetterTopic("room")


@dataclass(frozen=True, slots=True)
class RoomNews:
    """What a process knows of a room.

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
