"""The interface of a store: transactions with named operations.

A use case of `service/` is a function over a transaction. So the rules are in one place, and a store manages rows only.
The functions run in the store's own thread. They must not await, block, or use anything except the transaction and
their arguments. A function that raises leaves no changes. It may run a second time from the start if the commit that it
shared with others failed.

`Store.read` and `Store.write` run a function for a task that waits. `Store.submit_read` and `Store.submit_write` run a
`Work`, which gets its result by a call and needs no task. A write ends when its commit is durable. Several writes may
share a commit (group commit); each of them is still atomic. A read sees one snapshot, which contains every write that
was acknowledged before.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from time import perf_counter
from typing import Any, Protocol, TypeVar

from smartfeeds.core.touches import Touch
from smartfeeds.core.view import View
from smartfeeds.store.scan import SCAN_LEAST as SCAN_LEAST  # for the use cases, which see the store through this module
from smartfeeds.store.scan import Scan as Scan
from smartfeeds.store.sql_blocks import BlockReads, BlockWrites
from smartfeeds.store.sql_counts import CountReads
from smartfeeds.store.sql_files import FileReads
from smartfeeds.store.sql_item_writes import ItemWrites
from smartfeeds.store.sql_node_lists import NodeLists
from smartfeeds.store.sql_people import PeopleReads, PeopleWrites
from smartfeeds.store.sql_push import PushReads, PushWrites
from smartfeeds.store.sql_records import RecordReads, RecordWrites
from smartfeeds.store.sql_server import ServerReads

T = TypeVar("T")


class ReadTx(
    BlockReads,
    FileReads,
    CountReads,
    NodeLists,
    PeopleReads,
    PushReads,
    RecordReads,
    ServerReads,
):
    """The reading operations of a transaction, on one snapshot. Lists are ordered by the key that `after` names,
    ascending. The store calls `forget` after each snapshot, because nodes that were read stay in memory.
    """


class WriteTx(
    BlockWrites,
    ItemWrites,
    PeopleWrites,
    PushWrites,
    RecordWrites,
    ReadTx,
):
    """The reading and writing operations of a transaction. Each method maintains the derived counts (total, live,
    subscriptions).

    The works of a group share one transaction. The store calls `settle` before the commit, and `forget` after the
    commit or the rollback. `changes` counts changes, so that the store can see whether a failed work must be rolled
    back.
    """


class Again(Exception):  # noqa: N818 - no error: the rest of a work
    """The outcome of a work that has not ended: `work` runs next, in a transaction of its own.

    A work returns it to commit what it has changed, or raises it if it has changed nothing. The works of other turns
    run in between, and later works of the same turn after the end. So the works of one turn take effect in their order,
    however many transactions each of them needs.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        super().__init__()
        self.work = work


class Work(ABC):
    """A function for a transaction that waits or runs, and its result or error afterwards.

    `turn` names the requester. `future` is that of a caller that may be cancelled, None if there is none: once it is
    done, the work is not run any more. A subclass says what runs (`step`) and what follows. `spent_s` is the time of
    the last part.
    """

    __slots__ = ("_touch", "again", "error", "future", "rest", "result", "spent_s", "turn")

    def __init__(self, turn: str, touch: Touch | None = None) -> None:
        self.turn = turn
        self._touch = touch
        self.future: asyncio.Future[Any] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.again: Again | None = None  # the next part of a work that has not ended
        self.rest: Callable[[Any], Any] | None = None  # what runs next; the first part if it is None
        self.spent_s = 0.0

    def touch(self) -> Touch | None:
        """Returns what the first part will look up. Only connections that look ahead ask for it."""
        return self._touch

    def run(self, tx: Any) -> None:
        """Runs the next part in a transaction, and keeps its result or error and the time that it took."""
        began_s = perf_counter()
        try:
            self.result, self.error = (self.step(tx) if self.rest is None else self.rest(tx)), None
        except Exception as error:  # noqa: BLE001 - every error of a work is for its caller
            self.result, self.error = None, error
        outcome = self.result if self.error is None else self.error
        self.again = outcome if type(outcome) is Again else None
        self.spent_s += perf_counter() - began_s

    def fail(self, error: BaseException) -> None:
        """Ends the work with an error: its last part was not committed, so what follows it must not run."""
        self.result, self.error, self.again = None, error, None

    @abstractmethod
    def step(self, tx: Any) -> object:
        """Does the first part in a transaction, in the thread of the store."""

    def committed(self) -> None:  # noqa: B027 - most works have nothing to do then
        """A part was committed. Called in the event loop. What it raises becomes the error of the work."""

    @abstractmethod
    def ended(self) -> None:
        """The work has a result or an error. Called in the event loop, unless `future` is done. It raises nothing."""


def settle(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    """Passes the result of a work, or its error, to the caller that waits, unless it was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, asyncio.CancelledError):
        future.cancel()
    elif isinstance(error, StopIteration):
        # A future refuses it, and the caller would wait for ever.
        future.set_exception(RuntimeError("a work raised StopIteration"))
    else:
        future.set_exception(error)


class OpenMode(Enum):
    """The mode in which a store is opened.

    Only a service and `db upgrade` change the schema: a command of a newer version must not change it under a running
    service of an older version.
    """

    READ = "read"
    """Reads an existing store."""
    WRITE = "write"
    """Reads and writes an existing store."""
    CREATE = "create"
    """Reads and writes a store, which is created when it does not exist."""
    SERVE = "serve"
    """As CREATE; an older schema is upgraded."""

    @property
    def creates(self) -> bool:
        """Whether a missing store is created."""
        return self in (OpenMode.CREATE, OpenMode.SERVE)


class Store(Protocol):
    """A store of feeds."""

    async def open(self) -> None:
        """Opens the store as its `OpenMode` allows. Raises StoreError with advice."""

    def prepare_close(self) -> None:
        """The service ends. From now on a database that does not answer delays no work for long."""

    async def close(self) -> None:
        """Finishes running work and closes the store."""

    async def read(self, work: Callable[[ReadTx], T], *, turn: str = "", touch: Touch | None = None) -> T:
        """Runs `work` on a snapshot. Raises what `work` raises, or StoreError.

        `turn` names the requester. Waiting work of different turns is served in rotation, work of one turn in its
        order. `touch` names what `work` will look up, which a store may read for a whole batch at once.
        """

    async def write(
        self,
        work: Callable[[WriteTx], T | Again],
        *,
        turn: str = "",
        on_commit: Callable[[], None] | None = None,
        touch: Touch | None = None,
    ) -> T:
        """Runs `work` in a transaction and returns when it is durable. Raises what `work` raises, or StoreError.

        `on_commit` is called after each commit, also if the caller was cancelled meanwhile. `touch` names what `work`
        will look up, which a store may read for a whole group at once.
        """

    def submit_read(self, work: Work) -> None:
        """Runs a work as `read` does. Raises StoreError if the store is closed."""

    def submit_write(self, work: Work) -> None:
        """Runs a work as `write` does. Raises StoreError if the store is closed."""

    def new_scan(self, node_no: int, view: View) -> Scan:
        """Returns a scan for the filters of a view, for `ReadTx.scan_on`."""

    async def index_some(self, limit: int) -> int:
        """Runs `WriteTx.index_some` in a transaction of its own, with payloads read before it. Raises StoreError."""
