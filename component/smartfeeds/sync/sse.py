"""SSE 0.91: comparing (sections 4.3, 4.4), creation (4.1), update (4.2), conflict lists (5).

The numbers in comments are the steps of the document.
"""

from collections.abc import Iterable
from dataclasses import replace

from smartfeeds.sync.merging import Dialect, check_resolved, in_order
from smartfeeds.sync.record import Edit, Flag, Stamp, Version, check_name, next_counter, rank

# Records that our own histories keep: the fewer there are, the more conflicts nobody sees.
KEPT_RECORDS = 100


def stepped_on(winner: Version, loser: Version) -> bool:
    """4.4.1: whether the loser's newest change is one that the winner was not made from (SSE-040, SSE-041)."""
    # 1.a, 1.b
    n = winner.counter - loser.counter
    # 1.d: a history that was cut off shows no conflict.
    if not 0 <= n < len(winner.history):
        return False
    # 1.c, 1.e, 1.f: record 0 is sx:history, the others are its updates.
    record = winner.history[n]
    return (record.when_us, record.by) != (loser.top.when_us, loser.top.by)


def one_per_endpoint(conflicts: Iterable[Version]) -> tuple[Version, ...]:
    """5.2: of each endpoint the conflict of the latest version, then of the latest time (SSE-049, A-82)."""
    kept: dict[str, Version] = {}
    for conflict in conflicts:
        former = kept.get(conflict.top.by)
        if former is None or rank(conflict) > rank(former):
            kept[conflict.top.by] = conflict
    return in_order(kept.values())


def _as_conflict(loser: Version) -> Version:
    """What sx:conflict keeps of a loser: version, when, by, and its content (SSE-048)."""
    top = loser.top
    return Version(
        loser.sync_id,
        loser.counter,
        (Stamp(loser.counter, top.when_us, top.by, top.written),),
        loser.payload,
    )


class Sse(Dialect):
    """SSE: a version number tells which record of the winner the loser ought to be."""

    name = "SSE"
    counter = "version"

    def join(self, local: Version, incoming: Version) -> tuple[Version, tuple[str, ...]]:
        """4.4: the winner as it is, marked where it stepped on the loser."""
        winner, loser = (local, incoming) if rank(local) >= rank(incoming) else (incoming, local)
        # 4.4 step 2: equal in all keys. The marks of both are kept, else they would never spread.
        if winner.key == loser.key:
            conflicts = one_per_endpoint((*winner.conflicts, *loser.conflicts))
            mark = Flag.TRUE if loser.conflict.on else winner.conflict
            return replace(winner, conflict=mark, conflicts=conflicts), ()
        # 4.4.1 step 2: without a conflict the winner is what it is.
        if not stepped_on(winner, loser):
            return winner, ()
        rivals = [one for one in (_as_conflict(loser), *loser.conflicts) if stepped_on(winner, one)]
        conflicts = one_per_endpoint((*winner.conflicts, *rivals))
        return replace(winner, conflict=Flag.TRUE, conflicts=conflicts), ()

    def create(self, sync_id: str, payload: bytes, edit: Edit, *, deleted: bool = False) -> Version:
        """4.1 alone: 4.2 is for changes (A-72)."""
        check_name(sync_id, "an item")
        flag = Flag.TRUE if deleted else Flag.ABSENT
        return Version(sync_id, 1, (Stamp(1, edit.when_us, edit.by),), payload, deleted=flag)

    def update(
        self, version: Version, edit: Edit, payload: bytes | None = None, *, deleted: bool | None = None
    ) -> Version:
        """4.2: every change that is no deletion makes the item live (SSE-035) and clears its conflicts (SSE-036)."""
        # 1, 2
        counter = next_counter(version)
        stamp = Stamp(counter, edit.when_us, edit.by)
        return replace(
            version,
            counter=counter,
            history=(stamp, *version.history)[:KEPT_RECORDS],
            payload=version.payload if payload is None else payload,
            # 3
            deleted=Flag.TRUE if deleted else Flag.ABSENT,
            # 4
            conflict=Flag.ABSENT,
            conflicts=(),
        )

    def resolve(
        self,
        version: Version,
        edit: Edit,
        resolved: Iterable[Version],
        payload: bytes | None = None,
        *,
        deleted: bool | None = None,
    ) -> Version:
        """5: resolving is one more update, and settles all conflicts (SSE-044)."""
        check_resolved(version, resolved)
        return self.update(version, edit, payload, deleted=deleted)


SSE = Sse()
