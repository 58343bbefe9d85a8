"""Exit codes, error handling and plain output of all commands. The service imports this, and not `terminal`."""

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from smartfeeds.core.nearest import did_you_mean
from smartfeeds.core.text import one_line
from smartfeeds.errors import (
    ConfigError,
    DocumentFormatError,
    FeedError,
    FollowError,
    LinkError,
    LoginError,
    NewerSchemaError,
    SmartfeedsError,
    StoreError,
)

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Exit(IntEnum):
    """The exit codes of commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    STORE = 4
    LINK = 5
    REFUSED = 6
    RESTART = 7
    NEWER = 8
    INTERRUPTED = 130


SHOWN_LINES: Final = 20  # lines of a report on standard error
EXIT_TEXTS: Final = {
    Exit.OK: "done",
    Exit.FAILED: "the command ran, and something is wrong or missing",
    Exit.USAGE: "the command line is wrong",
    Exit.CONFIG: "the configuration or the installation must be changed",
    Exit.STORE: "the store cannot be used: full, locked, read-only or broken",
    Exit.LINK: "the XMPP server cannot be reached, or refuses the service",
    Exit.REFUSED: "the request was refused: no such node, no such item, not allowed, too big",
    Exit.RESTART: "an admin of the service asked for a restart",
    Exit.NEWER: "the database is newer than this program",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
}
EXIT_HELP: Final = "\b\nExit codes:\n" + "\n".join(f"  {code:<4d} {text}" for code, text in EXIT_TEXTS.items())

_CODES: Final[tuple[tuple[type[SmartfeedsError], Exit], ...]] = (
    (ConfigError, Exit.CONFIG),
    (DocumentFormatError, Exit.USAGE),
    (NewerSchemaError, Exit.NEWER),
    (StoreError, Exit.STORE),
    (LinkError, Exit.LINK),
    (FeedError, Exit.REFUSED),
    (LoginError, Exit.LINK),
    (FollowError, Exit.REFUSED),
)


def exit_code(error: SmartfeedsError) -> Exit:
    """Returns the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)


class Commands(click.Group):
    """A group whose commands end expected errors with one line instead of a traceback."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the name, the command and its arguments. Raises UsageError with the name that was probably meant."""
        name = args[0]
        # An argument that begins with a hyphen is an option, whose error is the better one.
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            from smartfeeds.core.synonyms import synonym  # here, because hardly any command needs it

            known = self.list_commands(ctx)
            meant = synonym(name, known)
            hint = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
            raise click.UsageError(f"no such command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except SmartfeedsError as error:
            click.echo(f"smartfeeds: {error}", err=True)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)


def run_async(work: Coroutine[Any, Any, T], loop_factory: "Callable[[], asyncio.AbstractEventLoop] | None" = None) -> T:
    """Runs a coroutine to its end, on an event loop of `loop_factory` or the default event loop."""
    import asyncio  # here, because help texts need no event loop, and its import is a third of their time

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(work)


def print_out(text: str) -> None:
    """Prints a line on standard output. Line ends and control characters in the text are replaced."""
    click.echo(one_line(text))


def print_err(text: str) -> None:
    """Prints a line on standard error, as `print_out` does."""
    click.echo(one_line(text), err=True)


def exit_failed_if(failed: object) -> None:
    """Ends the command with the code FAILED if `failed` is true or not empty. Otherwise the command continues."""
    if failed:
        click.get_current_context().exit(Exit.FAILED)


def print_json(value: object) -> None:
    """Writes a value as JSON to standard output."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A lone surrogate, which stands for a byte of another program that is no UTF-8, becomes the escape of JSON.
    click.echo(text.encode("utf-8", "backslashreplace").decode())


def print_result(text: str, result: Mapping[str, object], *, as_json: bool) -> None:
    """Prints what a command has changed: a line of text, or the values as JSON."""
    if as_json:
        print_json(result)
    else:
        print_out(text)


def print_lines(lines: Sequence[str], rest: str = "and {} more such lines") -> None:
    """Prints the first lines of a report on standard error, and the number of others. `--json` prints all of them."""
    for line in lines[:SHOWN_LINES]:
        print_err(line)
    if len(lines) > SHOWN_LINES:
        print_err(f"{rest.format(len(lines) - SHOWN_LINES)}; --json lists all of them")
