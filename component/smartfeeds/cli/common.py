"""Options that commands share, and the search for the configuration file.

The settings are imported when they are read: help texts and the completion of shells need the options alone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from smartfeeds.console import print_err
from smartfeeds.core.jid import parse_jid
from smartfeeds.errors import ConfigError

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings

DEFAULT_CONFIG: Final = "smartfeeds.toml"
# The path of a file that a command writes, or reads if it exists.
FILE: Final = click.Path(dir_okay=False, path_type=Path)
# The path of a document that a command reads; "-" is standard input.
DOCUMENT: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])


def config_option(command: Command) -> Command:
    """Add `--config FILE`, which `read_settings` uses."""
    return click.option(
        "--config",
        type=FILE,
        envvar="SMARTFEEDS_CONFIG",
        help=f"The configuration file. Default: {DEFAULT_CONFIG} in this folder, else the environment alone.",
    )(command)


def json_option(command: Command) -> Command:
    """Add `--json` to a command that reads or changes something."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def node_argument(*, required: bool = True, name: str = "node", former: str = "--node") -> Callable[[Command], Command]:
    """Return the decorator that adds the argument NODE, the one way to name the node that a command works on.

    Commands had an option for it, `former`, which still works and is not shown.
    """
    key = f"{__name__}.node"

    def keep(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        ctx.meta[key] = value

    def choose(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        by_option = ctx.meta.pop(key, None)
        if value is not None and by_option is not None:
            raise click.UsageError(f"the node is named twice: {value} and {former} {by_option}", ctx)
        node: str | None = by_option if value is None else value
        if node is None and required and not ctx.resilient_parsing:
            raise click.MissingParameter(ctx=ctx, param=param)
        return node

    def decorate(command: Command) -> Command:
        # Eager, because the argument needs its value.
        command = click.option(former, f"former_{name}", hidden=True, expose_value=False, is_eager=True, callback=keep)(
            command
        )
        metavar = "NODE" if required else "[NODE]"
        return click.argument(name, required=False, metavar=metavar, callback=choose)(command)

    return decorate


def output_option(command: Command) -> Command:
    """Add `--output FILE` to a command that writes a document."""
    return click.option("--output", type=FILE, help="The output file. Default: standard output.")(command)


def private_option(command: Command) -> Command:
    """Add `--allow-private` to a command that fetches documents."""
    text = "Allow web addresses in private networks and on this machine."
    return click.option("--allow-private", is_flag=True, help=text)(command)


def yes_option(command: Command) -> Command:
    """Add `--yes` to a command that asks before it destroys data."""
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def bare_jid(text: str) -> str:
    """Return the normal form of a bare JID, as the type of an option. Raises BadParameter."""
    jid = parse_jid(text)
    if jid is None or jid.resource:
        raise click.BadParameter(f"{text!r} is not a bare JID such as alice@example.org")
    return str(jid)


def name_of(file: Path) -> str:
    """Return the name of a document for messages."""
    return "standard input" if str(file) == "-" else str(file)


def config_file(config: Path | None) -> Path | None:
    """Return the file of `--config`, else the default file in this folder, else None."""
    return Path(DEFAULT_CONFIG) if config is None and Path(DEFAULT_CONFIG).exists() else config


def read_settings(config: Path | None) -> "Settings":
    """Return the settings for a command that uses the database. Warns if it is probably the wrong one.

    Raises ConfigError.
    """
    settings = load_settings(config)
    if settings.store.warning:
        print_err(f"warning: {settings.store.warning}")
    return settings


def load_settings(config: Path | None) -> "Settings":
    """Return the settings from `--config`, from the default file, or from the environment. Raises ConfigError."""
    from smartfeeds.app.config import is_configured_by_environment, load

    config = config_file(config)
    try:
        return load(config)
    except ConfigError as error:
        if config is None:
            advice = (
                f"there is no {DEFAULT_CONFIG} in {Path.cwd()}: name a configuration with --config, or create one with "
                "smartfeeds init DOMAIN"
            )
            raise ConfigError(f"{error}\n  {advice}" if is_configured_by_environment() else advice) from None
        raise


def refuse_devices(path: Path) -> None:
    """Raises ConfigError for a device or a folder. Writing replaces the path, which would remove /dev/null."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} exists and is not a regular file; name another path")
