"""docs/bot.md names every command of the bot and no other."""

import re
from pathlib import Path

from smartfeeds.app.sides import chat_tables
from smartfeeds.chat.commands import joined_commands
from smartfeeds.features.bot.bot import BURST, UNKNOWN
from smartfeeds.features.bot.commands import COMMANDS
from smartfeeds.features.bot.delivery import AWAY_US, BACKOFF, GIVE_UP_S
from smartfeeds.features.bot.reading import PAGE
from smartfeeds.features.bot.stanzas import HISTORY

TEXT = (Path(__file__).parents[2] / "docs" / "bot.md").read_text()


def test_page_has_the_usage_of_each_command_and_no_other() -> None:
    table = TEXT.partition("| command | effect |")[2].partition("\n\n")[0]

    assert re.findall(r"(?m)^\| `([^`]+)` \|", table) == [row.usage for row in joined_commands(COMMANDS, chat_tables())]


def test_page_has_the_numbers_of_the_code() -> None:
    text = " ".join(TEXT.split())

    assert f"{BURST} messages at once" in text and f"{PAGE} at a time" in text
    assert AWAY_US == 3_600_000_000 and "collects items for up to an hour" in text
    assert f"the last {HISTORY} messages of the room" in text
    assert UNKNOWN.burst == 5 and UNKNOWN.per_s == 1 / 300 and "five unknown messages, then one in five minutes" in text
    assert f"{BACKOFF.first_s:g} seconds at first, up to an hour" in text and BACKOFF.longest_s == 3_600
    assert f"After {GIVE_UP_S / 86_400:g} days of failures" in text
