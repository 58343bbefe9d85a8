"""Batches of works on one connection: reads on a shared snapshot, writes with a shared commit.

A work must leave no changes when it raises. Most works that raise have changed nothing yet and cost nothing. If one has
changed something, its whole batch is rolled back and the works run again, each in a transaction of its own. Running a
work twice is safe: what follows its commit is called by the queue, after the batch. A work runs again also after a
`TransientError`: another process was in its way, or the connection was lost before the commit.
"""

import time

from smartfeeds.core.touches import Touch
from smartfeeds.errors import StoreError, UnknownOutcomeError
from smartfeeds.store.base import ReadTx, Work, WriteTx
from smartfeeds.store.engine import Engine, OverBudgetError, TransientError
from smartfeeds.store.indexer import ReadAhead
from smartfeeds.telemetry import STORE_GROUP_SIZE, STORE_RETRIES

# A batch of reads ends after this time, and the next free connection continues with the rest. So a read waits at most
# 2 ms and one short read for the batch before it. A budget of 5 ms did not make reads cheaper: 175 to 197 us of CPU
# each, against 177 to 203 us with 2 ms.
READ_BUDGET_S = 0.002
# A group of writes ends after this time, so that a write waits at most 20 ms and one write for the group before it. A
# full group of 256 publishes takes 5 ms, and 8 ms in a feed of a million items. So only groups with slow writes end
# early, and such groups gain little from a shared commit, which takes about 5 ms.
WRITE_BUDGET_S = 0.02
# Attempts of a work that runs alone. A lost connection needs a second one, because each attempt waits for the new
# connection. A work that deadlocks with several other processes may be the one that is ended a few times.
ATTEMPTS = 5


class ReadBatches:
    """Runs batches of reads, each in one snapshot, in the thread of a reading connection.

    `steps` bounds one read (`Engine.allow`). A read that needs more ends with OverBudgetError.
    """

    def __init__(self, engine: Engine, tx: ReadTx, steps: int | None) -> None:
        self._engine = engine
        self._steps = steps
        self._tx = tx

    def run(self, works: list[Work]) -> int:
        until = time.monotonic() + READ_BUDGET_S
        count = 0
        try:
            self._engine.begin_read()
            if self._engine.is_far:
                self._engine.allow(self._steps)  # the look-up may take too long, too
                self._tx.look_ahead(_touches(works))
            for work in works:
                if self._engine.has_failed:
                    self._renew()
                self._engine.allow(self._steps)
                work.run(self._tx)
                count += 1
                # A slow read must not delay the reads after it: the next free connection continues with them.
                if time.monotonic() > until:
                    break
        except (StoreError, OverBudgetError) as error:
            return count + _fail(works[count:], error)
        finally:
            self._engine.allow(None)
            self._tx.forget()
            self._engine.end_read()
        return count

    def _renew(self) -> None:
        """Begins another snapshot after an error of the database, so that the other works of the batch can still run.
        What was read in the former one may be older."""
        self._engine.rollback()
        self._tx.forget()
        self._engine.begin_read()


class WriteBatches:
    """Runs groups of writes, each in one transaction, in the thread of the writing connection."""

    def __init__(self, engine: Engine, reader: ReadAhead) -> None:
        self._engine = engine
        self._tx = WriteTx(engine, reader)
        self._reason = ""  # of the last rollback, for metrics

    def run(self, works: list[Work]) -> int:
        try:
            self._engine.begin()
        except StoreError as error:
            return _fail(works, error)
        count = self._commit(works)
        if count:
            return count
        STORE_RETRIES.labels(self._reason).inc()
        until = time.monotonic() + WRITE_BUDGET_S
        for position, work in enumerate(works):
            if position and time.monotonic() > until:
                return position
            for attempts_left in reversed(range(ATTEMPTS)):
                try:
                    self._engine.begin()
                except StoreError as error:
                    return _fail(works[position:], error) + position
                self._commit([work], last=True)
                if not attempts_left or not isinstance(work.error, TransientError):
                    break
                STORE_RETRIES.labels(self._reason).inc()
            if work.again is not None:
                return position + 1
        return len(works)

    def _commit(self, works: list[Work], *, last: bool = False) -> int:
        """Runs works in the open transaction, as many as the time allows. Returns 0 if it was rolled back and they must
        run again.
        """
        count = 0
        try:
            self._tx.look_ahead(_touches(works))
            # Behind the look-up, which costs the same for any number of works: groups must not become small while a
            # network or a lock is slow.
            until = time.monotonic() + WRITE_BUDGET_S
            for work in works:
                # Slow writes must not delay the writes after them.
                if count and time.monotonic() > until:
                    break
                before = self._tx.changes
                work.run(self._tx)
                count += 1
                # After an error the database may have ended the transaction, even if the work changed nothing.
                if work.error is not None and (self._tx.changes != before or isinstance(work.error, StoreError)):
                    self._reason = _retry_reason(work.error)
                    return int(last)
                if work.again is not None:
                    break
            self._tx.settle()
            self._engine.commit()
            STORE_GROUP_SIZE.observe(count)
        except UnknownOutcomeError as error:
            return _fail(works[:count], error)  # a second run would repeat what may have happened
        except StoreError as error:
            self._reason = _retry_reason(error)
            if last:
                _fail(works, error)
            return int(last)
        finally:
            self._tx.forget()
            self._engine.rollback()  # nothing is open after a commit
        return count


def _touches(works: list[Work]) -> list[Touch]:
    return [touch for work in works if (touch := work.touch()) is not None]


def _retry_reason(error: BaseException) -> str:
    return error.reason if isinstance(error, TransientError) else "rollback"


def _fail(works: list[Work], error: StoreError | OverBudgetError) -> int:
    for work in works:
        work.fail(error)
    return len(works)
