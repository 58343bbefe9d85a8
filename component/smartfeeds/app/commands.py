"""The table of commands: what help texts and the completion of shells show of a command, without an import of it.

Each feature has rows for its commands (`Feature.commands`), the kernel has them in `cli/table.py`. A row repeats the
first sentence of the help of a command; a test compares both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


class CommandTopic(Enum):
    """The headings of `smartfeeds --help`, in this order."""

    SERVICE = "Run the service and look after it"
    FEEDS = "Feeds and their entries"
    PEOPLE = "People and what they may do"
    SOURCES = "Feeds from elsewhere, and receivers of changes"
    DOCUMENTS = "Documents"
    TRYING = "Try and measure"


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command, or a group of commands.

    `load` imports it. `summary` is the first sentence of its help; a group has only this help, and `details`.
    """

    name: str
    topic: CommandTopic
    summary: str
    load: "Callable[[], click.Command]"
    subcommands: Mapping[str, str] = field(default_factory=dict)
    """The commands of a group, each with the first sentence of its help."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Former names of commands of the group, which no help text shows, and the names of today."""
    default: str = ""
    """The command of the group that runs if the first argument is none."""
    details: str = ""
    """The other paragraphs of the help of a group."""
    hidden: bool = False
    """A former name of a command: it works, and no help text shows it."""


@dataclass(frozen=True, slots=True)
class CommandExtension:
    """An addition to a command of the kernel or of another feature.

    `extend` receives the command and returns it with more options or commands. It imports what it needs.
    """

    name: str
    extend: "Callable[[click.Command], click.Command]"
    subcommands: Mapping[str, str] = field(default_factory=dict)
    """The commands that it adds to a group, as in `CommandRow`."""
