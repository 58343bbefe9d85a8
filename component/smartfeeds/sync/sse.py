"""SSE 0.91: comparison (sections 4.3, 4.4), creation (4.1), update (4.2), conflict lists (5).

Numbers in comments are the steps of the specification.
"""

from collections.abc import Iterable, Sequence

from smartfeeds.sync.erasure import erases, restored_markup
from smartfeeds.sync.merging import Dialect, in_order
from smartfeeds.sync.record import Edit, Flag, HistoryRecord, Version, next_counter, rank

# Records per history. Shorter histories hide conflicts: of 6,809 conflicts 153 went unnoticed with 3 records, and 1,754
# with 1 record.
KEPT_RECORDS = 100


def stepped_on(winner: Version, loser: Version) -> bool:
    """Returns whether the winner was made without knowledge of the loser's newest change (4.4.1, SSE-040, SSE-041)."""
    # 1.a, 1.b
    n = winner.counter - loser.counter
    # 1.d: a truncated history shows no conflict.
    if not 0 <= n < len(winner.history):
        return False
    # 1.c, 1.e, 1.f: record 0 is sx:history, the others are its updates
    record = winner.history[n]
    return (record.when_us, record.by) != (loser.top.when_us, loser.top.by)


def one_per_endpoint(conflicts: Iterable[Version]) -> tuple[Version, ...]:
    """Returns for each endpoint the conflict with the latest version, then the latest time (5.2, SSE-049, A-82)."""
    newest: dict[str, Version] = {}
    for conflict in conflicts:
        former = newest.get(conflict.top.by)
        if former is None or rank(conflict) > rank(former):
            newest[conflict.top.by] = conflict
    return in_order(newest.values())


def _as_conflict(loser: Version) -> Version:
    """Returns what sx:conflict stores of a loser: version, when, by, and its content (SSE-048)."""
    top = loser.top
    return Version(
        loser.sync_id,
        loser.counter,
        (HistoryRecord(loser.counter, top.when_us, top.by, top.written),),
        loser.payload,
    )


class SseDialect(Dialect):
    """SSE: the version number identifies the record of the winner that the loser should match."""

    name = "SSE"
    counter = "version"
    names = frozenset({"id", "version", "deleted", "conflict"})

    def __reduce__(self) -> str:
        return "SSE"

    def join(self, local: Version, incoming: Version) -> tuple[Version, tuple[str, ...]]:
        """Returns the winner, with a conflict mark if it does not know the loser (4.4)."""
        below, above = erases(incoming, local), erases(local, incoming)
        if below is not above:
            return (incoming if below else local), ()
        winner, loser = (local, incoming) if rank(local) >= rank(incoming) else (incoming, local)
        # 4.4 step 2: equal in all keys. The marks of both are combined, otherwise they would never spread.
        if winner.key == loser.key:
            conflicts = one_per_endpoint((*winner.conflicts, *loser.conflicts))
            mark = Flag.TRUE if loser.conflict.on else winner.conflict
            return winner._replace(conflict=mark, conflicts=conflicts), ()
        # 4.4.1 step 2: without a conflict the winner is unchanged.
        if not stepped_on(winner, loser):
            return winner, ()
        rivals = [rival for rival in (_as_conflict(loser), *loser.conflicts) if stepped_on(winner, rival)]
        conflicts = one_per_endpoint((*winner.conflicts, *rivals))
        return winner._replace(conflict=Flag.TRUE, conflicts=conflicts), ()

    def update(
        self,
        version: Version,
        edit: Edit,
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
        resolved: Sequence[Version] = (),  # noqa: ARG002 - any update resolves all conflicts (5, SSE-044)
    ) -> Version:
        """Changes an item (4.2). Any change except a deletion restores the item (SSE-035) and clears its conflicts
        (SSE-036).
        """
        # 1, 2
        counter = next_counter(version)
        stamp = HistoryRecord(counter, edit.when_us, edit.by)
        return version._replace(
            counter=counter,
            history=(stamp, *version.history)[:KEPT_RECORDS],
            payload=version.payload if payload is None else payload,
            # 3
            deleted=Flag.TRUE if deleted else Flag.ABSENT,
            # 4
            conflict=Flag.ABSENT,
            conflicts=(),
            extra=version.extra if deleted else restored_markup(version.extra),
        )


SSE = SseDialect()
