"""Adds a check to `smartfeeds source`: without a folder, no enclosure can be loaded in advance (PRE-036)."""

from copy import copy
from functools import wraps
from typing import Any, Final

import click

from smartfeeds.cli.common import read_settings
from smartfeeds.errors import ConfigError

_COMMANDS: Final = ("add", "follow", "set", "import")


def with_check(command: click.Command) -> click.Command:
    """Returns the command whose subcommands refuse `--prefetch` without a folder."""
    assert isinstance(command, click.Group)
    group = copy(command)
    group.commands = {**command.commands, **{name: _checked(command.commands[name]) for name in _COMMANDS}}
    return group


def _checked(command: click.Command) -> click.Command:
    callback = command.callback
    assert callback is not None

    @wraps(callback)
    def run(**parameters: Any) -> Any:
        if parameters["prefetch"]:
            from smartfeeds.features.prefetch.settings import PrefetchSettings

            folder = read_settings(parameters["config"]).section(PrefetchSettings).folder
            if folder is None:
                raise ConfigError("nothing can be loaded in advance: prefetch.folder is not set; set a folder first")
        return callback(**parameters)

    checked = copy(command)
    checked.callback = run
    return checked
