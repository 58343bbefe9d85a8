"""Steps: the result of a use case that cannot finish in the transaction that it runs in.

A use case is a function of a transaction. It returns its answer. It returns `MoreSteps` if the rest must run in a
transaction of its own, so that the writes of other users run in between. It returns `IndexFirst` if it needs the
filter index of a node, and a read `BeginIndexes` if it needs what the indexes of several nodes have.
`FeedService.write` and `FeedService.read` run the steps until the answer exists. No other write of the same user runs
between two steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from smartfeeds.core.model import IndexState, Node
from smartfeeds.core.view import View
from smartfeeds.service.context import Context
from smartfeeds.store.base import SCAN_LEAST, ReadTx, WriteTx

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class IndexFirst:
    """The step has changed nothing and must run again when the filter index of this node is up to date.

    A read of one filtered `view` may run again after a scan instead (`service.scans`).
    """

    node_no: int
    view: View | None = None


@dataclass(frozen=True, slots=True)
class BeginIndexes:
    """The read needs only what the filter indexes have, and must run again when those of these nodes have begun."""

    node_nos: tuple[int, ...]


ReadAgain = IndexFirst | BeginIndexes  # the results of a read that must run again


@dataclass(frozen=True, slots=True)
class MoreSteps(Generic[T_co]):
    """A part of the work is done. `step` does the next part in a transaction of its own."""

    step: "WriteStep[T_co]"


WriteStep = Callable[[WriteTx, Context], T | MoreSteps[T] | IndexFirst]


def index_first(tx: ReadTx, node: Node, view: View) -> IndexFirst | None:
    """Returns IndexFirst if the view has filters and the store has not indexed the newest items of the node yet."""
    if not view.filtered or tx.index_state(node.node_no) is IndexState.CURRENT or tx.is_scanned(node.node_no, view):
        return None
    return IndexFirst(node.node_no, view if node.total > SCAN_LEAST else None)
