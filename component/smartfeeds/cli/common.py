"""What the commands share: exit codes, the configuration option, output, and how errors end."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from smartfeeds.config import Settings, is_configured_by_environment, load
from smartfeeds.core.text import one_line
from smartfeeds.errors import ConfigError, FeedError, FollowError, LinkError, LoginError, SmartfeedsError, StoreError

T = TypeVar("T")
DEFAULT_CONFIG: Final = "smartfeeds.toml"


class Exit(IntEnum):
    """How a command ends."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    STORE = 4
    LINK = 5
    REFUSED = 6
    INTERRUPTED = 130


EXIT_TEXTS: Final = {
    Exit.OK: "done",
    Exit.FAILED: "it ran, and something is wrong or missing",
    Exit.USAGE: "the command line is wrong",
    Exit.CONFIG: "the configuration, or what is installed, has to be changed",
    Exit.STORE: "the store cannot be used: full, locked, read-only, broken or newer than this program",
    Exit.LINK: "the XMPP server is away or refuses us",
    Exit.REFUSED: "the request was refused: no such node, no such item, not allowed, too big",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
}
EXIT_HELP: Final = "\b\nExit codes:\n" + "\n".join(f"  {code:<4d} {text}" for code, text in EXIT_TEXTS.items())

_CODES: Final[tuple[tuple[type[SmartfeedsError], Exit], ...]] = (
    (ConfigError, Exit.CONFIG),
    (StoreError, Exit.STORE),
    (LinkError, Exit.LINK),
    (FeedError, Exit.REFUSED),
    (LoginError, Exit.LINK),
    (FollowError, Exit.REFUSED),
)

# Rows for other programs are not folded at the width of a terminal that is not there.
out = Console(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1_000)
err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def exit_code(error: SmartfeedsError) -> Exit:
    """The exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)


class Commands(click.Group):
    """A group whose commands end expected errors with one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except SmartfeedsError as error:
            err.print(f"smartfeeds: {error}", markup=False)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)


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


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs a command's work to its end."""
    return asyncio.run(work)


def print_json(value: object) -> None:
    """Writes a value as JSON to standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(rows: list[dict[str, Any]], *, as_json: bool, empty: str) -> None:
    """Rows of the same columns as a table or as JSON; `empty` is said where there are none."""
    if as_json:
        print_json(rows)
        return
    if not rows:
        err.print(empty, markup=False)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, value in rows[0].items():
        table.add_column(name.replace("_", " "), justify="right" if isinstance(value, int) else "left", overflow="fold")
    for row in rows:
        # What others named is no markup.
        table.add_row(*(Text(one_line(str(value))) for value in row.values()))
    print_table(table)


def print_table(table: Table) -> None:
    """A table on standard output, without the blanks that fill up its last column."""
    with out.capture() as printed:
        out.print(table, soft_wrap=False)
    for line in printed.get().splitlines():
        click.echo(line.rstrip())


def progress_bar() -> Progress:
    """A bar on standard error; nothing moves where that is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=False,
        disable=not err.is_terminal,
    )
