"""The command `smartfeeds` (design section 5).

Every command is a module of this package; what they need is imported when they run, so that `--help` is quick.
Expected errors end with one line that says what to do, and with the exit code of their kind.
"""

import importlib
from typing import Final

import click

from smartfeeds import __version__
from smartfeeds.cli.common import EXIT_HELP, Commands

# command -> module that holds it
_MODULES: Final = {
    "run": "run",
    "status": "run",
    "init": "init",
    "doctor": "doctor",
    "import": "documents",
    "export": "documents",
    "convert": "convert",
    "merge": "merge",
    "conflicts": "conflicts",
    "follow": "follow",
    "nno": "nno",
    "mirror": "mirrors",
    "node": "nodes",
    "sub": "nodes",
    "token": "tokens",
    "db": "data",
    "backup": "data",
    "bench": "bench",
    "demo": "demo",
}


class LazyCommands(Commands):
    """Finds a command by importing its module: the function is called like the command, with `_command` behind it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, in the order of the table."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name."""
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"smartfeeds.cli.{_MODULES[cmd_name]}")
        found = getattr(module, f"{cmd_name}_command")
        assert isinstance(found, click.Command)
        return found


@click.group("smartfeeds", cls=LazyCommands, epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="smartfeeds")
def main() -> None:
    """Smart Feeds for XMPP: a publish-subscribe component whose followers can prove that they have everything."""
