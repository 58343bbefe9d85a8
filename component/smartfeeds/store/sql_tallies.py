"""Counts of the whole service that are kept, never counted: of nodes, and of what the JIDs of a domain have.

A count is the sum of its rows. Each writing connection to PostgreSQL adds differences to a row of its own, so a process
that creates a node never waits for the commit of another process (PG-042). `gather_tallies` adds these rows up.
"""

from collections import Counter

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


class TallyReads:
    """The part of ReadTx that is about counts of the whole service."""

    def __init__(self, db: Engine) -> None:
        self.db = db

    def sum_tally(self, name: str) -> int:
        """Returns a count, which is 0 if it has no row."""
        row = self.db.row(SUM, (name,))
        return (int(row[0] or 0) if row else 0) + self._difference(name)

    def _difference(self, name: str) -> int:  # noqa: ARG002 - writes have differences
        """Returns by how much this transaction has changed a count."""
        return 0

    def has_scattered_tallies(self) -> bool:
        """Returns whether a count has rows that `gather_tallies` would add up."""
        return bool(self.db.rows(_SCATTERED, (1,)))


class TallyWrites(TallyReads):
    """The part of WriteTx that is about counts of the whole service.

    Differences stay in memory until the end of the transaction: each count then costs one statement for a whole group,
    and its row is locked for the time of the commit only.
    """

    def __init__(self, db: Engine) -> None:
        super().__init__(db)
        self._differences: Counter[str] = Counter()
        # Counts writes, and grows before each of them: a failed work that has written needs a rollback.
        self.changes = 0

    def _difference(self, name: str) -> int:
        return self._differences[name]

    def add_tally(self, name: str, by: int) -> None:
        """Changes a count."""
        self.changes += 1
        self._differences[name] += by

    def _settle_tallies(self) -> None:
        """Writes the differences to the database. Rows of 0 are removed."""
        # In ascending order, so that connections that share a slot do not deadlock.
        differences = sorted((name, by) for name, by in self._differences.items() if by)
        self._differences.clear()
        if differences:
            self._write_tallies(differences, self.db.tally_slot)

    def _write_tallies(self, differences: list[tuple[str, int]], slot: int) -> None:
        self.db.run_many(_ADD, [(name, slot, by) for name, by in differences])
        self.db.run_many(
            "DELETE FROM tally WHERE name = ? AND slot = ? AND value = 0", [(name, slot) for name, _ in differences]
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
        self._write_tallies(sorted(sums.items()), GATHERED)
        return len(rows)
