"""Progress bars. The service has none of them, so only commands import this module."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

# Output to another program is not a terminal and must not be folded at a width.
out = Console(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1_000)
err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def progress_bar() -> Progress:
    """Returns a progress bar on standard error. It shows nothing if standard error is not a terminal."""
    return _bar(MofNCompleteColumn())


@contextmanager
def step_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function that shows a progress bar for each step. It receives the name of the step, the units that are
    done, and their total."""
    tasks: dict[str, TaskID] = {}
    with progress_bar() as progress:

        def show(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=total)
            progress.update(tasks[step], completed=done)

        yield show


def byte_bar() -> Progress:
    """Returns a progress bar of bytes on standard error, as `progress_bar`."""
    return _bar(DownloadColumn(), TransferSpeedColumn())


def _bar(*columns: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    )
