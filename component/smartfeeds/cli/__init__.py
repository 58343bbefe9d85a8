"""The command `smartfeeds`: a table of subcommands.

The module of a subcommand is imported only when the subcommand runs, so that `--help` is quick. An expected error ends
a command with one line that says what to do, and with the exit code of its kind (`smartfeeds.console`).
"""

import importlib
from collections.abc import Mapping
from typing import Any, Final

import click

from smartfeeds import __version__
from smartfeeds.console import EXIT_HELP, Commands
from smartfeeds.features import FEATURES

# command -> the module that defines it
_MODULES: Final[Mapping[str, str]] = {
    "run": "smartfeeds.cli.run",
    "status": "smartfeeds.cli.run",
    "init": "smartfeeds.cli.init",
    "import": "smartfeeds.cli.import_export",
    "export": "smartfeeds.cli.import_export",
    "follow": "smartfeeds.cli.follow",
    "consumer": "smartfeeds.cli.consumer",
    "node": "smartfeeds.cli.nodes",
    "sub": "smartfeeds.cli.subscriptions",
    "publish": "smartfeeds.cli.items",
    "retract": "smartfeeds.cli.items",
    "db": "smartfeeds.cli.database",
    "bench": "smartfeeds.cli.bench",
    **{command: module for feature in FEATURES for command, module in feature.commands.items()},
}


class LazyCommands(Commands):
    """Imports a command from its module. The function of a command has its name with the suffix `_command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it with the context
        """Return all commands."""
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command with this name, or None."""
        if cmd_name not in _MODULES:
            return None
        command = _load(_MODULES[cmd_name], f"{cmd_name}_command")
        # The first feature is the outermost: `import --from` sees the options of `import --sync`.
        for feature in reversed(FEATURES):
            if cmd_name in feature.extends:
                module, _, function = feature.extends[cmd_name].partition(":")
                command = _load(module, function)(command)
        assert isinstance(command, click.Command)
        return command


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


@click.group("smartfeeds", cls=LazyCommands, epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="smartfeeds")
def main() -> None:
    """Smart Feeds for XMPP: a publish-subscribe component whose followers can prove that they have every item."""
