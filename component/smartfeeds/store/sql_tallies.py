"""Counts that are kept, never counted: of all nodes, and of what a bare JID and the JIDs of a domain have.

A count is the sum of its rows. Each writing connection to PostgreSQL adds differences to a row of its own, so a process
that creates a node never waits for the commit of another process (PG-042). `gather_tallies` adds these rows up.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from smartfeeds.core.touches import Touch
from smartfeeds.store.engine import Engine

# Counts the changes of the block lists and of the open erasures (`sql_blocks`); also the text that locks them.
BLOCKS = "blocks"
# The text that locks what a bare JID has, behind which the JID follows: its nodes, subscriptions, contacts, sources.
QUOTAS = "quotas "
GATHERED = 0  # the slot of rows that no connection to PostgreSQL changes
SUM = "SELECT sum(value) FROM tally WHERE name = ?"
_ADD = (
    "INSERT INTO tally (name, slot, value) VALUES (?, ?, ?)"
    " ON CONFLICT (name, slot) DO UPDATE SET value = tally.value + excluded.value"
)
_SCATTERED = f"SELECT name, slot, value FROM tally WHERE slot <> {GATHERED} ORDER BY name, slot LIMIT ?"


class PersonCount(NamedTuple):
    """The counts that a quota limits. `of` is the prefix of the tally names of bare JIDs, `of_domain` that of
    domains."""

    of: str
    of_domain: str

    def names_of(self, bare: str) -> tuple[str, str]:
        """Returns the names of the counts of a bare JID and of its domain."""
        return self.of + bare, self.of_domain + bare.rpartition("@")[2]


NODES_BY = PersonCount("nodes of ", "nodes@")  # the live nodes that a JID has created
SUBSCRIPTIONS_BY = PersonCount("subscriptions of ", "subscriptions@")  # those of a JID and its resources, in all states


def limiting_counts(touches: Iterable[Touch]) -> list[str]:
    """Returns the names of the counts that limit requests: two for each request that counts against a quota."""
    names = [
        (SUBSCRIPTIONS_BY if touch.subscribes else NODES_BY).names_of(touch.quota_of)
        for touch in touches
        if touch.quota_of
    ]
    return sorted({*chain.from_iterable(names)})


class TallyReads:
    """The part of ReadTx that is about counts."""

    def __init__(self, db: Engine) -> None:
        self.db = db
        # Counts that were read, without the changes of this transaction, which are in `_differences`: reads have none.
        self.sums: dict[str, int] = {}
        self._differences: defaultdict[str, int] = defaultdict(int)

    def sum_tally(self, name: str) -> int:
        """Returns a count, which is 0 if it has no row."""
        row = self.db.row(SUM, (name,))
        return (int(row[0] or 0) if row else 0) + self._differences.get(name, 0)

    def sum_once(self, name: str) -> int:
        """Returns a count as `sum_tally`, read once in a transaction: that of a bare JID, whose quotas are locked, or
        that of a domain, which need not be exact.
        """
        difference = self._differences.get(name, 0)
        if name not in self.sums:
            self.sums[name] = self.sum_tally(name) - difference
        return self.sums[name] + difference

    def has_scattered_tallies(self) -> bool:
        """Returns whether a count has rows that `gather_tallies` would add up."""
        return bool(self.db.rows(_SCATTERED, (1,)))


class TallyWrites(TallyReads):
    """The part of WriteTx that is about counts.

    Differences stay in memory until the end of the transaction: each count then costs one statement for a whole group,
    and its row is locked for the time of the commit only.
    """

    def __init__(self, db: Engine) -> None:
        super().__init__(db)
        # Counts writes, and grows before each of them: a failed work that has written needs a rollback.
        self.changes = 0

    def add_tallies(self, names: Iterable[str], by: int) -> None:
        """Changes counts by the same number."""
        self.changes += 1
        for name in names:
            self._differences[name] += by

    def remove_counts(self, bare: str) -> None:
        """Removes the rows of the counts of a bare JID that has nothing any more, and has locked its quotas. Rows of
        several connections to PostgreSQL may have the sum 0."""
        self._settle_tallies()
        self.changes += 1
        names = [count.of + bare for count in (NODES_BY, SUBSCRIPTIONS_BY)]
        self.db.run_many("DELETE FROM tally WHERE name = ?", [(name,) for name in names if not self.sum_tally(name)])

    def _settle_tallies(self) -> None:
        """Writes the differences to the database. Rows that become 0 by them are removed, except where a negative row
        grows: `gather_tallies` removes those.
        """
        # In ascending order, so that connections that share a slot do not deadlock.
        differences = sorted([difference for difference in self._differences.items() if difference[1]])
        self._differences.clear()
        self.sums.clear()
        if differences:
            less = [name for name, by in differences if by < 0]
            self._write_tallies(differences, self.db.tally_slot, less)

    def _write_tallies(self, differences: list[tuple[str, int]], slot: int, perhaps_zero: list[str]) -> None:
        self.db.run_many(_ADD, [(name, slot, by) for name, by in differences])
        if perhaps_zero:
            self.db.run_many(
                "DELETE FROM tally WHERE name = ? AND slot = ? AND value = 0", [(name, slot) for name in perhaps_zero]
            )

    def gather_tallies(self, limit: int) -> int:
        """Adds up to `limit` rows of connections to the rows of their counts. Returns their number.

        Rows that another process changes at this time stay for the next call.
        """
        self.changes += 1
        self._settle_tallies()
        rows = self.db.rows(_SCATTERED + self.db.skip_locked, (limit,))
        self.db.run_many("DELETE FROM tally WHERE name = ? AND slot = ?", [(name, slot) for name, slot, _ in rows])
        sums: Counter[str] = Counter()
        for name, _, value in rows:
            sums[name] += value
        self._write_tallies(sorted(sums.items()), GATHERED, sorted(sums))
        return len(rows)
