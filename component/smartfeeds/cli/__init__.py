"""The command `smartfeeds`: the tables of commands of the kernel and of all features.

Help texts and the completion of shells are made from the tables (`app.commands`), so they import no command. A command
is imported when it runs, or when its own help is shown. An expected error ends a command with one line that says what
to do, and with the exit code of its kind (`smartfeeds.console`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import click

from smartfeeds import __version__
from smartfeeds.app.commands import CommandExtension, CommandRow, CommandTopic
from smartfeeds.cli.table import KERNEL
from smartfeeds.console import EXIT_HELP, Commands
from smartfeeds.features import FEATURES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class _Entry:
    """A command of a group: its line in the help of the group, and the function that imports it."""

    summary: str
    load: Callable[[], click.Command]
    heading: str = "Commands"
    hidden: bool = False


class TableGroup(Commands):
    """A group whose commands are known from a table, and imported one by one."""

    def __init__(
        self,
        name: str,
        entries: Mapping[str, _Entry],
        help: str,  # noqa: A002 - the name of click
        *,
        aliases: Mapping[str, str] | None = None,
        default: str = "",
        epilog: str | None = None,
        context_settings: dict[str, object] | None = None,
    ) -> None:
        super().__init__(name, help=help, epilog=epilog, context_settings=context_settings)
        self._entries = entries
        self._aliases = aliases or {}
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it with the context
        """Return all commands that are shown."""
        return sorted(name for name, entry in self._entries.items() if not entry.hidden)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Return the command with this name or former name, or None."""
        entry = self._entries.get(self._aliases.get(cmd_name, cmd_name))
        return None if entry is None else entry.load()

    def former_names(self) -> Mapping[str, str]:
        """Return the names that work and are not shown, each with the name of today, "" for a command of its own."""
        return {**dict.fromkeys((name for name, entry in self._entries.items() if entry.hidden), ""), **self._aliases}

    def rows(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the lines of the help by their heading."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            entry = self._entries[name]
            rows.setdefault(entry.heading, []).append((name, entry.summary))
        headings = [topic.value for topic in CommandTopic if topic.value in rows]
        return {heading: rows[heading] for heading in headings or rows}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by heading, with the whole first sentence of each; click cuts it to one line."""
        for heading, rows in self.rows(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command if the first argument is no command."""
        known = {*self._entries, *self._aliases, *ctx.help_option_names}
        # The completion of an empty word offers the commands.
        if self._default and (args[0] not in known if args else not ctx.resilient_parsing):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands that begin with a text, or the options."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self._entries[name].summary) for name in names), *options]


def _top(rows: Iterable[CommandRow], extensions: Iterable[CommandExtension]) -> dict[str, _Entry]:
    extensions = tuple(extensions)
    return {
        row.name: _Entry(
            row.summary,
            _loader(row, tuple(part for part in extensions if part.name == row.name)),
            row.topic.value,
            row.hidden,
        )
        for row in rows
    }


def _loader(row: CommandRow, extensions: tuple[CommandExtension, ...]) -> Callable[[], click.Command]:
    """Return the function that returns a command with its extensions; of a group, without an import of it."""

    @cache
    def load() -> click.Command:
        command = row.load()
        # The first feature is the outermost: `import --from` sees the options of `import --sync`.
        for extension in reversed(extensions):
            command = extension.extend(command)
        return command

    summaries = dict(row.subcommands)
    for extension in extensions:
        summaries |= extension.subcommands
    if not summaries:
        return load

    def command_of(name: str) -> click.Command:
        group = load()
        assert isinstance(group, click.Group)  # the row has commands
        return group.commands[name]

    def entry(name: str, summary: str) -> _Entry:
        return _Entry(summary, lambda: command_of(name))

    entries = {name: entry(name, summary) for name, summary in summaries.items()}
    text = f"{row.summary}\n\n{row.details}".strip()
    group = TableGroup(row.name, entries, text, aliases=row.aliases, default=row.default)
    return lambda: group


COMMANDS: Final = (*KERNEL, *(row for feature in FEATURES for row in feature.commands))
main = click.version_option(__version__, prog_name="smartfeeds")(
    TableGroup(
        "smartfeeds",
        _top(COMMANDS, (extension for feature in FEATURES for extension in feature.extends)),
        "Smart Feeds for XMPP: a publish-subscribe component whose followers can prove that they have every item.",
        epilog=EXIT_HELP,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
)
