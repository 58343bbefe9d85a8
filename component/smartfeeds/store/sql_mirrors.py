"""The rows of mirrors in SQL."""

from smartfeeds.core.mirror import MirrorRow, dump_settings, dump_states, load_settings, load_states
from smartfeeds.store.engine import Row
from smartfeeds.store.sql_nodes import NodeReads, NodeWrites

_COLUMNS = "name, configured, settings, state"


def _to_mirror(row: Row) -> MirrorRow:
    name, configured, settings, state = row
    return MirrorRow(load_settings(name, settings), bool(configured), load_states(state))


class MirrorReads(NodeReads):
    """The part of ReadTx for mirrors."""

    def mirror(self, name: str) -> MirrorRow | None:
        row = self._db.row(f"SELECT {_COLUMNS} FROM mirror WHERE name = ?", (name,))
        return _to_mirror(row) if row else None

    def mirrors(self) -> list[MirrorRow]:
        return [_to_mirror(row) for row in self._db.rows(f"SELECT {_COLUMNS} FROM mirror ORDER BY name", ())]


class MirrorWrites(NodeWrites, MirrorReads):
    """The part of WriteTx for mirrors."""

    def put_mirror(self, row: MirrorRow) -> None:
        self.changes += 1
        values = (row.mirror.name, int(row.configured), dump_settings(row.mirror), dump_states(row.states))
        self._db.run(
            f"INSERT INTO mirror ({_COLUMNS}) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
            " configured = excluded.configured, settings = excluded.settings, state = excluded.state",
            values,
        )

    def remove_mirror(self, name: str) -> None:
        self.changes += 1
        self._db.run("DELETE FROM mirror WHERE name = ?", (name,))
