"""The options that commands share, and how a command finds its configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from smartfeeds.config import Settings, is_configured_by_environment, load
from smartfeeds.console import err
from smartfeeds.errors import ConfigError

DEFAULT_CONFIG: Final = "smartfeeds.toml"
Command = TypeVar("Command", bound=Callable[..., Any])


def config_option(command: Command) -> Command:
    """`--config FILE`, which `read_settings` reads."""
    return click.option(
        "--config",
        "config",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="SMARTFEEDS_CONFIG",
        help=f"The configuration file. Default: {DEFAULT_CONFIG} here, or the environment alone where there is none.",
    )(command)


def json_option(command: Command) -> Command:
    """`--json` for commands that read."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def config_file(config: Path | None) -> Path | None:
    """The file of `--config`, or the one in this folder; None where there is none."""
    return Path(DEFAULT_CONFIG) if config is None and Path(DEFAULT_CONFIG).exists() else config


def read_settings(config: Path | None) -> Settings:
    """The settings of `--config`, of the file in this folder, or of the environment. Raises ConfigError."""
    config = config_file(config)
    try:
        settings = load(config)
    except ConfigError as error:
        if config is None:
            advice = (
                f"there is no {DEFAULT_CONFIG} in {Path.cwd()}: name a configuration with --config, or make one with "
                "smartfeeds init DOMAIN"
            )
            raise ConfigError(f"{error}\n  {advice}" if is_configured_by_environment() else advice) from None
        raise
    if settings.store.warning:
        err.print(f"warning: {settings.store.warning}", markup=False)
    return settings


def refuse_devices(path: Path) -> None:
    """Raises ConfigError for what is there and no file, such as /dev/null: a finished file would take its place."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is there already, and is no file")
