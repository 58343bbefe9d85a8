"""The settings of a person or a room that uses the chat bot, and their form in the store."""

import json
from dataclasses import asdict, dataclass, field

DAILY = -1  # the weekday of a digest that comes every day


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The part of each day in which nothing is sent, in minutes after midnight. It may extend past midnight."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Digest:
    """The time of a digest: the weekday (0 is Monday, `DAILY` is every day) and the minutes after midnight."""

    weekday: int
    minute: int


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The settings of a person or a room. `language` is empty until one is known; `zone` is a name of the IANA list.
    `answers`: the person hears of answers to own entries.

    `joined_us` is the latest time of change of the items that were sent to the person as lists. Items that changed
    later were sent as messages of their own.
    """

    language: str = ""
    zone: str = "UTC"
    quiet: QuietHours | None = None
    digest: Digest | None = None
    answers: bool = True
    joined_us: int = 0


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A person or a room, by bare JID. The bot stays in each room that has a row."""

    jid: str
    room: bool = False
    settings: ChatSettings = field(default_factory=ChatSettings)


def dump_chat_settings(settings: ChatSettings) -> str:
    """Returns the settings as JSON."""
    return json.dumps(asdict(settings), sort_keys=True)


def load_chat_settings(text: str) -> ChatSettings:
    """Returns the settings of JSON that `dump_chat_settings` wrote."""
    values = json.loads(text)
    quiet, digest = values["quiet"], values["digest"]
    return ChatSettings(
        values["language"],
        values["zone"],
        QuietHours(**quiet) if quiet else None,
        Digest(**digest) if digest else None,
        bool(values.get("answers", True)),  # an older version has stored none
        int(values.get("joined_us", 0)),
    )
