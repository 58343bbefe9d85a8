"""The steps of a write, in stores that run every step at once."""

from collections.abc import Callable
from typing import TypeVar

from smartfeeds.store.base import Again, WriteTx

T = TypeVar("T")
Step = Callable[[WriteTx], T | Again]


def run_steps(work: Step[T], run: Callable[[Step[T]], T | Again], on_commit: Callable[[], None] | None) -> T:
    """Returns the result of the last step. `run` runs a step in a transaction, and undoes it if the step raises."""
    while True:
        try:
            result = run(work)
        except Again as again:
            work = again.work
            continue
        if on_commit is not None:
            on_commit()
        if not isinstance(result, Again):
            return result
        work = result.work
