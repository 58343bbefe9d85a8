"""The words of chat commands in all languages."""

import pytest

from smartfeeds.app.sides import chat_tables
from smartfeeds.chat.commands import joined_commands
from smartfeeds.features.bot import commands as bot_commands
from smartfeeds.features.bot import usages
from smartfeeds.features.bot.bot import addressed_text
from smartfeeds.features.bot.commands import by_word
from smartfeeds.texts import LANGUAGES, Texts

COMMANDS = joined_commands(bot_commands.COMMANDS, chat_tables())
COMMANDS_BY_WORD = by_word(COMMANDS)
USAGES = [row.usage for row in COMMANDS]


@pytest.mark.parametrize("language", LANGUAGES)
def test_next_steps_are_commands(language: str) -> None:
    """What an answer offers is a command in the language of the person."""
    steps = [usage for usage in vars(usages).values() if isinstance(usage, str) and usage in USAGES]
    steps += ["quiet off", "digest off", "quiet 22-7 Europe/Berlin", "digest daily 8:00 Europe/Berlin"]
    assert len(steps) > 12
    for step in steps:
        row = COMMANDS_BY_WORD[Texts(language).say(step).split()[0]]
        assert row.usage == step or row.name == step.split()[0]


def test_each_word_belongs_to_one_command() -> None:
    words = [row.name for row in COMMANDS] + [
        a for row in COMMANDS for aliases in row.aliases.values() for a in aliases
    ]
    assert len(words) == len(set(words)) == len(COMMANDS_BY_WORD)


@pytest.mark.parametrize("language", LANGUAGES)
def test_usage_begins_with_a_name_of_the_command(language: str) -> None:
    for row in COMMANDS:
        word = Texts(language).say(row.usage).split()[0].removeprefix("/")
        assert COMMANDS_BY_WORD[word] is row


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("feeds: list", "list"),
        ("Feeds, list", "list"),
        ("@feeds list", "list"),
        ("feeds", ""),
        ("feedstock is cheap", None),
        ("my feeds: list", None),
    ],
)
def test_addressed_text(text: str, command: str | None) -> None:
    assert addressed_text(text, "feeds") == command
