"""Housekeeping of the counts of the whole service, which are sums of rows (`store.sql_tallies`)."""

from collections.abc import Sequence

from smartfeeds.service.context import Context
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.store.base import ReadTx, WriteTx

STEP = 500  # rows that one transaction adds up: some 20 ms


def due_tallies(tx: ReadTx, _context: Context, _after: int) -> tuple[Sequence[WriteStep[None]], None]:
    """Returns `gather` if a count has rows of several connections."""
    return ([gather] if tx.has_scattered_tallies() else []), None


def gather(tx: WriteTx, _context: Context) -> MoreSteps[None] | None:
    """Adds up the rows of counts."""
    return MoreSteps(gather) if tx.gather_tallies(STEP) == STEP else None
