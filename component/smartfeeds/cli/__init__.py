"""The command `smartfeeds`: a table of subcommands.

The module of a subcommand is imported only when the subcommand runs, so that `--help` is quick. An expected error ends
a command with one line that says what to do, and with the exit code of its kind (`smartfeeds.console`).
"""

import importlib
from typing import Final

import click

from smartfeeds import __version__
from smartfeeds.console import EXIT_HELP, Commands

# command -> the module that defines it
_MODULES: Final = {
    "run": "cli.run",
    "status": "cli.run",
    "init": "cli.init",
    "doctor": "cli.doctor",
    "import": "cli.documents",
    "export": "cli.documents",
    "convert": "cli.convert",
    "merge": "cli.merge",
    "conflicts": "cli.conflicts",
    "follow": "cli.follow",
    "nno": "cli.nno",
    "mirror": "cli.mirrors",
    "source": "cli.sources",
    "prefetch": "cli.prefetch",
    "consumer": "cli.consumer",
    "hub": "cli.hub",
    "cloud": "cli.cloud",
    "node": "cli.nodes",
    "sub": "cli.subscriptions",
    "publish": "cli.items",
    "retract": "cli.items",
    "token": "cli.tokens",
    "blocklist": "cli.blocklist",
    "gdpr": "cli.personal",
    "db": "cli.data",
    "backup": "cli.data",
    "restore": "cli.restore",
    "bench": "cli.bench",
    "demo": "demo.commands",
}


class LazyCommands(Commands):
    """Imports a command from its module. The function of a command has its name with the suffix `_command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return all commands in the order of the table."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command with this name, or None."""
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"smartfeeds.{_MODULES[cmd_name]}")
        command = getattr(module, f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command


@click.group("smartfeeds", cls=LazyCommands, epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="smartfeeds")
def main() -> None:
    """Smart Feeds for XMPP: a publish-subscribe component whose followers can prove that they have every item."""
