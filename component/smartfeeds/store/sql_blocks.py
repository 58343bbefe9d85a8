"""The block lists in SQL (`core.blocklist`). Every request begins with this look-up."""

from collections.abc import Sequence

from smartfeeds.core.blocklist import DIGEST_PREFIX, ListKind, Refusal, same_addresses
from smartfeeds.core.jid import Jid
from smartfeeds.core.person import Person
from smartfeeds.store.rows import placeholders
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites
from smartfeeds.store.sql_tallies import BLOCKS


class BlockReads(NodeReads):
    """The part of ReadTx for block lists."""

    def blocks_version(self) -> int:
        """Returns a number that grows with each change of what `refusal` depends on; 0 if nobody was ever refused."""
        version = self._ahead.blocks_version
        if version is None:
            self._hold_blocks()
            version = self._ahead.blocks_version = self.sum_tally(BLOCKS)
        return version

    def _hold_blocks(self) -> None:
        """Keeps `blocks_version` as it is until this transaction ends. A snapshot does."""

    def person_salt(self) -> bytes:
        """Returns the salt of digests of JIDs, empty before the first erasure."""
        row = self.db.row("SELECT salt FROM salt LIMIT 1")
        return bytes(row[0]) if row else b""

    def refusal(self, bare: str, domain: str) -> Refusal | None:
        """Returns why a bare JID may not use the service, None if it may.

        The cost for most services is one look-up for all works of a transaction.
        """
        if not self.blocks_version():
            return None
        if self.number("SELECT EXISTS (SELECT 1 FROM erasure WHERE jid = ? AND jid <> '')", (bare,)):
            return Refusal.ERASING
        salt = self.person_salt()
        names: list[str] = []
        for jid in same_addresses(Jid(bare.rpartition("@")[0], domain)):
            names += [str(jid), jid.domain]
            if salt and jid.local:
                names.append(f"{DIGEST_PREFIX}{Person(str(jid)).digest(salt).hex()}")
        if self._is_on(ListKind.DENY, names):
            return Refusal.DENIED
        has_allowed = "SELECT EXISTS (SELECT 1 FROM block WHERE kind = ?)"
        if self.number(has_allowed, (ListKind.ALLOW.value,)) and not self._is_on(ListKind.ALLOW, names):
            return Refusal.NOT_ALLOWED
        return None

    def _is_on(self, kind: ListKind, names: Sequence[str]) -> bool:
        statement = f"SELECT EXISTS (SELECT 1 FROM block WHERE kind = ? AND name IN ({placeholders(names)}))"
        return bool(self.number(statement, (kind.value, *names)))


class BlockWrites(NodeWrites, BlockReads):
    """The part of WriteTx for block lists."""

    def _hold_blocks(self) -> None:
        # Without the lock, a process on PostgreSQL could commit an item of a person behind the erasure of this person.
        self.db.lock_text(BLOCKS, shared=True)

    def change_blocks(self) -> None:
        """Begins a change of what `refusal` depends on: waits for the transactions that have asked for it."""
        self.db.lock_text(BLOCKS)
        self.add_tallies([BLOCKS], 1)
        self._ahead.blocks_version = None
        self.admitted.clear()
